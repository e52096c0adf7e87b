"""Prefetching: a program's copies moved away from the runs that need them, so that both overlap in time.

A tensor fetched k runs ahead takes its bytes k runs longer; a store that may take k runs keeps its bytes as
long. Both cost scratchpad, so stays are stretched only as far as every run's bytes still fit, and are then
packed again. The search stretches along the critical path: the chain of copies and runs, each waiting for the
one before, that ends last.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from onchip.check import Clock
from onchip.planners.limits import Limits
from onchip.planners.packing import Buffer, pack
from onchip.planners.placement.objectives.stays import Stays
from onchip.plans import Alloc, Instruction, Load, Scratch, Store, Timed

__all__ = ["Prefetched", "prefetch"]

REACH = 8
"""The most runs by which a copy is moved ahead or behind."""

EVALUATIONS = 400
"""The most programs that are timed: the search ends with or without a time limit."""

PACKING_SECONDS, PACKING_NODES = 0.2, 2_000
"""The most seconds and nodes for one packing: stretching less is always possible."""

STRETCHES = (1, 2, 3, 4, REACH)
"""The first attempts stretch everything by this much, as far as there is room."""


@dataclass(frozen=True, slots=True)
class Prefetched:
    """A program, and the picoseconds it takes."""

    program: tuple[Instruction, ...]
    latency: int


def prefetch(
    program: tuple[Instruction, ...],
    clock: Clock,
    budget: int,
    alignment: int,
    *,
    bound: int = 0,
    limits: Limits,
) -> Prefetched:
    """Return the same runs, evictions and reloads in less time, or the program unchanged.

    Copies start earlier or end later, and addresses change; the order of runs and the traffic do not. Ends at
    `bound` picoseconds, at a limit, or when no single change to the critical path helps.
    """
    best = Prefetched(program, clock.latency(program))
    stays = Stays.of(program, clock)
    if stays is None or best.latency <= bound:
        return best
    search = _Search(stays, clock, budget, alignment, bound, limits, best)
    try:
        search.stretch_all()
        search.climb()
    except _OutOfTime:
        pass
    return search.best


class _OutOfTime(Exception):
    pass


Moves = tuple[tuple[int, ...], tuple[int, ...]]
"""The runs by which each stay arrives early, and by which its store is late."""


class _Search:
    def __init__(
        self,
        stays: Stays,
        clock: Clock,
        budget: int,
        alignment: int,
        bound: int,
        limits: Limits,
        best: Prefetched,
    ) -> None:
        self.stays, self.clock, self.budget, self.alignment = stays, clock, budget, alignment
        self.bound, self.limits, self.best = bound, limits, best
        self.seen: set[Moves] = set()
        self.next = {stay.after: i for i, stay in enumerate(stays.stays) if stay.after is not None}
        none = (0,) * len(stays.stays)
        self.at: Moves = (none, stays.late)
        self.latency: int | None = None  # of `at`, once it was packed
        self.current: tuple[Instruction, ...] = ()
        self.improved = False

    def stretch_all(self) -> None:
        """Move every copy by the same amount, if there is room: first come, first served."""
        none = self.at[0]
        for start in ((none, self.stays.late), (none, none)):
            self.consider(start)
        for stretch in STRETCHES:
            for share in (1.0, 0.95, 0.85, 0.7):  # stays that do not pack may do so with some bytes to spare
                if self.consider(self.stretched(stretch, int(self.budget * share))):
                    break

    def stretched(self, most: int, room: int) -> Moves:
        """Stretch everything by up to `most` runs, as long as no run has more than `room` bytes."""
        stays = self.stays
        early, late = [0] * len(stays.stays), [0] * len(stays.stays)
        load = stays.load(early, late)
        for _ in range(most):
            for i, stay in enumerate(stays.stays):
                if stay.copied and early[i] < stay.first + 1:
                    run = stay.first - early[i] - 1
                    blocked = stay.after is not None and stays.end(stay.after, late) > run
                    if run < 0 or (not blocked and load[run] + stay.size <= room):
                        early[i] += 1
                        if run >= 0:
                            load[run] += stay.size
                if stay.stored and late[i] < stays.latest[i]:
                    run = stay.first + late[i] + 1
                    if run >= len(load) or run <= stay.last:
                        late[i] += 1
                    elif load[run] + stay.size <= room and self._nothing_after(i, run, early):
                        late[i] += 1
                        load[run] += stay.size
        return tuple(early), tuple(late)

    def _nothing_after(self, i: int, run: int, early: Sequence[int]) -> bool:
        after = self.next.get(i)
        return after is None or self.stays.begin(after, early) > run

    def climb(self) -> None:
        """Make single changes on the critical path, the first that helps, until none does."""
        while self.latency is not None and self.best.latency > self.bound:
            if not any(self.consider(moves) and self.improved for moves in list(self.neighbours())):
                return

    def neighbours(self) -> Iterator[Moves]:
        """Yield the candidate changes: copies on the critical path, one run earlier or later."""
        early, late = self.at
        for i, is_store in self.critical():
            values = late if is_store else early
            first = self.stays.stays[i].first
            most = min(REACH, self.stays.latest[i] if is_store else first + 1)
            for change in (1, -1, 2):
                value = values[i] + change
                if not 0 <= value <= most:
                    continue
                changed = (*values[:i], value, *values[i + 1 :])
                yield (early, changed) if is_store else (changed, late)

    def critical(self) -> list[tuple[int, bool]]:
        """Return stays whose copies are on the critical path (and whether it is the store), latest first."""
        program = self.current
        times = self.clock.times(program)
        by_end: dict[int, list[Timed]] = {}
        for timed in times:
            by_end.setdefault(timed.end, []).append(timed)
            if timed.fetched is not None and timed.fetched != timed.end:
                by_end.setdefault(timed.fetched, []).append(timed)
        which = self.which(program)
        found: dict[tuple[int, bool], None] = {}
        waiting, seen = [max(times, key=lambda t: t.end)], set[int]()
        while waiting:
            timed = waiting.pop()
            if timed.index in seen:
                continue
            seen.add(timed.index)
            if timed.index in which:
                found[which[timed.index]] = None
            waiting += [t for t in by_end.get(timed.start, ()) if t.start < timed.start]
        return list(found)

    def which(self, program: Sequence[Instruction]) -> dict[int, tuple[int, bool]]:
        """Return for each copy in a program made by `Stays.program` its stay, and whether it is a store."""
        arrivals: dict[tuple[str, str], list[int]] = {}
        for i, stay in enumerate(self.stays.stays):
            kind = "scratch" if stay.arrival is Scratch else "tensor"
            arrivals.setdefault((kind, stay.name), []).append(i)
        found, here = {}, dict[str, int]()
        for index, instruction in enumerate(program):
            match instruction:
                case Scratch(name, _):
                    found[index] = (arrivals["scratch", name][0], False)
                case Load(name, _):
                    here[name] = arrivals["tensor", name].pop(0)
                    found[index] = (here[name], False)
                case Store(name):
                    found[index] = (here[name], True)
                case Alloc(name, _, _, _):
                    here[name] = arrivals["tensor", name].pop(0)
        return found

    def consider(self, moves: Moves) -> bool:
        """Pack and time these moves; return false if they do not fit. `improved`: the fastest yet."""
        self.improved = False
        if len(self.seen) >= EVALUATIONS or self.limits.over():
            raise _OutOfTime
        if moves in self.seen:
            return True
        self.seen.add(moves)
        stays = self.stays
        if not stays.allows(*moves) or max(stays.load(*moves), default=0) > self.budget:
            return False
        addresses = self.packed(moves)
        if addresses is None:
            return False
        program = stays.program(*moves, addresses)
        latency = self.clock.latency(program)
        if self.latency is None or latency < self.latency:
            self.at, self.latency, self.current = moves, latency, program
            self.improved = True
        if latency < self.best.latency:
            self.best = Prefetched(program, latency)
        return True

    def packed(self, moves: Moves) -> list[int] | None:
        """Return an address for every stay, or None."""
        stays = self.stays
        buffers = [Buffer(begin, end, size) for begin, end, size in stays.rectangles(*moves)]
        found = pack(
            buffers,
            self.budget,
            alignment=self.alignment,
            time_limit=PACKING_SECONDS,
            node_limit=PACKING_NODES,
            engines=("greedy", "search", "repair"),
        )
        if found.status != "packed":
            return None
        addresses = [0] * len(stays.stays)
        for base, rows in zip(found.offsets, stays.clusters, strict=True):
            for i, offset in rows:
                addresses[i] = base + offset
        return addresses
