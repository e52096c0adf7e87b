"""Plans for all lengths: each row's plan is as good at every length as the one made for that length."""

from __future__ import annotations

import csv
import io
import json
from dataclasses import replace
from pathlib import Path
from random import Random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import onchip
from growing import model, saved
from onchip.base.errors import Infeasible, NegativeAnswer, PlanFormatError, UsageError
from onchip.by_length.judge import check_table, is_table
from onchip.by_length.series import At
from onchip.by_length.stretch import evenly, least
from onchip.planners.limits import NO_LIMITS
from onchip.planners.placement import Problem, minimum_traffic
from onchip.planners.placement.caches import Caches
from onchip.plans import to_json
from onchip.replanning import network_at
from strategies import random_case

STATE = ("past.*=present.*",)


@pytest.fixture(name="decode", scope="module")
def _decode(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return saved(tmp_path_factory.mktemp("words"), "decode.onnx", model(words=1, past="past", layers=1))


@pytest.fixture(name="prompt", scope="module")
def _prompt(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return saved(tmp_path_factory.mktemp("words"), "prompt.onnx", model(words="words", past=None, layers=1))


@pytest.mark.thorough
@pytest.mark.parametrize(
    ("what", "length", "how"),
    [
        ("decode", "past=1..60", {"budget": 4096}),
        ("decode", "past=3..60", {"budget": 4096, "cache": "past.*=present.*"}),
        ("decode", "past=1..63", {"budget": 4316, "state": STATE, "capacity": 64}),
        ("decode", "past=1..40", {"budget": 6296, "state": ("past.0.k=present.0.k",)}),
        ("prompt", "words=1..16", {"budget": 4096}),
        ("prompt", "words=1..12", {"budget": 4096, "in_place": True, "granularity": "op"}),
        ("prompt", "words=2..16", {"budget": 5200, "state": ("=present.*",), "capacity": 32}),
        ("prompt", "words=4..12", {"budget": 4096, "order": "given", "weights": "resident"}),
    ],
)
def test_no_length_has_a_better_plan(
    request: pytest.FixtureRequest, what: str, length: str, how: dict[str, object]
) -> None:
    path = request.getfixturevalue(what)
    table = onchip.lengths(path, length=length, **how)  # type: ignore[arg-type]
    name, _, last = length.partition("=")[0], *map(int, length.partition("=")[2].split(".."))
    top = table.rows[-1].last
    assert table.rows[0].first == table.first
    assert all(a.last + 1 == b.first for a, b in zip(table.rows, table.rows[1:], strict=False))
    assert len(table.rows) < (top - table.first + 1) / 2
    again = {key: value for key, value in how.items() if key != "capacity"}
    if "state" in how:
        again["capacity"] = table.rows[-1].plan.caches[0].rows
    for n in range(table.first, top + 1):
        best = onchip.plan(path, dims=f"{name}={n}", fuse=False, **again)  # type: ignore[arg-type]
        made = table.plan(n)
        assert made.check().traffic_bytes == best.result.traffic_bytes
        assert (made.result.status, best.result.status) == ("optimal", "optimal")
    if top < last:
        assert table.beyond is not None
        assert table.beyond.length == top + 1
        with pytest.raises(Infeasible):
            onchip.plan(path, dims=f"{name}={top + 1}", fuse=False, **again)  # type: ignore[arg-type]
    assert table.plan(top).run(onchip.load(path, dims=f"{name}={top}", **_reading(how))).bit_exact


def _reading(how: dict[str, object]) -> dict[str, str]:
    return {key: str(how[key]) for key in ("cache", "granularity") if key in how}


def test_a_table_says_where_plans_change_and_why(decode: Path) -> None:
    table = onchip.lengths(decode, length="past=20..60", budget=4096)
    assert [(row.first, row.last) for row in table.rows] == [(20, 55), (56, 60)]
    assert [row.gap_bytes for row in table.rows] == [0, 0]
    assert table.rows[1].why == "896 B more than the best at 55"
    assert table.rows[0].why == ""
    for row in table.rows:
        assert table.proof(row) == "optimal: proved by the ends, sizes growing evenly at all lengths"
    with pytest.raises(UsageError, match="61 has no plan"):
        table.plan(61)
    sparse = onchip.lengths(decode, length="past=20..60", budget=4096, read=5)
    assert [(row.first, row.last) for row in sparse.rows] == [(20, 55), (56, 60)]
    assert "at all lengths read (" in sparse.proof(sparse.rows[0])


def test_what_does_not_grow_evenly_is_checked_at_every_length(prompt: Path) -> None:
    table = onchip.lengths(prompt, length="words=2..16", budget=4096)
    assert [(row.first, row.last) for row in table.rows] == [(2, 15), (16, 16)]
    assert {table.proof(row) for row in table.rows} == {"optimal: checked at every length"}


def test_slack_makes_fewer_plans_and_says_what_they_cost(decode: Path) -> None:
    table = onchip.lengths(decode, length="past=40..60", budget=4096, slack=15.0)
    [row] = table.rows
    assert 0 < row.gap_bytes <= 0.15 * row.plan.result.dram_bytes
    assert table.proof(row).startswith(f"within {row.gap_bytes:,} B of the best")
    for n in (40, 47, 60):
        best = onchip.plan(decode, dims=f"past={n}", budget=4096)
        made = table.plan(n)
        assert made.result.lower_bound_bytes <= best.result.traffic_bytes <= made.check().traffic_bytes


def test_the_files_are_what_a_runtime_reads(decode: Path, tmp_path: Path) -> None:
    table = onchip.lengths(decode, length="past=30..60", budget=4096, state=("past.0.k=present.0.k",))
    table.save(tmp_path)
    data = json.loads((tmp_path / "lengths.json").read_text())
    rows = list(csv.DictReader(io.StringIO((tmp_path / "lengths.csv").read_text())))
    assert [{key: str(value) for key, value in row.items()} for row in data["rows"]] == rows
    for row in data["rows"]:
        plan = onchip.read(tmp_path / row["plan"])
        assert plan.check().dram_bytes == row["dram_bytes_to"]
        assert plan.run().bit_exact
    assert is_table(tmp_path / "lengths.json")
    assert check_table(tmp_path / "lengths.json", network_at) == data
    data["rows"][0]["dram_bytes_from"] += 4
    (tmp_path / "lengths.json").write_text(json.dumps(data, indent=1))
    with pytest.raises(NegativeAnswer, match="dram_bytes_from is"):
        check_table(tmp_path / "lengths.json", network_at)
    for wrong, message in (({**data, "rows": [{}]}, "has no plan"), ({**data, "from": "x"}, "is no table")):
        (tmp_path / "lengths.json").write_text(json.dumps(wrong, indent=1))
        with pytest.raises(PlanFormatError, match=message):
            check_table(tmp_path / "lengths.json", network_at)


@pytest.mark.parametrize(
    ("how", "message"),
    [
        ({"length": "past"}, "is not NAME=FIRST..LAST"),
        ({"length": "past=9..3"}, "are no lengths"),
        ({"length": "past=0..3"}, "are no lengths"),
        ({"length": "past=1..3", "read": 1}, "is no number of lengths"),
        ({"length": "past=1..3", "slack": -1}, "is no percentage"),
        ({"length": "past=1..3", "strategy": "greedy"}, "need exact"),
        ({"length": "past=1..3", "order": "minpeak"}, "need free or given"),
        ({"length": "past=1..3", "objective": "peak"}, "need traffic"),
        ({"length": "past=1..3", "pin": ("x",)}, "does not go with"),
        ({"length": "past=1..3", "state": ("x=y.0",)}, "has one size at every length"),
        ({"length": "words=1..3", "dims": "past=3"}, "words"),
    ],
)
def test_what_makes_no_table(decode: Path, how: dict[str, object], message: str) -> None:
    with pytest.raises(UsageError, match=message):
        onchip.lengths(decode, budget=4096, **how)  # type: ignore[arg-type]


def test_a_first_length_without_a_plan_is_infeasible(decode: Path) -> None:
    with pytest.raises(Infeasible):
        onchip.lengths(decode, length="past=50..60", budget=100)


def _at(problem: Problem, network: object, length: int, cost: tuple[int, ...]) -> At:
    return At(length, network, replace(problem, cost=cost), Caches())  # type: ignore[arg-type]


@given(rng=st.randoms(use_true_random=True))
@settings(max_examples=25, deadline=None)
def test_between_two_lengths_nothing_is_below_the_line(rng: Random) -> None:
    """The law that the proof rests on: rooms of the shorter length, prices in between."""
    case = random_case(rng, 6)
    problem = Problem.of(case.network, case.alignment)
    room = max(case.budget, problem.minimum_budget)
    some = tuple(rng.randint(0, 20) for _ in problem.cost)
    other = tuple(rng.randint(0, 20) for _ in problem.cost)
    span, done = 4, rng.randint(1, 3)
    first = _at(problem, case.network, 0, tuple(span * c for c in some))
    last = _at(problem, case.network, span, tuple(span * c for c in other))
    between = tuple(c * (span - done) + d * done for c, d in zip(some, other, strict=True))
    middle = _at(problem, case.network, done, between)
    assert evenly((first, middle, last))
    line = least(first, first, room, NO_LIMITS) * (span - done) + least(first, last, room, NO_LIMITS) * done
    assert minimum_traffic(middle.problem, room).value * span >= line
    bent = _at(problem, case.network, done, (between[0] + 1, *between[1:]))
    assert not evenly((first, bent, last))


def test_a_row_of_one_length_is_a_plan_like_any(decode: Path) -> None:
    table = onchip.lengths(decode, length="past=7..7", budget=4096)
    alone = onchip.plan(decode, dims="past=7", budget=4096)
    assert (
        to_json(table.rows[0].plan).partition('"result"')[0]
        == to_json(replace(alone, options=table.rows[0].plan.options)).partition('"result"')[0]
    )


def test_without_time_the_longest_lengths_are_planned(decode: Path) -> None:
    table = onchip.lengths(decode, length="past=1..60", budget=4096, time_limit=0)
    assert table.rows[-1].last == 60
    assert table.asked == 1 < table.first == table.rows[0].first
    assert f"past 1 to {table.first - 1} were not planned: time is over." in str(table)
    for row in table.rows:
        assert table.plan(row.first).check().traffic_bytes - row.gap_bytes <= row.part(row.first).bound(
            row.first
        )
