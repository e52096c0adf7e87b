"""A plan's program as two tables: who occupies which bytes during which steps, and what is copied when.

Step k is the k-th `run` of the program. Times are half-open, in steps: a residency [first, end) holds its
bytes while the steps first ... end - 1 run. Two that share a step never share a byte, except an output
written over its input.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Literal

from onchip.base.errors import UsageError
from onchip.plans import Alloc, Free, Join, Load, Move, PinnedWeights, Plan, Run, Scratch, Store

__all__ = ["Copy", "Layout", "Residency", "layout_of"]


@dataclass(frozen=True, slots=True)
class Residency:
    """`name` (a tensor, or an operator whose scratch or weights it is) holds [offset, offset + bytes).

    `over` is the tensor it was written over, `by` how many bytes above it that one lies. `memory` is one of
    several on chip.
    """

    name: str
    kind: Literal["tensor", "scratch", "weights"]
    offset: int
    bytes: int
    first: int
    end: int
    over: str | None = None
    by: int = 0
    memory: str | None = None


@dataclass(frozen=True, slots=True)
class Copy:
    """`bytes` of a tensor cross between `offset` and DRAM, before step `step` runs; in the program's order.

    `reason` is `compulsory` (first load of an input, first store of an output), `reload` or `spill`. The
    `direction` `move`, whose reason it is too, is from `offset` in `memory` to `to_offset` in `to_memory`.
    """

    step: int
    direction: Literal["load", "store", "move"]
    tensor: str
    offset: int
    bytes: int
    reason: Literal["compulsory", "reload", "spill", "move"]
    memory: str | None = None
    to_memory: str | None = None
    to_offset: int = 0


@dataclass(frozen=True)
class Layout:
    """`steps` names what each step runs (operators, or groups); residencies come by (first, offset)."""

    steps: tuple[str, ...]
    residencies: tuple[Residency, ...]
    copies: tuple[Copy, ...]


def layout_of(plan: Plan, what: str, *, memories: bool = False) -> Layout:
    """The tables of a legal plan, for the format `what`; only one with `memories` can say which of several.

    A residency that no step runs in (a tensor that is only copied through) is left out. Raises `UsageError`
    for a plan that streams operands or joins them to a concat, which these tables cannot say.
    """
    network = plan.network
    if plan.chip.memories and not memories:
        names = ", ".join(m.name for m in plan.chip.memories)
        raise UsageError(
            f"{what} knows one memory, and the plan uses {names}: export to executorch, json or trace",
            where=network.name,
        )
    size = {t.name: t.bytes for t in network.tensors}
    scratch = {op.name: op.workspace for op in network.operators} | {
        g.name: g.scratch_bytes for g in plan.groups
    }
    inputs = {t.name for t in network.tensors if t.kind == "input"}
    outputs = {network.tensors[network.root[t]].name for t in network.outputs}
    kept = {s.input: s.address for s in plan.state}  # on chip from the start, with no copy in DRAM
    outputs -= {s.output for s in plan.state}
    in_dram, fetched = inputs - set(kept), set(kept)
    steps: list[str] = []
    open_ = {t: Residency(t, "tensor", at, size[t], 0, 0) for t, at in kept.items()}
    held: dict[str, Residency] = {}  # scratch, until its run
    closed: list[Residency] = []
    copies: list[Copy] = []
    for instruction in plan.program:
        now = len(steps)
        match instruction:
            case Load(name, address, memory):
                first = name in inputs and name not in fetched
                fetched.add(name)
                reason: Literal["compulsory", "reload"] = "compulsory" if first else "reload"
                copies.append(Copy(now, "load", name, address, size[name], reason, memory))
                open_[name] = Residency(name, "tensor", address, size[name], now, now, memory=memory)
            case Move(name, address, memory):
                left = open_[name]
                copies.append(
                    Copy(now, "move", name, left.offset, size[name], "move", left.memory, memory, address)
                )
                closed.append(replace(left, end=now))
                open_[name] = Residency(name, "tensor", address, size[name], now, now, memory=memory)
            case Alloc(name, parts=(_, *_)):
                raise UsageError(
                    f"{what} cannot say that a tensor lies over its parts", item=f"tensor {name}"
                )
            case Alloc(name, address, over, by, memory=memory):
                open_[name] = Residency(name, "tensor", address, size[name], now, now, over, by, memory)
            case Scratch(name, address, memory):
                held[name] = Residency(name, "scratch", address, scratch[name], now, now, memory=memory)
            case Run(name, streaming):
                if streaming:
                    raise UsageError(f"{what} cannot say that operands are streamed", item=f"operator {name}")
                steps.append(name)
                if name in held:
                    closed.append(replace(held.pop(name), end=now + 1))
                for over in [r.over for r in open_.values() if r.over in open_ and r.first == now]:
                    closed.append(replace(open_.pop(str(over)), end=now + 1))
            case Store(name):
                required = name in outputs and name not in in_dram
                in_dram.add(name)
                copies.append(
                    Copy(
                        now,
                        "store",
                        name,
                        open_[name].offset,
                        size[name],
                        "compulsory" if required else "spill",
                        open_[name].memory,
                    )
                )
            case Join(name):
                raise UsageError(
                    f"{what} cannot say that operands are joined in DRAM", item=f"operator {name}"
                )
            case Free(name):
                closed.append(replace(open_.pop(name), end=now))
    closed += [replace(r, end=len(steps)) for r in (*open_.values(), *_pinned(plan))]
    rows = sorted((r for r in closed if r.end > r.first), key=lambda r: (r.first, r.offset, r.name))
    return Layout(tuple(steps), tuple(rows), tuple(copies))


def _pinned(plan: Plan) -> list[Residency]:
    """The weights that stay in the scratchpad throughout, unless they have one of their own."""
    if plan.chip.weight_scratchpad_bytes is not None:
        return []
    weights = {op.name: op.weight_bytes for op in plan.network.operators}
    return [
        Residency(pin.operator, "weights", pin.address, weights[pin.operator], 0, 0)
        for pin in plan.pins
        if isinstance(pin, PinnedWeights)
    ]
