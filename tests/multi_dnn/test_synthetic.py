"""Synthetic profiles: their totals are the paper's, their constants what the paper's data give."""

from __future__ import annotations

from dataclasses import replace
from functools import cache
from math import prod

import pytest

from onchip.base.errors import ChipError, ProfileError
from onchip.machines.contention import NO_CONTENTION
from onchip.machines.soc import SoC, Unit
from onchip.machines.soc_file import load_soc
from onchip.multi_dnn import synthetic
from onchip.multi_dnn.grouping import layer_groups
from onchip.multi_dnn.published import googlenet, standalone, table
from onchip.multi_dnn.synthetic import synthetic_profile
from onchip.multi_dnn.workload import Job, Workload
from onchip.network import Network
from onchip.readers import ReadOptions, load

SOCS = ("xavier-agx", "orin-agx", "snapdragon-865")


@cache
def zoo(name: str) -> Network:
    return load(f"zoo:{name}").network


@pytest.mark.parametrize("soc", SOCS)
@pytest.mark.parametrize("name", sorted(standalone("xavier-agx")))
def test_totals_are_those_that_were_measured(soc: str, name: str) -> None:
    totals = standalone(soc).get(name)
    profile = synthetic_profile(zoo(name), load_soc(soc))
    assert profile.synthetic
    assert "synthetic" in profile.source
    assert ("Table" in profile.source) == (totals is not None)
    for unit, ms in enumerate(totals or ()):
        assert profile.total_ms(unit) == pytest.approx(ms)
        assert all((group.ms[unit] is None) == (ms is None) for group in profile.groups)


@pytest.mark.parametrize("soc", SOCS)
@pytest.mark.parametrize("name", ["caffenet", "googlenet", "vgg16"])
def test_nothing_asks_for_more_than_its_unit_can_move(soc: str, name: str) -> None:
    described = load_soc(soc)
    profile = synthetic_profile(zoo(name), described, most=99)
    for group in profile.groups:
        for unit, asked in zip(described.units, group.gb_per_second, strict=True):
            assert 0 < asked <= (unit.gb_per_second or 0)
    Workload(described, (Job(name, profile),), NO_CONTENTION)


def test_more_groups_divide_the_same_total() -> None:
    network, soc = zoo("resnet18"), load_soc("orin-agx")
    few, many = (synthetic_profile(network, soc, most=most) for most in (3, 99))
    assert (len(few.groups), len(many.groups)) == (3, 10)
    for unit in (0, 1):
        assert few.total_ms(unit) == pytest.approx(many.total_ms(unit))
    assert many.groups[0].ms[0] != pytest.approx((few.total_ms(0) or 0) / 10)


def test_the_element_planned_at_changes_nothing() -> None:
    soc = load_soc("xavier-agx")
    one, two = (
        synthetic_profile(load("zoo:resnet18", ReadOptions(dtype=dtype)).network, soc)  # type: ignore[arg-type]
        for dtype in ("int8", "int16")
    )
    for mine, theirs in zip(one.groups, two.groups, strict=True):
        for key in ("ms", "gb_per_second", "out_ms", "in_ms"):
            assert getattr(mine, key) == pytest.approx(getattr(theirs, key), rel=1e-9)


def test_a_tensor_costs_out_where_it_leaves_and_in_where_it_arrives() -> None:
    network, soc = zoo("resnet18"), load_soc("xavier-agx")
    profile, groups = synthetic_profile(network, soc, most=5), layer_groups(network, most=5)
    gpu, dla = soc.units
    assert profile.groups[0].in_ms == (0.0, 0.0)
    assert profile.groups[-1].out_ms == (0.0, 0.0)
    assert profile.groups[1].layers == tuple(network.operators[op].name for op in groups[1].operators)
    assert profile.groups[1].output == network.tensors[groups[1].handed_on or 0].name
    size = 2 * groups[1].handed_bytes / 1e6
    assert profile.groups[1].out_ms[0] == pytest.approx(gpu.out_ms + size / (gpu.out_gb_per_second or 0))
    assert profile.groups[2].in_ms[1] == pytest.approx(dla.in_ms + size / (dla.in_gb_per_second or 0))
    assert profile.transition_ms(1, 0, 1) == profile.groups[1].out_ms[0] + profile.groups[2].in_ms[1]


