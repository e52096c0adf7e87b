"""Frames of changing sets of networks, in real processes: the scheduler's schedule, from frame to frame."""

from __future__ import annotations

import os
import sys
import threading
from collections.abc import Iterator
from dataclasses import dataclass, replace
from itertools import pairwise
from random import Random
from typing import Any

import numpy as np
import pytest

from multi_dnn.local.local_work import UNITS, in_groups, two_cores, workload_of
from multi_dnn.workloads import random_schedule
from onchip.base.errors import Mismatch, UsageError
from onchip.multi_dnn.dynamic import DynamicScheduler
from onchip.multi_dnn.improvements import improvements
from onchip.multi_dnn.local import Runtime, outputs
from onchip.multi_dnn.local.live import Live, at_leisure
from onchip.multi_dnn.local.pieces import Cut
from onchip.multi_dnn.schedule import Schedule
from onchip.multi_dnn.workload import Workload
from run.models import source

pytestmark = two_cores


@pytest.fixture(scope="module")
def cuts(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Cut]:
    """By job name: three networks."""
    folder = tmp_path_factory.mktemp("models")
    names = ("residual", "outputs", "attention")
    return {f"n{n}": in_groups(source(name, folder), 3) for n, name in enumerate(names)}


@pytest.fixture(scope="module")
def runtime() -> Iterator[Runtime]:
    with Runtime(UNITS, patience=60) as made:
        yield made


@dataclass
class Given:
    """An answer as it is."""

    workload: Workload
    schedule: Schedule


class Listed:
    """Says one after the other."""

    def __init__(self, *answers: Given) -> None:
        self.answers = list(answers)

    def frame(self) -> Given:
        return self.answers.pop(0)


def different(workload: Workload) -> Workload:
    """The same networks; the second unit takes a third of the time."""
    jobs = tuple(
        replace(
            job,
            profile=replace(
                job.profile,
                groups=tuple(replace(g, ms=(3.0, 1.0 + n)) for n, g in enumerate(job.profile.groups)),
            ),
        )
        for job in workload.jobs
    )
    return replace(workload, jobs=jobs)


@pytest.mark.thorough
def test_each_frame_runs_what_the_scheduler_says(cuts: dict[str, Cut], runtime: Runtime) -> None:
    rng = Random(1)
    sets = [workload_of((cuts["n0"], 1, ()), (cuts["n1"], 2, ())), workload_of((cuts["n0"], 1, ()))]
    answers = [Given(w, random_schedule(rng, w)) for w in (sets[0], sets[1], sets[0])]
    said = [answers[n] for n in (0, 0, 1, 1, 1, 2, 0)]
    live = Live(runtime, Listed(*said), cuts)
    live.load(sets[0])
    frames = [live.frame() for _ in said]
    assert [frame.answer for frame in frames] == said
    assert [frame.swapped for frame in frames] == [True, False, True, False, False, True, True]
    assert all((frame.swap_ms > 0) == frame.swapped for frame in frames)
    assert [frame.number for frame in frames] == list(range(7))
    assert all(a.seconds < b.seconds for a, b in pairwise(frames))
    for frame in frames:
        steps = [len(rows) for rows in frame.round.times]
        assert steps == [len(order) for order in frame.answer.schedule.order]
    counted = sum(
        len(cuts[job.name].outputs) * job.iterations for frame in frames for job in frame.answer.workload.jobs
    )
    assert live.compare() == counted


def test_schedules_are_swapped_while_they_are_searched(cuts: dict[str, Cut], runtime: Runtime) -> None:
    """Three changes; the search's results take effect between frames, and the last is what it settles on."""
    both = different(workload_of((cuts["n0"], 1, ()), (cuts["n1"], 1, ())))
    three = different(workload_of(*((cuts[f"n{n}"], 1, ()) for n in range(3))))
    with DynamicScheduler(improver=at_leisure(improvements)) as scheduler:
        live = Live(runtime, scheduler, cuts)
        for workload in (both, three, both):
            scheduler.change(workload)
            first = live.frame()
            assert first.swapped
            assert first.answer.workload == workload
            scheduler.settle()
            last = live.frame()
            assert last.answer == scheduler.history[-1]
            assert not live.frame().swapped
        assert len({id(answer.schedule) for answer in scheduler.history}) > 3  # something was found
        assert live.compare() > 0


