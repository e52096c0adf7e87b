"""The judge: the cost of a schedule, by an event-driven simulation that is exact.

Between two events (a group begins or ends, a transition ends) every running group has a constant speed, so
stepping from event to event is exact. A group on a unit takes its time alone while no other uses the
memory, and progresses at 1 / slowdown of that speed while others do. The rules are in docs/corun.md.
"""

from __future__ import annotations

import heapq
from collections.abc import Iterator
from dataclasses import dataclass
from math import inf

from onchip.base.errors import IllegalSchedule
from onchip.multi_dnn.schedule import Schedule, Step, check_schedule
from onchip.multi_dnn.timeline import Piece, Segment, Timeline
from onchip.multi_dnn.workload import Workload

__all__ = ["simulate"]


@dataclass(slots=True)
class _Running:
    """A step in progress: the rest of its work, in ms alone, and its pieces so far."""

    step: Step
    unit: int
    ready: float
    start: float
    left: float
    bandwidth: float
    slowdown: float
    pieces: list[Piece]
    since: float
    """The start of the present slowdown."""
    closing: bool = False
    """True if at most epsilon is left, so that the unit's next step may begin."""


def simulate(workload: Workload, schedule: Schedule, *, epsilon_ms: float = 0.0) -> Timeline:
    """Return the timeline of `schedule`, in ms.

    With `epsilon_ms` the next step of a unit may begin when the one before has that much of its time alone
    left (the overlap that the paper's eq. 9 tolerates); both then run, and slow each other down, as if on
    different units. Raises `IllegalSchedule` for a schedule that leaves a group out, puts one where it
    does not run, or whose orders wait for each other.
    """
    check_schedule(workload, schedule)
    if not 0 <= epsilon_ms < inf:
        raise IllegalSchedule("epsilon", f"{epsilon_ms} is not a time in ms")
    return _Simulation(workload, schedule, epsilon_ms).run()


