"""The law of SRAMs: as far from CACTI's answers as it says, refused where it does not hold; in a sweep."""

from __future__ import annotations

import csv
import json
import sys
from itertools import pairwise
from pathlib import Path
from typing import get_args

import pytest

import onchip
from onchip import cli
from onchip.base.errors import UsageError
from onchip.machines.sram import Dram, Power, dram_picojoules_per_byte, law, sram_of
from onchip.sweeps.spec import parse_spec
from onchip.sweeps.sram_columns import SRAM_COLUMNS, SramAsked, priced

POINTS = Path(__file__).resolve().parents[1] / "benchmarks" / "sram_points.csv"


def distances(power: Power, figure: str) -> list[float]:
    """How far the law is from each answer of CACTI, as a share of it."""
    with POINTS.open(encoding="utf-8", newline="") as file:
        points = [{key: float(value) for key, value in row.items()} for row in csv.DictReader(file)]
    assert len(points) > 50
    found = []
    for point in points:
        answer = point["mm2"] if figure == "mm2" else point[figure] / point["width_bytes"]
        found.append(abs(power.at(point["kib"], point["width_bytes"], point["nm"]) / answer - 1))
    return found


@pytest.mark.parametrize(("power", "figure"), [("area", "mm2"), ("read", "read_pj"), ("write", "write_pj")])
def test_the_law_is_as_far_from_cacti_as_it_says(power: str, figure: str) -> None:
    fitted: Power = getattr(law(), power)
    away = distances(fitted, figure)
    assert fitted.mean_error == pytest.approx(sum(away) / len(away), rel=0.01)
    assert fitted.most_error == pytest.approx(max(away), rel=0.01)


def test_a_larger_sram_is_larger_and_costs_more_a_byte() -> None:
    sizes = [4096 << n for n in range(14)]
    found = [sram_of(size, nm=28) for size in sizes]
    for small, large in pairwise(found):
        assert 1.5 < large.mm2 / small.mm2 < 2.5
        assert large.read_picojoules_per_byte > small.read_picojoules_per_byte
        assert large.write_picojoules_per_byte > small.write_picojoules_per_byte
    assert sram_of(1 << 20, nm=22).mm2 < sram_of(1 << 20, nm=45).mm2
    least = found[0]
    mean = (least.read_picojoules_per_byte + least.write_picojoules_per_byte) / 2
    assert least.picojoules_per_byte == mean
    assert all(dram_picojoules_per_byte(kind) > found[-1].picojoules_per_byte / 10 for kind in get_args(Dram))
    assert get_args(Dram) == tuple(dict(law().dram))


@pytest.mark.parametrize(
    ("size", "options", "reason"),
    [
        (4095, {}, "from 4 to 32,768"),
        ((32 << 20) + 1024, {}, "from 4 to 32,768"),
        (65536, {"nm": 7}, "from 22 to 90"),
        (65536, {"width": 64}, "from 8 to 32"),
    ],
)
def test_where_the_law_does_not_hold_it_is_refused(size: int, options: dict[str, int], reason: str) -> None:
    with pytest.raises(UsageError, match=reason):
        sram_of(size, **options)


SPEC = {"networks": ["zoo:squeezenet1_0"], "budgets": ["64KiB"]}


@pytest.mark.parametrize(
    ("section", "item", "reason"),
    [
        ("x", "sram", "table"),
        ({"node": 22}, "sram.node", "unknown key; known: nm, width, dram"),
        ({"nm": "22"}, "sram.nm", "number"),
        ({"nm": 5}, "sram.nm", "from 22 to 90"),
        ({"width": 8.5}, "sram.width", "number"),
        ({"width": 4}, "sram.width", "from 8 to 32"),
        ({"dram": 4}, "sram.dram", "text"),
        ({"dram": "ddr9"}, "sram.dram", "'ddr9' is not one of lpddr4"),
    ],
)
def test_a_wrong_table_is_refused_by_key(section: object, item: str, reason: str) -> None:
    with pytest.raises(UsageError) as caught:
        parse_spec({**SPEC, "sram": section}, "s.toml")
    assert str(caught.value).startswith(f"s.toml: {item}: ")
    assert reason in str(caught.value)


def test_the_columns_follow_from_the_buffer_and_what_crosses() -> None:
    asked = SramAsked(28, 16, "ddr3")
    row = priced(asked, {"budget_bytes": 65536, "dram_bytes": 10**6})
    assert row["sram_mm2"] == pytest.approx(sram_of(65536, nm=28).mm2, rel=1e-3)
    assert row["dram_picojoules_per_byte"] == 560
    assert row["dram_millijoules"] == pytest.approx(0.56)
    outside = priced(asked, {"budget_bytes": 100, "dram_bytes": None})
    assert {key for key in SRAM_COLUMNS if outside[key] is None} == {*SRAM_COLUMNS} - {
        "dram_picojoules_per_byte"
    }
    assert priced(None, {"a": 1}) == {"a": 1}


def test_a_sweep_has_the_columns_in_its_table_its_page_and_its_curves(tmp_path: Path) -> None:
    spec = {
        "networks": ["zoo:squeezenet1_0@64x64"],
        "chips": ["optimus"],
        "planners": ["fuse"],
        "budgets": ["32KiB", "64KiB", "128KiB", "256KiB"],
        "sram": {"nm": 45},
    }
    made = onchip.sweep(spec, tmp_path, jobs=1)
    assert made.complete
    assert [row["sram_mm2"] for row in made.rows] == sorted({row["sram_mm2"] for row in made.rows})
    assert made.columns[-4:] == SRAM_COLUMNS
    assert "sram_mm2" in (tmp_path / "table.csv").read_text().splitlines()[0]
    assert "45 nm, one bank" in made.html()
    (curve,) = made.curves
    assert curve.knee is not None
    assert f"{sram_of(curve.knee.budget, nm=45).mm2:.3g}" in str(made)


def test_the_command(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    def command(*words: str) -> int:
        monkeypatch.setattr(sys, "argv", ["onchip", "sram", *words])
        with pytest.raises(SystemExit) as stop:
            cli.main()
        return int(stop.value.code or 0)

    assert command("64KiB", "1MiB", "--nm", "45", "--json") == 0
    data = json.loads(capsys.readouterr().out)
    assert [row["bytes"] for row in data["rows"]] == [65536, 1 << 20]
    assert data["rows"][1]["mm2"] == sram_of(1 << 20, nm=45).mm2
    assert data["law"]["area"]["most_error"] == law().area.most_error
    assert command("64KiB") == 0
    assert f"{law().area.mean_error:.0%} on average" in " ".join(capsys.readouterr().out.split())
    assert command("1KiB") == 2
    assert capsys.readouterr().err.count("\n") == 1
