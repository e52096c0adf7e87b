"""Everything that can be wrong with what a co-run is given: one line that names file and key, exit 2."""

from __future__ import annotations

import json
import sys
from functools import cache
from pathlib import Path
from typing import Any

import pytest

import onchip as onchip_package
from onchip import cli
from onchip.machines.soc_file import builtin_socs
from onchip.multi_dnn.content import kind_of
from onchip.multi_dnn.profile_file import profile_from_json, profile_json
from onchip.multi_dnn.published import googlenet

HEAD = "group,gpu_ms,dla_ms\n"
TWICE = ("zoo:googlenet", "zoo:googlenet")
XAVIER = (Path(onchip_package.__file__).parent / "machines" / "socs" / "xavier-agx.toml").read_text("utf-8")
PEAK = "peak_gb_per_second = 127.5"


def said(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], *args: str | Path) -> str:
    """The one line with which a command refuses its arguments."""
    monkeypatch.setattr(sys, "argv", ["onchip", *map(str, args)])
    with pytest.raises(SystemExit) as stop:
        cli.main()
    told = capsys.readouterr()
    assert stop.value.code == 2, (told.out, told.err)
    assert told.out == ""
    assert told.err.startswith("onchip: ")
    assert told.err.count("\n") == 1
    return told.err


def profile(**changes: Any) -> bytes:
    return json.dumps({**json.loads(profile_json(googlenet())), **changes}).encode()


def group(**changes: Any) -> bytes:
    wire = json.loads(profile_json(googlenet()))
    for key, value in changes.items():
        if isinstance(value, dict):
            wire["groups"][0].setdefault(key, {}).update(value)
        else:
            wire["groups"][0][key] = value
    return json.dumps(wire).encode()


TEXT = profile_json(googlenet())

PROFILES: list[tuple[str, str | bytes, str]] = [
    ("csv", HEAD + "a,-1,2\n", "group a: ms on gpu is -1.0"),
    ("csv", HEAD + "a,nan,2\n", "ms on gpu is nan"),
    ("csv", HEAD + "a,inf,2\n", "ms on gpu is inf"),
    ("csv", HEAD + "a,1e300,2\n", "ms on gpu is 1e+300"),
    ("csv", HEAD + "a,0,2\n", "group a: takes no time on gpu"),
    ("csv", HEAD + "a,1e-320,2\n", "group a: takes no time on gpu"),
    ("csv", HEAD + "a,x,2\n", "row 2, gpu_ms: 'x' is not a number"),
    ("csv", HEAD + "a,1_0,2\n", "row 2, gpu_ms: '1_0' is not a number"),
    ("csv", HEAD + 'a,"1,5",2\n', "'1,5' is not a number"),
    ("csv", HEAD + "a,1\n", "row 2: has 2 cells, not 3"),
    ("csv", HEAD + "a,1,2,3\n", "row 2: has 4 cells, not 3"),
    ("csv", HEAD + "a,,\n", "group a: runs on no unit"),
    ("csv", HEAD + " ,1,2\n", "row 2: the group has no name"),
    ("csv", HEAD + "a,1,2\na,1,2\n", "group a: is given twice"),
    ("csv", HEAD, "groups: must have 1 to"),
    ("csv", "", "is empty"),
    ("csv", "\n\n", "is empty"),
    ("csv", HEAD + '"a,1,2\n', "is no CSV"),
    ("csv", (HEAD + "a,1,2\n").encode("utf-16"), "is no CSV"),
    ("csv", "group,gpu_ms\na,1\n", "dla_ms: column is missing"),
    ("csv", "group,gpu_ms,gpu_ms,dla_ms\na,1,1,2\n", "gpu_ms: is there twice"),
    ("csv", "group,gpu_ms,dla_ms,npu_ms\na,1,2,3\n", "npu_ms: unknown column"),
    ("csv", "group;gpu_ms;dla_ms\na;1;2\n", "unknown column"),
    ("csv", "a,1,2\n", "a: unknown column"),
    ("csv", "group,gpu_ms,dla_ms,gpu_gb_per_second\na,1,2,-3\n", "gb_per_second on gpu is -3.0"),
    (
        "csv",
        "group,gpu_ms,dla_ms,gpu_gb_per_second\na,1,2,57300\n",
        "group a: gb_per_second on gpu is 57300; the",
    ),
    ("csv", "group,gpu_ms,dla_ms,gpu_gb_per_second\na,1,2,57300\n", "has 136.5 GB/s; is it in MB/s?"),
    ("csv", "group,gpu_ms,dla_ms,gpu_gb_per_second\na,1,2,144\n", "gb_per_second on gpu is 144; the SoC's"),
    ("csv", "group,gpu_ms,dla_ms,gpu_out_ms\na,1,2,nan\n", "out_ms on gpu is nan"),
    ("csv", "group,gpu_ms,dla_ms,gpu_emc_percent\na,1,2,400\n", "emc_percent on gpu is 400.0"),
    ("json", TEXT[:300], "Input data was truncated"),
    ("json", TEXT.encode("utf-16"), "JSON"),
    ("json", TEXT.replace("0.45", "NaN", 1), "(line 15: NaN)"),
    ("json", TEXT.replace("0.45", "-Infinity", 1), "(line 15: Infinity)"),
    ("json", TEXT.replace("0.45", "1e999", 1), "groups[0].ms"),
    ("json", TEXT.replace('"network"', '"network": "x", "network"', 1), "'network' is given twice"),
    ("json", profile(format="onchip.profile/2"), "format: is 'onchip.profile/2'"),
    ("json", json.dumps({k: v for k, v in json.loads(TEXT).items() if k != "format"}), "field `format`"),
    ("json", profile(groups=[]), "groups: must have 1 to"),
    ("json", profile(units=["gpu", "dsp"]), "has no ms for unit dsp"),
    ("json", profile(units=["gpu", "gpu"]), "units: must name its units, each once"),
    ("json", profile(network=" "), "network: has no name"),
    ("json", profile(colour=1), "unknown field `colour`"),
    ("json", group(ms={"gpu": -1}), "group 0-9: ms on gpu is -1.0"),
    ("json", group(gb_per_second={"dla": 57300}), "group 0-9: gb_per_second on dla is 57300"),
    ("json", '{"format":"onchip.profile/1"}', "missing required field `network`"),
    ("json", group(ms={"gpu": "1"}), "groups[0].ms"),
    ("json", group(ms={"gpu": True}), "groups[0].ms"),
    ("json", group(ms={"gpu": 10**400}), "groups[0].ms"),
    ("json", group(ms={"gpu": None, "dla": None}), "group 0-9: runs on no unit"),
    ("json", group(ms={"npu": 1}), "ms names an unknown unit 'npu'"),
    ("json", group(gb_per_second={"gpu": None}), "groups[0].gb_per_second"),
    ("json", group(name=""), "groups[0]: has no name"),
    ("json", group(layers="conv1"), "groups[0].layers"),
    ("json", "[1]", "Expected `object`"),
    ("json", "[" * 100_000, "Expected `object`"),
]


