"""Several networks on one SoC as a user meets them: the command, the files, a line for every refusal."""

from __future__ import annotations

import json
import sys
from itertools import pairwise
from pathlib import Path
from random import Random
from typing import Any

import pytest
from rich.console import Console

import onchip as onchip_package
from multi_dnn.made import crossing, random_judged
from onchip import cli
from onchip.multi_dnn.profile_file import profile_json
from onchip.multi_dnn.published import googlenet
from onchip.multi_dnn.result.corunned_table import table
from onchip.multi_dnn.schedule_file import is_schedule


def onchip(monkeypatch: pytest.MonkeyPatch, *args: str | Path) -> int:
    monkeypatch.setattr(sys, "argv", ["onchip", *map(str, args)])
    with pytest.raises(SystemExit) as stop:
        cli.main()
    return int(stop.value.code or 0)


def test_check_judges_a_schedule_file_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "schedule.json"
    made = crossing()
    path.write_text(made.json())
    assert onchip(monkeypatch, "check", path) == 0
    out = capsys.readouterr().out
    assert "legal: 20 groups on 2 units; every figure that follows from the schedule holds" in out
    assert "3.489 ms" in out
    assert onchip(monkeypatch, "check", path, "--json") == 0
    data = json.loads(capsys.readouterr().out)
    assert data["makespan_ms"] == made.timeline.makespan_ms
    assert {s["unit"] for net in data["networks"] for s in net["segments"]} == {"gpu", "dla"}
    wrong = json.loads(path.read_text())
    wrong["result"]["makespan_ms"] = 3.0
    path.write_text(json.dumps(wrong))
    assert onchip(monkeypatch, "check", path) == 1
    said = capsys.readouterr().err
    assert said.count("\n") == 1
    assert "states makespan_ms 3.0" in said


