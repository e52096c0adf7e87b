"""Least traffic and least peak over all orders, capacity only: exact states, no pruning rule.

A state is what a machine would hold: the operators that have run, the tensors that are resident, the tensors
with a DRAM copy, the inputs that were loaded before. From every state every legal step is tried:

- load a tensor that is not resident, has a copy and fits: its size, but an input's first load is compulsory
  and costs nothing;
- evict a resident tensor: its size for the copy if it has none yet, else nothing; an output's one copy is
  compulsory and costs nothing;
- run an operator whose inputs are resident, if its outputs and workspace fit beside everything resident; in
  place, an element-wise operator's output may have the bytes of a dying input (`strategies.written_over`).

Dijkstra's algorithm over these steps is the whole method. Only this is taken for granted: a tensor that
nobody will read is dropped at once, and a load of it is not tried. Occupancy counts sizes rounded up to the
alignment, traffic the exact sizes.
"""

from __future__ import annotations

import heapq
from dataclasses import dataclass

from onchip.network import Network, bits
from strategies import written_over

__all__ = ["Machine", "least_peak", "least_traffic", "remaining_traffic"]


@dataclass
class Machine:
    """The network as bitsets over root tensors, with the figures that depend on one set alone remembered."""

    network: Network
    alignment: int
    in_place: bool = False

    def __post_init__(self) -> None:
        net, unit = self.network, self.alignment
        self.count = len(net.operators)
        self.size = [t.bytes for t in net.tensors]
        self.rounded = [-(-t.bytes // unit) * unit for t in net.tensors]
        self.workspace = [-(-op.workspace // unit) * unit for op in net.operators]
        self.bytes_of = {0: 0}
        self.after: dict[int, tuple[int, list[int]]] = {}

    def bytes(self, tensors: int) -> int:
        """Rounded bytes of a set of tensors."""
        if tensors not in self.bytes_of:
            self.bytes_of[tensors] = sum(self.rounded[t] for t in bits(tensors))
        return self.bytes_of[tensors]

    def saved(self, op: int, done: int) -> int:
        """Bytes that `op` shares between an input and its output once `done` have run."""
        over = written_over(self.network, op, done) if self.in_place else None
        return 0 if over is None else self.rounded[over]

    def progress(self, done: int) -> tuple[int, list[int]]:
        """After the operators in `done`: the tensors that exist and will be read, and who is ready."""
        if done not in self.after:
            net = self.network
            made = net.input_roots
            for op in bits(done):
                made |= net.writes[op]
            wanted = 0
            ready = []
            for op in range(self.count):
                if not done >> op & 1:
                    wanted |= net.reads[op]
                    if not net.reads[op] & ~made:
                        ready.append(op)
            self.after[done] = (made & wanted, ready)
        return self.after[done]


def least_traffic(
    network: Network,
    budget: int,
    alignment: int = 1,
    *,
    order: tuple[int, ...] | None = None,
    idle_loads: bool = True,
    in_place: bool = False,
) -> int | None:
    """The least non-compulsory traffic in bytes, None when no program fits `budget`.

    With `order` the operators run in that order, else in any.
    Without `idle_loads` a tensor is loaded only as part of the run that reads it. Nothing is lost, since a
    later load holds the same bytes for less time, and there are fewer states.
    """
    machine = Machine(network, alignment, in_place)
    return remaining_traffic(machine, budget, order=order, idle_loads=idle_loads)


def remaining_traffic(
    machine: Machine,
    budget: int,
    start: tuple[int, int, int] = (0, 0, 0),
    *,
    order: tuple[int, ...] | None = None,
    idle_loads: bool = True,
) -> int | None:
    """As `least_traffic`, from a state on: (operators done, resident tensors, copies), three bitsets.

    An input always has a copy; its bit among the copies says instead that its compulsory load has happened.
    """
    network, size, total = machine.network, machine.size, machine.bytes
    inputs, tensors = network.input_roots, len(network.tensors)
    # One integer a state, so that the queue compares integers: cost, copies, resident, done from high to low.
    low, mid = machine.count, machine.count + tensors
    everything = (1 << machine.count) - 1
    first = start[2] << mid | start[1] << low | start[0]
    queue = [first]
    best = {first: 0}
    width = mid + tensors
    while queue:
        entry = heapq.heappop(queue)
        state, cost = entry & ((1 << width) - 1), entry >> width
        if best[state] < cost:
            continue
        done = state & everything
        if done == everything:
            return cost
        resident, copies = state >> low & ((1 << tensors) - 1), state >> mid
        live, ready = machine.progress(done)
        if order is not None:
            ready = [order[done.bit_count()]]
        used = total(resident)
        steps: list[tuple[int, int, int, int]] = []  # done, resident, copies, cost of the step

        for t in bits(resident):  # evict
            written = copies >> t & 1 or inputs >> t & 1
            steps.append((done, resident & ~(1 << t), copies | 1 << t, 0 if written else size[t]))
        if idle_loads:
            for t in bits(live & ~resident & (copies | inputs)):
                if used + machine.rounded[t] <= budget:
                    steps.append(
                        (done, resident | 1 << t, copies | 1 << t, size[t] if copies >> t & 1 else 0)
                    )
        for op in ready:
            missing = network.reads[op] & ~resident
            if missing and idle_loads:
                continue
            holding = resident | network.reads[op] | network.writes[op]
            if total(holding) + machine.workspace[op] - machine.saved(op, done) > budget:
                continue
            after = done | 1 << op
            kept = machine.progress(after)[0]
            # An output gets its compulsory copy when it is made: it costs nothing, so waiting gains nothing.
            known = (copies | missing | network.writes[op] & network.output_roots) & kept
            reloads = sum(size[t] for t in bits(missing & copies))
            steps.append((after, holding & kept, known, reloads))

        for after, holding, known, step in steps:
            following = known << mid | holding << low | after
            if cost + step < best.get(following, cost + step + 1):
                best[following] = cost + step
                heapq.heappush(queue, cost + step << width | following)
    return None


def least_peak(network: Network, alignment: int = 1, *, in_place: bool = False) -> int:
    """MP: the least peak of bytes in use over all orders, with no spills and inputs loaded on demand."""
    machine = Machine(network, alignment, in_place)
    everything = (1 << machine.count) - 1
    peak = {0: 0}
    for done in range(everything):  # a set comes after all its subsets
        if done not in peak:
            continue
        live, ready = machine.progress(done)
        touched = 0
        for op in bits(done):
            touched |= network.reads[op] | network.writes[op]
        for op in ready:
            holding = live & touched | network.reads[op] | network.writes[op]
            in_use = machine.bytes(holding) + machine.workspace[op] - machine.saved(op, done)
            reached = max(peak[done], in_use)
            after = done | 1 << op
            peak[after] = min(reached, peak.get(after, reached))
    return peak[everything]
