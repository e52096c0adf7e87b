"""Schedule files: both ways without loss, judged again, and one clear line for everything that is wrong."""

from __future__ import annotations

import ast
import json
from collections.abc import Callable
from pathlib import Path
from random import Random
from typing import Any

import pytest
from workloads import Fixed, alone, profile_of, random_schedule, random_workload, workload_of

from onchip.base.errors import IllegalSchedule, OnchipError, PlanFormatError
from onchip.machines.contention import NO_CONTENTION
from onchip.machines.soc_file import load_soc
from onchip.multi_dnn import check as judging
from onchip.multi_dnn.check import check_file, check_stated
from onchip.multi_dnn.derived_bound import derived_bound
from onchip.multi_dnn.published import googlenet
from onchip.multi_dnn.schedule_file import schedule_from_json
from onchip.multi_dnn.schedule_json import Claim, Rival, schedule_json
from onchip.multi_dnn.simulate import simulate
from onchip.multi_dnn.workload import Job, Workload


@pytest.mark.parametrize("seed", range(25))
def test_what_is_written_is_what_is_read_and_what_the_judge_finds(seed: int) -> None:
    rng = Random(seed)
    work = random_workload(rng)
    schedule = random_schedule(rng, work, idle=True)
    epsilon = rng.choice((0.0, 0.1))
    timeline = simulate(work, schedule, epsilon_ms=epsilon)
    least = derived_bound(work, "makespan_ms", epsilon)
    value = simulate(work, other := random_schedule(rng, work), epsilon_ms=epsilon).makespan_ms
    claim = Claim("best found", bound=least, seconds=0.1, rivals=(Rival("a", other, value),))
    stated = schedule_from_json(
        schedule_json(schedule, timeline, epsilon_ms=epsilon, claim=claim).encode(), "f"
    )
    assert (stated.schedule, stated.epsilon_ms, stated.claim) == (schedule, epsilon, claim)
    assert stated.workload.jobs == work.jobs
    assert stated.workload.model == work.model
    found = check_stated(stated)
    assert found.timeline.segments == timeline.segments
    assert [(name, line.makespan_ms) for name, line in found.rivals] == [("a", value)]
    assert found.derived_bound == least


def written() -> dict[str, Any]:
    """GoogleNet twice on Xavier, one copy on each unit."""
    soc, profile = load_soc("xavier-agx"), googlenet()
    work = Workload(soc, (Job("x", profile), Job("y", profile)), soc.model("light"))
    schedule = alone(work, [(0,) * 10, (1,) * 10])
    document: dict[str, Any] = json.loads(schedule_json(schedule, simulate(work, schedule)))
    return document


def test_networks_with_one_profile_share_it() -> None:
    assert list(written()["profiles"]) == ["googlenet"]
    work = workload_of(
        NO_CONTENTION, Job("x", profile_of("n", [(1, 2)])), Job("y", profile_of("n", [(2, 1)]))
    )
    schedule = alone(work, [(0,), (1,)])
    assert list(json.loads(schedule_json(schedule, simulate(work, schedule)))["profiles"]) == ["n", "n for y"]


def test_a_model_that_a_file_cannot_hold_is_refused() -> None:
    work = workload_of(Fixed(2, 2), Job("x", profile_of("n", [(1, 2)])))
    schedule = alone(work, [(0,)])
    with pytest.raises(PlanFormatError, match="contention model Fixed cannot be written"):
        schedule_json(schedule, simulate(work, schedule))


CONSTANTS = ("normal_bw", "intensive_bw", "mrmc", "tbwdc", "cbp", "rate")


def _set(*path: str | int, to: object) -> Callable[[dict[str, Any]], None]:
    def change(document: dict[str, Any]) -> None:
        at: Any = document
        for key in path[:-1]:
            at = at[key]
        at[path[-1]] = to

    return change


def _drop(*path: str | int) -> Callable[[dict[str, Any]], None]:
    def change(document: dict[str, Any]) -> None:
        at: Any = document
        for key in path[:-1]:
            at = at[key]
        del at[path[-1]]

    return change


G = ("profiles", "googlenet")
X = ("networks", 0)
NAN, HUGE = float("nan"), 10**400

