"""The least traffic of operators that run whole, by elementary moves; and addresses by trying them all.

From docs/plan-program.md: load, store, free, alloc (over a dying input of an element-wise operator, where
that is asked for), scratch and run, as long as what is there fits. `cheaper` gives a program below a limit or
None where the moves prove that there is none. First occupancy alone is counted; where that leaves something
cheaper and no addresses are found along its moves, every address is tried.
"""

from __future__ import annotations

import heapq
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from onchip.check import may_overwrite
from onchip.network import Network, bits
from onchip.plans import Alloc, Free, Instruction, Load, Run, Scratch, Store
from oracles.claims_lay import lay

__all__ = ["Question", "Undecided", "cheaper", "least_budget"]


class Undecided(Exception):
    """More states than are looked at."""


@dataclass(frozen=True)
class Question:
    """A network as it runs (weights in workspaces, if they are held), and what is allowed."""

    network: Network
    alignment: int = 1
    in_place: bool = False
    given_order: bool = False

    def up(self, size: int) -> int:
        return -(-size // self.alignment) * self.alignment

    def overwritable(self, v: int) -> list[int]:
        """Inputs whose very bytes the one output of `v` may take."""
        op = self.network.operators[v]
        if not self.in_place or len(op.outputs) != 1 or op.geometry is None:
            return []
        if op.geometry.kind != "elementwise":
            return []
        [y] = op.outputs
        size = self.network.tensors[y].bytes
        return [
            x
            for x in bits(self.network.reads[v])
            if self.network.tensors[x].bytes == size and may_overwrite(self.network, v, y, x)
        ]

    def ready(self, done: int) -> Iterator[int]:
        """Operators that may run next."""
        for v in self.network.order:
            if not done >> v & 1 and not self.network.predecessors[v] & ~done:
                yield v
                if self.given_order:
                    return


def least_budget(asked: Question) -> int:
    """The least bytes in which some plan exists, all else evicted while an operator runs."""
    network = asked.network
    everything = (1 << len(network.operators)) - 1
    best = {0: 0}
    heap = [(0, 0)]
    while heap:
        need, done = heapq.heappop(heap)
        if done == everything:
            return need
        if need > best[done]:
            continue
        for v in asked.ready(done):
            touched = network.reads[v] | network.writes[v]
            bytes_ = sum(asked.up(network.tensors[t].bytes) for t in bits(touched))
            bytes_ += asked.up(network.operators[v].workspace)
            if any(not network.readers[x] & ~(done | 1 << v) for x in asked.overwritable(v)):
                bytes_ -= asked.up(network.tensors[network.operators[v].outputs[0]].bytes)
            after = done | 1 << v
            if max(need, bytes_) < best.get(after, 1 << 62):
                best[after] = max(need, bytes_)
                heapq.heappush(heap, (best[after], after))
    raise AssertionError("every network can run")


State = tuple[int, int, int, int]
"""Operators that have run, tensors on chip, tensors that DRAM holds, graph inputs that were loaded before."""


def cheaper(
    asked: Question, budget: int, limit: int | None, *, most: int = 200_000
) -> list[Instruction] | None:
    """A program within `budget` with less traffic than `limit` bytes (None: any), or None: there is none.

    Raises `Undecided`.
    """
    if limit is not None and limit <= 0:
        return None
    budget = budget // asked.alignment * asked.alignment
    moves = _occupancy(asked, budget, limit, most)
    if moves is None:
        return None
    network = asked.network
    sizes = {t.name: asked.up(t.bytes) for t in network.tensors}
    scratches = {op.name: asked.up(op.workspace) for op in network.operators}
    laid = lay(moves, sizes, scratches, {None: budget}, asked.alignment, 3000)
    return laid if laid is not None else _addressed(asked, budget, limit, most // 10)


def _occupancy(asked: Question, budget: int, limit: int | None, most: int) -> list[Instruction] | None:
    """Such a program without addresses: what is on chip fits in bytes."""
    network = asked.network
    size = [t.bytes for t in network.tensors]
    room = [asked.up(t.bytes) for t in network.tensors]
    name = [t.name for t in network.tensors]
    inputs, outputs = network.input_roots, network.output_roots
    over = [asked.overwritable(v) for v in range(len(network.operators))]
    everything = (1 << len(network.operators)) - 1
    start: State = (0, 0, inputs, 0)
    best: dict[State, int] = {start: 0}
    came: dict[State, tuple[State, list[Instruction]]] = {}
    heap = [(0, start)]
    while heap:
        cost, state = heapq.heappop(heap)
        if cost > best[state]:
            continue
        done, resident, copies, loaded = state
        if done == everything:
            program: list[Instruction] = []
            while state in came:
                state, steps = came[state]
                program[:0] = steps
            return program
        if len(best) > most:
            raise Undecided
        free = budget - sum(room[t] for t in bits(resident))
        moves: list[tuple[int, State, list[Instruction]]] = []
        for t in bits(resident):
            held = copies >> t & 1
            out: list[Instruction] = [Free(name[t])] if held else [Store(name[t]), Free(name[t])]
            after = (done, resident & ~(1 << t), copies | 1 << t, loaded)
            moves.append((0 if held else size[t], after, out))
        for t in bits(copies & ~resident):
            if room[t] <= free and network.readers[t] & ~done:
                first = inputs >> t & 1 and not loaded >> t & 1
                new = loaded | 1 << t if inputs >> t & 1 else loaded
                after = (done, resident | 1 << t, copies, new)
                moves.append((0 if first else size[t], after, [Load(name[t], 0)]))
        for v in asked.ready(done):
            if network.reads[v] & ~resident:
                continue
            op, ran, writes = network.operators[v], done | 1 << v, network.writes[v]
            wanted = sum(room[t] for t in bits(writes)) + asked.up(op.workspace)
            dying = next((x for x in over[v] if not network.readers[x] & ~ran), None)
            if wanted <= free:
                dying = None  # room for both: what is free may serve as well
            elif dying is None or wanted - room[dying] > free:
                continue
            there = (resident | writes) & ~(0 if dying is None else 1 << dying)
            kept = sum(1 << t for t in bits(there) if network.readers[t] & ~ran)
            under = None if dying is None else name[dying]
            steps = [Alloc(name[t], 0, under, 0) for t in bits(writes)]
            steps += [Scratch(op.name, 0)] if op.workspace else []
            steps += [Run(op.name), *(Store(name[t]) for t in bits(writes & outputs))]
            steps += [Free(name[t]) for t in bits(there & ~kept)]
            moves.append((0, (ran, kept, copies | (writes & outputs), loaded), steps))
        for price, after, steps in moves:
            total = cost + price
            if (limit is None or total < limit) and total < best.get(after, 1 << 62):
                best[after], came[after] = total, (state, steps)
                heapq.heappush(heap, (total, after))
    return None


Placed = tuple[tuple[int, int], ...]
"""(tensor, address) of all that is on chip, ascending."""


def _addressed(asked: Question, budget: int, limit: int | None, most: int) -> list[Instruction] | None:
    """The same moves, with every address tried."""
    network, step = asked.network, asked.alignment
    size = [t.bytes for t in network.tensors]
    name = [t.name for t in network.tensors]
    room = [asked.up(t.bytes) for t in network.tensors]
    inputs, outputs = network.input_roots, network.output_roots
    over = [asked.overwritable(v) for v in range(len(network.operators))]
    everything = (1 << len(network.operators)) - 1

    def fits(
        placed: Sequence[tuple[int, int]], extra: Sequence[tuple[int, int]], bytes_: int
    ) -> Iterator[int]:
        """Addresses at which so many bytes are free beside tensors and ranges."""
        ranges = [(at, at + room[t]) for t, at in placed] + list(extra)
        for at in range(0, budget - bytes_ + 1, step):
            if all(at + bytes_ <= low or high <= at for low, high in ranges):
                yield at

    AState = tuple[int, Placed, int, int]
    start: AState = (0, (), inputs, 0)
    best: dict[AState, int] = {start: 0}
    came: dict[AState, tuple[AState, list[Instruction]]] = {}
    heap = [(0, 0, start)]
    count = 0
    while heap:
        cost, _, state = heapq.heappop(heap)
        if cost > best[state]:
            continue
        done, placed, copies, loaded = state
        if done == everything:
            program: list[Instruction] = []
            while state in came:
                state, steps = came[state]
                program[:0] = steps
            return program
        if len(best) > most:
            raise Undecided
        moves: list[tuple[int, AState, list[Instruction]]] = []
        resident = sum(1 << t for t, _ in placed)
        for t, _ in placed:
            price = 0 if copies >> t & 1 else size[t]
            steps_: list[Instruction] = [] if copies >> t & 1 else [Store(name[t])]
            left = tuple(p for p in placed if p[0] != t)
            moves.append((price, (done, left, copies | 1 << t, loaded), [*steps_, Free(name[t])]))
        for t in bits(copies & ~resident):
            if network.readers[t] & ~done:
                first = inputs >> t & 1 and not loaded >> t & 1
                after = loaded | 1 << t if inputs >> t & 1 else loaded
                for at in fits(placed, (), room[t]):
                    there = tuple(sorted((*placed, (t, at))))
                    moves.append((0 if first else size[t], (done, there, copies, after), [Load(name[t], at)]))
        for v in asked.ready(done):
            if not network.reads[v] & ~resident:
                for there, steps_ in _runs(asked, v, done, placed, over[v], fits, name, room):
                    ran = done | 1 << v
                    stored: list[Instruction] = [Store(name[t]) for t in bits(network.writes[v] & outputs)]
                    ends = [t for t, _ in there if not network.readers[t] & ~ran]
                    dropped: list[Instruction] = [Free(name[t]) for t in ends]
                    kept = tuple(p for p in there if p[0] not in ends)
                    new = copies | (network.writes[v] & outputs)
                    moves.append((0, (ran, kept, new, loaded), [*steps_, *stored, *dropped]))
        for price, after_, steps_ in moves:
            total = cost + price
            if (limit is None or total < limit) and total < best.get(after_, 1 << 62):
                best[after_] = total
                came[after_] = (state, steps_)
                count += 1
                heapq.heappush(heap, (total, count, after_))
    return None


def _runs(asked, v, done, placed, over, fits, name, room):  # type: ignore[no-untyped-def]
    """Every way to place what operator `v` writes and works in: (what is there afterwards, instructions)."""
    network = asked.network
    op = network.operators[v]
    ran = done | 1 << v
    writes = sorted(bits(network.writes[v]))
    work = asked.up(op.workspace)
    options: list[tuple[Placed, list[Instruction]]] = [(placed, [])]
    for t in writes:
        grown = []
        for there, steps in options:
            for at in fits(there, (), room[t]):
                grown.append((tuple(sorted((*there, (t, at)))), [*steps, Alloc(name[t], at)]))
        options = grown
    at_of = dict(placed)
    for x in over:
        if not network.readers[x] & ~ran:  # the output takes its place
            [y] = writes
            there = tuple(sorted((*(p for p in placed if p[0] != x), (y, at_of[x]))))
            options.append((there, [Alloc(name[y], at_of[x], name[x], 0)]))
    for there, steps in options:
        if not op.workspace:
            yield there, [*steps, Run(op.name)]
            continue
        for at in fits(there, (), work):
            yield there, [*steps, Scratch(op.name, at), Run(op.name)]
            break  # which of the free places the scratch takes does not matter afterwards
