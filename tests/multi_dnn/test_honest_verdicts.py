"""The judge at every scale, and what it says of schedules that promise more than they are."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from random import Random
from typing import Any

import pytest
from workloads import Fixed, alone, profile_of, workload_of

from onchip import cli
from onchip.base.errors import IllegalSchedule, OnchipError
from onchip.machines.contention import NO_CONTENTION
from onchip.machines.soc_file import load_soc
from onchip.multi_dnn import published
from onchip.multi_dnn.check import check_stated
from onchip.multi_dnn.classes import SINGLE, parse_class, why_misnamed
from onchip.multi_dnn.result.corunned import corunned_of
from onchip.multi_dnn.schedule import Schedule, Step
from onchip.multi_dnn.schedule_file import schedule_from_json
from onchip.multi_dnn.schedule_json import Claim, Rival, schedule_json
from onchip.multi_dnn.simulate import simulate
from onchip.multi_dnn.solve import SolveOptions, solve
from onchip.multi_dnn.workload import Job, Workload

SCALES = (1e-7, 1.0, 1e8)
ANY = "optimal among schedules of any mapping and order, without inserted idle time"


def two(scale: float) -> Workload:
    """Two networks of two groups; all times are multiples of `scale` ms."""
    rows = [(scale, 2 * scale), (scale, 1.5 * scale)]
    return workload_of(NO_CONTENTION, Job("x", profile_of("n", rows)), Job("y", profile_of("m", rows)))


def written(scale: float, claim: str = ANY, objective: str = "latency_ms") -> dict[str, Any]:
    """A file with a network on each unit, and with both on the first one beside it."""
    work = two(scale)
    schedule, other = alone(work, [(0, 0), (1, 1)]), alone(work, [(0, 0), (0, 0)])
    value = simulate(work, other).figure(objective)
    assert value is not None
    said = Claim(claim, objective, rivals=(Rival("a alone", other, value),))
    document: dict[str, Any] = json.loads(schedule_json(schedule, simulate(work, schedule), claim=said))
    return document


def refusal(document: dict[str, Any]) -> str:
    """Why a file is refused; empty for one that holds."""
    try:
        check_stated(schedule_from_json(json.dumps(document).encode(), "s.json"))
    except OnchipError as problem:
        return str(problem)
    return ""


def onchip_check(monkeypatch: pytest.MonkeyPatch, path: Path, *more: str) -> int:
    monkeypatch.setattr(sys, "argv", ["onchip", "check", str(path), *more])
    with pytest.raises(SystemExit) as stop:
        cli.main()
    return int(stop.value.code or 0)


@pytest.mark.parametrize("scale", SCALES)
@pytest.mark.parametrize("factor", [0.0, 1 - 1e-5, 1 + 1e-5, 1.35])
def test_a_false_figure_is_refused_however_small_it_is(scale: float, factor: float) -> None:
    document = written(scale)
    assert refusal(document) == ""
    result, (_, net) = document["result"], document["networks"]
    del result["claim_sha256"]  # it binds every digit; what the simulation itself tolerates is held here
    holders = [(result, key) for key in ("makespan_ms", "fps", "sum_of_rates", "derived_bound")]
    holders += [(net, "latency_ms"), (result["baselines"]["a alone"], "value")]
    holders += [(net["segments"][0], "end_ms"), (net["segments"][1], "start_ms")]
    for holder, key in holders:
        true = holder[key]
        assert true
        holder[key] = true * factor
        assert "the simulation gives" in refusal(document), key
        holder[key] = true * (1 + 1e-8)
        assert refusal(document) == "", key
        holder[key] = true


@pytest.mark.parametrize("scale", SCALES)
def test_what_is_no_transition_and_no_wait_is_nearly_0_at_every_scale(scale: float) -> None:
    document = written(scale)
    del document["result"]["claim_sha256"]  # it binds every digit
    for key in ("start_ms", "transition_ms"):
        first = document["networks"][0]["segments"][0]
        first[key] = 1e-14 * scale
        assert refusal(document) == ""
        first[key] = 1e-6 * scale
        assert key in refusal(document)
        first[key] = 0.0


@pytest.mark.parametrize("scale", SCALES)
@pytest.mark.parametrize("objective", ["latency_ms", "fps", "sum_of_rates"])
def test_bounds_and_better_baselines_are_noticed_at_every_scale(scale: float, objective: str) -> None:
    document = written(scale, objective=objective)
    result = document["result"]
    value = result[objective] if objective in result else max(n["latency_ms"] for n in document["networks"])
    for factor in (1 - 1e-5, 1 + 1e-5):
        result["bound"] = value * factor
        beaten = factor > 1 if objective == "latency_ms" else factor < 1
        assert ("states the bound" in refusal(document)) == beaten
    # Both on the second unit: the baseline beside it, which is in the same class, is better.
    work = two(scale)
    worse, better = alone(work, [(1, 1), (1, 1)]), alone(work, [(0, 0), (0, 0)])
    best = simulate(work, better).figure(objective)
    assert best is not None
    claim = Claim(ANY, objective, rivals=(Rival("a alone", better, best),))
    text = schedule_json(worse, simulate(work, worse), claim=claim)
    assert "and baseline a alone has" in refusal(json.loads(text))


def leaves_a_unit_idle(scale: float) -> tuple[Workload, Schedule]:
    """The second unit waits for x, though y is ready."""
    work = workload_of(
        NO_CONTENTION,
        Job("x", profile_of("n", [(scale, 9 * scale), (9 * scale, scale)])),
        Job("y", profile_of("m", [(9 * scale, 2 * scale)])),
    )
    return work, alone(work, [(0, 1), (1,)])


@pytest.mark.parametrize("scale", [1e-9, *SCALES])
def test_a_wait_is_a_wait_however_short(scale: float) -> None:
    named = parse_class("optimal among non-delay schedules")
    assert named is not None
    work, schedule = leaves_a_unit_idle(scale)
    assert "leaves b idle from 0 ms" in str(named.why_not(schedule, simulate(work, schedule)))
    late = Schedule(schedule.units, schedule.order, ((Step(0, 0, 0), 1e-3 * scale),))
    ordered = parse_class(ANY)
    assert ordered is not None
    assert ordered.why_not(schedule, simulate(work, schedule)) is None
    assert ordered.why_not(late, simulate(work, late)) == "has inserted idle time"


@pytest.mark.parametrize("scale", [1e-8, *SCALES])
def test_rounding_is_no_wait_at_any_scale(scale: float) -> None:
    """Tenths do not add up exactly."""
    tenths = [(0.1 * k * scale, 0.3 * scale) for k in (1, 2, 3, 7, 1, 2)]
    work = workload_of(
        NO_CONTENTION, Job("x", profile_of("n", tenths)), Job("y", profile_of("m", tenths[::-1]))
    )
    found = solve(work, options=SolveOptions(any_order=False)).solution
    named = parse_class("optimal among non-delay schedules")
    assert named is not None
    assert found.claim.proved
    if found.claim.space == "non-delay":
        assert named.why_not(found.schedule, found.timeline) is None


@pytest.mark.parametrize("scale", [1.2e-9, 1e-6, 1e6])
@pytest.mark.parametrize("seed", [130, 142])
@pytest.mark.parametrize("branching", [False, True])
def test_what_is_nearly_at_once_is_so_at_no_scale(scale: float, seed: int, branching: bool) -> None:
    """Times that differ by one in ten thousand: the best schedule is the same one in other units of time."""
    rng = Random(seed)
    rows = [[[times(rng) for _ in range(2)] for _ in range(3)] for _ in range(2)]
    transition = rng.choice((0, 0.5, 1.0))
    options = SolveOptions(switches=3 if branching else None)

    def best(unit: float) -> float:
        jobs = (
            Job(
                name, profile_of(name, [[unit * t for t in row] for row in net], transition=unit * transition)
            )
            for name, net in zip("xy", rows, strict=True)
        )
        found = solve(workload_of(Fixed(1.5, 1.25), *jobs), options=options).solution
        assert found.claim.proved
        return found.cost_ms / unit

    assert best(scale) == pytest.approx(best(1.0), rel=1e-9)


def times(rng: Random) -> float:
    return rng.choice((1, 2, 3)) * (1 + rng.choice((0, 2e-4, -2e-4, 4e-4)))


@pytest.mark.parametrize("scale", [3e-9, 1e-7, 1.0])
def test_a_baseline_that_waits_is_not_called_the_best_of_those_that_do_not(scale: float) -> None:
    """The order that is best without contention keeps a unit waiting, and is better than all that do not."""
    work = workload_of(
        NO_CONTENTION,
        Job("x", profile_of("n", [(scale, None), (None, scale), (10 * scale, None)])),
        Job("y", profile_of("m", [(None, 4 * scale), (3 * scale, None)])),
    )
    found = solve(work, options=SolveOptions(any_order=False)).solution
    named = parse_class(str(found.claim))
    assert named is not None
    assert named.why_not(found.schedule, found.timeline) is None
    assert found.cost_ms == pytest.approx(15 * scale)
    assert str(found.claim) == "best found"


def overlapping(claim: str) -> str:
    work = two(1.0)
    schedule = alone(work, [(0, 0), (0, 0)])
    line = simulate(work, schedule, epsilon_ms=100.0)
    return schedule_json(schedule, line, epsilon_ms=100.0, claim=Claim(claim, "latency_ms"))


def test_nothing_that_overlaps_is_optimal() -> None:
    assert refusal(json.loads(overlapping("best found"))) == ""
    said = refusal(json.loads(overlapping(ANY)))
    assert "lets groups overlap on a unit (epsilon_ms 100)" in said


def test_the_verdict_names_the_overlap_and_missing_baselines(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "s.json"
    path.write_text(overlapping("best found"))
    assert onchip_check(monkeypatch, path) == 0
    out = capsys.readouterr().out
    assert "epsilon 100 ms: tolerates that a group begins" in out
    assert "no baselines are beside it" in out
    assert onchip_check(monkeypatch, path, "--json") == 0
    data = json.loads(capsys.readouterr().out)
    assert data["epsilon_ms"] == 100.0
    assert data["overlaps"] > 0
    assert data["baselines"] == {}
    path.write_text(json.dumps(written(1.0)))
    assert onchip_check(monkeypatch, path) == 0
    out = capsys.readouterr().out
    assert "epsilon" not in out
    assert "1 baseline simulated again" in out
    assert onchip_check(monkeypatch, path, "--json") == 0
    data = json.loads(capsys.readouterr().out)
    assert (data["epsilon_ms"], data["overlaps"]) == (0.0, 0)


def test_overlaps_are_counted() -> None:
    work = two(1.0)
    schedule = alone(work, [(0, 0), (0, 0)])
    assert simulate(work, schedule).overlaps == 0
    line = simulate(work, schedule, epsilon_ms=0.25)
    rows = [(s.start, s.end) for s in line.segments if s.unit == 0]
    assert line.overlaps == sum(
        start < max((e for _, e in rows[:n]), default=0) for n, (start, _) in enumerate(rows)
    )
    assert line.overlaps > 0


@pytest.mark.parametrize(
    ("name", "rows", "words"),
    [
        ("a alone", [(0, 0), (0, 0)], None),
        ("b alone", [(1, 1), (1, 1)], None),
        ("b alone", [(0, 0), (0, 0)], "runs network x on a"),
        ("a alone", [(0, 0), (1, 0)], "runs network y on a and b"),
        ("whole networks", [(0, 0), (1, 1)], None),
        ("whole networks", [(0, 1), (1, 1)], "changes the unit of network x"),
        ("c alone", [(0, 1), (1, 1)], None),
        ("anything", [(0, 1), (1, 1)], None),
    ],
)
def test_a_baseline_is_what_its_name_says(name: str, rows: list[tuple[int, ...]], words: str | None) -> None:
    work = two(1.0)
    other, schedule = alone(work, rows), alone(work, [(0, 0), (1, 1)])
    assert why_misnamed(name, work, other) == words
    value = simulate(work, other).figure("latency_ms")
    assert value is not None
    claim = Claim("best found", "latency_ms", rivals=(Rival(name, other, value),))
    text = schedule_json(schedule, simulate(work, schedule), claim=claim)
    stated = schedule_from_json(text.encode(), "s.json")
    if words is None:
        check_stated(stated)
        return
    with pytest.raises(IllegalSchedule, match=f"is named {name}, and {words}"):
        check_stated(stated)


def test_a_class_of_single_frames_is_not_a_streams() -> None:
    """The best rate of one frame repeated is not the best of streams, and no stream may be called that."""
    soc = load_soc("xavier-agx")
    jobs = (Job("first", published.googlenet()), Job("second", published.googlenet()))
    once = corunned_of(solve(Workload(soc, jobs, soc.model("light")), "throughput"), "light")
    assert once.class_ == ANY + SINGLE
    stream = Workload(soc, jobs, soc.model("light"), frames=3, in_flight=2)
    many = corunned_of(solve(stream, "throughput", SolveOptions(tries=50, nodes=0)), "light")
    assert not many.class_.endswith(SINGLE)
    single = parse_class(once.class_)
    assert single is not None
    assert single.why_not(once.judged.schedule, once.judged.timeline) is None
    assert "a stream of 3 frames" in str(single.why_not(many.judged.schedule, many.judged.timeline))
