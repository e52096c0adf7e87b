"""Int8 layers: what shapes their parameters give, what they cost."""

from __future__ import annotations

import numpy as np
import pytest

from onchip.microcontroller.int8.model import AveragePool, Conv, Depthwise, Mean, Pad, frozen_array
from onchip.microcontroller.int8.shapes import macs, made_shape, window_count


def conv(channels: int = 6, groups: int = 1) -> Conv:
    return Conv(
        name="conv",
        inputs=(0,),
        output=1,
        input_shapes=((1, 7, 9, 4),),
        output_shape=(1, 4, 5, channels),
        weights=frozen_array(np.ones((channels, 3, 3, 4 // groups)), np.int8),
        bias=frozen_array(np.zeros(channels), np.int32),
        multiplier=frozen_array(np.full(channels, 1 << 30), np.int32),
        shift=frozen_array(np.zeros(channels), np.int32),
        input_offset=0,
        output_offset=0,
        low=-128,
        high=127,
        stride=(2, 2),
        padding=(1, 1, 1, 1),
        groups=groups,
    )


def test_a_convolution_makes_the_windows_that_fit() -> None:
    assert made_shape(conv()) == (1, 4, 5, 6)


@pytest.mark.parametrize(
    ("size", "kernel", "stride", "dilation", "around", "count"),
    [(5, 3, 1, 1, (0, 0), 3), (5, 3, 2, 1, (0, 1), 2), (5, 3, 1, 2, (0, 0), 1), (2, 3, 1, 1, (0, 0), 0)],
)
def test_windows_along_an_axis(
    size: int, kernel: int, stride: int, dilation: int, around: tuple[int, int], count: int
) -> None:
    assert window_count(size, kernel, stride, dilation, *around) == count


def test_groups_divide_the_multiply_accumulates() -> None:
    assert macs(conv()) == 4 * 5 * 6 * 9 * 4
    assert macs(conv(groups=2)) == macs(conv()) // 2


def test_a_depthwise_layer_has_one_kernel_a_channel() -> None:
    wide = conv()
    layer = Depthwise(
        **{k: getattr(wide, k) for k in ("name", "inputs", "output", "input_shapes", "shift", "bias")},
        **{k: getattr(wide, k) for k in ("multiplier", "input_offset", "output_offset", "low", "high")},
        output_shape=(1, 7, 9, 6),
        weights=frozen_array(np.ones((5, 3, 6)), np.int8),
        padding=(2, 1, 2, 1),
    )
    assert layer.kernel == (5, 3)
    assert made_shape(layer) == (1, 7, 9, 6)
    assert macs(layer) == 7 * 9 * 6 * 15


def test_pools_means_and_pads_know_their_shapes() -> None:
    head = {"name": "x", "inputs": (0,), "output": 1, "input_shapes": ((1, 6, 5, 8),)}
    pool = AveragePool(
        **head,  # type: ignore[arg-type]
        output_shape=(1, 3, 2, 8),
        kernel=(2, 2),
        stride=(2, 2),
        padding=(0, 0, 0, 0),
        low=-128,
        high=127,
    )
    mean = Mean(
        **head,  # type: ignore[arg-type]
        output_shape=(1, 6, 1, 8),
        axes=(2,),
        input_offset=0,
        multiplier=1 << 30,
        shift=0,
        output_offset=0,
    )
    pad = Pad(
        **head,  # type: ignore[arg-type]
        output_shape=(1, 8, 9, 9),
        padding=(1, 2, 1, 2),
        channels=(0, 1),
        value=3,
    )
    assert made_shape(pool) == pool.output_shape
    assert (made_shape(mean), mean.count) == (mean.output_shape, 5)
    assert made_shape(pad) == pad.output_shape


def test_weights_cannot_be_written_to() -> None:
    with pytest.raises(ValueError, match="read-only"):
        conv().weights[0] = 1
