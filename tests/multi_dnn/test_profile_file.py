"""Profiles as files: JSON both ways, CSV from anyone's profiler, and one clear line for what is wrong."""

from __future__ import annotations

import json
from pathlib import Path
from random import Random

import pytest
from workloads import random_workload

from onchip.base.errors import OnchipError, ProfileError
from onchip.machines.soc_file import load_soc
from onchip.multi_dnn.profile import Group, Profile
from onchip.multi_dnn.profile_file import load_profile, profile_from_csv, profile_from_json, profile_json
from onchip.multi_dnn.published import googlenet
from onchip.multi_dnn.workload import Job, Workload

UNITS = ("gpu", "dla")


def test_json_both_ways() -> None:
    for profile in (
        googlenet(),
        *(job.profile for n in range(20) for job in random_workload(Random(n)).jobs),
    ):
        assert profile_from_json(profile_json(profile).encode(), "p.json") == profile


def read(text: str) -> Profile:
    return profile_from_csv(text.encode(), "p.csv", network="n", soc="s", units=UNITS)


def test_a_csv_with_times_alone_is_enough() -> None:
    profile = read("group,gpu_ms,dla_ms\nconv1,1.5,2\nsoftmax,0.1,\n")
    assert [group.ms for group in profile.groups] == [(1.5, 2.0), (0.1, None)]
    assert profile.groups[0].gb_per_second == (0.0, 0.0)
    assert profile.groups[1].runs_on(0)
    assert not profile.groups[1].runs_on(1)
    assert profile.total_ms(0) == pytest.approx(1.6)
    assert profile.total_ms(1) is None


def test_a_black_boxs_bandwidth_follows_from_the_memory_controllers_utilisation() -> None:
    """Counted 60 GB/s at 30 % utilisation: 20 % there are 40 GB/s."""
    head = "group,gpu_ms,dla_ms,gpu_gb_per_second,gpu_emc_percent,dla_emc_percent,dla_out_ms\n"
    profile = read(head + "a,1,3,60,30,20,0.5\nb,1,3,60,,,0\nc,1,3,60,30,0,0\nd,1,,60,30,20,0\n")
    assert [group.gb_per_second[1] for group in profile.groups] == pytest.approx([40, 20, 0, 0])
    assert profile.transition_ms(0, 1, 0) == 0.5
    assert profile.transition_ms(0, 0, 1) == 0.0


def test_a_profile_may_say_what_its_groups_are_made_of() -> None:
    profile = read("group,gpu_ms,dla_ms,layers,output\na,1,2,conv 1; relu;,t/0\nb,1,2,fc,\n")
    assert [(g.layers, g.output) for g in profile.groups] == [(("conv 1", "relu"), "t/0"), (("fc",), "")]
    assert profile_from_json(profile_json(profile).encode(), "p.json") == profile


