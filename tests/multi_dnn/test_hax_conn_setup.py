"""Table 6 on the paper's set-up: its naive columns are met, and what is planned then is near its results."""

from __future__ import annotations

import sys
from pathlib import Path
from statistics import median

import pytest

ROOT = Path(__file__).resolve().parents[2]
sys.path += [str(ROOT / "benchmarks"), str(ROOT / "benchmarks" / "paper")]

from hax_conn_acceptance import BETTER  # noqa: E402
from hax_conn_cases import ORIN, WRONG, profile_of  # noqa: E402
from hax_conn_rivals import MOST, RIVALS, divided_rival, h2h_in_python, rivalled, surprise  # noqa: E402
from hax_conn_setup import ALL, SEVEN, on_setup, paper_naive, slower  # noqa: E402
from hax_conn_strength import (  # noqa: E402
    LEAST_PRINTED,
    connected_slower,
    gains_at,
    vgg19_at,
    vgg19_gaining,
)

from onchip.multi_dnn.baselines import h2h  # noqa: E402
from onchip.multi_dnn.published import experiments  # noqa: E402


@pytest.mark.parametrize("number", ALL)
def test_both_naive_columns_are_the_papers(number: int) -> None:
    one = on_setup(number, "light")
    printed = experiments()[number - 1].ms
    assert one.found.baseline("gpu alone") == pytest.approx(printed["gpu_only"], abs=0.005)
    assert one.found.baseline("whole networks") == pytest.approx(printed["split"], abs=0.005)


@pytest.mark.thorough
def test_the_median_gain_under_light_is_the_papers_within_two_points() -> None:
    rows = experiments()
    for numbers in (ALL, SEVEN):
        ours = median(on_setup(n, "light").gain for n in numbers)
        theirs = median(paper_naive(rows[n - 1]) for n in numbers)
        assert abs(ours - theirs) < 0.02
    assert median(abs(on_setup(n, "light").off) for n in ALL) < 0.05


@pytest.mark.thorough
@pytest.mark.parametrize("contention", ["light", "medium", "heavy"])
def test_nothing_planned_is_worse_than_a_baseline(contention: str) -> None:
    assert all(on_setup(n, contention).found.result.gain > -BETTER for n in ALL)
    assert not WRONG


def test_a_slower_unit_moves_the_same_bytes() -> None:
    profile = profile_of("vgg19", ORIN)
    other = slower(profile, (2.0, 0.5))
    for before, after in zip(profile.groups, other.groups, strict=True):
        for unit, factor in enumerate((2.0, 0.5)):
            assert after.ms[unit] == pytest.approx(factor * (before.ms[unit] or 0.0))
            moved = [(g.ms[unit] or 0.0) * g.gb_per_second[unit] for g in (before, after)]
            assert moved[0] == pytest.approx(moved[1])


def test_the_network_without_a_time_takes_what_the_others_leave() -> None:
    jobs = on_setup(5, "light").found.result.solution.timeline.workload.jobs
    others = sum(profile_of(name, "xavier-agx").total_ms(0) or 0.0 for name in ("googlenet", "resnet152"))
    assert jobs[2].profile.total_ms(0) == pytest.approx(experiments()[4].ms["gpu_only"] - others)


def test_herald_and_h2h_expect_less_than_comes_and_an_enforced_order_is_no_excuse() -> None:
    for who in RIVALS:
        one = rivalled(1, who)
        assert one.expected < min(one.enforced, one.first_come)
        assert one.enforced < experiments()[0].ms["gpu_only"]
    found = on_setup(1, "light").found
    assert max(surprise(b) for b in found.result.baselines if b.name == "H2H-like") > 0.05


@pytest.mark.thorough
def test_herald_is_slow_where_networks_are_cut_finely_and_h2h_is_not() -> None:
    gpu = experiments()[5].ms["gpu_only"]
    coarse, fine = (divided_rival(6, "Herald", most) for most in (10, MOST))
    assert fine.groups > coarse.groups
    assert fine.changes > coarse.changes
    assert fine.ms > max(gpu, coarse.ms)
    assert divided_rival(6, "H2H", MOST).ms < gpu


@pytest.mark.thorough
def test_h2h_by_its_lists_alone_is_as_slow_as_the_papers() -> None:
    for number in (2, 7):
        theirs = experiments()[number - 1].ms["h2h"]
        whole, lists = (divided_rival(number, who, MOST) for who in ("H2H", "H2H, lists alone"))
        assert abs(lists.ms / theirs - 1) < 0.1
        assert whole.ms < 0.9 * theirs


def test_h2h_in_python_finds_what_h2h_finds() -> None:
    workload = on_setup(2, "light").found.result.solution.timeline.workload
    assert h2h_in_python(workload) == h2h(workload)


@pytest.mark.thorough
def test_vgg19_gains_with_three_networks_where_its_connected_layers_are_slow_on_the_dla() -> None:
    profile = profile_of("vgg19", ORIN)
    changed = connected_slower(profile, 4)
    assert changed.total_ms(1) == pytest.approx(profile.total_ms(1))
    assert len(vgg19_gaining(changed)) == 3
    assert len(vgg19_gaining(profile)) > 3


@pytest.mark.thorough
def test_vgg19_gains_with_three_networks_where_contention_is_stronger() -> None:
    assert vgg19_at(1.7) == ["densenet121", "googlenet", "resnet101"]
    assert sum(gain >= LEAST_PRINTED for gain in gains_at(1.7).values()) == 31


def test_pictures_show_what_they_are_of(tmp_path: Path) -> None:
    pytest.importorskip("matplotlib")
    from hax_conn_drawn import DRAWN, draw

    page = (ROOT / "docs" / "hax-conn.md").read_text("utf-8")
    table = page.split("<!-- fig7: begin -->")[1].split("<!-- fig7: end -->")[0]
    for name, shown in {"fig1": "Case 3", "fig4": "L23", "fig7": "experiment 5"}.items():
        draw(name, table, tmp_path)
        assert shown in (tmp_path / f"hax-conn-{name}.svg").read_text("utf-8")
    draw("readings", "", tmp_path)
    assert len([*tmp_path.iterdir()]) == 3
    assert all(f"images/hax-conn-{name}.svg" in page for name in DRAWN)
    assert all((ROOT / "docs" / "images" / f"hax-conn-{name}.svg").is_file() for name in DRAWN)
