"""A plan's program as two tables: the residencies by bytes and steps, and the copies by step.

Step k is the k-th `run` of the program. Times are half-open, in steps: a residency [first, end) holds its
bytes while the steps first ... end - 1 run. Two that share a step never share a byte, except an output
written over its input, and a concat over its operands.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Literal, NamedTuple

from onchip.base.errors import UsageError
from onchip.check.replay import Crossed, Ran, Released, Reserved, events_of
from onchip.network import Network
from onchip.plans import Plan

__all__ = ["Copy", "Layout", "Place", "Residency", "Stream", "layout_of", "places_of"]


@dataclass(frozen=True, slots=True)
class Residency:
    """`name` (a tensor, or the operator of a scratch or weights) holds [offset, offset + bytes).

    `over` is the tensor it was written over, `by` how many bytes above it that one lies. `parts` are operands
    of a concat that lie in its bytes until it has run. `memory` is one of several on chip.
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
    parts: tuple[str, ...] = ()


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


@dataclass(frozen=True, slots=True)
class Stream:
    """`bytes` of a tensor pass between DRAM and the scratch of step `step` while it runs, piece by piece."""

    step: int
    direction: Literal["in", "out"]
    tensor: str
    bytes: int
    reason: Literal["compulsory", "reload", "spill"]


@dataclass(frozen=True)
class Layout:
    """`steps` names what each step runs (operators, or groups); residencies come by (first, offset).

    `joined` are the steps that do nothing: concats whose operands lie side by side in DRAM.
    """

    steps: tuple[str, ...]
    residencies: tuple[Residency, ...]
    copies: tuple[Copy, ...]
    streams: tuple[Stream, ...] = ()
    joined: tuple[int, ...] = ()

    def __repr__(self) -> str:
        return (
            f"Layout({len(self.steps):,} steps, {len(self.residencies):,} residencies,"
            f" {len(self.copies):,} copies, {len(self.streams):,} streams)"
        )


class Place(NamedTuple):
    """A tensor lies at `address` of `memory` while the steps `first` ... `end` - 1 run."""

    memory: str
    address: int
    first: int
    end: int


def places_of(plan: Plan) -> dict[str, tuple[Place, ...]]:
    """Return where every tensor of a legal plan lies on chip, in order of time, views within their tensors.

    A tensor that is never there as a whole, as inside a fused group or in DRAM, has no place. A chip that
    names no memories has one, `scratchpad`.
    """
    network = plan.network
    found: dict[str, tuple[Place, ...]] = {tensor.name: () for tensor in network.tensors}
    for r in layout_of(plan, "a table of places", memories=True, tiles=True).residencies:
        if r.kind == "tensor":
            found[r.name] += (Place(r.memory or "scratchpad", r.offset, r.first, r.end),)
    for view in network.views:
        of = found[network.tensors[view.of].name]
        found[network.tensors[view.tensor].name] = tuple(
            place._replace(address=place.address + view.offset) for place in of
        )
    return found


def layout_of(plan: Plan, what: str, *, memories: bool = False, tiles: bool = False) -> Layout:
    """Return the tables of a legal plan for the format `what`; only one with `memories` can name a memory.

    A residency without a run in it (a tensor that is only copied through) is left out. Raises `UsageError`
    for a plan that streams operands or joins them to a concat, which only a format with `tiles` can express.
    """
    network = plan.network
    if plan.chip.memories and not memories:
        names = ", ".join(m.name for m in plan.chip.memories)
        raise UsageError(
            f"{what} knows one memory, and the plan uses {names}: export to executorch, json or trace",
            where=network.name,
        )
    steps: list[str] = []
    open_: dict[Reserved, Residency] = {}
    closed: list[Residency] = []
    copies: list[Copy] = []
    streams: list[Stream] = []
    joined: list[int] = []
    for event in events_of(plan):
        match event:
            case Reserved(name=name, parts=(_, *_)) if not tiles:
                raise UsageError(
                    f"{what} cannot say that a tensor lies over its parts", item=f"tensor {name}"
                )
            case Reserved():
                open_[event] = _residency(network, event)
            case Released():
                closed.append(replace(open_.pop(event.range), end=event.step))
                if event.to is not None:
                    copies.append(_move(network, event.range, event.to))
            case Crossed(range=Reserved() as at):
                copies.append(_copy(network, event, at))
            case Crossed():  # of a format that cannot say it the run is refused, which has a name
                streams.append(_stream(network, event))
            case Ran(unit=unit, joined=True) if not tiles:
                raise UsageError(
                    f"{what} cannot say that operands are joined in DRAM", item=f"operator {unit.name}"
                )
            case Ran(unit=unit, streamed=(_, *_)) if not tiles:
                raise UsageError(
                    f"{what} cannot say that operands are streamed: export to loops or program",
                    item=f"operator {unit.name}",
                )
            case Ran(unit=unit):
                if event.joined:
                    joined.append(len(steps))
                steps.append(unit.name)
    closed += [replace(r, end=len(steps)) for r in open_.values()]
    rows = sorted((r for r in closed if r.end > r.first), key=lambda r: (r.first, r.offset, r.name))
    return Layout(tuple(steps), tuple(rows), tuple(copies), tuple(streams), tuple(joined))


def _residency(network: Network, event: Reserved) -> Residency:
    """Return a range at its beginning, with the bytes that are used of it."""
    kind: Literal["tensor", "scratch", "weights"] = "tensor"
    if event.tensor is None:
        kind = "weights" if event.cause == "weights" else "scratch"
    over = None if event.over is None else network.tensors[event.over].name
    place = event.address, event.used, event.step, event.step
    parts = tuple(network.tensors[t].name for t in event.parts)
    return Residency(event.name, kind, *place, over, event.by, event.memory, parts)


def _copy(network: Network, event: Crossed, at: Reserved) -> Copy:
    tensor = network.tensors[event.tensor]
    side: Literal["load", "store"] = "load" if event.inward else "store"
    return Copy(event.step, side, tensor.name, at.address, tensor.bytes, event.kind, at.memory)


def _stream(network: Network, event: Crossed) -> Stream:
    side: Literal["in", "out"] = "in" if event.inward else "out"
    return Stream(event.step, side, network.tensors[event.tensor].name, event.bytes, event.kind)


def _move(network: Network, left: Reserved, to: Reserved) -> Copy:
    return Copy(to.step, "move", to.name, left.address, left.used, "move", left.memory, to.memory, to.address)
