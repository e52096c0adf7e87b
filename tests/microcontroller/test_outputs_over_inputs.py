"""Plans whose output begins behind its input's first byte, or lies in a hole of the distances, as C."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from native import differences, needs_compiler, outputs_of

from onchip.check import check
from onchip.microcontroller.int8.read import model_of
from onchip.microcontroller.made import Builder
from onchip.microcontroller.made.builder import Map
from onchip.microcontroller.network import network_of
from onchip.microcontroller.segments import SegmentOptions, plan
from onchip.plans import Alloc

Net = Callable[[Builder], Map]

BELOW: dict[str, Net] = {
    "windows of three rows, every second column": lambda b: b.conv(b.input((1, 4, 3, 6)), 2, (3, 1), (1, 2)),
    "windows of two columns, every third": lambda b: b.conv(b.input((1, 2, 5, 4)), 1, (3, 2), (1, 3)),
    "every second pixel": lambda b: b.conv(b.input((1, 6, 6, 4)), 3, 1, 2, padding="VALID"),
    "every second pixel, into more bytes": lambda b: b.conv(b.input((1, 5, 5, 2)), 7, 1, 2),
    "windows of two, every third": lambda b: b.conv(b.input((1, 9, 9, 4)), 4, 2, 3, padding="VALID"),
    "a layer behind it": lambda b: b.conv(b.conv(b.input((1, 9, 9, 4)), 8, 1, 2), 6, 2, 3, padding="VALID"),
    "a layer behind it, in place": lambda b: b.conv(b.conv(b.input((1, 4, 3, 6)), 2, (3, 1), (1, 2)), 4),
}
"""Layers that skip pixels: the fewest bytes are taken at an address behind the input's first byte."""

BANDS: dict[str, Net] = {
    "then element by element": lambda b: b.hard_swish(b.conv(b.input((1, 4, 5, 4)), 4, (3, 1))),
    "then pixel by pixel": lambda b: b.conv(b.conv(b.input((1, 4, 6, 4)), 4, (3, 1)), 4),
}
"""A column of the whole map is read before any of it is written: in place, in one band."""


def made(net: Net, seed: int) -> tuple[bytes, str]:
    b = Builder(seed)
    return b.file(net(b)), f"seed {seed}"


@pytest.mark.thorough
@needs_compiler
@pytest.mark.parametrize("name", BELOW)
def test_an_output_may_begin_behind_its_input(name: str, tmp_path: Path) -> None:
    content, where = made(BELOW[name], seed=3)
    model = model_of(content, name="net", where=where)
    network = network_of(model)
    planned = plan(network, 1 << 20)
    assert check(planned) == planned.result
    assert any(step.by < 0 for step in planned.program if isinstance(step, Alloc) and step.over is not None)
    assert differences(*outputs_of(planned, model, tmp_path / "net")) == 0


@needs_compiler
@pytest.mark.parametrize("name", BANDS)
def test_a_band_as_high_as_the_map_lies_over_its_input(name: str, tmp_path: Path) -> None:
    content, where = made(BANDS[name], seed=3)
    model = model_of(content, name="net", where=where)
    network = network_of(model)
    planned = plan(network, 1 << 20, SegmentOptions(objective="least"))
    assert check(planned) == planned.result
    assert planned.result.extent_bytes < plan(network, 1 << 20).result.extent_bytes
    assert any(stage.rows == 4 for group in planned.groups for stage in group.tiling.stages)
    assert differences(*outputs_of(planned, model, tmp_path / "net")) == 0
