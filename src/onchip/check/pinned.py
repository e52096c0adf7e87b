"""The promises of a plan: tensors and weights pinned on chip, and the state between two inferences."""

from __future__ import annotations

from dataclasses import dataclass

from onchip.base.units import MAX_BYTES
from onchip.check.ranges import Ranges
from onchip.check.rules import broken
from onchip.check.units import Unit
from onchip.network import Network, bits
from onchip.plans import PinnedTensor, PinnedWeights, Plan, State

__all__ = ["Pinned", "inputs_from_dram", "pinned_of", "prove_weights_fit", "root_of"]


@dataclass(frozen=True)
class Pinned:
    """The promises by ids. `tensors`: address, or None for any; `weights`: address per operator.

    `state` are (input, output, address); tensors are roots.
    """

    tensors: dict[int, int | None]
    weights: dict[int, int]
    state: tuple[tuple[int, int, int], ...]


def pinned_of(plan: Plan) -> Pinned:
    """Return the plan's pins and state, checked as far as the program is not needed. Raises `Broken`."""
    network = plan.network
    tensors: dict[int, int | None] = {}
    weights: dict[int, int] = {}
    for pin in plan.pins:
        match pin:
            case PinnedTensor(name, address):
                t = root_of(network, name)
                if t in tensors:
                    broken("pin", f"{name} is pinned twice")
                tensors[t] = address
            case PinnedWeights(name, address):
                op = network.operator_id.get(name)
                if op is None:
                    broken("unknown-operator", f"the network has no operator {name}")
                if op in weights or any(name in group.operators for group in plan.groups):
                    broken("pin", f"the weights of {name} are pinned twice, or it belongs to a group")
                if not network.operators[op].weight_bytes:
                    broken("pin", f"{name} has no weights")
                weights[op] = address
    return Pinned(tensors, weights, tuple(_pair(plan, s) for s in plan.state))


def _pair(plan: Plan, state: State) -> tuple[int, int, int]:
    network = plan.network
    first, last = root_of(network, state.input), root_of(network, state.output)
    named = [name for s in plan.state for name in (s.input, s.output)]
    if not network.input_roots >> first & 1:
        broken("state", f"{state.input} is no graph input")
    if network.producer[last] is None:
        broken("state", f"{state.output} is made by no operator")
    if network.tensors[first].bytes != network.tensors[last].bytes:
        broken("state", f"{state.input} and {state.output} differ in size")
    if named.count(state.input) > 1 or named.count(state.output) > 1:
        broken("state", f"{state.input} or {state.output} is in two pairs")
    if network.output_roots >> first & 1:
        broken("state", f"{state.input} is a network output too")
    return first, last, state.address


def root_of(network: Network, name: str) -> int:
    """Return the tensor of that name, which is no view."""
    t = network.tensor_id.get(name)
    if t is None:
        broken("unknown-tensor", f"the network has no tensor {name}")
    if network.root[t] != t:
        broken("names-view", f"{name} is a view of {network.tensors[network.root[t]].name}")
    return t


def inputs_from_dram(network: Network, held: Pinned) -> set[int]:
    """Return the graph inputs that DRAM holds at the start: all that are not state."""
    return set(bits(network.input_roots)) - {first for first, _, _ in held.state}


def prove_weights_fit(plan: Plan, held: Pinned, units: dict[str, Unit]) -> None:
    """Refuse weights that find no range in a weight scratchpad beside the pinned ones."""
    size, alignment = plan.chip.weight_scratchpad_bytes, plan.chip.alignment_bytes
    if size is None:
        return
    if not 0 <= size <= MAX_BYTES:
        broken("bad-budget", f"a weight scratchpad of {size} is not from 0 to {MAX_BYTES}")
    ranges, edges = Ranges(), [0]
    for op, address in held.weights.items():
        name = plan.network.operators[op].name
        end = address + plan.chip.round_up(plan.network.operators[op].weight_bytes)
        if address % alignment:
            broken("misaligned", f"{address} is no multiple of {alignment}")
        if address < 0 or end > size:
            broken("weights-do-not-fit", f"the weights of {name} leave the weight scratchpad of {size:,}")
        if ranges.neighbour(address, end) is not None:
            broken("range-not-free", f"the weights of {name} meet other pinned ones")
        ranges.take(address, end, name)
        edges += [address, end]
    edges = [*sorted(edges), size]
    room = max(
        after - -(-before // alignment) * alignment
        for before, after in zip(edges[::2], edges[1::2], strict=True)
    )
    for unit in units.values():
        if plan.chip.round_up(unit.weights) > room:
            broken(
                "weights-do-not-fit",
                f"{unit.name} has {unit.weights:,} bytes of weights, and {room:,} are free",
            )
