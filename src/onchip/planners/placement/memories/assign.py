"""Memories along one order, or a bound on all orders: one integer program.

Every tensor has *points*, operators at whose runs it is on chip: those that touch it, and those that run
while it waits for a reader. Each point has a memory, and the tensors present together at a run fit. With one
order a wait between two touches is one point, and the answer is a program (transient copies included).
Without an order the program states only what holds in every order: the graph alone tells which operators run
while a tensor must wait, and the answer is only a lower bound.
"""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from dataclasses import dataclass, field

from onchip.network import bits, mask
from onchip.planners.limits import Limits
from onchip.planners.placement.ilp.rows import Model
from onchip.planners.placement.memories.levels import MemoryProblem
from onchip.planners.placement.memories.solving import solve
from onchip.planners.placement.memories.steps import Step

__all__ = ["Assigned", "along", "least_picoseconds"]

MOST_POINTS = 60_000
"""With more points, waits are left out of the bound: it is weaker then, but still valid."""


@dataclass(frozen=True)
class Assigned:
    """The place of every touch and wait (a memory, or -1 for DRAM), by (tensor, step); scratch by step."""

    order: tuple[int, ...]
    touches: dict[int, tuple[int, ...]]
    at: dict[tuple[int, int], int]
    scratch: dict[int, int]

    def steps(self, problem: MemoryProblem) -> tuple[Step, ...]:
        """Return the program: after each run, frees of dead tensors, then moves down, moves up, and loads."""
        return _program(problem, self)


def along(
    problem: MemoryProblem,
    order: Sequence[int],
    capacity: Sequence[int],
    limits: Limits,
    *,
    spills: bool,
    moves: bool = True,
) -> Assigned | None:
    """Return the memories along an order within `capacity`; None if the limits left none, or there are none.

    Without `moves`, tensors on chip stay where they are. With `spills` a tensor may wait in DRAM, with the
    fewest possible bytes; then picoseconds are minimised.
    """
    build = _Along(problem, order, capacity, spills=spills, moves=moves)
    model, best = build.model, None
    if build.crossing:
        model.objective = list(build.crossing.items())
        first = solve(model, limits.share(1 / 2))
        if first.values is None:
            return None
        best = first.values
        least = sum(k * best[x] for x, k in build.crossing.items())
        model.at_most("traffic", list(build.crossing.items()), least)
    build.finish()
    found = solve(model, limits)
    values = best if found.values is None else found.values
    return None if values is None else build.read(values)


class _Builder:
    def __init__(self, problem: MemoryProblem) -> None:
        self.problem, self.base, self.levels = problem, problem.problem, problem.levels
        self.model = Model()
        self.terms: dict[int, int] = {}

    def charge(self, variable: int, price: int) -> None:
        self.terms[variable] = self.terms.get(variable, 0) + price

    def one_of(self, choices: Sequence[int]) -> dict[int, int]:
        """Return a variable for each choice, of which one is 1."""
        found = {m: self.model.variable("at") for m in choices}
        self.model.equal("one", [(x, 1) for x in found.values()], 1)
        return found

    def scratch(self, v: int) -> dict[int, int]:
        found = self.one_of(self.levels.reached) if self.base.workspace[v] else {}
        for m, x in found.items():
            self.charge(x, self.problem.scratch_price[v][m])
        return found

    def same(self, before: dict[int, int], after: dict[int, int]) -> None:
        """Require the same memory at two successive points of a tensor, or DRAM at one of them."""
        for m in set(before) & set(after) - {-1}:
            out = [(x[-1], -1) for x in (before, after) if -1 in x]
            self.model.at_most("same", [(after[m], 1), (before[m], -1), *out], 0)
        for here, there in ((before, after), (after, before)):
            for m in set(here) - set(there) - {-1}:
                self.model.at_most("same", [(here[m], 1), *([(there[-1], -1)] if -1 in there else [])], 0)

    def change(self, t: int, before: dict[int, int], after: dict[int, int], *, leave: bool = True) -> None:
        """Charge for a change of place: a read in the old one (if `leave`) and a write in the new one."""
        price = self.problem.copy_price[t]
        for m in set(before) | set(after):
            if m < 0:
                continue
            come, go = self.model.variable("move"), self.model.variable("move")
            was, now = before.get(m), after.get(m)
            rise = ([(now, 1)] if now is not None else []) + ([(was, -1)] if was is not None else [])
            self.model.at_most("come", [*rise, (come, -1)], 0)
            self.charge(come, price[m])
            if leave:
                self.model.at_most("go", [*((x, -k) for x, k in rise), (go, -1)], 0)
                self.charge(go, price[m])

    def fits(self, capacity: Sequence[int], here: Sequence[tuple[int, dict[int, int]]]) -> None:
        """Require that the tensors present together (size, variables) fit in each memory."""
        for m in range(self.levels.count):
            terms = [(x[m], size) for size, x in here if m in x]
            if sum(size for _, size in terms) > capacity[m]:
                self.model.at_most("fits", terms, capacity[m])

    def finish(self) -> None:
        self.model.objective = [(x, k) for x, k in self.terms.items() if k]


