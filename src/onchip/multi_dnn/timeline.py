"""The judge's timeline: when every group ran and how fast, and the figures that follow from it."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from functools import cached_property
from typing import NamedTuple

from onchip.multi_dnn.schedule import Step
from onchip.multi_dnn.workload import Workload

__all__ = ["FIGURES", "RATES", "Figure", "Piece", "Segment", "Timeline"]


class Figure(StrEnum):
    """A figure that a schedule can be made for, by its name in files."""

    MAKESPAN = "makespan_ms"
    LATENCY = "latency_ms"
    FPS = "fps"
    SUM_OF_RATES = "sum_of_rates"
    MILLIJOULES = "millijoules"

    def __repr__(self) -> str:
        return str.__repr__(self)

    @classmethod
    def named(cls, text: str) -> Figure | None:
        """Return the figure of that name, None where there is none."""
        return next((figure for figure in cls if figure == text), None)

    @property
    def is_rate(self) -> bool:
        """True for rates, of which more is better; less is better of times and energies."""
        return self in (Figure.FPS, Figure.SUM_OF_RATES)

    def ahead(self, one: float, other: float) -> float:
        """Return by how much `one` is better than `other`."""
        return one - other if self.is_rate else other - one

    def ratio(self, value: float, best: float) -> float:
        """Return how many times as good `best` is as `value`; neither is 0."""
        return best / value if self.is_rate else value / best

    def as_ms(self, value: float) -> float:
        """Return a value as a time in ms, or the value that such a time stands for: 1000 / a rate."""
        return 1000.0 / value if self.is_rate and value else value


FIGURES = tuple(Figure)
"""The possible objectives of a schedule."""
RATES = tuple(figure for figure in Figure if figure.is_rate)
"""The figures of which more is better."""


class Piece(NamedTuple):
    """A part of a segment at one speed: [start, end) in ms at 1 / slowdown (a contention interval)."""

    start: float
    end: float
    slowdown: float


@dataclass(frozen=True, slots=True)
class Segment:
    """One group of one run on its unit: [start, end) in ms.

    `ready` is when it could have begun on a free unit, `transition_ms` the time its network then needs to
    reach another unit (0 when it stays). The pieces follow each other from start to end.
    """

    step: Step
    unit: int
    ready: float
    start: float
    end: float
    transition_ms: float
    pieces: tuple[Piece, ...]


@dataclass(frozen=True)
class Timeline:
    """The judged schedule. `segments` are in the order of their starts; `run_ends[job][run]` in ms."""

    workload: Workload
    segments: tuple[Segment, ...]
    run_ends: tuple[tuple[float, ...], ...]

    @cached_property
    def makespan_ms(self) -> float:
        """The time at which everything has run, in ms."""
        return max(ends[-1] for ends in self.run_ends)

    @cached_property
    def frame_ends(self) -> tuple[tuple[float, ...], ...]:
        """For each job, when it finished each frame."""
        return tuple(
            tuple(ends[job.iterations - 1 :: job.iterations])
            for job, ends in zip(self.workload.jobs, self.run_ends, strict=True)
        )

    @cached_property
    def latency_ms(self) -> tuple[float, ...]:
        """For each job, the longest time from taking a frame in until the job has finished it.

        A frame is taken in when the jobs it must pass that wait for no other are free for it:
        at 0, or when the first of them has finished the frame before (without pipelining: when all have).
        """
        return tuple(
            max(end - self._taken_in(j, frame) for frame, end in enumerate(ends))
            for j, ends in enumerate(self.frame_ends)
        )

    def _taken_in(self, job: int, frame: int) -> float:
        if not frame:
            return 0.0
        if not self.workload.pipelined:
            return max(ends[frame - 1] for ends in self.frame_ends)
        return min(self.frame_ends[first][frame - 1] for first in self._firsts(job))

    def _firsts(self, job: int) -> set[int]:
        before = self.workload.waits_for[job]
        return {first for p in before for first in self._firsts(p)} if before else {job}

    @property
    def sum_of_rates(self) -> float:
        """The sum of 1 / latency over the jobs, per second: the objective of the paper's eq. 10."""
        return sum(1000.0 / ms for ms in self.latency_ms)

    @cached_property
    def fps(self) -> float:
        """Frames per second (a frame is done when every job is) over the second half of the frames.

        With a single frame it is the rate of running such frames in sequence.
        """
        done: list[float] = [max(ends) for ends in zip(*self.frame_ends, strict=True)]
        half = len(done) // 2
        if not half:
            return 1000.0 / done[-1]
        return 1000.0 * (len(done) - half) / (done[-1] - done[half - 1])

    def figure(self, name: str) -> float | None:
        """Return one of `FIGURES`, the longest `latency_ms`; None for any other, and for energy not known."""
        match Figure.named(name):
            case Figure.LATENCY:
                return max(self.latency_ms)
            case Figure.MAKESPAN:
                return self.makespan_ms
            case Figure.FPS:
                return self.fps
            case Figure.SUM_OF_RATES:
                return self.sum_of_rates
            case Figure.MILLIJOULES:
                return self.millijoules
            case None:
                return None

    @cached_property
    def busy_ms(self) -> tuple[float, ...]:
        """For each unit, the time it was at work."""
        total = [0.0] * len(self.workload.soc.units)
        for segment in self.segments:
            total[segment.unit] += segment.end - segment.start
        return tuple(total)

    @property
    def overlaps(self) -> int:
        """The number of groups that begin before an earlier one of their unit ended; 0 if not tolerated."""
        count, ends = 0, [0.0] * len(self.workload.soc.units)
        for segment in self.segments:
            count += segment.start < ends[segment.unit]
            ends[segment.unit] = max(ends[segment.unit], segment.end)
        return count

    @cached_property
    def millijoules(self) -> float | None:
        """Energy of the units until the makespan, or None where a unit states no power."""
        total = 0.0
        for unit, busy in zip(self.workload.soc.units, self.busy_ms, strict=True):
            if unit.busy_watts is None or unit.idle_watts is None:
                return None
            total += unit.busy_watts * busy + unit.idle_watts * max(self.makespan_ms - busy, 0.0)
        return total
