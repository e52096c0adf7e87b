"""The least latency over every straight program there is, for networks of a few operators and bytes.

Tries, at every point, every instruction at every address that is legal. Left out is only what cannot help:
ranges reserved before they are needed, tensors kept that nobody needs, tensors evicted before they were used;
and what has come to the same place at no earlier time than another program did.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import product

from onchip.check import Clock
from onchip.check.timing import _Walk
from onchip.network import Network, bits
from onchip.plans import Alloc, Free, Instruction, Load, Run, Scratch, Store

__all__ = ["least_latency"]

State = tuple[int, tuple[tuple[int, int, bool], ...], frozenset[int]]
"""Operators that ran; resident tensors with address and whether they were used since; DRAM copies."""


def least_latency(network: Network, clock: Clock, budget: int, below: int) -> int:
    """Picoseconds of the fastest program within `budget` bytes, or `below` when none is faster.

    Alignment 1; weights are streamed.
    """
    search = _Search(network, clock, budget, below)
    search.explore((0, (), frozenset(bits(network.input_roots))), [])
    return search.best


class _Search:
    def __init__(self, network: Network, clock: Clock, budget: int, below: int) -> None:
        self.network, self.clock, self.budget, self.best = network, clock, budget, below
        self.name = [t.name for t in network.tensors]
        self.size = [t.bytes for t in network.tensors]
        self.all = (1 << len(network.operators)) - 1
        self.seen: dict[State, list[tuple[int, ...]]] = {}

    def explore(self, state: State, program: list[Instruction]) -> None:
        done, resident, copies = state
        walk = _Walk(self.clock)
        for index, instruction in enumerate(program):
            walk.follow(index, instruction)
        ended = max((t.end for t in walk.found), default=0)
        left = [op.name for op in self.network.operators if not done >> op.id & 1]
        if max(ended, walk.computing + sum(map(self.clock.run, left))) >= self.best:
            return
        if done == self.all and all(t in copies for t in bits(self.network.output_roots)):
            self.best = ended
            return
        times = (
            walk.dma,
            walk.computing,
            *(walk.there[self.name[t]] for t, _, _ in resident),
            *(walk.used[self.name[t]] for t, _, _ in resident),
            *(walk.copied.get(self.name[t], 0) for t in sorted(copies)),
            *(walk.freed(None).latest(byte, byte + 1) for byte in range(self.budget)),
        )
        before = self.seen.setdefault(state, [])
        if any(all(a <= b for a, b in zip(other, times, strict=True)) for other in before):
            return
        before.append(times)
        for after, more in self.moves(state):
            self.explore(*self.without_dead(after, [*program, *more]))

    def without_dead(self, state: State, program: list[Instruction]) -> tuple[State, list[Instruction]]:
        done, resident, copies = state
        kept = []
        for row in resident:
            t = row[0]
            wanted = self.network.readers[t] & ~done
            if wanted or (self.network.output_roots >> t & 1 and t not in copies):
                kept.append(row)
            else:
                program.append(Free(self.name[t]))
        return (done, tuple(kept), copies), program

    def moves(self, state: State) -> Iterator[tuple[State, list[Instruction]]]:
        done, resident, copies = state
        here = {t: address for t, address, _ in resident}
        for op in self.network.operators:
            reads, writes = list(bits(self.network.reads[op.id])), list(bits(self.network.writes[op.id]))
            if done >> op.id & 1 or any(t not in here for t in reads):
                continue
            used = tuple((t, a, u or t in reads) for t, a, u in resident)
            for places in product(range(self.budget), repeat=len(writes) + bool(op.workspace)):
                sizes = [self.size[t] for t in writes] + [op.workspace] * bool(op.workspace)
                if not self.fits(here, list(zip(places, sizes, strict=True))):
                    continue
                more: list[Instruction] = [
                    Alloc(self.name[t], a) for t, a in zip(writes, places[: len(writes)], strict=True)
                ]
                if op.workspace:
                    more.append(Scratch(op.name, places[-1]))
                made = tuple((t, a, True) for t, a in zip(writes, places[: len(writes)], strict=True))
                after = tuple(sorted((*used, *made)))
                yield (done | 1 << op.id, after, copies), [*more, Run(op.name)]
        for t, _, used_since in resident:
            without = tuple(row for row in resident if row[0] != t)
            if t not in copies:
                yield (done, resident, copies | {t}), [Store(self.name[t])]
            elif used_since:
                yield (done, without, copies), [Free(self.name[t])]
        for t in copies:
            if t in here or not self.network.readers[t] & ~done:
                continue
            for address in range(self.budget):
                if self.fits(here, [(address, self.size[t])]):
                    after = tuple(sorted((*resident, (t, address, False))))
                    yield (done, after, copies), [Load(self.name[t], address)]

    def fits(self, here: dict[int, int], new: list[tuple[int, int]]) -> bool:
        """Whether the new ranges lie in the budget, apart from each other and from what is resident."""
        taken = [(a, a + self.size[t]) for t, a in here.items()]
        for address, size in new:
            if address + size > self.budget or any(address < b and a < address + size for a, b in taken):
                return False
            taken.append((address, address + size))
        return True
