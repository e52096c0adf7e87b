"""The fewest DRAM bytes of groups and whole tensors, by elementary moves and nothing but moves.

Store, evict, load, and run a group in one of its ways, as long as what is there fits; a way is what the
checker says of one (`claims_ways`). No order of moves is left out but for what Dijkstra's search shows to be
dearer.
"""

from __future__ import annotations

import heapq
from collections.abc import Iterator
from dataclasses import dataclass, replace

from onchip.check.parts import up
from onchip.network import bits
from onchip.plans import Alloc, Free, Group, Instruction, Load, Run, Scratch, Store
from oracles.claims_lay import lay
from oracles.claims_placement import Question, Undecided
from oracles.claims_ways import Way, Ways, convex_groups

__all__ = ["Joint", "Undecided"]

State = tuple[int, int, int]
"""Operators that have run, tensors that are whole on chip, tensors that DRAM holds."""


@dataclass(frozen=True)
class Step:
    """One move: `store`, `evict` or `load` of a tensor, or a run of `way`, which ends `over` if not None."""

    what: str
    tensor: int = -1
    way: Way | None = None
    over: int | None = None


class Joint:
    """One network on one chip; questions about budgets."""

    def __init__(self, ways: Ways, *, overlap: bool, alone: bool = False) -> None:
        """`alone`: every tensor between groups passes through DRAM, as fusion has it."""
        self.ways, self.network = ways, ways.network
        self.alone = alone
        self.asked = Question(self.network, ways.alignment, in_place=overlap)
        self.size = [t.bytes for t in self.network.tensors]
        self.room = [up(n, ways.alignment) for n in self.size]
        self.over = [self.asked.overwritable(v) for v in range(len(self.network.operators))]
        self.groups = list(convex_groups(self.network))
        self.runs: list[tuple[int, int, int, list[Way]]] = []
        for members in self.groups:
            before = 0
            for v in bits(members):
                before |= self.network.predecessors[v]
            reads, leaving = ways.operands(members)
            found = ways.of(members)
            if alone:  # whole operands are for what runs in no tiles
                tiled = [w for w in found if len(w.streamed) == (reads | leaving).bit_count()]
                found = [w for w in tiled if w.group is not None] or [w for w in found if w.group is None]
            if found:
                self.runs.append((members, before & ~members, reads, found))
        self.writes = {members: ways.operands(members)[1] for members in self.groups}
        self._floors()

    def _floors(self) -> None:
        """Of every weight and graph input the least that any way moves of it: what is left costs that."""
        network = self.network
        self.weight = [op.weight_bytes for op in network.operators]
        self.entry = {t: self.size[t] for t in bits(network.input_roots)}
        for members, _, _, found in self.runs:
            for way in found:
                if members.bit_count() == 1:
                    v = members.bit_length() - 1
                    self.weight[v] = min(self.weight[v], way.weights)
                for t, n in way.streamed:
                    if t in self.entry:
                        self.entry[t] = min(self.entry[t], n)

    def floor(self, state: State) -> int:
        """No more than what is still to be moved."""
        done, whole, copies = state
        network = self.network
        left = sum(w for v, w in enumerate(self.weight) if not done >> v & 1)
        left += sum(self.size[t] for t in bits(network.output_roots & ~copies))
        return left + sum(
            n for t, n in self.entry.items() if not whole >> t & 1 and network.readers[t] & ~done
        )

    def cheapest(self, budget: int, limit: int | None, most: int = 60_000) -> tuple[int, list[Step]] | None:
        """(bytes, moves) of the cheapest program below `limit`, occupancy alone counted; None: none is."""
        budget = budget // self.ways.alignment * self.ways.alignment
        everything = (1 << len(self.network.operators)) - 1
        start: State = (0, 0, self.network.input_roots)
        best = {start: 0}
        came: dict[State, tuple[State, Step]] = {}
        heap = [(self.floor(start), 0, 0, start)]
        count = 0
        while heap:
            _, cost, _, state = heapq.heappop(heap)
            if cost > best[state]:
                continue
            done, _, copies = state
            if done == everything and not self.network.output_roots & ~copies:
                moves: list[Step] = []
                while state in came:
                    state, step = came[state]
                    moves.append(step)
                return cost, moves[::-1]
            if len(best) > most:
                raise Undecided
            for price, after, step in self._moves(state, budget):
                total = cost + price
                if total >= best.get(after, 1 << 62):
                    continue
                bound = total + self.floor(after)
                if limit is None or bound < limit:
                    best[after], came[after] = total, (state, step)
                    count += 1
                    heapq.heappush(heap, (bound, total, count, after))
        return None

    def _moves(self, state: State, budget: int) -> Iterator[tuple[int, State, Step]]:
        done, whole, copies = state
        network = self.network
        free = budget - sum(self.room[t] for t in bits(whole))
        for t in bits(whole):
            if copies >> t & 1:
                yield 0, (done, whole & ~(1 << t), copies), Step("evict", t)
            else:
                yield self.size[t], (done, whole, copies | 1 << t), Step("store", t)
        if not self.alone:
            for t in bits(copies & ~whole):
                if self.room[t] <= free and network.readers[t] & ~done:
                    yield self.size[t], (done, whole | 1 << t, copies), Step("load", t)
        for members, before, reads, found in self.runs:
            if members & done or before & ~done:
                continue
            if self.alone:
                yield from self._alone(state, members, reads, budget, found)
                continue
            leaving, ran = self.writes[members], done | members
            for way in found:
                streamed = sum(1 << t for t, _ in way.streamed)
                if reads & streamed & ~copies or reads & ~streamed & ~whole:
                    continue
                made = leaving & ~streamed
                need = way.scratch + sum(self.room[t] for t in bits(made))
                over = None
                if need > free and way.group is None and members.bit_count() == 1 and not way.streamed:
                    over = next(
                        (
                            x
                            for x in self.over[members.bit_length() - 1]
                            if not network.readers[x] & ~ran and (copies | ~network.output_roots) >> x & 1
                        ),
                        None,
                    )
                    if over is not None:
                        need -= self.room[over]
                if need > free:
                    continue
                there = whole | made if over is None else (whole | made) & ~(1 << over)
                kept = sum(
                    1 << t
                    for t in bits(there)
                    if network.readers[t] & ~ran or (network.output_roots & ~copies) >> t & 1
                )
                after = copies | (leaving & streamed)
                yield way.cost, (ran, kept, after), Step("run", way=way, over=over)

    def _alone(
        self, state: State, members: int, reads: int, budget: int, found: list[Way]
    ) -> Iterator[tuple[int, State, Step]]:
        """A group between DRAM and DRAM: what it does not stream is loaded before it and stored after it."""
        done, whole, copies = state
        leaving = self.writes[members]
        for way in found:
            streamed = sum(1 << t for t, _ in way.streamed)
            held = (reads | leaving) & ~streamed
            if way.scratch + sum(self.room[t] for t in bits(held)) > budget:
                continue
            price = way.cost + sum(self.size[t] for t in bits(held))
            yield price, (done | members, whole, copies | leaving), Step("run", way=way)

    def program(self, moves: list[Step], budget: int) -> tuple[list[Instruction], tuple[Group, ...]] | None:
        """The moves with addresses; None where none were found."""
        network = self.network
        name = [t.name for t in network.tensors]
        made: list[Instruction] = []
        groups: list[Group] = []
        done, copies, there = 0, network.input_roots, 0
        for step in moves:
            if step.what == "store":
                made.append(Store(name[step.tensor]))
                copies |= 1 << step.tensor
            elif step.what == "evict":
                made.append(Free(name[step.tensor]))
                there &= ~(1 << step.tensor)
            elif step.what == "load":
                made.append(Load(name[step.tensor], 0))
                there |= 1 << step.tensor
            else:
                way = step.way
                assert way is not None
                unit = network.operators[way.members.bit_length() - 1].name
                if way.group is not None:
                    unit = f"g{len(groups)}"
                    groups.append(replace(way.group, name=unit))
                reads, leaving = self.ways.operands(way.members)
                streamed = sum(1 << t for t, _ in way.streamed)
                held_in, held_out = list(bits(reads & ~streamed)), list(bits(leaving & ~streamed))
                if self.alone:
                    made += [Load(name[t], 0) for t in held_in]
                for t in held_out:
                    over = None if step.over is None else name[step.over]
                    made.append(Alloc(name[t], 0, over, 0))
                if way.scratch:
                    made.append(Scratch(unit, 0))
                made.append(Run(unit, tuple((name[t], n) for t, n in way.streamed)))
                done |= way.members
                copies |= leaving & streamed
                if self.alone:
                    made += [Store(name[t]) for t in held_out]
                    made += [Free(name[t]) for t in (*held_in, *held_out)]
                    continue
                there |= leaving & ~streamed
                if step.over is not None:
                    there &= ~(1 << step.over)
                for t in list(bits(there)):
                    kept = network.readers[t] & ~done or (network.output_roots & ~copies) >> t & 1
                    if not kept:
                        made.append(Free(name[t]))
                        there &= ~(1 << t)
        scratch = {g.name: up(g.scratch_bytes, self.ways.alignment) for g in groups}
        scratch |= {op.name: up(op.workspace, self.ways.alignment) for op in network.operators}
        sizes = dict(zip(name, self.room, strict=True))
        placed = lay(made, sizes, scratch, {None: budget}, self.ways.alignment)
        return None if placed is None else (placed, tuple(groups))
