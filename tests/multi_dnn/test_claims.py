"""What a schedule file claims: every figure is derived again, and what contradicts itself is refused."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from copy import deepcopy
from functools import cache
from pathlib import Path
from random import Random
from typing import Any, get_args

import pytest
from workloads import alone, profile_of, random_workload, workload_of

import onchip
from onchip.base.errors import IllegalSchedule, OnchipError
from onchip.machines.contention import NO_CONTENTION
from onchip.multi_dnn.check import check_stated
from onchip.multi_dnn.classes import parse_class
from onchip.multi_dnn.objective import Objective
from onchip.multi_dnn.profile import Profile
from onchip.multi_dnn.profile_file import load_profile
from onchip.multi_dnn.result.corunned import corunned_of
from onchip.multi_dnn.schedule_file import schedule_from_json
from onchip.multi_dnn.schedule_json import Claim, Rival, schedule_json
from onchip.multi_dnn.simulate import simulate
from onchip.multi_dnn.solution import Claim as Solved
from onchip.multi_dnn.solution import Space
from onchip.multi_dnn.solve import SolveOptions, solve
from onchip.multi_dnn.timeline import RATES
from onchip.multi_dnn.workload import Job

COLUMNS = "group,gpu_ms,dla_ms,gpu_gb_per_second,dla_gb_per_second,gpu_out_ms,dla_out_ms\n"
ROWS = "a,0.45,0.75,50,30,0.06,0.15\nb,0.31,0.41,90,60,0.05,0.08\nc,0.25,0.62,70,40,0.05,0.05\n"


def profiles(folder: Path) -> list[Profile]:
    (folder / "one.csv").write_text(COLUMNS + ROWS)
    (folder / "two.csv").write_text(COLUMNS + ROWS.replace("0.4", "0.6"))
    return [load_profile(folder / f"{n}.csv", soc="xavier-agx", units=("gpu", "dla")) for n in ("one", "two")]


@cache
def made(folder: Path, kind: str) -> str:
    """A schedule file as the command writes it: two networks at once, or a stream of a pipeline."""
    if kind == "pair":
        return onchip.corun(profiles(folder)).to_json()
    return onchip.corun(
        profiles(folder), objective="throughput", frames=4, after=("2:1",), iterations=("1:2",), tries=50
    ).to_json()


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("profiles")


def judged(document: dict[str, Any]) -> str:
    """Why a file is refused; empty for one that holds."""
    try:
        check_stated(schedule_from_json(json.dumps(document).encode(), "s.json"))
    except OnchipError as problem:
        return str(problem)
    return ""


def leaves(value: Any, path: tuple[str | int, ...] = ()) -> Iterator[tuple[str | int, ...]]:
    """The way to every number and word of a document."""
    if isinstance(value, dict | list):
        for key in value if isinstance(value, dict) else range(len(value)):
            yield from leaves(value[key], (*path, key))
    else:
        yield path


def at(document: Any, path: tuple[str | int, ...]) -> Any:
    for key in path:
        document = document[key]
    return document


FREE = {"name", "profile", "set", "source", "network", "soc", "seconds", "claim"}
"""Names and remarks that nothing follows from, and how long the search took."""
INPUTS = {"soc", "contention", "profiles", "frames", "pipelined", "in_flight", "epsilon_ms"}
"""What the schedule is of: with another one, the old figures answer another question."""


@pytest.mark.thorough
@pytest.mark.parametrize("kind", ["pair", "stream"])
def test_every_figure_that_is_changed_is_refused(folder: Path, kind: str) -> None:
    document: dict[str, Any] = json.loads(made(folder, kind))
    assert judged(document) == ""
    tried = 0
    paths = [path for path in leaves(document) if path[0] not in INPUTS]
    if kind == "stream":  # the same keys again and again
        paths = Random(1).sample(paths, 150) + [p for p in paths if p[0] == "result" and len(p) == 2]
    for path in paths:
        value = at(document, path)
        if path[-1] in FREE or value is None or path[:2] == ("result", "class"):
            continue
        changed = deepcopy(document)
        holder = at(changed, path[:-1])
        others: tuple[Any, ...] = (f"{value}x",)
        if isinstance(value, float):
            others = (value * 1.001 + 0.001, value * 0.9 - 0.01, -value, None)
            # Whether an optional figure is stated is free; what is not known when a bound is claimed, too.
            if (
                path[0] == "result"
                and len(path) == 2
                and path[1] not in ("makespan_ms", "fps", "sum_of_rates")
            ):
                others = others[:3]
            if path == ("result", "bound"):
                others = (value * 1.5 + 1, value * 0.5, -value)
        elif isinstance(value, int):
            others = (value + 1, -1)
        for other in others:
            holder[path[-1]] = other
            if other == value:
                continue
            assert judged(changed), (path, value, other)
            tried += 1
    assert tried > 100


@pytest.mark.thorough
@pytest.mark.parametrize("kind", ["pair", "stream"])
def test_every_row_that_is_lost_doubled_or_moved_is_refused_or_another_true_schedule(
    folder: Path, kind: str
) -> None:
    document: dict[str, Any] = json.loads(made(folder, kind))
    rng = Random(2)
    for unit in ("gpu", "dla"):
        for where in (
            ("order",),
            *(("result", "baselines", n, "order") for n in document["result"]["baselines"]),
        ):
            rows = at(document, where)[unit]
            for n in rng.sample(range(len(rows)), min(len(rows), 6)):
                for change in ("lose", "double", "move"):
                    changed = deepcopy(document)
                    row = at(changed, where)[unit]
                    if change == "lose":
                        del row[n]
                    elif change == "double":
                        row.insert(n, row[n])
                    elif n:
                        row[n - 1], row[n] = row[n], row[n - 1]
                    said = judged(changed)
                    # Two stretches in the other order may cost the slowest network nothing: still true.
                    assert said or change == "move"


def test_another_question_has_another_answer(folder: Path) -> None:
    """Profiles, constants and frames are what is asked; a file in which they were changed does not hold."""
    document: dict[str, Any] = json.loads(made(folder, "pair"))
    refused = 0
    keys = [path for path in leaves(document) if path[0] == "profiles" and path[-2] == "ms"]
    for path in keys:
        changed = deepcopy(document)
        at(changed, path[:-1])[path[-1]] = at(document, path) * 0.5
        refused += bool(judged(changed))
    assert refused == len(keys)  # each counts for some schedule of the file, or for the bound
    for path in (("frames",), ("soc", "units", 0, "name"), ("contention", "units", "gpu", "rate")):
        changed = deepcopy(document)
        value = at(document, path)
        at(changed, path[:-1])[path[-1]] = value + 1 if isinstance(value, int | float) else "x"
        assert judged(changed)


def claims(**changes: Any) -> Callable[[dict[str, Any]], None]:
    return lambda document: document["result"].update(changes)


def test_claims_that_contradict_themselves_are_refused(folder: Path) -> None:
    document: dict[str, Any] = json.loads(made(folder, "pair"))
    result = document["result"]
    makespan, derived = result["makespan_ms"], result["derived_bound"]
    changes = max(
        sum(a["unit"] != b["unit"] for a, b in zip(net["segments"], net["segments"][1:], strict=False))
        for net in document["networks"]
    )
    assert changes > 0
    few = "optimal among schedules of at most {} switches a run"
    for change, words in (
        (claims(**{"class": few.format(changes - 1)}), "changes the unit of network"),
        (claims(**{"class": "optimal among all that there are"}), "no class that this version knows"),
        (claims(**{"class": "optimal"}), "no class"),
        (claims(bound=makespan * 1.01), "states the bound"),
        (claims(bound=derived * 0.9), "follows from the profiles"),
        (claims(bound=1e300), "states the bound"),
        (claims(derived_bound=derived * 1.01), "derived_bound"),
        (claims(objective="beauty"), "objective"),
        (claims(objective="fps"), ""),
        (claims(objective="millijoules"), ""),
    ):
        changed = deepcopy(document)
        change(changed)
        said = judged(changed)
        assert said
        assert words in said
    for fine in (
        claims(bound=None),
        claims(bound=(derived + makespan) / 2),
        claims(**{"class": few.format(changes)}),
        claims(**{"class": "best found"}),
        claims(**{"class": "", "seconds": None, "baselines": {}}),
    ):
        changed = deepcopy(document)
        del changed["result"]["claim_sha256"]  # no digest: what is held here is what claims may say
        fine(changed)
        assert judged(changed) == ""


def test_a_file_cannot_keep_the_judge_busy_with_baselines(folder: Path) -> None:
    document: dict[str, Any] = json.loads(made(folder, "pair"))
    one = document["result"]["baselines"]["gpu alone"]
    document["result"]["baselines"] = {f"b{n}": one for n in range(65)}
    assert "result.baselines" in judged(document)


def test_the_best_of_a_class_is_beaten_by_nobody_in_it() -> None:
    work = workload_of(
        NO_CONTENTION, Job("x", profile_of("n", [(1, 2)])), Job("y", profile_of("m", [(1, 2)]))
    )
    apart, one = alone(work, [(0,), (1,)]), alone(work, [(1,), (1,)])
    rivals = (Rival("apart", apart, 2.0),)
    for text, fine in (
        ("best found", True),
        ("optimal among non-delay schedules", False),
        ("optimal among schedules of at most 0 switches a run", False),
        ("best found among schedules of at most 0 switches a run", True),
    ):
        claim = Claim(text, rivals=rivals)
        stated = schedule_from_json(schedule_json(one, simulate(work, one), claim=claim).encode(), "f")
        if fine:
            check_stated(stated)
        else:
            with pytest.raises(IllegalSchedule, match="baseline apart has 2"):
                check_stated(stated)


def test_a_schedule_that_waits_is_none_of_those_that_do_not() -> None:
    work = workload_of(
        NO_CONTENTION, Job("x", profile_of("n", [(1, 9), (9, 1)])), Job("y", profile_of("m", [(9, 2)]))
    )
    schedule = alone(work, [(0, 1), (1,)])  # the second unit waits for x, though y is ready
    line = simulate(work, schedule)
    delay = parse_class("optimal among non-delay schedules")
    assert delay is not None
    assert "leaves b idle from 0 ms" in str(delay.why_not(schedule, line))
    first = simulate(work, other := random_first(work))
    assert delay.why_not(other, first) is None


def random_first(work: Any) -> Any:
    from onchip.multi_dnn.dispatch import first_come

    return first_come(work, [[(0, 1)], [(1,)]])


@pytest.mark.parametrize("space", get_args(Space))
@pytest.mark.parametrize("proved", [True, False])
def test_every_class_of_a_solver_is_read_back(space: Space, proved: bool) -> None:
    text = str(Solved(space, proved, 3))
    found = parse_class(text)
    assert found is not None
    assert found.proved == (proved and space != "searched")
    assert (found.switches == 3) == (space == "few switches")


@pytest.mark.parametrize("seed", range(30))
def test_whatever_the_solver_claims_holds_before_the_judge(seed: int) -> None:
    rng = Random(seed)
    work = random_workload(rng)
    objective = rng.choice(list(Objective))
    options = SolveOptions(
        any_order=rng.random() < 0.6,
        prove=rng.random() < 0.7,
        switches=rng.choice((None, None, 0, 1, 2)) if work.frames == 1 else None,
        delays=rng.random() < 0.4,
        tries=100,
        nodes=2000,
    )
    try:
        found = corunned_of(solve(work, objective, options), "random")
    except OnchipError:
        return  # nothing within so few switches
    stated = schedule_from_json(found.to_json().encode(), "f")
    verdict = check_stated(stated)
    assert dict(verdict.rivals).keys() == found.baselines.keys()
    value, bound = verdict.timeline.figure(stated.claim.objective), verdict.derived_bound
    assert value is not None
    assert bound is not None
    if stated.claim.objective in RATES:
        assert value <= bound * (1 + 1e-9)
    else:
        assert value >= bound * (1 - 1e-9)