BROKEN = [
    (_set("format", to="onchip.schedule/9"), "format: is 'onchip.schedule/9'"),
    (_drop("order"), "missing required field `order`"),
    (_set("colour", to=1), "unknown field `colour`"),
    (_set("frames", to=0), "frames"),
    (_set("frames", to=10**6), "groups to run"),
    (_set("frames", to=2), "have 20 segments for 40 groups to run"),
    (_set("epsilon_ms", to=-1), "epsilon_ms"),
    (_set("in_flight", to=-1), "in_flight"),
    (_set("soc", "units", 1, "name", to="gpu"), "soc.units: names a unit twice"),
    (_set("soc", "units", to=[]), "soc.units"),
    (_set("contention", "model", to="magic"), "contention.model"),
    (_drop("contention", "units", "dla"), "has no constants for unit dla"),
    (_set("contention", "units", "tpu", to=dict.fromkeys(CONSTANTS, 1.0)), "names an unknown unit 'tpu'"),
    (_set("contention", "peak_gb_per_second", to=0), "contention.peak_gb_per_second"),
    (_set(*G, "format", to="x"), "format"),
    (_set(*G, "units", to=["gpu"]), "unknown unit 'dla'"),
    (_set(*G, "groups", to=[]), "must have 1 to"),
    (_set(*G, "groups", 0, "ms", "gpu", to=-1.0), "group 0-9: ms on gpu is -1.0"),
    (_set(*G, "groups", 0, "ms", "gpu", to=0), "takes no time on gpu"),
    (_set(*G, "groups", 0, "ms", to={"gpu": None, "dla": None}), "runs on no unit"),
    (_set(*G, "groups", 0, "out_ms", "gpu", to=-1.0), "out_ms on gpu is -1.0"),
    (_set(*G, "groups", 1, "name", to="0-9"), "is given twice"),
    (_drop(*G, "groups", 0, "ms", "dla"), "has no ms for unit dla"),
    (_set(*X, "profile", to="vgg"), "names an unknown profile 'vgg'"),
    (_set(*X, "name", to="y"), "is given twice"),
    (_set(*X, "after", to=["z"]), "is after an unknown network 'z'"),
    (_set(*X, "after", to=["x"]), "waits, directly or not, for itself"),
    (_set(*X, "iterations", to=0), "iterations"),
    (_set(*X, "segments", 0, "unit", to="npu"), "unknown unit 'npu'"),
    (_set(*X, "segments", 0, "group", to="9-9"), "unknown group '9-9'"),
    (_set(*X, "segments", 0, "group", to="10-24"), "is given twice"),
    (_set(*X, "segments", 0, "run", to=1), "is about run 1 of network x, which has 1"),
    (_drop(*X, "segments", 0), "have 19 segments for 20"),
    (_set("order", "npu", to=[]), "names an unknown unit 'npu'"),
    (_set("order", "gpu", 0, to=["z", 0, "0-9"]), "unknown network 'z'"),
    (_set("idle", to=[["x", 0, "0-9", -1]]), "idle"),
    (_set("result", "makespan_ms", to="4"), "result.makespan_ms"),
    (_set("result", "makespan_ms", to=NAN), ""),
    (_set(*X, "latency_ms", to=HUGE), ""),
    (_set("networks", to=[]), "has no networks"),
]


@pytest.mark.parametrize(("change", "message"), BROKEN)
def test_a_file_that_is_no_schedule_is_refused_in_one_line(
    tmp_path: Path, change: Callable[[dict[str, Any]], None], message: str
) -> None:
    document = written()
    change(document)
    path = tmp_path / "s.json"
    path.write_text(json.dumps(document))
    with pytest.raises(OnchipError) as caught:
        check_file(path)
    assert caught.value.exit_code == 2
    assert str(path) in str(caught.value)
    assert message in str(caught.value)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    "content", [b"", b"null", b"[]", b"\xff", b"{" * 9000, b'{"format": 1, "format": 2}', b"[" * 10**5]
)
def test_bytes_that_are_no_schedule_are_refused(content: bytes) -> None:
    with pytest.raises(PlanFormatError) as caught:
        schedule_from_json(content, "s.json")
    assert str(caught.value).startswith("s.json")


