"""Curves and knees: the definition, on curves where it can be seen, and by brute force on random ones."""

from __future__ import annotations

from math import log
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from onchip.sweeps.curves import ALL, Spot, curves_of, knee_of


def spots(*pairs: tuple[int, int]) -> list[Spot]:
    return [Spot(budget, dram, True, i) for i, (budget, dram) in enumerate(pairs)]


def row(network: str, budget: int, dram: int | None, **more: Any) -> dict[str, Any]:
    return {
        "network": network,
        "chip": "c",
        "planner": "fuse",
        "budget_bytes": budget,
        "dram_bytes": dram,
        "status": "infeasible" if dram is None else "optimal",
        "compulsory_limit_bytes": 100,
        **more,
    }


def test_the_corner_of_an_elbow_is_its_knee() -> None:
    found = knee_of(spots((1, 1000), (2, 300), (4, 100), (8, 90), (16, 80)))
    assert found is not None
    assert found.budget == 4


def test_a_straight_line_and_a_curve_of_two_points_have_none() -> None:
    assert knee_of(spots((1, 1600), (2, 800), (4, 400), (8, 200))) is None
    assert knee_of(spots((1, 1600), (2, 100), (4, 100))) is None
    assert knee_of(spots((1, 100), (2, 100), (4, 100))) is None
    assert knee_of([]) is None


def test_a_long_flat_end_does_not_move_the_knee() -> None:
    bend = [(1, 1000), (2, 300), (4, 100), (8, 90), (16, 80)]
    assert knee_of(spots(*bend)) == knee_of(spots(*bend, (32, 80), (1 << 30, 80)))


def test_a_larger_buffer_that_moves_more_is_passed_over() -> None:
    bend = [(1, 1000), (2, 300), (4, 100), (8, 90), (16, 80)]
    found = knee_of(spots(*bend[:2], (3, 900), *bend[2:]))
    assert found is not None
    assert found.budget == 4


@given(st.dictionaries(st.integers(1, 1 << 20), st.integers(1, 1 << 30), min_size=1, max_size=12))
def test_no_point_lies_further_below_the_chord(curve: dict[int, int]) -> None:
    given = spots(*sorted(curve.items()))
    found = knee_of(given)
    least = min(given, key=lambda s: (s.dram, s.budget))
    first = given[0]
    if least.budget == first.budget:
        assert found is None
        return

    def height(s: Spot) -> float:
        """How far above the chord, on logarithmic axes."""
        part = log(s.budget / first.budget) / log(least.budget / first.budget)
        return log(s.dram) - (log(first.dram) + part * (log(least.dram) - log(first.dram)))

    between = [s for s in given if s.budget <= least.budget]
    lowest = min(height(s) for s in between)
    if found is None:
        assert lowest > -1e-6
    else:
        assert found in given
        assert height(found) <= lowest + 1e-6


def test_curves_have_their_named_points_and_those_without_a_plan() -> None:
    dram = {1: None, 2: 1000, 4: 300, 8: 104, 16: 101, 32: 100}
    (curve,) = curves_of([row("a", b, d) for b, d in dram.items()], (), 0.05)
    assert curve.series == ""
    assert curve.nothing == ((1, 0),)
    assert curve.first is not None
    assert curve.near is not None
    assert curve.least is not None
    assert (curve.first.budget, curve.near.budget, curve.least.budget) == (2, 8, 32)
    assert curve.data()["knee"] == {"budget_bytes": 8, "dram_bytes": 104}


def test_all_networks_together_are_summed_where_each_has_a_plan() -> None:
    rows = [row("a", b, 10 * b) for b in (1, 2, 4)] + [row("b", b, None if b == 1 else 7) for b in (1, 2, 4)]
    curves = curves_of(rows, (), 0.1)
    assert [curve.network for curve in curves] == ["a", "b", ALL]
    assert [(s.budget, s.dram) for s in curves[-1].spots] == [(2, 27), (4, 47)]
    assert curves[-1].limit == 200


def test_series_are_named_by_what_varies() -> None:
    rows = [row("a", b, 1, planner=p, **{"chip.array": "8x8"}) for b in (1, 2) for p in ("plan", "fuse")]
    assert [curve.series for curve in curves_of(rows, ("chip.array",), 0.1)] == ["plan", "fuse"]
