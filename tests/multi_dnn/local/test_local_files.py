"""`onchip run SCHEDULE.json`: the networks found again, cut as profiled, executed."""

from __future__ import annotations

import json
import os
import sys
from dataclasses import replace
from pathlib import Path
from random import Random

import pytest

from multi_dnn.local.local_work import UNITS, in_groups, profile_of, two_cores
from multi_dnn.workloads import random_schedule
from onchip import cli
from onchip.base.errors import IllegalSchedule, InputError, UsageError
from onchip.machines.contention import NO_CONTENTION
from onchip.machines.soc import SoC, Unit
from onchip.multi_dnn.local.scheduled import cut_as_profiled, run_file
from onchip.multi_dnn.profile import Profile
from onchip.multi_dnn.schedule_json import schedule_json
from onchip.multi_dnn.simulate import simulate
from onchip.multi_dnn.workload import Job, Workload
from onchip.readers.source import Source
from run.models import source


@pytest.fixture
def model(tmp_path: Path) -> Source:
    return source("residual", tmp_path)


def profiled(model: Source) -> Profile:
    """Three groups, with the names of their layers."""
    cut = in_groups(model, 3)
    profile = profile_of(cut)
    groups = [
        replace(group, layers=tuple(model.network.operators[op].name for op in ids))
        for group, ids in zip(profile.groups, cut.groups, strict=True)
    ]
    return replace(profile, groups=tuple(groups))


def written(profile: Profile, path: Path) -> Path:
    """A schedule of the network beside itself, three frames, as a file."""
    jobs = (Job("a", profile), Job("b", profile, after=("a",)))
    workload = Workload(SoC("local", tuple(map(Unit, UNITS)), 1.0, 1.0), jobs, NO_CONTENTION, 3)
    schedule = random_schedule(Random(2), workload)
    path.write_text(schedule_json(schedule, simulate(workload, schedule)))
    return path


def answer(arguments: list[str], capsys: pytest.CaptureFixture[str]) -> tuple[int, str, str]:
    """Exit code, stdout and stderr of a command."""
    before, sys.argv = sys.argv, ["onchip", *arguments]
    try:
        code = cli.main()
    except SystemExit as end:
        code = int(end.code or 0)
    finally:
        sys.argv = before
    said = capsys.readouterr()
    return int(code or 0), said.out, said.err


@pytest.mark.thorough
@two_cores
def test_a_schedule_file_is_executed(
    model: Source, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = written(profiled(model), tmp_path / "s.json")
    code, out, err = answer(
        ["run", str(path), "--model", str(tmp_path / "residual.onnx"), "--rounds", "2", "--json"], capsys
    )
    assert (code, err) == (0, "")
    data = json.loads(out)
    assert (data["rounds"], data["frames"], data["outputs_compared"]) == (2, 3, 2 * 3 * 2)
    assert [network["network"] for network in data["networks"]] == ["a", "b"]
    assert data["order_violations"] == 0


def test_the_model_is_named_or_built_in(
    model: Source, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = written(profiled(model), tmp_path / "s.json")
    code, out, err = answer(["run", str(path)], capsys)
    assert (code, out) == (2, "")
    assert "network a: 'residual' is no built-in network; say where the model is with --model a=MODEL" in err
    with pytest.raises(UsageError, match="does not say of which network it is"):
        run_file(path, ["x.onnx", "y.onnx"])
    with pytest.raises(UsageError, match="two models of a"):
        run_file(path, ["a=x.onnx", "a=y.onnx"])


def test_a_model_that_is_gone_is_one_line(
    model: Source, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = written(profiled(model), tmp_path / "s.json")
    gone = tmp_path / "residual.onnx"
    gone.unlink()
    code, out, err = answer(["run", str(path), "--model", str(gone)], capsys)
    assert (code, out, err.count("\n")) == (2, "", 1)
    assert str(gone) in err


@two_cores
def test_one_cpu_is_not_enough(model: Source, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """With the affinity that the process really has."""
    path = written(profiled(model), tmp_path / "s.json")
    mine = os.sched_getaffinity(0)
    os.sched_setaffinity(0, {min(mine)})
    try:
        code, out, err = answer(["run", str(path), "--model", str(tmp_path / "residual.onnx")], capsys)
    finally:
        os.sched_setaffinity(0, mine)
    assert (code, out) == (2, "")
    assert err.endswith("local: needs 2 CPUs, one for each unit; this process may use 1 CPU\n")
    assert err.count("\n") == 1


@two_cores
def test_without_the_right_to_pin_one_line_says_so(
    model: Source, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """The kernel refuses a worker the core that it is given."""
    path = written(profiled(model), tmp_path / "s.json")
    monkeypatch.setattr("onchip.multi_dnn.local.runtime.pick_cores", lambda _: (0, 100_000))
    code, out, err = answer(["run", str(path), "--model", str(tmp_path / "residual.onnx")], capsys)
    assert (code, out, err.count("\n")) == (2, "", 1)
    assert "local: needs the right to pin processes to cores (onnxruntime-plain: " in err


def test_another_model_is_no_profiled_one(model: Source, tmp_path: Path) -> None:
    path = written(profiled(model), tmp_path / "s.json")
    source("concat", tmp_path)
    with pytest.raises(InputError, match="has no such layer"):
        run_file(path, [str(tmp_path / "concat.onnx")])
    path.write_text(path.read_text().replace('"makespan_ms": ', '"makespan_ms": 1'))
    with pytest.raises(IllegalSchedule, match="makespan"):
        run_file(path, [str(tmp_path / "residual.onnx")])


def test_a_profile_says_which_layers_it_is_of(model: Source) -> None:
    with pytest.raises(UsageError, match="group g0: does not say which layers"):
        cut_as_profiled(model, profile_of(in_groups(model, 3)))
    profile = profiled(model)
    assert cut_as_profiled(model, profile).groups == in_groups(model, 3).groups
    fewer = replace(profile, groups=profile.groups[:-1])
    with pytest.raises(UsageError, match="is in no group"):
        cut_as_profiled(model, fewer)