def test_reading_from_files_by_their_suffix(tmp_path: Path) -> None:
    (tmp_path / "mine.csv").write_text("\ufeffgroup,gpu_ms,dla_ms\r\n conv ,1,2\r\n\r\n")
    profile = load_profile(tmp_path / "mine.csv", soc="xavier-agx", units=UNITS)
    assert (profile.network, profile.groups[0].name) == ("mine", "conv")
    (tmp_path / "mine.json").write_text(profile_json(profile))
    assert load_profile(tmp_path / "mine.json") == profile
    with pytest.raises(ProfileError, match="no such file"):
        load_profile(tmp_path / "other.csv")


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "is empty"),
        ("\x00", "p.csv"),
        ("group,gpu_ms\na,1\n", "dla_ms: column is missing"),
        ("gpu_ms,dla_ms\n1,1\n", "group: column is missing"),
        ("group,gpu_ms,dla_ms,npu_ms\na,1,1,1\n", "npu_ms: unknown column"),
        ("group,gpu_ms,dla_ms,gpu_ms\na,1,1,1\n", "gpu_ms: is there twice"),
        ("group,gpu_ms,dla_ms\n", "must have 1 to"),
        ("group,gpu_ms,dla_ms\na,1\n", "row 2: has 2 cells, not 3"),
        ("group,gpu_ms,dla_ms\na,one,1\n", "row 2, gpu_ms: 'one' is not a number"),
        ("group,gpu_ms,dla_ms\na,nan,1\n", "group a: ms on gpu is nan"),
        ("group,gpu_ms,dla_ms\na,inf,1\n", "group a: ms on gpu is inf"),
        ("group,gpu_ms,dla_ms\na,-1,1\n", "group a: ms on gpu is -1.0"),
        ("group,gpu_ms,dla_ms\na,0,1\n", "group a: takes no time on gpu"),
        ("group,gpu_ms,dla_ms\na,,\n", "group a: runs on no unit"),
        ("group,gpu_ms,dla_ms\na,1,1\na,1,1\n", "group a: is given twice"),
        ("group,gpu_ms,dla_ms,gpu_out_ms\na,1,1,nan\n", "group a: out_ms on gpu is nan"),
        ("group,gpu_ms,dla_ms,gpu_gb_per_second\na,1,1,-3\n", "group a: gb_per_second on gpu is -3.0"),
        ("group,gpu_ms,dla_ms,gpu_emc_percent\na,1,1,nan\n", "group a: emc_percent on gpu is nan"),
        ('group,gpu_ms,dla_ms\n"a,1,1\n', "is no CSV"),
    ],
)
def test_a_csv_that_is_no_profile_is_refused_in_one_line(text: str, message: str) -> None:
    with pytest.raises(ProfileError) as caught:
        read(text)
    assert str(caught.value).startswith("p.csv: ")
    assert message in str(caught.value)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    ("key", "value", "message"),
    [
        ("format", "onchip.plan/1", "format: is 'onchip.plan/1'"),
        ("units", [], "units"),
        ("units", ["gpu", "gpu"], "must name its units, each once"),
        ("units", ["gpu", "dla", "npu"], "has no ms for unit npu"),
        ("units", ["gpu"], "names an unknown unit 'dla'"),
        ("groups", 7, "groups"),
        ("speed", 7, "unknown field `speed`"),
        ("network", None, "network"),
    ],
)
def test_json_that_is_no_profile_is_refused_in_one_line(key: str, value: object, message: str) -> None:
    document = json.loads(profile_json(googlenet())) | {key: value}
    with pytest.raises(ProfileError) as caught:
        profile_from_json(json.dumps(document).encode(), "p.json")
    assert str(caught.value).startswith("p.json: ")
    assert message in str(caught.value)


@pytest.mark.parametrize("content", [b"", b"[1]", b"\xff\xfe", b"[" * 10**5, b'{"ms": NaN}'])
def test_bytes_that_are_no_profile_are_refused(content: bytes) -> None:
    for read in (
        lambda: profile_from_json(content, "p"),
        lambda: profile_from_csv(content, "p", network="n", soc="s", units=UNITS),
    ):
        with pytest.raises(ProfileError):
            read()


# -- what is to run together -------------------------------------------------------------------------------


def group(name: str, units: int) -> Group:
    return Group(name, (1.0,) * units, (0.0,) * units, (0.0,) * units, (0.0,) * units)


@pytest.mark.parametrize(
    ("jobs", "frames", "message"),
    [
        ((), 1, "has no networks"),
        ((Job("x", googlenet()),), 0, "frames: must be at least 1"),
        ((Job("x", googlenet()), Job("x", googlenet())), 1, "network x: is given twice"),
        ((Job("x", googlenet(), 0),), 1, "network x: must run at least once"),
        ((Job("x", googlenet(), after=("y",)),), 1, "network x: is after an unknown network 'y'"),
        ((Job("x", googlenet(), after=("x",)),), 1, "network x: waits, directly or not, for itself"),
        (
            (Job("x", googlenet(), after=("y",)), Job("y", googlenet(), after=("x",))),
            1,
            "network x: waits, directly or not, for itself",
        ),
        ((Job("x", Profile("n", "s", ("gpu",), (group("a", 1),))),), 1, "its profile is for units gpu"),
        ((Job("x", googlenet()),), 10**6, "has 10,000,000 groups to run"),
    ],
)
def test_what_cannot_run_together_is_refused(jobs: tuple[Job, ...], frames: int, message: str) -> None:
    soc = load_soc("xavier-agx")
    with pytest.raises(OnchipError) as caught:
        Workload(soc, jobs, soc.model(), frames)
    assert message in str(caught.value)


def test_rows_of_the_wrong_length_are_no_group() -> None:
    with pytest.raises(ProfileError, match="group a: has 1 figures of ms for 2 units"):
        Profile("n", "s", UNITS, (group("a", 1),))
