"""Profiles from readings: shortest times, transitions beyond the usual gap, and readings that are none."""

from __future__ import annotations

from dataclasses import replace
from math import nan

import pytest

from onchip.base.errors import ProfileError
from onchip.machines.contention import NO_CONTENTION
from onchip.machines.soc_file import load_soc
from onchip.multi_dnn.grouping import LayerGroup, layer_groups
from onchip.multi_dnn.measure import Span, measured_profile
from onchip.multi_dnn.schedule import Schedule, Step
from onchip.multi_dnn.simulate import simulate
from onchip.multi_dnn.workload import Job, Workload
from onchip.network import Network
from onchip.readers import load

LOCAL = load_soc("local")


def three() -> tuple[Network, tuple[LayerGroup, ...]]:
    network = load("zoo:resnet18").network
    return network, layer_groups(network, most=3)


def spans(*figures: float) -> list[Span]:
    """Groups from (gap, time) pairs, one after the other."""
    at, found = 0.0, []
    for gap, ms in zip(figures[::2], figures[1::2], strict=True):
        found.append((at + gap, at + gap + ms))
        at += gap + ms
    return found


def test_the_shortest_times_share_what_the_fastest_round_took() -> None:
    network, groups = three()
    rounds = [spans(0, 3.0, 0.5, 2.0, 0.5, 1.5), spans(0, 2.5, 1.0, 2.25, 0.5, 1.0)]
    profile = measured_profile(network, groups, LOCAL, {"onnxruntime": rounds, "openvino": rounds[:1]})
    # 2.5, 2 and 1 ms, half a millisecond after each: 6.5 ms but for the last gap; the faster round took 7.25.
    most = 7.25 / 6.5
    assert [g.ms for g in profile.groups] == [
        pytest.approx(row) for row in ((3.0 * most, 3.5), (2.5 * most, 2.5), (1.5 * most, 2.0))
    ]
    work = Workload(LOCAL, (Job("one", profile),), NO_CONTENTION)
    for unit, fastest in ((0, 7.25), (1, 7.5)):
        order: list[tuple[Step, ...]] = [(), ()]
        order[unit] = tuple(Step(0, 0, n) for n in range(3))
        made = simulate(work, Schedule((((unit,) * 3,),), tuple(order)))
        last_gap = 0.5 * (most if unit == 0 else 1)
        assert made.makespan_ms == pytest.approx(fastest + last_gap)
    assert not profile.synthetic
    assert profile.units == ("onnxruntime", "openvino")
    assert [layer for g in profile.groups for layer in g.layers] == [
        network.operators[op].name for op in network.order
    ]
    moved = 4 * (groups[0].activation_bytes + groups[0].weight_bytes)
    assert profile.groups[0].gb_per_second[0] == pytest.approx(moved / (3e-3 * most) / 1e9)


def test_a_transition_is_what_changing_takes_beyond_staying() -> None:
    network, groups = three()
    alone = {
        "onnxruntime": [spans(0, 3, 0.125, 2, 0.25, 1)],
        "openvino": [spans(0, 3, 0.25, 2, 0.125, 1)],
    }
    changing = [
        # The second group takes longer than alone, reading from the other unit's caches: part of the change.
        ((0, 1, 0), [spans(0, 3, 0.5, 2.5, 0.75, 1), spans(0, 3, 0.625, 2.5, 0.625, 1)]),
        ((1, 0, 1), [spans(0, 3, 0.0625, 2, 1, 1)]),
    ]
    profile = measured_profile(network, groups, LOCAL, alone, changing)
    assert profile.transition_ms(0, 0, 1) == pytest.approx(0.5 - 0.125 + 0.5)
    assert profile.transition_ms(1, 1, 0) == pytest.approx(0.625 - 0.125)
    assert profile.transition_ms(0, 1, 0) == 0  # quicker than staying: nothing is paid back
    assert profile.transition_ms(1, 0, 1) == pytest.approx(1 - 0.25)
    assert profile.groups[2].out_ms == (0, 0)


def test_the_simulator_gives_changing_runs_back() -> None:
    """A run that changes units takes, by profile, what it took, but for what follows the last group."""
    network, groups = three()
    alone = {
        "onnxruntime": [spans(0, 3, 0.125, 2, 0.25, 1)],
        "openvino": [spans(0, 2, 0.25, 4, 0.125, 2)],
    }
    run = spans(0, 3, 0.5, 4.25, 0.75, 1.125)
    profile = measured_profile(network, groups, LOCAL, alone, [((0, 1, 0), [run])])
    schedule = Schedule((((0, 1, 0),),), ((Step(0, 0, 0), Step(0, 0, 2)), (Step(0, 0, 1),)))
    made = simulate(Workload(LOCAL, (Job("one", profile),), NO_CONTENTION), schedule)
    assert made.makespan_ms == pytest.approx(run[-1][1] + (0.125 + 0.25) / 2)


def test_a_unit_that_was_not_measured_runs_nothing() -> None:
    network, groups = three()
    profile = measured_profile(network, groups, LOCAL, {"openvino": [spans(0, 3, 0, 2, 0, 1)]})
    assert [g.ms[0] for g in profile.groups] == [None] * 3
    assert {g.gb_per_second[0] for g in profile.groups} == {0.0}
    with pytest.raises(ProfileError, match="runs on no unit"):
        measured_profile(network, groups, LOCAL, {})


def test_a_group_that_a_unit_does_not_support_has_no_time_there() -> None:
    network, groups = three()
    soc = replace(LOCAL, units=(LOCAL.units[0], replace(LOCAL.units[1], unsupported=("gemm",))))
    rounds = [spans(0, 3, 0, 2, 0, 1)]
    profile = measured_profile(network, groups, soc, {"onnxruntime": rounds, "openvino": rounds})
    assert [g.ms[1] is None for g in profile.groups] == ["gemm" in g.types for g in groups]
    assert any("gemm" in g.types for g in groups)


@pytest.mark.parametrize(
    ("rounds", "reason"),
    [
        ([], "has no rounds"),
        ([spans(0, 1, 0, 1)], "has 2 figures for 3 groups"),
        ([spans(0, 1, 0, 1, 0, nan)], "is no time"),
        ([spans(0, 1, 0, 1, 0, 0)], "is no time"),
        ([spans(0, 1, -0.5, 1, 0, 1)], "is no time"),
    ],
)
def test_readings_that_are_none_are_refused(rounds: list[list[Span]], reason: str) -> None:
    network, groups = three()
    good = [spans(0, 1, 0, 1, 0, 1)]
    with pytest.raises(ProfileError, match=f"profile of resnet18: unit openvino: .*{reason}"):
        measured_profile(network, groups, LOCAL, {"onnxruntime": good, "openvino": rounds})
    with pytest.raises(ProfileError, match=f"a changing run: .*{reason}"):
        measured_profile(network, groups, LOCAL, {"openvino": good}, [((0, 1, 0), rounds)])


def test_units_must_be_the_socs() -> None:
    network, groups = three()
    good = [spans(0, 1, 0, 1, 0, 1)]
    with pytest.raises(ProfileError, match="gpu: is no unit of SoC local"):
        measured_profile(network, groups, LOCAL, {"gpu": good})
    for units in ((0, 1), (0, 1, 2)):
        with pytest.raises(ProfileError, match="a changing run: does not say which unit"):
            measured_profile(network, groups, LOCAL, {"openvino": good}, [(units, good)])
