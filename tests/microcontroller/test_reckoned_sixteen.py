"""By what the instructions of layers of 16-bit numbers are reckoned: what their kernels walk."""

from __future__ import annotations

import shutil
from functools import cache
from pathlib import Path

import numpy as np
import pytest

import onchip
from microcontroller.sixteen_networks import SIXTEEN, Net
from onchip.microcontroller.int8.model import Int8Model
from onchip.microcontroller.int8.read import model_of
from onchip.microcontroller.int8.sixteen.sums import Sums16, TransposeConv16
from onchip.microcontroller.kernels.sixteen.short_sums import is_short
from onchip.microcontroller.result.reckoned import features, kind_of, reckoned_instructions

needs_toolchain = pytest.mark.skipif(
    not all(shutil.which(tool) for tool in ("arm-none-eabi-gcc", "qemu-system-arm")),
    reason="needs gcc-arm-none-eabi and qemu-system-arm",
)


@cache
def model(name: str) -> Int8Model:
    n = Net(5)
    return model_of(n.file(*SIXTEEN[name](n)), name=name, where=name)


def windowed() -> Int8Model:
    """Windows that hang over the map and others, groups, strides, runs that are no whole fours."""
    n = Net(6)
    x = n.input((1, 7, 9, 6))
    y = n.conv(n.conv(x, 8, 3), 12, 3, 2, same=False)
    grouped = n.conv(x, 16, 3, groups=2)
    up = n.transpose_conv(n.transpose_conv(x, 8, 3, 2), 4, 2, 2)
    content = n.file(y, grouped, up, n.conv(x, 6, 1), n.depthwise(x, 3, 2))
    return model_of(content, name="windowed", where="windowed")


def taps_inside(layer: Sums16 | TransposeConv16) -> int:
    """Products that read a place of the map, counted one by one: windows of ones over a map of ones."""
    seen = np.ones(layer.input_shapes[0][1:3])
    total = 0
    _, down, across, deep = layer.weights.shape
    rows, columns = layer.output_shape[1:3]
    for ky in range(down):
        for kx in range(across):
            for y in range(rows):
                for x in range(columns):
                    if isinstance(layer, TransposeConv16):
                        (i, a), (j, b) = (
                            divmod(place + layer.before[axis] - tap, layer.stride[axis])
                            for axis, place, tap in ((0, y, ky), (1, x, kx))
                        )
                        whole = a == b == 0
                    else:
                        i = y * layer.stride[0] - layer.padding[0] + ky * layer.dilation[0]
                        j = x * layer.stride[1] - layer.padding[1] + kx * layer.dilation[1]
                        whole = True
                    total += whole and 0 <= i < seen.shape[0] and 0 <= j < seen.shape[1]
    return total * deep * len(layer.weights)


@pytest.mark.parametrize("network", [*map(model, SIXTEEN), windowed()], ids=lambda made: made.name)
def test_products_are_those_of_taps_inside_the_map(network: Int8Model) -> None:
    for layer in network.layers:
        if not isinstance(layer, Sums16 | TransposeConv16):
            continue
        if is_short(layer):
            fours, loads, left, runs, outputs, pixels = features(layer)
            assert fours == (taps_inside(layer) - left) // 4
            assert fours / 6 <= loads <= fours
            assert outputs >= pixels
            assert (runs == 0) == (layer.weights.shape[1:3] == (1, 1))
        else:
            products, outputs = features(layer)
            assert products == taps_inside(layer)
        assert outputs == pixels_of(layer) * len(layer.weights)


def pixels_of(layer: Sums16 | TransposeConv16) -> int:
    return layer.output_shape[1] * layer.output_shape[2]


def test_what_kernels_make_in_another_way_is_another_kind() -> None:
    kinds = {layer.name: kind_of(layer) for layer in windowed().layers}
    assert {kind for name, kind in kinds.items() if name.startswith("CONV")} == {"sums of 16"}
    assert {kind for name, kind in kinds.items() if name.startswith("TRANSPOSE")} == {"transposed of 16"}
    assert {kind for name, kind in kinds.items() if name.startswith("DEPTHWISE")} == {"sums of 16, long"}
    pairs = {kind_of(layer) for layer in model("pairs").layers}
    assert {"sum of 16", "sum of 16 and constants", "product of 16", "extreme of 16"} <= pairs
    curves = {kind_of(layer) for layer in model("curves").layers}
    assert {"sigmoid of 16", "tanh of 16", "bent line of 16", "line of 16"} <= curves
    assert "sums of 16, of 32 bits" in {kind_of(layer) for layer in model("sums of 32 bits").layers}


@needs_toolchain
@pytest.mark.thorough
def test_sums_of_16_bits_are_reckoned_within_a_tenth(tmp_path: Path) -> None:
    """A network that the numbers are not fitted to, counted on an emulated core."""
    n = Net(9)
    x = n.conv(n.input((1, 12, 20, 16)), 24, 3)
    y = n.conv(n.conv(x, 32, 3, 2, groups=2), 16, 1)
    path = tmp_path / "sums.tflite"
    path.write_bytes(n.file(n.transpose_conv(y, 8, 4, 2)))
    made = onchip.mcu(path, "nucleo-f446re", run=True, runs=1)
    about = reckoned_instructions(made.model, "cortex-m4")
    assert about is not None
    assert made.run is not None
    assert about == pytest.approx(made.run.total.instructions, rel=0.1)
