"""The three-region model: its regions by hand, what any such model must satisfy, and fitting it back."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from onchip.machines.contention import LEAST_SPEED, NO_CONTENTION, Contention, ThreeRegions
from onchip.machines.soc_file import load_soc

LIGHT = load_soc("xavier-agx").contention["light"]["gpu"]  # 39.7 65.7 2.9 75.0 43.7 0.40


@pytest.mark.parametrize(
    ("asked", "external", "loss"),
    [
        (20.0, 0.0, 0.0),
        (20.0, 127.5, 2.9),  # minor: at most MRMC, at the memory's peak
        (20.0, 25.5, 0.58),
        (50.0, 20.0, 2.9 * 20 / 127.5),  # normal, and 70 GB/s together are below TBWDC
        (50.0, 40.0, 2.9 * 40 / 127.5 + 0.4 * (90 - 75)),
        (50.0, 60.0, 2.9 * 60 / 127.5 + 0.4 * (50 + 43.7 - 75)),  # CBP caps what comes from outside
        (70.0, 0.001, 2.9 * 0.001 / 127.5 + 0.4 * 0.001),
        (90.0, 10.0, 2.9 * 10 / 127.5 + 0.4 * 10),  # intensive: from the first byte on
        (90.0, 99.0, 2.9 * 99 / 127.5 + 0.4 * 43.7),
        (39.7, 60.0, 2.9 * 60 / 127.5 + 0.4 * (39.7 + 43.7 - 75)),  # a region begins at its bound
        (65.7, 10.0, 2.9 * 10 / 127.5 + 0.4 * 10),
    ],
)
def test_the_regions_by_hand(asked: float, external: float, loss: float) -> None:
    assert LIGHT.speed(asked, external, 127.5) == pytest.approx(100 - loss)
    model = ThreeRegions((LIGHT,), 127.5)
    assert model.slowdown(0, asked, external) == pytest.approx(100 / (100 - loss))


def test_beyond_tbwdc_a_group_in_the_normal_region_loses_only_to_the_others() -> None:
    heavy = load_soc("xavier-agx").contention["heavy"]["gpu"]  # 38.1 96.2 4.9 82.8 46.6 1.11
    assert heavy.speed(90.0, 0.0, 127.5) == 100
    assert heavy.speed(90.0, 10.0, 127.5) == pytest.approx(100 - 4.9 * 10 / 127.5 - 1.11 * 10)


bandwidths = st.floats(0, 300)
constants = st.builds(
    Contention,
    st.floats(0, 50), st.floats(50, 150), st.floats(0, 20), st.floats(0, 200), st.floats(0, 150),
    st.floats(0, 3),
)  # fmt: skip


@given(constants, bandwidths, bandwidths, bandwidths)
def test_more_traffic_never_speeds_anyone_up(
    c: Contention, asked: float, more: float, external: float
) -> None:
    model = ThreeRegions((c,), 150.0)
    slower, slow = model.slowdown(0, asked, external + more), model.slowdown(0, asked, external)
    assert 1 <= slow <= slower * (1 + 1e-12) <= 100 / LEAST_SPEED * (1 + 1e-9)
    assert model.slowdown(0, asked, 0.0) == 1 == NO_CONTENTION.slowdown(0, asked, external)


@given(constants, bandwidths, bandwidths, st.floats(0.1, 10))
def test_scaling_the_memory_scales_the_bandwidths(
    c: Contention, asked: float, y: float, factor: float
) -> None:
    if min(abs(asked - c.normal_bw), abs(asked - c.intensive_bw)) > 1e-6:
        scaled = c.scaled(factor).speed(asked * factor, y * factor, 150 * factor)
        assert scaled == pytest.approx(c.speed(asked, y, 150.0))