@pytest.mark.parametrize(("suffix", "content", "words"), PROFILES, ids=range(len(PROFILES)))
def test_bad_profiles(
    suffix: str,
    content: str | bytes,
    words: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    path = tmp_path / f"mine.{suffix}"
    path.write_bytes(content if isinstance(content, bytes) else content.encode())
    told = said(monkeypatch, capsys, "corun", path, "zoo:googlenet")
    assert words in told
    assert str(path) in told


SOCS: list[tuple[str | bytes, str]] = [
    ("", "missing required field `name`"),
    (XAVIER[:400], "missing required field `units`"),
    (XAVIER.encode("utf-16"), "is not TOML"),
    ("colour = 1\n" + XAVIER, "unknown field `colour`"),
    (XAVIER.replace('name = "dla"', 'name = "gpu"', 1), "units: names a unit twice"),
    (XAVIER.replace(PEAK, ""), "peak_gb_per_second"),
    (XAVIER.replace(PEAK, "peak_gb_per_second = -1"), "peak_gb_per_second"),
    (XAVIER.replace(PEAK, "peak_gb_per_second = nan"), "peak_gb_per_second"),
    (XAVIER.replace(PEAK, "peak_gb_per_second = inf"), "peak_gb_per_second"),
    (XAVIER.replace(PEAK, 'peak_gb_per_second = "a"'), "peak_gb_per_second"),
    (XAVIER.replace(PEAK, "peak_gb_per_second = 500"), "peak_gb_per_second: is above nominal_gb_per_second"),
    (XAVIER.replace('default_contention = "light"', 'default_contention = "dark"'), "default_contention"),
]


@pytest.mark.parametrize(("content", "words"), SOCS, ids=range(len(SOCS)))
def test_bad_socs(
    content: str | bytes,
    words: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    path = tmp_path / "mine.toml"
    path.write_bytes(content if isinstance(content, bytes) else content.encode())
    told = said(monkeypatch, capsys, "corun", *TWICE, "--soc", path)
    assert words in told
    assert str(path) in told


@pytest.mark.parametrize(
    ("flag", "value", "words"),
    [
        ("--after", "2:2", "waits, directly or not, for itself"),
        ("--after", "2:3", "networks 1 to 2"),
        ("--after", "2-1", "as in 2:1"),
        ("--after", "", "as in 2:1"),
        ("--after", "2:1:1", "as in 2:1"),
        ("--after", "\uff12:1", "as in 2:1"),
        ("--iterations", "2:1.5", "as in 2:1"),
        ("--iterations", "2:999999", "groups to run"),
        ("--frames", "-3", "--frames"),
        ("--frames", "x", "--frames"),
        ("--frames", "1000000", "groups to run"),
        ("--in-flight", "x", "--in-flight"),
        ("--time-limit", "inf", "--time-limit"),
        ("--nodes", "-1", "--nodes"),
        ("--switches", "-1", "--switches"),
        ("--seed", "-1", "--seed"),
        ("--most-groups", "0", "--most-groups"),
        ("--contention", "LIGHT", "light, medium, heavy, none"),
        ("--objective", "makespan", "--objective"),
        ("--profile", "", "--profile"),
        ("--profile", "zoo:googlenet=", "--profile"),
        ("--profile", "x=y", "--profile"),
        ("--profile", "measured", "--soc local"),
        ("--pin", "0,1", "--pin"),
        ("--soc", "Xavier", "did you mean xavier-agx? "),
        ("-o", "/nonexistent/x.json", "its folder does not exist"),
    ],
)
def test_bad_flags(
    flag: str,
    value: str,
    words: str,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    assert words in said(monkeypatch, capsys, "corun", *TWICE, flag, value)


def test_flags_that_contradict_each_other(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    told = said(monkeypatch, capsys, "corun", *TWICE, "--switches", "0", "--frames", "2")
    assert "--switches: looks at one frame only" in told
    told = said(monkeypatch, capsys, "corun", *TWICE, "--profile", "synthetic", "--profile", "measured")
    assert "either synthetic or measured" in told


@cache
def schedule() -> str:
    return onchip_package.corun(list(TWICE)).to_json()


def sorted_keys() -> str:
    return json.dumps(json.loads(schedule()), sort_keys=True)


@pytest.mark.parametrize("verb", ["check", "report", "export", "run"])
def test_broken_schedules_are_known_for_what_they_are(
    verb: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    path, text = tmp_path / "s.json", schedule()
    more = ("--to", "order", "-o", tmp_path / "out.h") if verb == "export" else ()
    for content, words in (
        (text[:2000], "truncated"),
        (text[:-3], "truncated"),
        (text[:33], "truncated"),
        (sorted_keys()[:-40], "truncated"),
        (text + "x", "trailing characters"),
        (text.replace('"frames": 1,', '"frames": 1,,'), "malformed"),
        (text.replace('"epsilon_ms": 0.0', '"epsilon_ms": NaN'), "NaN"),
        (text.replace('"epsilon_ms": 0.0', '"epsilon_ms: 0.0'), "malformed"),
        (text.replace('"frames": 1,', '"frames": 1, "x": 1,'), "unknown field `x`"),
        (text.replace('"format": "onchip.schedule/1",', "", 1), "missing required field `format`"),
        (text.replace("schedule/1", "schedule/9", 1), "format: is 'onchip.schedule/9'"),
        ('{"format": "onchip.schedule/1", "soc": ' + "[" * 100_000, "soc"),
        (TEXT, "is a profile, where a plan or a schedule is expected"),
        (TEXT[:200], "is a profile, where a plan or a schedule is expected"),
        (text.encode("utf-16"), "neither JSON nor text"),
    ):
        path.write_bytes(content if isinstance(content, bytes) else content.encode())
        told = said(monkeypatch, capsys, verb, path, *more)
        assert words in told
        assert str(path) in told
    assert not (tmp_path / "out.h").exists()


def test_a_schedule_for_a_board_is_not_run_here(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "s.json"
    path.write_text(schedule())
    told = said(monkeypatch, capsys, "run", path)
    assert "is for gpu, dla of xavier-agx" in told
    assert "--soc local" in told


def test_kinds() -> None:
    for text, kind in (
        ('{"format": "onchip.plan/1"}', "plan"),
        ('{"format": "onchip.network/1"', "network"),
        ('\ufeff {"format": "onchip.schedule/1"}', "schedule"),
        ('{"format": "other/1"}', ""),
        ('{"format": 3}', ""),
        ('{"tensors": [], "operators": []}', "network"),
        ("{}", ""),
        ("{", ""),
        ("", ""),
        ("[]", ""),
    ):
        assert kind_of(text.encode()) == kind, text


def test_a_mark_at_the_beginning_of_a_file_is_none_of_its_content(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "p.json").write_text("\ufeff" + TEXT, "utf-8")
    (tmp_path / "p.csv").write_text("\ufeff" + HEAD + "a,1,2\n", "utf-8")
    (tmp_path / "s.toml").write_text("\ufeff" + XAVIER, "utf-8")
    made = onchip_package.corun([tmp_path / "p.json", tmp_path / "p.csv"], tmp_path / "s.toml")
    assert made.makespan_ms > 0
    (tmp_path / "s.json").write_text("\ufeff" + made.to_json(), "utf-8")
    monkeypatch.setattr(sys, "argv", ["onchip", "check", str(tmp_path / "s.json")])
    with pytest.raises(SystemExit) as stop:
        cli.main()
    assert not stop.value.code
    assert "legal" in capsys.readouterr().out


@pytest.mark.parametrize("given", [False, True])
def test_of_two_profiles_the_wrong_one_is_named(
    given: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    right, wrong = tmp_path / "right.json", tmp_path / "wrong.json"
    right.write_text(TEXT)
    wrong.write_text('{"format":"onchip.profile/1"}')
    models: tuple[str | Path, ...] = (right, wrong)
    args = ("a", "b", "--profile", f"a={right}", "--profile", f"b={wrong}") if given else models
    told = said(monkeypatch, capsys, "corun", *args)
    assert told == f"onchip: {wrong}: Object missing required field `network`\n"


@pytest.mark.thorough
def test_what_a_memory_can_do_is_taken(tmp_path: Path) -> None:
    """A little above the data sheet, synthetic profiles of every built-in network, and estimates."""
    path = tmp_path / "p.csv"
    path.write_text("group,gpu_ms,dla_ms,gpu_gb_per_second\na,1,0.1,143\n")
    for soc in builtin_socs():
        if soc.name == "local":
            continue
        for model in ("zoo:googlenet", "zoo:vgg19", "zoo:mobilenet_v2"):
            made = onchip_package.corun([model], soc, profile=("synthetic",), prove=False)
            wire = tmp_path / "synthetic.json"
            wire.write_text(profile_json(made.workload.jobs[0].profile))
            assert onchip_package.corun([wire], soc, prove=False).makespan_ms == made.makespan_ms
    assert onchip_package.corun([path]).workload.jobs[0].profile.groups[0].gb_per_second[0] == 143


@pytest.mark.thorough
def test_a_profile_of_another_board_is_said_to_be_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "p.json"
    path.write_bytes(profile(soc="orin-agx"))
    made = onchip_package.corun([path, "zoo:googlenet"])
    assert made.warnings == ("The profile of googlenet is of orin-agx, not of xavier-agx.",)
    assert made.warnings[0] in str(made).replace("\n", " ")
    for flags in ((), ("--json",)):
        monkeypatch.setattr(sys, "argv", ["onchip", "corun", str(path), "zoo:googlenet", *flags])
        with pytest.raises(SystemExit) as stop:
            cli.main()
        assert not stop.value.code
        told = capsys.readouterr()
        assert told.err == f"onchip: note: {made.warnings[0]}\n"
    data = json.loads(told.out)
    assert data["warnings"] == [*made.warnings]
    assert [net["profile"]["soc"] for net in data["networks"]] == ["orin-agx", "xavier-agx"]
    assert onchip_package.corun(["zoo:googlenet"]).warnings == ()


def test_a_disturbed_measurement_is_said_to_be_one(tmp_path: Path) -> None:
    """Where less than half of the rounds had the machine for themselves."""
    path = tmp_path / "p.json"
    for undisturbed, said_of in ((12, True), (60, False), (120, False)):
        path.write_bytes(profile(rounds=120, undisturbed=undisturbed))
        made = onchip_package.corun([path])
        assert profile_from_json(profile_json(made.workload.jobs[0].profile).encode(), "p").rounds == 120
        assert made.data()["networks"][0]["profile"]["undisturbed"] == undisturbed
        told = "The measurement of googlenet was disturbed by other processes: 12 of 120 rounds were not."
        assert made.warnings == ((told,) if said_of else ())
    with pytest.raises(onchip_package.ProfileError, match="undisturbed: is not from 0 to rounds"):
        profile_from_json(profile(rounds=1, undisturbed=2), "p")