def test_constants_that_are_not_the_named_sets_are_pointed_out(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "schedule.json"
    path.write_text(crossing().json())
    assert onchip(monkeypatch, "check", path) == 0
    assert "the file's own constants" not in capsys.readouterr().out
    wrong = json.loads(path.read_text())
    wrong["contention"]["set"] = "heavy"
    del wrong["result"]["claim_sha256"]
    path.write_text(json.dumps(wrong))
    assert onchip(monkeypatch, "check", path) == 0
    out = capsys.readouterr().out
    assert "the file's own constants, not those of the built-in set heavy of xavier-agx" in out


def test_claims_of_a_schedule_are_bound_to_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "schedule.json"
    made = onchip_package.corun(["zoo:googlenet", "zoo:googlenet"])
    made.save(path)
    assert onchip(monkeypatch, "check", path, "--json") == 0
    assert json.loads(capsys.readouterr().out)["claim"] == "claimed"
    assert onchip(monkeypatch, "report", path, "-o", tmp_path / "page.html") == 0
    assert "Claimed to be optimal among" in capsys.readouterr().out
    assert "claimed optimal in its class" in (tmp_path / "page.html").read_text()
    wrong = json.loads(path.read_text())
    wrong["soc"]["nominal_gb_per_second"] *= 2
    wrong["result"]["seconds"] = 3.0  # how long it took is no part of the claim
    path.write_text(json.dumps(wrong))
    for command in ("check", "report"):
        assert onchip(monkeypatch, command, path) == 1
        assert capsys.readouterr().err.startswith("onchip: illegal schedule: claim: ")
    wrong["soc"]["nominal_gb_per_second"] /= 2
    path.write_text(json.dumps(wrong, indent=3))
    assert onchip(monkeypatch, "check", path) == 0


@pytest.mark.thorough
def test_schedules_are_told_from_plans_and_from_anything_else(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    for text, expected in (
        ('{"format": "onchip.schedule/1"}', True),
        ('{"format": "onchip.schedule/2"}', True),
        ('{"format": "onchip.plan/1"}', False),
        ('{"format": 3}', False),
        ("[1]", False),
        ("plan of nothing", False),
        ("", False),
        ("\xff{", False),
    ):
        path = tmp_path / "file.json"
        path.write_text(text, "latin-1")
        assert is_schedule(path) is expected, text
        for verb in ("check", "report"):
            assert onchip(monkeypatch, verb, path) == 2
            said = capsys.readouterr().err
            assert said.count("\n") == 1
            assert str(path) in said
    assert not is_schedule(tmp_path / "missing.json")


@pytest.mark.thorough
def test_report_shows_any_schedule_and_writes_its_page(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    for seed in range(6):
        path, page = tmp_path / f"{seed}.json", tmp_path / f"{seed}.html"
        path.write_text(random_judged(Random(seed)).json())
        assert onchip(monkeypatch, "report", path, "-o", page) == 0
        assert f"report written to {page}" in capsys.readouterr().out
        assert page.read_text("utf-8").startswith("<!doctype html>")
    assert onchip(monkeypatch, "report", path, "-o", path) == 2


def asked(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], *args: str | Path
) -> dict[str, Any]:
    assert onchip(monkeypatch, "corun", *args, "--json") == 0
    found: dict[str, Any] = json.loads(capsys.readouterr().out)
    return found


def refused(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], *args: str | Path, code: int = 2
) -> str:
    assert onchip(monkeypatch, "corun", *args) == code
    said = capsys.readouterr().err
    assert said.startswith("onchip: ")
    assert said.count("\n") == 1
    return said


def test_googlenet_twice_is_the_papers_profile_and_beats_every_baseline(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    path, page = tmp_path / "schedule.json", tmp_path / "page.html"
    data = asked(
        monkeypatch, capsys, "zoo:googlenet", "zoo:googlenet", "--soc", "xavier-agx",
        "--objective", "latency", "--contention", "light", "-o", path, "--report", page,
    )  # fmt: skip
    assert data["baselines"]["gpu alone"] == pytest.approx(4.640, abs=1e-9)
    assert data["makespan_ms"] <= 3.598
    assert data["makespan_ms"] <= min(data["baselines"].values()) + 1e-9
    assert 0 < data["lower_bound_ms"] <= data["makespan_ms"]
    assert data["class"].startswith("optimal among")
    assert data["status"] == "optimal"
    assert data["seconds"] > 0
    assert [net["name"] for net in data["networks"]] == ["googlenet", "googlenet #2"]
    for net in data["networks"]:
        assert net["profile"]["source"] == "HaX-CoNN, Table 2"
        assert not net["profile"]["synthetic"]
        assert [s["group"] for s in net["segments"]] == [g.name for g in googlenet().groups]
        assert {s["unit"] for s in net["segments"]} <= {"gpu", "dla"}
        for before, after in pairwise(net["segments"]):
            assert before["start"] < before["end"] <= after["start"] + 1e-9
    for unit in ("gpu", "dla"):
        mine = sorted(
            (s["start"], s["end"]) for n in data["networks"] for s in n["segments"] if s["unit"] == unit
        )
        assert all(a[1] <= b[0] + 1e-9 for a, b in pairwise(mine))
    assert onchip(monkeypatch, "check", path) == 0
    assert "every figure that follows from the schedule holds" in capsys.readouterr().out
    assert "contention-blind" in page.read_text("utf-8")


@pytest.mark.parametrize("objective", ["latency", "throughput", "rates"])
def test_files_of_every_objective_are_judged_again(
    objective: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """A profile of one's own, three networks, one after another, one twice as often, for a few frames."""
    (tmp_path / "mine.csv").write_text("group,gpu_ms,dla_ms\na,1,2\nb,1,1\nc,0.5,\n")
    (tmp_path / "other.json").write_text(profile_json(googlenet()))
    path = tmp_path / "schedule.json"
    data = asked(
        monkeypatch, capsys, tmp_path / "mine.csv", tmp_path / "other.json", tmp_path / "mine.csv",
        "--objective", objective, "--frames", "3", "--after", "2:1", "--iterations", "3:2",
        "--tries", "200", "-o", path,
    )  # fmt: skip
    assert [net["name"] for net in data["networks"]] == ["mine", "googlenet", "mine #2"]
    assert [len(net["segments"]) for net in data["networks"]] == [9, 30, 18]
    assert data["networks"][1]["after"] == ["mine"]
    assert data["cost_ms"] <= min(data["baselines"].values()) + 1e-9
    assert onchip(monkeypatch, "check", path, "--json") == 0
    again = json.loads(capsys.readouterr().out)
    assert again["networks"] == data["networks"]
    figure = {"latency": "latency_ms", "throughput": "fps", "rates": "sum_of_rates"}[objective]
    assert again["objective"] == figure
    if objective != "latency":
        assert again["baselines"]["Herald-like"] == pytest.approx(1000 / data["baselines"]["Herald-like"])


def test_a_network_without_measurements_has_a_profile_that_says_so(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    data = asked(
        monkeypatch, capsys, "zoo:resnet18", "zoo:googlenet", "--soc", "orin-agx", "--no-prove",
        "--most-groups", "4",
    )  # fmt: skip
    assert [net["profile"]["synthetic"] for net in data["networks"]] == [True, True]
    assert "resnet18, googlenet" in data["note"]
    assert onchip(monkeypatch, "corun", "zoo:googlenet", "zoo:resnet18", "--no-prove") == 0
    out = capsys.readouterr().out
    assert "Synthetic profiles, which nobody measured: resnet18." in out


def test_a_short_stream_that_beats_the_long_runs_bound_is_not_called_optimal(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Four frames, of which the last two follow each other closely, whatever the throughput is."""
    (tmp_path / "long.csv").write_text("group,gpu_ms,dla_ms\na,9,1\nb,1,9\n")
    (tmp_path / "short.csv").write_text("group,gpu_ms,dla_ms\na,1,2\n")
    path = tmp_path / "schedule.json"
    for frames in ("2", "4"):
        data = asked(
            monkeypatch, capsys, tmp_path / "long.csv", tmp_path / "short.csv", "--objective", "throughput",
            "--frames", frames, "--in-flight", "0", "-o", path,
        )  # fmt: skip
        assert data["status"] == "feasible"
        if data["cost_ms"] < data["lower_bound_ms"]:
            assert "in the long run" in data["note"]
        assert onchip(monkeypatch, "check", path) == 0
        capsys.readouterr()


def test_throughput_of_one_frame_says_that_it_is_of_a_frame_repeated(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """A stream in which frames overlap has more frames per second than the bound of one frame."""
    pair = ("zoo:googlenet", "zoo:googlenet", "--after", "2:1", "--objective", "throughput")
    path = tmp_path / "schedule.json"
    assert onchip(monkeypatch, "corun", *pair, "-o", path) == 0
    said = " ".join(capsys.readouterr().out.split())
    assert "every schedule has" not in said
    assert "every single frame repeated, without overlap of frames, has at most" in said
    assert "--frames 12" in said
    assert onchip(monkeypatch, "check", path) == 0
    assert "every schedule has" not in capsys.readouterr().out
    one = asked(monkeypatch, capsys, *pair)
    stream = asked(monkeypatch, capsys, *pair, "--frames", "8", "--tries", "500")
    assert stream["fps"] > 1000 / one["lower_bound_ms"]
    assert "--frames 12" in one["note"]
    assert "--frames 12" not in stream["note"]


def test_a_profile_of_ones_own_takes_the_place_of_the_papers(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "trtexec=numbers.csv"
    path.write_text("group,gpu_ms,dla_ms\nall,2,5\n")
    for flag in (str(path), f"zoo:googlenet={path}"):
        data = asked(monkeypatch, capsys, "zoo:googlenet", "zoo:googlenet", "--profile", flag)
        assert data["makespan_ms"] == pytest.approx(4)
        assert [net["name"] for net in data["networks"]] == ["googlenet", "googlenet #2"]


@pytest.mark.thorough
def test_every_refusal_is_a_line_and_leaves_no_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    twice = ("zoo:googlenet", "zoo:googlenet")
    bad = tmp_path / "bad.csv"
    bad.write_text("group,gpu_ms,dla_ms\na,-1,2\n")
    nan = tmp_path / "nan.csv"
    nan.write_text("group,gpu_ms,dla_ms\na,nan,2\n")
    one = tmp_path / "one.csv"
    one.write_text("group,gpu_ms\na,1\n")
    out = tmp_path / "out.json"
    for args, words in (
        ((*twice, "--soc", "nowhere"), "no such SoC; there are "),
        ((*twice, "--soc", "orin"), "did you mean orin-agx? "),
        ((*twice, "--objective", "speed"), "--objective"),
        ((*twice, "--contention", "odd"), "light, medium, heavy, none"),
        ((*twice, "--after", "1:2", "--after", "2:1"), "waits, directly or not, for itself"),
        ((*twice, "--after", "3:1"), "networks 1 to 2"),
        ((*twice, "--after", "1"), "as in 2:1"),
        ((*twice, "--iterations", "1:0"), "from 1"),
        ((*twice, "--iterations", "1:9999999"), "999,999"),
        ((*twice, "--frames", "0"), "--frames"),
        ((*twice, "--in-flight", "-1"), "--in-flight"),
        ((*twice, "--time-limit", "-1"), "--time-limit"),
        ((*twice, "--time-limit", "nan"), "--time-limit"),
        ((*twice, "--tries", "-1"), "--tries"),
        ((*twice, "--profile", f"zoo:resnet18={bad}"), "--profile"),
        ((bad, *twice), "-1.0"),
        ((nan, *twice), "nan"),
        ((one, *twice), "dla_ms"),
        ((tmp_path / "missing.csv", *twice), "no such file"),
        ((tmp_path / "missing.onnx", *twice), "no such file"),
        (("zoo:nothing", *twice), "nothing"),
        ((*twice, "--soc", "local", "--profile", "synthetic"), "is not stated"),
    ):
        assert words in refused(monkeypatch, capsys, *args, "-o", out), args
        assert not out.exists()
    assert "something else" in refused(monkeypatch, capsys, *twice, "-o", out, "--report", out)
    assert "something else" in refused(monkeypatch, capsys, bad, bad, "-o", bad)


def test_hostile_names_reach_no_terminal_and_no_page_raw(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    name = "\x1b[31m</script><script>alert(1)</script>[bold]\u202e"
    wire = json.loads(profile_json(googlenet()))
    wire["network"] = wire["source"] = name
    for group in wire["groups"]:
        group["name"] += name
    path, page = tmp_path / "hostile.json", tmp_path / "page.html"
    path.write_text(json.dumps(wire))
    schedule = tmp_path / "schedule.json"
    assert onchip(monkeypatch, "corun", path, path, "-o", schedule, "--report", page) == 0
    assert onchip(monkeypatch, "check", schedule) == 0
    assert onchip(monkeypatch, "report", schedule) == 0
    out = capsys.readouterr().out
    assert "[bold]" in out
    assert "\x1b" not in out
    assert "\u202e" not in out
    assert "<script>alert" not in page.read_text("utf-8")


def test_in_python() -> None:
    profile = googlenet()
    made = onchip_package.corun([profile, "zoo:googlenet"], contention="none")
    assert (made.class_.startswith("optimal"), made.note) == (True, "")
    assert made.cost_ms == made.makespan_ms <= made.best_baseline[1]
    assert "googlenet + googlenet #2 on xavier-agx, no contention" in str(made)
    for wrong in ([], "zoo:googlenet"):
        with pytest.raises(onchip_package.UsageError, match="a list of networks"):
            onchip_package.corun(wrong)
    with pytest.raises(onchip_package.UsageError, match="no such option"):
        onchip_package.corun([profile, profile], speed=3)
    with pytest.raises(onchip_package.ProfileError, match="is for units gpu, dla"):
        onchip_package.corun([profile], "snapdragon-865")


@pytest.mark.parametrize("width", [80, 110])
def test_a_terminals_table_cuts_no_heading(width: int) -> None:
    """Three units leave no room for every column: some are left out, none is cut."""
    several = (random_judged(Random(n)) for n in range(100))
    made = next(one for one in several if len(one.workload.soc.units) == 3)
    console = Console(width=width, no_color=True)
    with console.capture() as capture:
        console.print(table(made, width))
    said = capture.get()
    (heads,) = (line.split() for line in said.splitlines() if line.split()[:1] == ["network"])
    assert "on a on b on c" in " ".join(heads)
    assert heads[-2:] == ["waits", "latency"]
    assert ("profile" in heads) == (width == 110)
    assert "…" not in " ".join(heads)
