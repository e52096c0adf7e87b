"""docs/simple-method.md shows what its script prints: planned and counted again, row by row."""

from __future__ import annotations

import subprocess
import sys
from functools import cache
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
sys.path[:0] = [str(ROOT / "benchmarks"), str(ROOT / "benchmarks" / "paper")]

from page_marks import marks  # noqa: E402
from simple_method_layers import rank_correlation, sizes_by_layer  # noqa: E402

SCRIPT = ROOT / "benchmarks" / "paper" / "simple_method.py"


@cache
def printed(section: str) -> str:
    command = [sys.executable, str(SCRIPT), "--only", section]
    return subprocess.run(command, capture_output=True, text=True, check=True).stdout.strip()


def hold(section: str) -> None:
    begin, end = marks(section)
    text = (ROOT / "docs" / "simple-method.md").read_text("utf-8")
    assert printed(section)
    assert text.split(begin, 1)[1].split(end, 1)[0].strip() == printed(section)


@pytest.mark.thorough
def test_claims() -> None:
    hold("claims")


@pytest.mark.thorough
def test_fig_1() -> None:
    hold("fig1")


@pytest.mark.thorough
def test_table_1() -> None:
    hold("table1")


@pytest.mark.thorough
def test_fig_9() -> None:
    hold("fig9")


@pytest.mark.thorough
def test_fig_10() -> None:
    hold("fig10")


@pytest.mark.thorough
def test_working_memory() -> None:
    hold("working")


def test_weights_grow_and_maps_shrink() -> None:
    """Figure 1, on both networks: by the ranks of the sizes of all layers."""
    assert rank_correlation([3, 5, 9]) == 1
    assert rank_correlation([9, 5, 3]) == -1
    assert rank_correlation([1, 2, 2, 1]) == 0
    for name, count in (("inception_v3", 95), ("resnet50", 54)):
        layers = sizes_by_layer(name)
        assert len(layers) == count
        assert rank_correlation([layer.weights for layer in layers]) > 0.5
        assert rank_correlation([layer.maps for layer in layers]) < -0.5
