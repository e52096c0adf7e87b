"""`onchip corun` with profiles that are measured when they are asked for."""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path

import pytest

from onchip import cli
from onchip.base.errors import UsageError
from onchip.machines.soc_file import load_soc, parse_soc
from onchip.multi_dnn.result.profiles import Profiles
from onchip.readers import load

SOC = """
name = "here"
nominal_gb_per_second = 10.0
peak_gb_per_second = 9.0
[[units]]
name = "onnxruntime"
[[units]]
name = "onnxruntime-plain"
"""


def onchip(monkeypatch: pytest.MonkeyPatch, *args: str | Path) -> int:
    monkeypatch.setattr(sys, "argv", ["onchip", *map(str, args)])
    with pytest.raises(SystemExit) as stop:
        cli.main()
    return int(stop.value.code or 0)


@pytest.mark.slow
@pytest.mark.skipif(len(os.sched_getaffinity(0)) < 2, reason="needs two CPUs")
def test_networks_are_measured_once_and_scheduled(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    soc = tmp_path / "here.toml"
    soc.write_text(SOC)
    model = "zoo:mobilenet_v2@33x40"
    assert onchip(monkeypatch, "corun", model, model, "--soc", soc, "--most-groups", "4", "--json") == 0
    data = json.loads(capsys.readouterr().out)
    first, second = data["networks"]
    assert data["makespan_ms"] > 0
    assert {s["unit"] for s in first["segments"]} <= {"onnxruntime", "onnxruntime-plain"}
    assert len(first["segments"]) == len(second["segments"]) == 4


def test_what_is_measured_and_when() -> None:
    local, xavier = load_soc("local"), load_soc("xavier-agx")
    assert Profiles.asked(local, ["a"], []).measured
    assert not Profiles.asked(local, ["a"], ["synthetic"]).measured
    assert not Profiles.asked(xavier, ["a"], []).measured
    with pytest.raises(UsageError, match="units of xavier-agx are no engines of this machine"):
        Profiles.asked(xavier, ["a"], ["measured"])
    assert Profiles.asked(parse_soc(SOC.encode(), "here.toml"), ["a"], []).measured
    with pytest.raises(UsageError, match="--profile: is either synthetic or measured"):
        Profiles.asked(local, ["a"], ["measured", "synthetic"])


def test_what_cannot_be_measured_is_one_line(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    network = load("zoo:squeezenet1_0").network
    with pytest.raises(UsageError, match="squeezenet1_0: is sizes only: there is nothing to execute"):
        Profiles.asked(load_soc("local"), [], []).of(network)
    for args, reason in (
        (("--profile", "measured"), "units of xavier-agx are no engines of this machine"),
        (("--soc", "local", "--profile", "synthetic"), "units.onnxruntime.macs_per_second: is not stated"),
    ):
        assert onchip(monkeypatch, "corun", "zoo:squeezenet1_0", "zoo:squeezenet1_0", *args) == 2
        said = capsys.readouterr().err
        assert said.count("\n") == 1
        assert reason in said
