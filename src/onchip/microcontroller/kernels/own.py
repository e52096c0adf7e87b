"""The kernels of layers that hold their own arithmetic, by the layer's type: a file for each."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from onchip.microcontroller.int8.log_softmax import LogSoftmax
from onchip.microcontroller.int8.lookup_two import LookupTwo
from onchip.microcontroller.int8.lstm import Lstm
from onchip.microcontroller.int8.matmul import MatMul
from onchip.microcontroller.int8.model import Own
from onchip.microcontroller.int8.move import Move
from onchip.microcontroller.int8.reduce import Reduce
from onchip.microcontroller.int8.sixteen.elements import Curve16, Linear16, Pair16
from onchip.microcontroller.int8.sixteen.pools import Pool16
from onchip.microcontroller.int8.sixteen.softmax import Softmax16, SoftmaxTo16
from onchip.microcontroller.int8.sixteen.sums import Sums16, TransposeConv16
from onchip.microcontroller.int8.svdf import SvdfState, SvdfSum
from onchip.microcontroller.int8.transpose_conv import TransposeConv
from onchip.microcontroller.kernels.log_softmax import log_softmax_use
from onchip.microcontroller.kernels.lookup_two import lookup_two_use
from onchip.microcontroller.kernels.lstm import lstm_use
from onchip.microcontroller.kernels.matmul import matmul_use
from onchip.microcontroller.kernels.move import move_use
from onchip.microcontroller.kernels.own_use import OwnUse
from onchip.microcontroller.kernels.reduce import reduce_use
from onchip.microcontroller.kernels.sixteen.elements import curve16_use, linear16_use
from onchip.microcontroller.kernels.sixteen.pairs import pair16_use
from onchip.microcontroller.kernels.sixteen.pools import pool16_use
from onchip.microcontroller.kernels.sixteen.softmax import softmax16_use, softmax_to16_use
from onchip.microcontroller.kernels.sixteen.sums import sums16_use
from onchip.microcontroller.kernels.svdf import svdf_state_use, svdf_sum_use
from onchip.microcontroller.kernels.transpose_conv import transpose_conv_use

__all__ = ["OWN"]

OWN: Mapping[type[Own], Callable[[Any], OwnUse]] = {
    Curve16: curve16_use,
    Linear16: linear16_use,
    LogSoftmax: log_softmax_use,
    LookupTwo: lookup_two_use,
    Lstm: lstm_use,
    MatMul: matmul_use,
    Move: move_use,
    Pair16: pair16_use,
    Pool16: pool16_use,
    Reduce: reduce_use,
    Softmax16: softmax16_use,
    SoftmaxTo16: softmax_to16_use,
    Sums16: sums16_use,
    SvdfState: svdf_state_use,
    SvdfSum: svdf_sum_use,
    TransposeConv: transpose_conv_use,
    TransposeConv16: sums16_use,
}
"""The maker of each kernel."""