def test_an_output_of_another_kind_is_a_mismatch(
    cuts: dict[str, Cut], runtime: Runtime, monkeypatch: pytest.MonkeyPatch
) -> None:
    true_runs = outputs.plain_runs

    def wrong_runs(*arguments: Any) -> list[list[dict[str, np.ndarray[Any, Any]]]]:
        results = true_runs(*arguments)
        next(iter(results[0][1].values())).reshape(-1).view(np.uint8)[0] ^= 1
        return results

    monkeypatch.setattr(outputs, "plain_runs", wrong_runs)
    workload = workload_of((cuts["n0"], 1, ()))
    answer = Given(workload, random_schedule(Random(3), workload))
    live = Live(runtime, Listed(answer, answer), cuts)
    for _ in range(2):
        live.frame()
    with pytest.raises(Mismatch, match=r"network .* on .*: output .* is not bit for bit that of a plain run"):
        live.compare()


def test_an_output_unlike_the_one_before_is_a_mismatch(cuts: dict[str, Cut]) -> None:
    recorder, cut = outputs.Recorder(), cuts["n0"]
    row = ("onnxruntime",) * len(cut.groups)
    values = {name: np.zeros(cut.signature[name][1], cut.dtype[name]) for name in cut.outputs}
    recorder.record(cut, row, 0, values, "frame 0")
    recorder.record(cut, row, 1, {name: value + 1 for name, value in values.items()}, "frame 1")
    for value in values.values():
        value[...] = -0.0  # equal, and not the same
    with pytest.raises(Mismatch, match=r"frame 2: output .* is not bit for bit that of the run before"):
        recorder.record(cut, row, 0, values, "frame 2")


def test_what_cannot_run_live_is_one_line(cuts: dict[str, Cut], runtime: Runtime) -> None:
    workload = workload_of((cuts["n0"], 1, ()))
    answer = Given(workload, random_schedule(Random(3), workload))
    live = Live(runtime, Listed(answer), {}, checked=False)
    for begin in (live.frame, lambda: live.load(workload)):
        with pytest.raises(UsageError, match="network n0: there is no model to run"):
            begin()
    with pytest.raises(UsageError, match="live frames: its outputs were not kept"):
        live.compare()


def test_a_schedule_runs_until_another_takes_its_place(cuts: dict[str, Cut], runtime: Runtime) -> None:
    cut, workload = cuts["n0"], workload_of((cuts["n0"], 1, ()))
    inputs = {cut: [cut.draw_inputs(0)]}
    first = runtime.install(workload, random_schedule(Random(1), workload), [cut], inputs)
    assert first.round(0).makespan_ms > 0
    second = runtime.install(workload, random_schedule(Random(2), workload), [cut], inputs)
    with pytest.raises(UsageError, match="another schedule has taken its place"):
        first.round(1)
    assert second.round(1).makespan_ms > 0
    assert len(runtime.pids) == 2


def test_a_search_at_leisure_runs_in_idle_time_of_its_thread_alone() -> None:
    found: list[int] = []
    intervals = [sys.getswitchinterval()]

    def search(count: int) -> Iterator[int]:
        found.append(os.sched_getscheduler(0))
        intervals.append(sys.getswitchinterval())
        yield from range(count)

    thread = threading.Thread(target=lambda: found.extend(at_leisure(search)(3)))
    thread.start()
    thread.join()
    assert found == [os.SCHED_IDLE, 0, 1, 2]
    assert os.sched_getscheduler(0) != os.SCHED_IDLE
    assert intervals[1] < intervals[0]
    assert sys.getswitchinterval() == intervals[0]
