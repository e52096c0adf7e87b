"""Whole tensors in the order of least peak, for networks that no chain of segments describes.

Inputs lie in RAM from the start, all of them, and outputs to the end, because a program puts the former there
before an inference and reads the latter after it. A state lies at the bottom throughout: its new bytes are
written over the old ones. Placement knows none of this. It plans a network to which two operators and a few
tokens are added: one that makes all inputs, one that reads all outputs, and for each state a token in the
place of its new bytes, which waits for those who read the old ones.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import TypeAlias

from onchip.base.errors import NeedsTraffic
from onchip.check import certify
from onchip.microcontroller.segments import SegmentOptions
from onchip.network import Network, OperatorSpec
from onchip.network.operators import TensorKind
from onchip.plans import Alloc, Free, Instruction, Load, Plan, PlanChip, Run, Scratch, State, Status, Store

__all__ = ["States", "whole_tensors"]

States: TypeAlias = Sequence[tuple[str, str]]
"""The tensors before and after, by name, of what a network keeps between inferences."""

ALIGNMENT = 4
"""The alignment of whole tensors: workspaces are read by words."""

TAKES, GIVES, TOKEN = "(inputs)", "(outputs)", "(token)"


def whole_tensors(network: Network, ram_bytes: int, options: SegmentOptions, states: States = ()) -> Plan:
    """Return the plan within so many bytes; raises `NeedsTraffic`."""
    inputs = [t.name for t in network.tensors if t.kind == "input"]
    if len(inputs) == len(network.outputs) == 1:
        return _fitting(_placed(network, options), ram_bytes)
    at, bottom = {}, 0
    for old, _ in states:
        at[old] = bottom
        bottom += _aligned(network.tensors[network.tensor_id[old]].bytes)
    found = _placed(_extended(network, states), options)
    return _fitting(_plan(network, found, states, at, bottom), ram_bytes)


def _fitting(found: Plan, ram_bytes: int) -> Plan:
    result = found.result
    if result.extent_bytes > ram_bytes:
        least = result.peak_lower_bound_bytes or result.lower_bound_bytes
        raise NeedsTraffic(needs=result.extent_bytes, at_least=least, has=ram_bytes)
    return found


def _placed(network: Network, options: SegmentOptions) -> Plan:
    from onchip.machines.chip import load_chip
    from onchip.planners import placement

    chip = replace(load_chip("generic"), name="mcu", alignment_bytes=ALIGNMENT)
    how = placement.PlacementOptions(objective="peak", in_place=True, time_limit=options.time_limit)
    return placement.plan(network, chip, None, how)


def _aligned(size: int) -> int:
    return -(-size // ALIGNMENT) * ALIGNMENT


def _extended(network: Network, states: States) -> Network:
    """Return the network with the two operators, with tokens for states."""
    old = {name: f"{TOKEN} {name}" for name, _ in states}
    new = dict(zip((name for _, name in states), old, strict=True))
    name = [t.name for t in network.tensors]
    made_by = {name[t]: op.id for op in network.operators for t in op.outputs}
    waits: dict[int, list[str]] = {}
    tokens: list[str] = []
    specs = []
    for op in network.operators:
        reads = [name[t] for t in op.inputs if name[t] not in old]
        makes = [name[t] for t in op.outputs]
        for state in (name[t] for t in op.inputs if name[t] in old):
            token = f"{old[state]} read by {op.name}"
            tokens.append(token)
            makes.append(token)
            writer = next(made_by[after] for before, after in states if before == state)
            waits.setdefault(writer, []).append(token)
        specs.append((op, reads, makes))
    inputs = [t.name for t in network.tensors if t.kind == "input" and t.name not in old]
    outputs = [name[t] for t in network.outputs if name[t] not in new]
    rows: list[tuple[str, int, TensorKind]] = [
        (t.name, 1 if t.name in new else t.bytes, "activation") for t in network.tensors if t.name not in old
    ]
    rows += [(token, 1, "activation") for token in (*tokens, GIVES)]
    operators = [OperatorSpec(TAKES, "Input", [], inputs, 0, 0)] if inputs else []
    operators += [
        OperatorSpec(
            op.name,
            op.type,
            [*reads, *waits.get(op.id, ())],
            makes,
            op.weight_bytes,
            op.workspace,
            geometry=None
            if len(makes) > 1 or op.id in waits or new.keys() & {*reads, *makes}
            else op.geometry,
            macs=op.macs,
        )
        for op, reads, makes in specs
    ]
    operators.append(OperatorSpec(GIVES, "Output", [*outputs, *new], [GIVES], 0, 0))
    return Network.build(
        network.name,
        rows,
        operators,
        [GIVES],
        source=network.source,
        sha256=network.sha256,
        where=network.source or network.name,
    )


def _plan(network: Network, found: Plan, states: States, at: dict[str, int], bottom: int) -> Plan:
    """Return the program of the network itself, with everything that placement placed above the states."""
    own = {t.name for t in network.tensors}
    address = {step.tensor: step.address + bottom for step in found.program if isinstance(step, Alloc)}
    olds = dict(zip((new for _, new in states), (old for old, _ in states), strict=True))
    name = [t.name for t in network.tensors]
    inputs = [t.name for t in network.tensors if t.kind == "input" and t.name not in at]
    outputs = {name[t] for t in network.outputs if name[t] not in olds}
    program: list[Instruction] = [Load(t, address[t]) for t in inputs]
    for step in found.program:
        match step:
            case Alloc(tensor, _, over, by, ()) if tensor in own and tensor not in inputs:
                if tensor in olds:
                    program += [Free(olds[tensor]), Alloc(tensor, at[olds[tensor]])]
                else:
                    program.append(Alloc(tensor, address[tensor], over, by))
            case Scratch(operator, place) if operator not in (TAKES, GIVES):
                program.append(Scratch(operator, place + bottom))
            case Run(operator, ()) if operator not in (TAKES, GIVES):
                program.append(Run(operator, ()))
            case Free(tensor) if tensor in own and tensor not in outputs and tensor not in olds:
                program.append(Free(tensor))
            case _:
                pass
    for t in dict.fromkeys(name[t] for t in network.outputs):
        if t in outputs:
            program += [Store(t), Free(t)]
    bound = _bound(network, found, outputs, states) + bottom

    def certified(status: Status) -> Plan:
        return certify(
            network,
            PlanChip("mcu", ALIGNMENT),
            found.result.extent_bytes + bottom,
            program,
            status=status,
            lower_bound_bytes=0,
            peak_lower_bound_bytes=bound,
            state=[State(old, new, at[old]) for old, new in states],
            options=dict(found.options),
            space=f"{found.result.space}; inputs from the start, outputs to the end, states throughout",
            seconds=found.result.seconds,
        )

    made = certified("feasible")
    return certified("optimal") if made.result.extent_bytes <= bound else made


def _size(network: Network, tensor: str) -> int:
    return network.tensors[network.tensor_id[tensor]].bytes


def _bound(network: Network, found: Plan, outputs: set[str], states: States) -> int:
    """Return the least peak without the bytes of tokens, which placement counts.

    With no states the only token is made at the end, beside all outputs: it counts in that step alone.
    """
    bound = found.result.peak_lower_bound_bytes or 0
    tokens = sum(t.name.startswith(TOKEN) for t in found.network.tensors) + len(states)
    end = sum(_aligned(_size(network, t)) for t in outputs) + ALIGNMENT
    return max(0, bound - ALIGNMENT * (tokens + (end >= bound)))
