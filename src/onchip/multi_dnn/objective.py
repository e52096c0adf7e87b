"""The objective of a co-run, parsed once from the user's text."""

from __future__ import annotations

from enum import StrEnum

from onchip.base.errors import UsageError
from onchip.multi_dnn.timeline import Figure, Timeline
from onchip.multi_dnn.workload import Workload

__all__ = ["Objective"]


class Objective(StrEnum):
    """The least `latency` of the slowest network (eq. 11), the most frames per second in steady
    state (`throughput`), or the greatest sum of 1 / latency (`rates`, eq. 10).

    A search makes `cost_ms` small, whatever the objective.
    """

    LATENCY = "latency"
    THROUGHPUT = "throughput"
    RATES = "rates"

    def __repr__(self) -> str:
        return str.__repr__(self)

    @classmethod
    def parse(cls, text: str) -> Objective:
        """Return the objective of that name. Raises `UsageError` naming the objectives there are."""
        for objective in cls:
            if objective == text:
                return objective
        raise UsageError(f"is none of {', '.join(cls)}", where="--objective", item=text)

    def cost_ms(self, timeline: Timeline) -> float:
        """Return the objective as a time in ms, so that less is always better.

        `latency`: the longest latency of any network; `throughput`: 1000 / frames per second; `rates`: 1000 /
        the sum of rates.
        """
        match self:
            case Objective.LATENCY:
                return max(timeline.latency_ms)
            case Objective.THROUGHPUT:
                return 1000.0 / timeline.fps
            case Objective.RATES:
                return 1000.0 / timeline.sum_of_rates

    def figure(self, frames: int) -> Figure:
        """Return the figure by which files and pages state it; one frame's latency is its makespan."""
        match self:
            case Objective.LATENCY:
                return Figure.MAKESPAN if frames == 1 else Figure.LATENCY
            case Objective.THROUGHPUT:
                return Figure.FPS
            case Objective.RATES:
                return Figure.SUM_OF_RATES

    @property
    def of_one_frame(self) -> Objective:
        """The objective of a single frame that is to be repeated: the earliest end gives the most frames."""
        return Objective.LATENCY if self is Objective.THROUGHPUT else self

    def is_of_one_frame_repeated(self, workload: Workload) -> bool:
        """Return whether a single frame stands for a stream that repeats it without overlap."""
        return self is Objective.THROUGHPUT and workload.frames == 1

    def is_of_a_stream(self, workload: Workload) -> bool:
        """Return whether it is a rate in the long run, measured on the few scheduled frames."""
        return self is Objective.THROUGHPUT and workload.frames > 1