# -- along one order ---------------------------------------------------------------------------------------


@dataclass
class _Wait:
    """A tensor between two touches with steps in between."""

    tensor: int
    begin: int
    end: int
    at: dict[int, int] = field(default_factory=dict)


class _Along(_Builder):
    def __init__(
        self,
        problem: MemoryProblem,
        order: Sequence[int],
        capacity: Sequence[int],
        *,
        spills: bool,
        moves: bool,
    ) -> None:
        super().__init__(problem)
        self.order, self.capacity, self.moves = tuple(order), capacity, moves
        self.touches = touches_of(problem, order)
        self.crossing: dict[int, int] = {}  # bytes of traffic
        self.at = {(t, s): self.one_of(self.levels.reached) for t, row in self.touches.items() for s in row}
        self.scratches = [self.scratch(v) for v in self.order]
        self.waits: list[_Wait] = []
        self.stored: dict[int, int] = {}
        for t, row in self.touches.items():
            self.lives(t, row, spills)
        self.rooms()

    def lives(self, t: int, row: tuple[int, ...], spills: bool) -> None:
        base, price = self.base, self.problem.copy_price[t]
        for s in row:
            for m, x in self.at[t, s].items():
                self.charge(x, self.problem.run_price[self.order[s]][t][m])
        for m, x in self.at[t, row[0]].items():
            if base.graph_inputs >> t & 1 or base.graph_outputs >> t & 1:
                self.charge(x, price[m])  # the first load, or the store right after the run
        for a, b in itertools.pairwise(row):
            if b == a + 1:
                self.to(t, self.at[t, a], self.at[t, b])
                continue
            wait = _Wait(t, a, b, self.one_of([*range(self.levels.count), *([-1] if spills else [])]))
            self.waits.append(wait)
            self.to(t, self.at[t, a], wait.at)
            self.to(t, wait.at, self.at[t, b])
            if spills:
                self.crossing[wait.at[-1]] = base.cost[t]
                if not (base.graph_inputs | base.graph_outputs) >> t & 1:
                    if t not in self.stored:
                        self.stored[t] = self.model.variable("stored")
                        self.crossing[self.stored[t]] = base.cost[t]
                    self.model.at_most("stored", [(wait.at[-1], 1), (self.stored[t], -1)], 0)

    def to(self, t: int, before: dict[int, int], after: dict[int, int]) -> None:
        self.change(t, before, after)
        if not self.moves:
            self.same(before, after)

    def rooms(self) -> None:
        steps = range(len(self.order))
        here: list[list[tuple[int, dict[int, int]]]] = [[] for _ in steps]
        across: list[list[tuple[int, dict[int, int], dict[int, int]]]] = [[] for _ in steps]
        size = self.base.size
        for (t, s), x in self.at.items():
            here[s].append((size[t], x))
        for wait in self.waits:
            for s in range(wait.begin + 1, wait.end):
                here[s].append((size[wait.tensor], wait.at))
            across[wait.begin].append((size[wait.tensor], self.at[wait.tensor, wait.begin], wait.at))
            across[wait.end - 1].append((size[wait.tensor], wait.at, self.at[wait.tensor, wait.end]))
            for s in range(wait.begin + 1, wait.end - 1):
                across[s].append((size[wait.tensor], wait.at, wait.at))
        for t, row in self.touches.items():
            for a, b in itertools.pairwise(row):
                if b == a + 1:
                    across[a].append((size[t], self.at[t, a], self.at[t, b]))
        for s in steps:
            room = [(self.base.workspace[self.order[s]], self.scratches[s])] if self.scratches[s] else []
            self.fits(self.capacity, [*here[s], *room])
        # Between two runs, moves down precede moves up: only slower memories hold both for a moment.
        for s in steps:
            for m in self.levels.by_speed[1:]:
                terms: list[tuple[int, int]] = []
                for n, was, now in across[s]:
                    if was is now:
                        terms += [(was[m], n)] if m in was else []
                        continue
                    either = self.model.variable("either")
                    for there in (was.get(m), now.get(m)):
                        if there is not None:
                            self.model.at_most("either", [(there, 1), (either, -1)], 0)
                    terms.append((either, n))
                if sum(n for _, n in terms) > self.capacity[m]:
                    self.model.at_most("both", terms, self.capacity[m])

    def read(self, values: Sequence[int]) -> Assigned:
        def chosen(x: dict[int, int]) -> int:
            return next(m for m, variable in x.items() if values[variable])

        at = {key: chosen(x) for key, x in self.at.items()}
        for wait in self.waits:
            for s in range(wait.begin + 1, wait.end):
                at[wait.tensor, s] = chosen(wait.at)
        scratch = {s: chosen(x) for s, x in enumerate(self.scratches) if x}
        return Assigned(self.order, self.touches, at, scratch)


