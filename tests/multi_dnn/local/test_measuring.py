"""Profiles measured on this machine: complete, positive, and what the simulator and a file can take."""

from __future__ import annotations

import os

import pytest

from onchip.base.errors import ProfileError, UsageError
from onchip.machines.contention import NO_CONTENTION
from onchip.machines.soc import SoC, Unit
from onchip.multi_dnn.grouping import layer_groups
from onchip.multi_dnn.local.measuring import measure
from onchip.multi_dnn.profile_file import profile_from_json, profile_json
from onchip.multi_dnn.schedule import Schedule, Step
from onchip.multi_dnn.simulate import simulate
from onchip.multi_dnn.workload import Job, Workload
from onchip.readers import Source, load

PLAIN = SoC("local", (Unit("onnxruntime"), Unit("onnxruntime-plain")), 1.0, 1.0)

two_cores = pytest.mark.skipif(len(os.sched_getaffinity(0)) < 2, reason="needs two CPUs")


@pytest.fixture(scope="module")
def source() -> Source:
    return load("zoo:mobilenet_v2@33x40")


@two_cores
@pytest.mark.slow
def test_every_group_is_measured_on_every_unit(source: Source) -> None:
    told: list[str] = []
    profile = measure(source, PLAIN, most=4, rounds=2, progress=told.append)
    groups = layer_groups(source.network, most=4)
    assert not profile.synthetic
    assert profile.source.startswith("measured")
    assert [group.name for group in profile.groups] == [group.name for group in groups]
    assert all(0 < ms < 10_000 for group in profile.groups for ms in group.ms if ms is not None)
    assert all(ms is not None for group in profile.groups for ms in group.ms)
    assert len(told) == 4
    assert 0 <= profile.undisturbed <= profile.rounds == 2 * 4
    assert profile_from_json(profile_json(profile).encode(), "test") == profile
    workload = Workload(PLAIN, (Job("one", profile),), NO_CONTENTION)
    steps = tuple(Step(0, 0, n) for n in range(4))
    made = simulate(workload, Schedule((((0, 0, 0, 0),),), (steps, ())))
    assert made.makespan_ms == pytest.approx(profile.total_ms(0))


@two_cores
@pytest.mark.slow
def test_what_a_unit_lacks_is_measured_elsewhere(source: Source) -> None:
    soc = SoC("local", (PLAIN.units[0], Unit("onnxruntime-plain", unsupported=("gemm",))), 1.0, 1.0)
    profile = measure(source, soc, most=3, rounds=1)
    assert [group.ms[1] is None for group in profile.groups] == [False, False, True]
    assert all(group.ms[0] is not None for group in profile.groups)


def test_what_runs_nowhere_is_named(source: Source) -> None:
    soc = SoC("local", (Unit("onnxruntime", unsupported=("Gemm",)),), 1.0, 1.0)
    with pytest.raises(ProfileError, match=r"profile of mobilenet_v2@33x40: group .*: runs on no unit"):
        measure(source, soc)


@two_cores
def test_units_are_engines(source: Source) -> None:
    soc = SoC("local", (Unit("gpu"), Unit("onnxruntime")), 1.0, 1.0)
    with pytest.raises(UsageError, match="unit gpu: is no engine"):
        measure(source, soc)