def test_what_a_unit_does_not_support_runs_elsewhere() -> None:
    soc = load_soc("xavier-agx")
    gpu, dla = soc.units
    picky = replace(soc, units=(gpu, replace(dla, unsupported=("LRN",))))
    profile = synthetic_profile(zoo("caffenet"), picky)
    assert [g.ms[1] is None for g in profile.groups] == [n in (1, 3) for n in range(10)]
    assert all(g.gb_per_second[1] == 0 for g in profile.groups if g.ms[1] is None)
    nowhere = replace(soc, units=(replace(gpu, unsupported=("lrn",)), picky.units[1]))
    with pytest.raises(ProfileError, match="runs on no unit"):
        synthetic_profile(zoo("caffenet"), nowhere)


def test_without_a_roofline_there_is_no_profile() -> None:
    soc = SoC("own", (Unit("gpu", macs_per_second=1e12), Unit("npu")), 10.0, 9.0)
    with pytest.raises(ChipError, match=r"SoC own: units.gpu.gb_per_second: is not stated; .*--profile"):
        synthetic_profile(zoo("resnet18"), soc)


def test_on_a_soc_of_ones_own_it_is_the_bare_roofline() -> None:
    soc = SoC("own", (Unit("npu", macs_per_second=1e12, gb_per_second=5.0),), 10.0, 9.0)
    network = zoo("vgg16")
    profile = synthetic_profile(network, soc)
    assert "not scaled" in profile.source
    arithmetic = 1e3 * sum(op.work for op in network.operators) / 1e12
    memory = 2e3 * network.weight_bytes / 5e9
    assert max(arithmetic, memory) < (profile.total_ms(0) or 0) < arithmetic + memory + 20
    assert [g.out_ms for g in profile.groups] == [(0.0,)] * len(profile.groups)


# ------------------------------------------------------------------ where the constants come from


def test_traffic_is_that_of_table_2() -> None:
    """Mean requested bandwidth of GoogLeNet on the GPU, in the paper's groups and in ours."""

    def mean(groups: object) -> float:
        return sum((g.ms[0] or 0) * g.gb_per_second[0] for g in groups) / sum(g.ms[0] or 0 for g in groups)  # type: ignore[attr-defined]

    ours = synthetic_profile(zoo("googlenet"), load_soc("xavier-agx"))
    assert mean(ours.groups) == pytest.approx(mean(googlenet().groups), rel=0.01)


@pytest.mark.slow
@pytest.mark.parametrize("soc", SOCS)
def test_what_is_usual_is_the_mean_over_the_networks_with_totals(soc: str) -> None:
    units = load_soc(soc).units
    bare = SoC("bare", units, 1.0, 1.0)
    for unit, usual in enumerate(synthetic.SLOWER_THAN_ROOFLINE[soc]):
        factors = [
            ms[unit] / (synthetic_profile(zoo(name), bare).total_ms(unit) or 1)  # type: ignore[operator]
            for name, ms in standalone(soc).items()
            if ms[unit] is not None
        ]
        assert prod(factors) ** (1 / len(factors)) == pytest.approx(usual, rel=0.03)


BOUNDARIES = (
    "maxpool2", "inception3a.cat", "maxpool3", "inception4a.cat", "inception4b.cat", "inception4c.cat",
    "inception4d.cat", "maxpool4", "inception5a.cat", "fc",
)  # fmt: skip
"""Where Table 2's groups end, as far as their numbers of layers tell."""


@pytest.mark.parametrize(("column", "source"), [("gpu_to_dla_ms", 0), ("dla_to_gpu_ms", 1)])
def test_transitions_are_a_line_through_those_of_table_2(column: str, source: int) -> None:
    network, units = zoo("googlenet"), load_soc("xavier-agx").units
    written = {op.name: network.tensors[op.outputs[0]].bytes for op in network.operators}
    x = [2 * written[name] / 1e6 for name in BOUNDARIES]
    y = [float(row[column]) for row in table(2)]
    mean_x, mean_y = sum(x) / 10, sum(y) / 10
    slope = sum((a - mean_x) * (b - mean_y) for a, b in zip(x, y, strict=True))
    slope /= sum((a - mean_x) ** 2 for a in x)
    out, into = units[source], units[1 - source]
    assert out.out_ms + into.in_ms == pytest.approx(mean_y - slope * mean_x, rel=0.02)
    assert 1 / (out.out_gb_per_second or 0) + 1 / (into.in_gb_per_second or 0) == pytest.approx(
        slope, rel=0.02
    )
