"""HaX-CoNN's formulation for the Z3 solver (its 3.4 and 3.5), as a cross-check of the other solvers.

Every group has a unit, a start and an end (eq. 1, 4, 5), a network pays for changes of its unit (eq. 2, 3),
two groups on one unit do not overlap (eq. 9 with epsilon 0), groups that overlap on two units slow each other
down (eq. 6 to 8), and the later end is least (eq. 11). Where the printed equations cannot mean what they say
(docs/corun.md) the model is the judge's: a group's time is its time alone plus, for every group beside it,
overlap x (1 - 1 / slowdown). That is exact for two chains, in which no group overlaps more than one at a
time. The formulation is linear arithmetic over exact rationals, so an answer is a proof; in return, it ends
within seconds for a few groups only.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from math import inf
from typing import Any

from onchip.base.errors import IllegalSchedule, MissingExtra, UsageError
from onchip.machines.contention import NO_CONTENTION
from onchip.multi_dnn.chains import Chain, chains_of, contention_table, schedule_of
from onchip.multi_dnn.schedule import Schedule, Step
from onchip.multi_dnn.simulate import simulate
from onchip.multi_dnn.timeline import Timeline
from onchip.multi_dnn.workload import Workload

__all__ = ["Z3Answer", "solve_with_z3"]


@dataclass(frozen=True, slots=True)
class Z3Answer:
    """The answer of Z3: `makespan_ms` is its own figure where `proved`, `timeline` the judge's of the
    schedule.

    Both are None where it found nothing in time. `proved` states that no schedule of the space is better:
    with arbitrary idle time, or in which every group begins as soon as its order lets it.
    """

    makespan_ms: float | None
    timeline: Timeline | None
    proved: bool
    seconds: float


def solve_with_z3(workload: Workload, *, idle: bool = False, time_limit: float | None = None) -> Z3Answer:
    """Return the least makespan of one frame. With `idle`, groups may also wait for a better neighbour only.

    `time_limit` in seconds. Raises `MissingExtra` without z3-solver, `UsageError` for a workload that does
    not fall into chains, or falls into more than two of them while there is contention.
    """
    try:
        import z3
    except ImportError:
        raise MissingExtra("corun", "z3-solver") from None
    chains = chains_of(workload)
    if chains is None or (len(chains) != 2 and workload.model is not NO_CONTENTION):
        raise UsageError("the Z3 formulation takes two chains of networks", where="corun")
    began = time.monotonic()
    model = _Formulation(z3, workload, chains, idle)
    answer = model.optimize(time_limit)
    seconds = time.monotonic() - began
    if answer is None:
        return Z3Answer(None, None, False, seconds)
    schedule, makespan, proved = answer
    try:
        timeline = simulate(workload, schedule)
    except IllegalSchedule:
        if proved:
            raise
        return Z3Answer(None, None, False, seconds)  # Z3's intermediate state need not be a schedule
    return Z3Answer(float(makespan) if proved else timeline.makespan_ms, timeline, proved, seconds)


class _Formulation:
    """Variables and constraints; a group is (chain, position). `z3` is the module."""

    def __init__(self, z3: Any, workload: Workload, chains: Sequence[Chain], idle: bool) -> None:
        self.z3, self.workload, self.chains, self.idle = z3, workload, chains, idle
        # Z3's search depends on its context's history: from 0.2 s to no answer for the same case.
        self.own = z3.Context()
        self.units = len(workload.soc.units)
        self.groups = [(c, p) for c, chain in enumerate(chains) for p in range(len(chain.steps))]
        self.on = {g: self._units_of(f"on_{g[0]}_{g[1]}") for g in self.groups}
        self.start = {g: z3.Real(f"start_{g[0]}_{g[1]}", self.own) for g in self.groups}
        self.end = {g: self._end_of(g) for g in self.groups}
        self.makespan = z3.Real("makespan", self.own)
        self.solver = z3.Optimize(ctx=self.own)
        for group in self.groups:
            self._placed(group)
            self._timed(group)
        for a in self.groups:
            for b in self.groups:
                if a[0] < b[0]:
                    self._apart(a, b)
        for c, chain in enumerate(chains):
            self.solver.add(self.makespan >= self.end[c, len(chain.steps) - 1])

    def optimize(self, time_limit: float | None) -> tuple[Schedule, Fraction, bool] | None:
        """Return the schedule, its makespan, and whether that is proved to be the least."""
        if time_limit is not None:
            self.solver.set("timeout", max(1, int(1000 * time_limit)))
        self.solver.minimize(self.makespan)
        verdict = self.solver.check()
        try:
            found = self.solver.model()
        except self.z3.Z3Exception:
            return None
        proved = verdict == self.z3.sat
        starts = {g: self._value(found, self.start[g]) for g in self.groups}
        placed = {
            g: [u for u in range(self.units) if self.z3.is_true(found.eval(self.on[g][u], True))]
            for g in self.groups
        }
        if not all(placed.values()):
            return None  # stopped half-way
        unit = {g: units[0] for g, units in placed.items()}
        ordered = sorted(self.groups, key=lambda g: starts[g])
        schedule = schedule_of(self.workload, [(self._step(g), unit[g]) for g in ordered])
        if self.idle:
            ends = {g: self._value(found, self.end[g]) for g in self.groups}
            waits = tuple(self._waits(ordered, unit, starts, ends))
            schedule = Schedule(schedule.units, schedule.order, waits)
        return schedule, self._value(found, self.makespan), proved

    # -- constraints -------------------------------------------------------------------------------------

    def _units_of(self, name: str) -> list[Any]:
        """Return what says of each unit that a group is on it; of two units one variable decides, which
        halves what Z3 has to search."""
        if self.units == 2:
            second = self.z3.Bool(name, self.own)
            return [self.z3.Not(second), second]
        return [self.z3.Bool(f"{name}_{u}", self.own) for u in range(self.units)]

    def _placed(self, group: tuple[int, int]) -> None:
        """Add eq. 1: one unit, which supports the group."""
        if self.units != 2:
            self.solver.add(self.z3.PbEq([(on, 1) for on in self.on[group]], 1))
        for u in range(self.units):
            if self._work(group, u) == inf:
                self.solver.add(self.z3.Not(self.on[group][u]))

    def _timed(self, group: tuple[int, int]) -> None:
        """Add eq. 2 to 5, with waiting for the unit, which the paper's eq. 4 leaves out."""
        z3 = self.z3
        ready = self._ready(group)
        self.solver.add(self.start[group] >= ready)
        if not self.idle and self.workload.model is not NO_CONTENTION:
            # without contention nothing is gained by waiting at will, and Z3 is quicker without the rule
            other = [b for b in self.groups if b[0] != group[0]]
            free = [z3.And(self._same(group, b), self.start[group] == self.end[b]) for b in other]
            self.solver.add(z3.Or(self.start[group] == ready, *free))
        if self.workload.model is not NO_CONTENTION:
            lost = sum(self._lost(group, b) for b in self.groups if b[0] != group[0])
            self.solver.add(self.end[group] == self.start[group] + self._alone(group) + lost)

    def _end_of(self, group: tuple[int, int]) -> Any:
        """Return a variable, or without contention the sum itself, which is less for Z3 to search."""
        if self.workload.model is NO_CONTENTION:
            return self.start[group] + self._alone(group)
        return self.z3.Real(f"end_{group[0]}_{group[1]}", self.own)

    def _alone(self, group: tuple[int, int]) -> Any:
        """Return the group's time on its unit with nothing beside it."""
        times = [self._work(group, u) for u in range(self.units)]
        return self._of_unit(group, [self._number(ms if ms < inf else 0.0) for ms in times])

    def _ready(self, group: tuple[int, int]) -> Any:
        """Return the time at which the group before has ended and handed over."""
        c, p = group
        if not p:
            return self._number(0.0)
        before, units = (c, p - 1), self.units
        moves = self.chains[c].move[(p - 1) * units * units : p * units * units]
        if not any(moves):
            return self.end[before]
        rows = [moves[u * units : (u + 1) * units] for u in range(units)]
        if units == 2 and rows[0][0] == rows[1][1] == 0:  # asked so, Z3 is several times as quick
            there, back = self._number(rows[0][1]), self._number(rows[1][0])
            changed = self.z3.If(self.on[group][1], there, back)
            move = self.z3.If(self._same(group, before), self._number(0.0), changed)
        else:
            numbers = [[self._number(ms) for ms in row] for row in rows]
            move = self._of_unit(before, [self._of_unit(group, row) for row in numbers])
        return self.end[before] + move

    def _lost(self, group: tuple[int, int], other: tuple[int, int]) -> Any:
        """Return eq. 7 and 8 as corrected: overlap x (1 - 1 / slowdown) on every pair of units."""
        z3 = self.z3
        cases = []
        for u in range(self.units):
            for v in range(self.units):
                share = self._share(group, u, other, v)
                if share:
                    cases.append((z3.And(self.on[group][u], self.on[other][v]), share))
        if not cases:
            return 0
        first = z3.If(self.start[group] >= self.start[other], self.start[group], self.start[other])
        last = z3.If(self.end[group] <= self.end[other], self.end[group], self.end[other])
        overlap = z3.Real(f"overlap_{group[0]}_{group[1]}_{other[0]}_{other[1]}", self.own)
        self.solver.add(overlap == z3.If(last > first, last - first, 0))
        return sum(
            z3.If(case, overlap * z3.Q(*share.as_integer_ratio(), self.own), 0) for case, share in cases
        )

    def _share(self, group: tuple[int, int], u: int, other: tuple[int, int], v: int) -> Fraction:
        """Return 1 - 1 / slowdown of a group on u beside another on v; 0 where they cannot overlap."""
        if u == v or self._work(group, u) == inf or self._work(other, v) == inf or len(self.chains) != 2:
            return Fraction(0)
        if not hasattr(self, "table"):
            self.table = contention_table(self.workload.model, self.chains[0], self.chains[1], self.units)
        (c, p), (_, q) = group, other
        places = len(self.chains[1].work)
        if c == 0:
            slowdown = self.table[0][(p * self.units + u) * places + q * self.units + v]
        else:
            slowdown = self.table[1][(q * self.units + v) * places + p * self.units + u]
        return 1 - 1 / Fraction(slowdown)

    def _apart(self, a: tuple[int, int], b: tuple[int, int]) -> None:
        """Add eq. 9: on one unit, one group ends before the other begins."""
        z3 = self.z3
        before = self.end[a] <= self.start[b]
        after = self.end[b] <= self.start[a]
        self.solver.add(z3.Implies(self._same(a, b), z3.Or(before, after)))

    # -- numbers -----------------------------------------------------------------------------------------

    def _of_unit(self, group: tuple[int, int], values: list[Any]) -> Any:
        """Return the value of the unit that the group is on."""
        *others, chosen = zip(self.on[group], values, strict=True)
        value = chosen[1]
        for on, other in reversed(others):
            value = self.z3.If(on, other, value)
        return value

    def _same(self, a: tuple[int, int], b: tuple[int, int]) -> Any:
        z3 = self.z3
        if self.units == 2:
            return self.on[a][1] == self.on[b][1]
        return z3.Or(*(z3.And(self.on[a][u], self.on[b][u]) for u in range(self.units)))

    def _work(self, group: tuple[int, int], unit: int) -> float:
        return self.chains[group[0]].work[group[1] * self.units + unit]

    def _step(self, group: tuple[int, int]) -> Step:
        return self.chains[group[0]].steps[group[1]]

    def _number(self, value: float) -> Any:
        # the decimal that was written down: a double's own ratio has 2^52 below it, which is slow
        return self.z3.Q(*Fraction(repr(value)).as_integer_ratio(), self.own)

    def _value(self, found: Any, variable: Any) -> Fraction:
        value = found.eval(variable, True)
        return Fraction(value.numerator_as_long(), value.denominator_as_long())

    def _waits(
        self,
        ordered: Sequence[tuple[int, int]],
        unit: dict[tuple[int, int], int],
        starts: dict[tuple[int, int], Fraction],
        ends: dict[tuple[int, int], Fraction],
    ) -> Any:
        """Return the idle time before each group: from its earliest possible start to its start."""
        free = [Fraction(0)] * self.units
        for group in ordered:
            c, p = group
            could = free[unit[group]]
            if p:
                before = (c, p - 1)
                place = ((p - 1) * self.units + unit[before]) * self.units + unit[group]
                could = max(could, ends[before] + Fraction(self.chains[c].move[place]))
            free[unit[group]] = ends[group]
            if starts[group] > could:
                yield self._step(group), float(starts[group] - could)