FALSE = [
    (_set("result", "makespan_ms", to=4.0), "makespan_ms 4.0, the simulation gives"),
    (_set("result", "fps", to=400.0), "fps 400.0"),
    (_set("result", "sum_of_rates", to=1.0), "sum_of_rates 1.0"),
    (_set("result", "millijoules", to=1.0), "millijoules 1.0, the simulation gives None"),
    (_set("result", "bound", to=99.0), "bound: states the bound 99.0"),
    (_set(*X, "latency_ms", to=1.0), "latency_ms of network x 1.0"),
    (_set(*X, "segments", 3, "start_ms", to=0.0), "start_ms of network x, run 0, group 39-52 0.0"),
    (_set(*X, "segments", 3, "end_ms", to=9.0), "end_ms of network x, run 0, group 39-52 9.0"),
    (_set(*X, "segments", 3, "transition_ms", to=1.0), "transition_ms of network x"),
    (_set(*X, "segments", 3, "unit", to="dla"), "order of a unit that it does not run on"),
    (_drop("order", "gpu", 2), "is in no unit's order"),
    (_drop("order", "gpu"), "is in no unit's order"),
    (_set("order", "gpu", 0, to=["x", 0, "10-24"]), "is ordered twice"),
    (_set(*G, "groups", 4, "ms", "gpu", to=None), "group 53-66 does not run on gpu"),
    (_set("idle", to=[["x", 0, "0-9", 0.5]]), ", the simulation gives"),
]


@pytest.mark.parametrize(("change", "message"), FALSE)
def test_a_schedule_whose_figures_are_not_its_own_is_refused(
    tmp_path: Path, change: Callable[[dict[str, Any]], None], message: str
) -> None:
    document = written()
    change(document)
    path = tmp_path / "s.json"
    path.write_text(json.dumps(document))
    with pytest.raises(IllegalSchedule) as caught:
        check_file(path)
    assert caught.value.exit_code == 1
    assert message in str(caught.value)


@pytest.mark.parametrize(
    ("objective", "bound", "fine"),
    [
        ("fps", 1000.0, True),
        ("fps", 1001.0, False),
        ("fps", 999.0, False),
        ("sum_of_rates", 999.0, False),
        ("latency_ms", 1.0, True),
        ("latency_ms", 1.1, False),
        ("makespan_ms", 0.5, False),  # 1 follows from the profile alone
        ("millijoules", 0.5, False),
        ("beauty", 0.5, False),
        ("workload", 0.5, False),
    ],
)
def test_a_bound_is_of_a_figure_that_there_is_and_does_not_beat(
    objective: str, bound: float, fine: bool
) -> None:
    work = workload_of(NO_CONTENTION, Job("x", profile_of("n", [(1, 2)])))
    schedule = alone(work, [(0,)])
    claim = Claim(objective=objective, bound=bound)
    stated = schedule_from_json(schedule_json(schedule, simulate(work, schedule), claim=claim).encode(), "f")
    if fine:
        check_stated(stated)
    else:
        with pytest.raises(IllegalSchedule, match=r"bound|objective"):
            check_stated(stated)


def test_hostile_names_stay_on_one_line() -> None:
    document = written()
    _set(*X, "after", to=["a\nb\u202e"])(document)
    with pytest.raises(PlanFormatError) as caught:
        schedule_from_json(json.dumps(document).encode(), "s.json")
    assert "\n" not in str(caught.value)


def test_the_judge_and_all_it_uses_import_no_solver() -> None:
    allowed = {
        "check", "classes", "compact", "content", "derived_bound", "estimate",
        "profile", "profile_file", "schedule", "schedule_file",
        "schedule_json", "schedule_record", "simulate", "stretches", "timeline", "workload",
    }  # fmt: skip
    folder = Path(judging.__file__).parent
    for name in allowed:
        for node in ast.walk(ast.parse((folder / f"{name}.py").read_text(encoding="utf-8"))):
            module = node.module or "" if isinstance(node, ast.ImportFrom) else ""
            if module.startswith("onchip.multi_dnn."):
                assert module.removeprefix("onchip.multi_dnn.") in allowed, (name, module)
            elif module.startswith("onchip"):
                lower = tuple(
                    f"onchip.{name}"
                    for name in ("base.codec", "base.errors", "base.fields", "base.files", "machines.")
                )
                assert module.startswith(lower), (name, module)
