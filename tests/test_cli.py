"""The command line as a user meets it: exit codes, one clear line, nothing half-written."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from pathlib import Path
from signal import SIGINT
from time import sleep

import pytest

import onchip as onchip_package
from onchip import cli
from onchip.machines.board import builtin_boards
from onchip.machines.soc_file import builtin_socs

NETWORK = {
    "format": "onchip.network/1",
    "name": "n",
    "outputs": ["c"],
    "tensors": [
        {"name": "x", "bytes": 10, "kind": "input"},
        {"name": "a", "bytes": 20, "kind": "activation"},
        {"name": "b", "bytes": 30, "kind": "activation"},
        {"name": "c", "bytes": 5, "kind": "activation"},
    ],
    "operators": [
        {"name": "A", "type": "Conv", "inputs": ["x"], "outputs": ["a"], "weight_bytes": 100},
        {"name": "B", "type": "Conv", "inputs": ["a"], "outputs": ["b"], "weight_bytes": 7},
        {"name": "C", "type": "Add", "inputs": ["a", "b"], "outputs": ["c"]},
    ],
}


def onchip(monkeypatch: pytest.MonkeyPatch, *args: str) -> int:
    monkeypatch.setattr(sys, "argv", ["onchip", *args])
    with pytest.raises(SystemExit) as stop:
        cli.main()
    return int(stop.value.code or 0)


@pytest.fixture
def model(tmp_path: Path) -> Path:
    path = tmp_path / "net.json"
    path.write_text(json.dumps(NETWORK))
    return path


def refused(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], code: int, *args: str
) -> str:
    """The one line that these arguments are refused with."""
    assert onchip(monkeypatch, *args) == code
    out, err = capsys.readouterr()
    assert out == ""
    assert err.startswith("onchip: ")
    assert err.count("\n") == 1
    return err


def test_plan_check_report_as_a_user_would(
    model: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    plan, page = model.with_name("plan.json"), model.with_name("plan.html")
    assert (
        onchip(monkeypatch, "plan", str(model), "--budget", "MR", "-o", str(plan), "--report", str(page)) == 0
    )
    assert "optimal" in capsys.readouterr().out
    assert json.loads(plan.read_text())["result"]["status"] == "optimal"
    assert "<html" in page.read_text()
    assert onchip(monkeypatch, "check", str(plan)) == 0
    assert "legal" in capsys.readouterr().out
    assert onchip(monkeypatch, "report", str(plan), "-o", str(page)) == 0


def test_json_is_the_only_thing_on_stdout(
    model: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    assert onchip(monkeypatch, "plan", str(model), "--budget", "1KiB", "--json") == 0
    assert json.loads(capsys.readouterr().out)["format"] == "onchip.plan/1"
    assert onchip(monkeypatch, "chips", "--json") == 0
    assert json.loads(capsys.readouterr().out)[0]["name"] == "generic"
    for command, key in (("boards", "ram_bytes"), ("socs", "units")):
        assert onchip(monkeypatch, command, "--json") == 0
        assert all(row[key] for row in json.loads(capsys.readouterr().out))


@pytest.mark.parametrize("command", ["boards", "socs"])
def test_machines_are_listed_as_the_options_take_them(
    command: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    known = (
        {board.name for board in builtin_boards()}
        if command == "boards"
        else {s.name for s in builtin_socs()}
    )
    assert onchip(monkeypatch, command) == 0
    lines = capsys.readouterr().out.splitlines()
    assert known <= {line.split(" ")[0] for line in lines}
    assert max(map(len, lines)) <= 80


def test_text_plans_are_plans(model: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    plan = model.with_name("net.plan")
    assert onchip(monkeypatch, "plan", str(model), "--budget", "MR", "-o", str(plan)) == 0
    assert plan.read_text().startswith("onchip.plan/1\n")
    assert onchip(monkeypatch, "check", str(plan)) == 0


def test_a_budget_below_mr_is_a_no_that_names_operator_tensors_and_bytes(
    model: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    plan = model.with_name("plan.json")
    line = refused(monkeypatch, capsys, 1, "plan", str(model), "--budget", "54", "-o", str(plan))
    for part in ("infeasible", "operator C", "55", "54", "a (20", "b (30", "c (5"):
        assert part in line
    assert not plan.exists()


@pytest.mark.parametrize(
    ("args", "parts"),
    [
        (["plan", "MODEL"], ["--budget", "generic"]),
        (["plan", "MODEL", "--budget", "lots"], ["--budget", "lots", "MR"]),
        (["fuse", "MODEL", "--budget", "MR"], ["--budget: MR", "give a size"]),
        (["plan", "MODEL", "--budget", "MR", "--seed", "x"], ["--seed", "is not a whole number"]),
        (["plan", "MODEL", "--budget", "MR", "--time-limit", "x"], ["--time-limit", "is not a number"]),
        (["plan", "MODEL", "--objective", "fast"], ["': 'fast' is not one of", "onchip plan --help"]),
        (["check", "net.onnx"], ["net.onnx: is a model", "`onchip plan`"]),
        (["lengths", "MODEL", "--budget", "MR"], ["--length: is needed"]),
        (["plan", "MODEL", "--budget", "0"], ["--budget"]),
        (["plan", "MODEL", "--budget", "MR", "--chip", "nope"], ["nope", "onchip chips"]),
        (["plan", "MODEL", "--budget", "MR", "-o", "/nowhere/plan.json"], ["/nowhere/plan.json"]),
        (["plan", "missing.onnx", "--budget", "MR"], ["missing.onnx", "no such file"]),
        (["plan", "zoo:nope", "--budget", "MR"], ["nope"]),
        (["plan", "MODEL", "--wrong"], ["--wrong"]),
        (["plan", "MODEL", "--budget", "MR", "--granularity", "coarse"], ["granularity", "coarse"]),
        (["plan", "MODEL", "--budget", "MR", "--seed", "-1"], ["seed", "-1"]),
        (["plan", "MODEL", "--budget", "MR", "--seed", str(10**30)], ["seed"]),
        (["plan", "MODEL", "--budget", "MR", "--time-limit", "-1"], ["--time-limit: -1"]),
        (["plan", "MODEL", "--budget", "MR", "--time-limit", "nan"], ["--time-limit: nan"]),
        (["plan", "MODEL", "--budget", "MR", "--memory-limit", "0"], ["--memory-limit"]),
        (["plan", "MODEL", "--budget", "MR", "-o", "MODEL"], ["net.json"]),
        (["plan", "MODEL", "--budget", "MR", "-o", "/tmp/same", "--report", "/tmp/same"], ["/tmp/same"]),
        (["plan", "zoo:resnet50", "--budget", "MR", "--dims", "batch=" + "9" * 20], ["batch"]),
        (["check", "MODEL"], ["net.json"]),
        (["check", "missing.json"], ["missing.json"]),
        (["run", "MODEL"], ["net.json"]),
        (["frobnicate"], ["frobnicate"]),
        (["zoo", "nope"], ["nope"]),
    ],
)
def test_bad_usage_is_one_line_and_exit_2(
    args: list[str],
    parts: list[str],
    model: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.chdir(model.parent)
    Path("net.onnx").write_bytes(b"")
    line = refused(monkeypatch, capsys, 2, *[str(model) if a == "MODEL" else a for a in args])
    for part in parts:
        assert part in line
    assert not re.search("Input should|Value error", line)


def changed(**changes: object) -> str:
    return json.dumps({**NETWORK, **changes})


def cyclic() -> str:
    operators = [dict(op) for op in NETWORK["operators"]]  # type: ignore[union-attr, call-overload]
    operators[0]["inputs"] = ["x", "b"]
    return changed(operators=operators)


def resized(size: int) -> str:
    tensors = [dict(t) for t in NETWORK["tensors"]]  # type: ignore[union-attr, call-overload]
    tensors[1]["bytes"] = size
    return changed(tensors=tensors)


@pytest.mark.parametrize(
    ("content", "parts"),
    [
        (json.dumps(NETWORK)[:200], []),
        ("", []),
        ("[1, 2]", []),
        ("[" * 100_000, []),
        (cyclic(), ["operator A", "cycle"]),
        (resized(0), ["tensor a", "zero bytes"]),
        (resized(-4), ["tensor a"]),
        (resized(10 * 10**12), ["tensor a", "10,000,000,000,000"]),
        (resized(10**40), ["bytes"]),
        (changed(format="onchip.network/9"), ["format", "onchip.network/9"]),
        (changed(outputs=["y"]), ["outputs", "y"]),
        (changed(surprise=1), ["surprise"]),
        (changed(operators=[]), ["no operators"]),
    ],
)
def test_a_bad_network_is_one_line_that_names_the_file_and_the_culprit(
    content: str,
    parts: list[str],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    path, plan = tmp_path / "bad.json", tmp_path / "plan.json"
    path.write_text(content)
    line = refused(monkeypatch, capsys, 2, "plan", str(path), "--budget", "MR", "-o", str(plan))
    for part in ["bad.json", *parts]:
        assert part in line
    assert not plan.exists()


def test_hostile_names_stay_data(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    hostile = '<script>alert("1")</script>\n../../x\u202e'
    path, page, plan = (tmp_path / name for name in ("hostile.json", "page.html", "hostile.plan"))
    path.write_text(
        json.dumps(NETWORK).replace('"A"', json.dumps(hostile)).replace('"a"', json.dumps("[red]" + hostile))
    )
    assert (
        onchip(monkeypatch, "plan", str(path), "--budget", "MR", "-o", str(plan), "--report", str(page)) == 0
    )
    assert onchip(monkeypatch, "check", str(plan)) == 0
    assert "<script>alert" not in page.read_text()
    assert sorted(p.name for p in tmp_path.iterdir()) == ["hostile.json", "hostile.plan", "page.html"]
    capsys.readouterr()
    line = refused(monkeypatch, capsys, 1, "plan", str(path), "--budget", "20")
    assert "alert" in line


def test_help_and_version_answer(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    assert onchip(monkeypatch, "--help") == 0
    assert "plan" in capsys.readouterr().out
    assert onchip(monkeypatch, "plan", "--help") == 0
    assert "--granularity" in capsys.readouterr().out
    assert onchip(monkeypatch, "--version") == 0
    assert capsys.readouterr().out.startswith("onchip ")


@pytest.mark.parametrize(
    "option", [{"weights": "Resident"}, {"order": "x"}, {"seed": "a"}, {"memory_limit": 1.5}]
)
def test_a_wrong_option_in_python_is_refused_by_name(option: dict[str, object], model: Path) -> None:
    with pytest.raises(onchip_package.UsageError, match=next(iter(option))):
        onchip_package.plan(str(model), budget="MR", **option)


@pytest.mark.thorough
def test_a_reader_that_leaves_early_is_no_error(model: Path) -> None:
    command = [sys.executable, "-m", "onchip.cli", "plan", str(model), "--budget", "MR", "--json"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as child:
        assert child.stdout is not None
        assert child.stderr is not None
        child.stdout.close()
        assert child.stderr.read() == b""
        assert child.wait() == 0


def test_an_interrupt_is_one_line(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], model: Path
) -> None:
    def interrupt(*_: object, **__: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(cli.plan.api, "plan", interrupt)
    assert "interrupted" in refused(monkeypatch, capsys, 130, "plan", str(model), "--budget", "MR")


@pytest.mark.parametrize("seconds", [0.0, 0.03, 0.1, 0.2, 0.4])
def test_an_interrupt_while_it_starts_is_no_traceback(seconds: float, model: Path) -> None:
    code = "import onchip_command; print('up', flush=True); onchip_command.main()"
    command = [sys.executable, "-c", code, "plan", str(model), "--budget", "MR"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as child:
        assert child.stdout is not None
        assert child.stderr is not None
        assert child.stdout.readline() == b"up\n"
        sleep(seconds)
        child.send_signal(SIGINT)
        problem, code_of_it = child.stderr.read().decode(), child.wait()
    assert (code_of_it, problem) in ((130, "onchip: interrupted\n"), (0, ""), (-SIGINT, ""))


def test_nothing_asked_for_is_answered_by_the_help_alone(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(sys, "argv", ["onchip"])
    with pytest.raises(SystemExit) as end:
        cli.main()
    out, err = capsys.readouterr()
    assert end.value.code == 2
    assert all(word in out for word in ("Usage:", "Commands", "plan", "chips"))
    assert err == ""