class _Simulation:
    def __init__(self, workload: Workload, schedule: Schedule, epsilon: float) -> None:
        self.workload, self.schedule, self.epsilon = workload, schedule, epsilon
        self.now = 0.0
        self.running: list[_Running] = []
        self.head = [0] * len(schedule.order)  # per unit, the next in its order
        self.ready: dict[Step, float] = {}  # steps that only wait for their unit, since when
        self.wakes: list[float] = []  # times at which a step may begin
        self.finished_runs = [0] * len(workload.jobs)
        self.blocked = set(range(len(workload.jobs)))  # jobs between two runs
        self.idle = dict(schedule.idle_ms)
        self.held: dict[Step, float] = {}  # when a step's inserted wait is over
        self.segments: list[Segment] = []
        self.ends: list[list[float]] = [[] for _ in workload.jobs]

    def run(self) -> Timeline:
        self._admit()
        while True:
            self._begin()
            if not self.running and not self.wakes:
                break
            self._advance()
        waiting = [row[at] for row, at in zip(self.schedule.order, self.head, strict=True) if at < len(row)]
        if waiting:
            jobs = self.workload.jobs
            named = ", ".join(
                f"{jobs[j].name} run {r} {jobs[j].profile.groups[g].name}" for j, r, g in waiting
            )
            raise IllegalSchedule("order", f"the units wait for each other: next are {named}")
        self.segments.sort(key=lambda s: (s.start, s.step))
        return Timeline(self.workload, tuple(self.segments), tuple(map(tuple, self.ends)))

    # -- steps that may begin -----------------------------------------------------------------------------

    def _admit(self) -> None:
        """Make the first groups of the runs ready that no dependency holds back any more."""
        for job in sorted(self.blocked):
            run = self.finished_runs[job]
            if run < self.workload.runs(job) and self._may_begin(job, run):
                self.blocked.discard(job)
                self.ready[Step(job, run, 0)] = self.now

    def _may_begin(self, job: int, run: int) -> bool:
        jobs = self.workload.jobs
        frame, iteration = divmod(run, jobs[job].iterations)
        if iteration:
            return True
        if any(
            self.finished_runs[p] < (frame + 1) * jobs[p].iterations for p in self.workload.waits_for[job]
        ):
            return False
        most = self.workload.frames_at_once
        if not most:
            return True
        finished = frame + 1 - most
        return all(done >= finished * j.iterations for done, j in zip(self.finished_runs, jobs, strict=True))

    def _begin(self) -> None:
        """Start what can start now; a start allows no other one now unless epsilon is as long as a group."""
        again = True
        while again:
            again = False
            for unit, order in enumerate(self.schedule.order):
                if self.head[unit] == len(order) or any(
                    r.unit == unit and not r.closing for r in self.running
                ):
                    continue
                if sum(r.unit == unit for r in self.running) > 1:
                    continue  # never more than two at once
                step = order[self.head[unit]]
                since = self.ready.get(step)
                if since is None or since > self.now:
                    continue
                if step not in self.held:
                    self.held[step] = self.now + self.idle.get(step, 0.0)
                    if self.held[step] > self.now:
                        heapq.heappush(self.wakes, self.held[step])
                if self.held[step] > self.now:
                    continue
                self._start(step, unit, since)
                again = True
        self._set_speeds()

    def _start(self, step: Step, unit: int, since: float) -> None:
        group = self.workload.jobs[step.job].profile.groups[step.group]
        work = group.ms[unit]
        assert work is not None  # check_schedule has checked it
        del self.ready[step]
        self.head[unit] += 1
        bandwidth = group.gb_per_second[unit]
        self.running.append(
            _Running(step, unit, since, self.now, work, bandwidth, 1.0, [], self.now, work <= self.epsilon)
        )

    def _set_speeds(self) -> None:
        model = self.workload.model
        for r in self.running:
            external = sum(other.bandwidth for other in self.running if other is not r)
            slowdown = model.slowdown(r.unit, r.bandwidth, external) if external else 1.0
            if slowdown != r.slowdown:
                if self.now > r.since:
                    r.pieces.append(Piece(r.since, self.now, r.slowdown))
                r.slowdown, r.since = slowdown, self.now

    # -- time ---------------------------------------------------------------------------------------------

    def _advance(self) -> None:
        """Go to the next event, and remove the steps that end there."""
        moments = [*self._moments()]
        until = min((at for at, _, _ in moments), default=inf)
        if self.wakes and self.wakes[0] <= until:
            until = self.wakes[0]
        while self.wakes and self.wakes[0] <= until:
            heapq.heappop(self.wakes)
        for r in self.running:
            r.left -= (until - self.now) / r.slowdown
        self.now = until
        for at, r, ends in moments:
            if at <= until:
                if ends:
                    self._end(r)
                else:
                    r.closing = True

    def _moments(self) -> Iterator[tuple[float, _Running, bool]]:
        """Yield when each step would end at its present speed, or have epsilon left."""
        for r in self.running:
            yield self.now + max(r.left, 0.0) * r.slowdown, r, True
            if self.epsilon and not r.closing:
                yield self.now + max(r.left - self.epsilon, 0.0) * r.slowdown, r, False

    def _end(self, r: _Running) -> None:
        self.running.remove(r)
        if self.now > r.since or not r.pieces:
            r.pieces.append(Piece(r.since, self.now, r.slowdown))
        job, run, group = r.step
        profile = self.workload.jobs[job].profile
        out = 0.0
        if group + 1 < len(profile.groups):
            after = Step(job, run, group + 1)
            out = profile.transition_ms(group, r.unit, self.schedule.units[job][run][group + 1])
            self.ready[after] = self.now + out
            if out:
                heapq.heappush(self.wakes, self.now + out)
        else:
            self.finished_runs[job] += 1
            self.ends[job].append(self.now)
            self.blocked.add(job)
            self._admit()
        self.segments.append(Segment(r.step, r.unit, r.ready, r.start, self.now, out, tuple(r.pieces)))
