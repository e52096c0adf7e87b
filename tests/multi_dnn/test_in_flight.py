"""Streams with a bound on the frames begun and not finished: what solvers find keeps to it."""

from __future__ import annotations

from dataclasses import replace

import pytest

from onchip.base.errors import ProfileError
from onchip.machines.soc_file import load_soc
from onchip.multi_dnn.published import googlenet
from onchip.multi_dnn.simulate import simulate
from onchip.multi_dnn.solve import SolveOptions, solve
from onchip.multi_dnn.timeline import Timeline
from onchip.multi_dnn.workload import Job, Workload

XAVIER = load_soc("xavier-agx")
STREAM = Workload(
    XAVIER,
    (Job("first", googlenet()), Job("second", googlenet(), after=("first",))),
    XAVIER.model("light"),
    frames=6,
)


def begun_early(timeline: Timeline, most: int) -> list[int]:
    """The frames that some network begins before all have finished the one `most` before."""
    begins = {s.step.run: s.start for s in reversed(timeline.segments) if s.step.group == 0}
    done = [max(ends) for ends in zip(*timeline.frame_ends, strict=True)]
    return [frame for frame, start in begins.items() if frame >= most and start < done[frame - most] - 1e-9]


@pytest.mark.parametrize("most", [1, 2, 3])
def test_solvers_keep_to_the_bound(most: int) -> None:
    work = replace(STREAM, in_flight=most)
    result = solve(work, "throughput", SolveOptions(tries=200))
    timeline = simulate(work, result.solution.schedule)
    assert not begun_early(timeline, most)
    assert timeline.fps == pytest.approx(result.solution.timeline.fps)
    for baseline in result.baselines:
        assert timeline.fps >= baseline.timeline.fps - 1e-9


def test_one_in_flight_is_not_pipelined() -> None:
    result = solve(replace(STREAM, pipelined=False), "throughput", SolveOptions(tries=50))
    again = simulate(replace(STREAM, in_flight=1), result.solution.schedule)
    assert again.run_ends == result.solution.timeline.run_ends


def test_a_negative_bound_is_refused() -> None:
    with pytest.raises(ProfileError, match="in_flight: must not be negative"):
        replace(STREAM, in_flight=-1)
