"""Least traffic with every address chosen: exhaustive, relocation included; for a handful of bytes.

As in `states`, but a state also says where every resident tensor lies. From every state every legal step is
tried: evict a tensor; load one to any free address; run an operator with its outputs at any free addresses,
if a free range for its workspace remains. A tensor may come back elsewhere, at the cost of its eviction and
reload: that is relocation. In place, an element-wise operator may also put its output where an input of its
size lies that dies. Outputs are placed only as part of their operator's run, since to reserve a range
earlier only holds bytes for longer. What is left to pay from a state, were addresses free (`states`), steers
the search: it never exceeds the truth, so the first complete program found is still the cheapest.
"""

from __future__ import annotations

import heapq
import math
from collections.abc import Iterator

from onchip.network import Network, bits, mask
from oracles import states

__all__ = ["Undecided", "least_traffic"]


class _Memory:
    """Ranges of one memory as bitsets of bytes."""

    def __init__(self, network: Network, budget: int, unit: int) -> None:
        self.budget, self.unit = budget, unit
        self.rounded = [-(-t.bytes // unit) * unit for t in network.tensors]
        self.workspace = [-(-op.workspace // unit) * unit for op in network.operators]

    def free_addresses(self, size: int, used: int) -> Iterator[tuple[int, int]]:
        """Every (address, bytes covered) at which `size` bytes fit beside `used`."""
        for address in range(0, self.budget - size + 1, self.unit):
            covered = (1 << size) - 1 << address
            if not covered & used:
                yield address, covered

    def placements(self, tensors: list[int], used: int) -> Iterator[tuple[dict[int, int], int]]:
        """Every way to place `tensors` beside `used`: address by tensor, and all bytes used then."""
        if not tensors:
            yield {}, used
            return
        first, *rest = tensors
        for address, covered in self.free_addresses(self.rounded[first], used):
            for places, now_used in self.placements(rest, used | covered):
                yield {first: address} | places, now_used


def may_lie_over(network: Network, op: int, x: int) -> bool:
    """Whether the output of an element-wise operator may take the place of `x`, which dies with it.

    Each operand that is (a view of) it is all of it, read element by element, or lies in the last element:
    any element of the output may want what is smaller, and the last one alone is written there.
    """
    operator = network.operators[op]
    if operator.geometry is None or operator.geometry.kind != "elementwise":
        return False
    size = network.tensors[operator.outputs[0]].bytes
    if network.tensors[x].bytes != size:
        return False
    wide = size // math.prod(operator.geometry.output)
    starts = {view.tensor: view.offset for view in network.views}
    return all(
        network.tensors[part].bytes == size or starts.get(part, 0) >= size - wide
        for part in operator.inputs
        if network.root[part] == x
    )


class Undecided(Exception):
    """The search passed its limit."""


def least_traffic(
    network: Network,
    budget: int,
    alignment: int = 1,
    *,
    most_states: int = 1_000_000,
    in_place: bool = False,
) -> int | None:
    """The least non-compulsory traffic in bytes of any program within `budget`, None when there is none.

    Raises `Undecided` after `most_states` states.
    """
    memory = _Memory(network, budget, alignment)
    operators, inputs, outputs = network.operators, network.input_roots, network.output_roots
    size = [t.bytes for t in network.tensors]
    everything = (1 << len(operators)) - 1
    absent = -1

    def wanted(done: int) -> int:
        """The tensors that operators not yet run will read."""
        result = 0
        for op in bits(everything & ~done):
            result |= network.reads[op]
        return result

    machine = states.Machine(network, alignment, in_place)
    remaining: dict[tuple[int, int, int], int | None] = {}

    def left_to_pay(done: int, copies: int, places: tuple[int, ...]) -> int | None:
        state = done, mask(t for t, address in enumerate(places) if address != absent), copies
        if state not in remaining:
            remaining[state] = states.remaining_traffic(machine, budget, state, idle_loads=False)
        return remaining[state]

    # In the queue: cost and what is left to pay, operators left (ties go to the fewest), cost, state.
    # `copies` is as in `states`: for an input it says that its compulsory load has happened. `places` is an
    # address by tensor.
    start = (0, 0, (absent,) * len(size))
    least = left_to_pay(*start)
    if least is None:
        return None
    queue = [(least, len(operators), 0, start)]
    best = {start: 0}
    while queue:
        _, left, cost, (done, copies, places) = heapq.heappop(queue)
        if best[done, copies, places] < cost:
            continue
        if len(best) > most_states:
            raise Undecided(f"{len(best):,} states")
        if not left:
            return cost
        resident = [t for t, address in enumerate(places) if address != absent]
        used = sum((1 << memory.rounded[t]) - 1 << places[t] for t in resident)
        live = wanted(done)
        steps: list[tuple[int, int, int, tuple[int, ...]]] = []  # cost, done, copies, places

        for t in resident:
            written = (copies | inputs) >> t & 1
            gone = (*places[:t], absent, *places[t + 1 :])
            steps.append((0 if written else size[t], done, copies | 1 << t, gone))
        for t in bits(live & (copies | inputs)):
            if places[t] == absent:
                for address, _ in memory.free_addresses(memory.rounded[t], used):
                    here = (*places[:t], address, *places[t + 1 :])
                    steps.append((size[t] if copies >> t & 1 else 0, done, copies | 1 << t, here))
        for op in bits(everything & ~done):
            if any(places[t] == absent for t in bits(network.reads[op])):
                continue
            after = done | 1 << op
            later = wanted(after)
            known = (copies | network.writes[op] & outputs) & later
            ways = list(memory.placements(list(bits(network.writes[op])), used))
            if in_place:
                for x in bits(network.reads[op] & ~later):
                    if may_lie_over(network, op, x):
                        ways.append(({network.operators[op].outputs[0]: places[x]}, used))
            for made, now_used in ways:
                if not any(memory.free_addresses(memory.workspace[op], now_used)):
                    continue
                kept = tuple(
                    made.get(t, address) if later >> t & 1 else absent for t, address in enumerate(places)
                )
                steps.append((0, after, known, kept))

        for step, after, known, kept in steps:
            state = after, known, kept
            if cost + step < best.get(state, cost + step + 1):
                best[state] = cost + step
                least = left_to_pay(*state)
                if least is not None:
                    left_then = (everything & ~after).bit_count()
                    heapq.heappush(queue, (cost + step + least, left_then, cost + step, state))
    return None
