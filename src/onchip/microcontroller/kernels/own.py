"""The kernels of layers that hold their own arithmetic, by the layer's type: a file for each."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from onchip.microcontroller.int8.lstm import Lstm
from onchip.microcontroller.int8.matmul import MatMul
from onchip.microcontroller.int8.model import Own
from onchip.microcontroller.int8.move import Move
from onchip.microcontroller.int8.reduce import Reduce
from onchip.microcontroller.int8.svdf import SvdfState, SvdfSum
from onchip.microcontroller.int8.transpose_conv import TransposeConv
from onchip.microcontroller.kernels.lstm import lstm_use
from onchip.microcontroller.kernels.matmul import matmul_use
from onchip.microcontroller.kernels.move import move_use
from onchip.microcontroller.kernels.own_use import OwnUse
from onchip.microcontroller.kernels.reduce import reduce_use
from onchip.microcontroller.kernels.svdf import svdf_state_use, svdf_sum_use
from onchip.microcontroller.kernels.transpose_conv import transpose_conv_use

__all__ = ["OWN"]

OWN: Mapping[type[Own], Callable[[Any], OwnUse]] = {
    Lstm: lstm_use,
    MatMul: matmul_use,
    Move: move_use,
    Reduce: reduce_use,
    SvdfState: svdf_state_use,
    SvdfSum: svdf_sum_use,
    TransposeConv: transpose_conv_use,
}
"""The maker of each kernel."""