def touches_of(problem: MemoryProblem, order: Sequence[int]) -> dict[int, tuple[int, ...]]:
    """Return by tensor the steps that read or write it, ascending."""
    found: dict[int, list[int]] = {}
    for s, v in enumerate(order):
        for t in (*problem.problem.inputs[v], *problem.problem.outputs[v]):
            found.setdefault(t, []).append(s)
    return {t: tuple(row) for t, row in found.items()}


def _program(problem: MemoryProblem, found: Assigned) -> tuple[Step, ...]:
    base, rank = problem.problem, {m: i for i, m in enumerate(problem.levels.by_speed)}
    copies = set(bits(base.graph_inputs))
    at: dict[int, int] = {}
    last = {t: row[-1] for t, row in found.touches.items()}
    steps: list[Step] = []
    for s, v in enumerate(found.order):
        made = set(base.outputs[v])
        wanted = {t: found.at[t, s] for t in (*base.inputs[v], *base.outputs[v])}
        for t in at:
            wanted.setdefault(t, found.at[t, s])
        moves = [(t, at[t], m) for t, m in wanted.items() if t in at and m not in (at[t], -1)]
        down = sorted((x for x in moves if rank[x[2]] > rank[x[1]]), key=lambda x: -rank[x[1]])
        up = sorted((x for x in moves if rank[x[2]] < rank[x[1]]), key=lambda x: rank[x[1]])
        for t in [t for t, m in wanted.items() if t in at and m == -1]:
            if t not in copies:
                steps.append(Step("store", t))
                copies.add(t)
            steps.append(Step("free", t))
            del at[t], wanted[t]
        for t, _, m in (*down, *up):
            steps.append(Step("move", t, m))
            at[t] = m
        for t in base.inputs[v]:
            if t not in at:
                steps.append(Step("load", t, wanted[t]))
                at[t] = wanted[t]
        steps += [Step("alloc", t, wanted[t]) for t in base.outputs[v]]
        at |= {t: wanted[t] for t in made}
        if s in found.scratch:
            steps.append(Step("scratch", v, found.scratch[s]))
        steps.append(Step("run", v))
        for t in base.outputs[v]:
            if base.graph_outputs >> t & 1:
                steps.append(Step("store", t))
                copies.add(t)
        for t in sorted(wanted):
            if t in at and last[t] == s:
                steps.append(Step("free", t))
                del at[t]
    return tuple(steps)


# -- a bound on every order --------------------------------------------------------------------------------


