"""`onchip contest` as a user meets it: a schedule, its price, a line for every refusal."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from onchip import cli
from oracles.contest_cases import SQUARE, data

Call = Callable[..., tuple[int, str, str]]


@pytest.fixture
def call(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path) -> Call:
    """Run `onchip contest` in a folder with a problem: exit code, output, errors."""
    operators = [("MatMul", (0, 1), 2, 100), ("Pointwise", (2, 3), 4, 10)]
    (tmp_path / "p.json").write_text(json.dumps(data([SQUARE] * 5, operators, capacity=300, bandwidth=1)))
    monkeypatch.chdir(tmp_path)

    def run(*args: str) -> tuple[int, str, str]:
        monkeypatch.setattr(sys, "argv", ["onchip", "contest", *args])
        with pytest.raises(SystemExit) as stop:
            cli.main()
        said = capsys.readouterr()
        return int(stop.value.code or 0), said.out, said.err

    return run


def solved(call: Call, *more: str) -> dict[str, Any]:
    code, out, err = call("solve", "p.json", "-o", "s.json", "--json", *more)
    assert (code, err) == (0, "")
    found: dict[str, Any] = json.loads(out)
    return found


def test_a_schedule_is_found_and_checked(call: Call) -> None:
    found = solved(call)
    assert found["status"] == "optimal"
    assert found["law"]["name"] == "ruled"
    assert found["latency"] == found["bound"] == sum(step["latency"] for step in found["subgraphs"])
    code, out, _ = call("check", "p.json", "s.json", "--json")
    assert code == 0
    assert json.loads(out)["latency"] == found["latency"]
    code, out, _ = call("check", "p.json", "s.json")
    assert code == 0
    assert f"legal under the law ruled: latency {found['latency']:,.12g}" in out


def test_the_tables_name_law_and_claim(call: Call) -> None:
    code, out, _ = call("solve", "p.json", "-o", "s.json", "--law", "winner")
    assert code == 0
    assert "under the law winner" in out
    assert "schedule written to s.json" in out


def test_a_schedule_of_one_law_breaks_another(call: Call) -> None:
    solved(call, "--law", "nocap")
    steps = json.loads(Path("s.json").read_text())
    steps["granularities"] = [[8, 8, 16]]
    steps |= {"subgraphs": [[0, 1]], "tensors_to_retain": [[]], "traversal_orders": [None]}
    steps["subgraph_latencies"] = [0]
    Path("s.json").write_text(json.dumps(steps))
    code, _, err = call("check", "p.json", "s.json")
    assert code == 1
    assert err == "onchip: illegal schedule: L1: subgraph 0: k = 16 is above the native 8\n"
    code, _, err = call("check", "p.json", "s.json", "--law", "nocap")
    assert code == 1
    assert "L15: subgraph 0: needs 384 elements at tile 0, step 0; there are 300" in err


@pytest.mark.parametrize(
    ("args", "says"),
    [
        (("solve", "none.json"), "none.json: no such file"),
        (("solve", "p.json", "-o", "p.json"), "would be written over"),
        (("solve", "p.json", "--law", "mine"), "'mine' is no law: ruled, permissive, winner, nocap are"),
        (("solve", "p.json", "--time-limit", "-1"), "is no number of seconds"),
        (("check", "p.json", "p.json"), "p.json: "),
        (("check", "p.json"), "SOLUTION.json"),
    ],
)
def test_wrong_usage_is_one_line(call: Call, args: tuple[str, ...], says: str) -> None:
    code, _, err = call(*args)
    assert code == 2
    assert says in err
    assert "Traceback" not in err


def test_a_problem_that_fits_nowhere_is_a_no(call: Call) -> None:
    small = json.loads(Path("p.json").read_text()) | {"fast_memory_capacity": 2}
    Path("p.json").write_text(json.dumps(small))
    assert call("solve", "p.json")[::2] == (1, "onchip: infeasible: operator 0 fits at no tile\n")
