"""Fitting the contention model: what a model would have measured gives that model's speeds back."""

from __future__ import annotations

from pathlib import Path
from random import Random

import pytest

from onchip.base.errors import ProfileError
from onchip.machines.contention import Contention
from onchip.machines.soc_file import load_soc
from onchip.papers.hax_conn.fit import Sample, fit_contention, read_matrix

XAVIER = load_soc("xavier-agx")
LEVELS = [5.0 + 7.5 * n for n in range(16)]


def measured(constants: Contention, noise: float = 0.0) -> list[Sample]:
    rng = Random(7)
    return [
        Sample(x, y, constants.speed(x, y, 127.5) + rng.uniform(-noise, noise))
        for x in LEVELS
        for y in [0.0, *LEVELS]
    ]


@pytest.mark.parametrize("unit", ["gpu", "dla"])
@pytest.mark.parametrize("name", ["light", "medium", "heavy"])
def test_measurements_of_a_known_unit_give_its_speeds_back(name: str, unit: str) -> None:
    constants = XAVIER.contention[name][unit]
    fit = fit_contention(measured(constants), 127.5)
    assert fit.rms < 0.2  # percent of speed; the losses reach 50
    assert fit.constants.rate == pytest.approx(constants.rate, rel=0.05)
    assert fit.constants.mrmc == pytest.approx(constants.mrmc, abs=0.5)


def test_noise_is_averaged_out() -> None:
    constants = XAVIER.contention["heavy"]["gpu"]
    fit = fit_contention(measured(constants, noise=3.0), 127.5)
    clean = [fit.constants.speed(s.requested, s.external, 127.5) - s.percent for s in measured(constants)]
    assert 1.5 < fit.rms < 2.0  # that of noise within 3 % either way is 1.73
    assert (sum(error * error for error in clean) / len(clean)) ** 0.5 < 0.6


def test_no_contention_is_fitted_as_none() -> None:
    fit = fit_contention([Sample(x, y, 100.0) for x in LEVELS for y in LEVELS], 127.5)
    assert fit.rms == pytest.approx(0)
    assert fit.constants.speed(60.0, 60.0, 127.5) == pytest.approx(100)


def test_six_constants_need_six_measurements() -> None:
    with pytest.raises(ProfileError, match="5 measurements are too few"):
        fit_contention([Sample(1, 1, 100)] * 5, 127.5)
    with pytest.raises(ProfileError, match="more than 10,000"):
        fit_contention([Sample(1, 1, 100)] * 10_001, 127.5)


@pytest.mark.thorough
def test_many_levels_are_thinned_out() -> None:
    constants = XAVIER.contention["light"]["gpu"]
    rng = Random(3)
    pairs = [(rng.uniform(0, 120), rng.uniform(0, 120)) for _ in range(80)]
    fit = fit_contention([Sample(x, y, constants.speed(x, y, 127.5)) for x, y in pairs], 127.5)
    assert fit.rms < 1.0


def test_a_matrix_is_read_by_rows_of_requested_bandwidth(tmp_path: Path) -> None:
    path = tmp_path / "m.csv"
    path.write_text("GB/s,10,20\n30,99,\n60,90.5,80\n")
    assert read_matrix(path) == (Sample(30, 10, 99), Sample(60, 10, 90.5), Sample(60, 20, 80))


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "must have a row of external bandwidths"),
        ("x,1\n", "must have a row of external bandwidths"),
        ("x,a\n1,1\n", "row 1, column 2: 'a' is not a number"),
        ("x,1\n-1,1\n", "row 2, column 1: '-1' is not a number from 0"),
        ("x,1\n1,nan\n", "row 2, column 2: 'nan' is not a number"),
        ("x,1\n1,200\n", "row 2, column 2: '200' is not a number from 0 to 150"),
        ("x,1\n1,1,1\n", "row 2: has 3 cells, not 2"),
        ('x,1\n"1,1\n', "is no CSV"),
    ],
)
def test_a_file_that_is_no_matrix_is_refused_in_one_line(tmp_path: Path, text: str, message: str) -> None:
    path = tmp_path / "m.csv"
    path.write_text(text)
    with pytest.raises(ProfileError) as caught:
        read_matrix(path)
    assert str(path) in str(caught.value)
    assert message in str(caught.value)