def least_picoseconds(problem: MemoryProblem, limits: Limits, *, traffic: bool, moves: bool = True) -> int:
    """Return a lower bound of the time at the memories over all allowed orders, addresses and copies aside.

    Without `moves` it bounds plans without any, without `traffic` likewise; with it a wait may be in DRAM,
    and only arrivals in another memory are charged.
    """
    build = _Anyhow(problem, traffic=traffic, moves=moves)
    return solve(build.model, limits).bound


class _Anyhow(_Builder):
    def __init__(self, problem: MemoryProblem, *, traffic: bool, moves: bool) -> None:
        super().__init__(problem)
        self.one_place = not (traffic or moves)
        self.traffic = traffic
        count = len(self.base.inputs)
        here: list[list[tuple[int, dict[int, int]]]] = [[] for _ in range(count)]
        waits = waits_of(problem)
        if sum(w.bit_count() for w in waits) > MOST_POINTS:
            waits = [0] * len(waits)
        place = {v: i for i, v in enumerate(problem.some_order)}
        anywhere = [*range(self.levels.count), *([-1] if traffic else [])]
        for t, size in enumerate(self.base.size):
            touched = self.base.readers[t] | mask(v for v in (problem.producer.get(t),) if v is not None)
            points = {}
            for v in bits(touched):
                points[v] = self.one_of(self.levels.reached)
                for m, x in points[v].items():
                    self.charge(x, problem.run_price[v][t][m])
            for v in bits(waits[t] & ~touched):
                points[v] = self.one_of(anywhere)
            for v, at in points.items():
                here[v].append((size, at))
            if points:
                self.travels(t, [(v, points[v]) for v in sorted(points, key=place.__getitem__)])
        for v in range(count):
            if room := self.scratch(v):
                here[v].append((self.base.workspace[v], room))
            self.fits(self.levels.capacity, here[v])
        self.finish()

    def travels(self, t: int, points: list[tuple[int, dict[int, int]]]) -> None:
        """Charge a tensor's copies, whatever the order of points that no path connects."""
        before, price = self.problem.before, self.problem.copy_price[t]
        given = bool(self.base.graph_inputs >> t & 1)
        taken = bool(self.base.graph_outputs >> t & 1) and not given
        chain = all(before[b] >> a & 1 for (a, _), (b, _) in itertools.pairwise(points))
        visited = {m: self.model.variable("visited") for m in range(self.levels.count)}
        for _, at in points:
            for m, x in at.items():
                if m >= 0:
                    self.model.at_most("visited", [(x, 1), (visited[m], -1)], 0)
        if self.one_place:
            self.model.at_most("one place", [(x, 1) for x in visited.values()], 1)
        first = points[0][1]
        if chain:
            for (_, here), (_, there) in itertools.pairwise(points):
                self.change(t, here, there, leave=not self.traffic)
        else:
            # From its first memory it reaches every other one that it visits.
            if given:
                first = self.one_of(range(self.levels.count))
                for m, x in first.items():
                    self.model.at_most("first", [(x, 1), (visited[m], -1)], 0)
            else:
                (first,) = (at for v, at in points if self.problem.producer.get(t) == v)
            for m, x in visited.items():
                self.charge(x, price[m])
            for m, x in first.items():
                self.charge(x, -price[m])
        if given:
            for m, x in first.items():
                self.charge(x, price[m])
        if taken:  # stored from a memory that it visits
            once = self.one_of(range(self.levels.count))
            for m, x in once.items():
                self.model.at_most("once", [(x, 1), (visited[m], -1)], 0)
                self.charge(x, price[m])


def waits_of(problem: MemoryProblem) -> list[int]:
    """Return by tensor the operators that run in every order while it waits, between producer and reader.

    An input waits from its first reader on.
    """
    base, before = problem.problem, problem.before
    after = [0] * len(before)
    for v, earlier in enumerate(before):
        for u in bits(earlier):
            after[u] |= 1 << v
    found = []
    for t, readers in enumerate(base.readers):
        ends = 0
        for v in bits(readers):
            ends |= before[v]
        maker = problem.producer.get(t)
        begins = 0
        if maker is not None:
            begins = after[maker]
        else:
            for v in bits(readers):
                begins |= after[v]
        found.append(begins & ends)
    return found
