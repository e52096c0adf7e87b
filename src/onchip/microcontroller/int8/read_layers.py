"""The operators that become layers, and the function that reads each.

These functions refuse an operator whose operands change scale where none may: the interpreters would refuse
it, or would compute different results.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

from onchip.microcontroller.int8.log_softmax import log_softmax
from onchip.microcontroller.int8.lookup_two import lookup_two
from onchip.microcontroller.int8.matmul import matmul
from onchip.microcontroller.int8.model import Layer
from onchip.microcontroller.int8.read_elements import (
    add,
    hard_swish,
    logistic,
    maximum,
    minimum,
    mul,
    prelu,
    quantize,
    softmax,
    squared_difference,
    sub,
)
from onchip.microcontroller.int8.read_islands import ISLAND, ISLAND_OF_TWO
from onchip.microcontroller.int8.read_maps import (
    average_pool,
    concat,
    max_pool,
    mean,
    pack,
    pad,
    resize_bilinear,
    resize_nearest,
)
from onchip.microcontroller.int8.read_site import Site
from onchip.microcontroller.int8.read_sums import conv, depthwise, fully_connected
from onchip.microcontroller.int8.read_tables import TABLES, island, lookup
from onchip.microcontroller.int8.reduce import reduce
from onchip.microcontroller.int8.transpose_conv import transpose_conv

__all__ = ["LAYERS"]

LAYERS: Mapping[str, Callable[[Site], Layer]] = {
    "ADD": add,
    "BATCH_MATMUL": matmul,
    "AVERAGE_POOL_2D": average_pool,
    "CONCATENATION": concat,
    "CONV_2D": conv,
    "DEPTHWISE_CONV_2D": depthwise,
    "FULLY_CONNECTED": fully_connected,
    "HARD_SWISH": hard_swish,
    "LOGISTIC": logistic,
    "LOG_SOFTMAX": log_softmax,
    "MAXIMUM": maximum,
    "MAX_POOL_2D": max_pool,
    "MEAN": mean,
    "MINIMUM": minimum,
    "MUL": mul,
    "PACK": pack,
    "PAD": pad,
    "PADV2": pad,
    "PRELU": prelu,
    "QUANTIZE": quantize,
    "REDUCE_MAX": reduce,
    "REDUCE_MIN": reduce,
    "RESIZE_BILINEAR": resize_bilinear,
    "RESIZE_NEAREST_NEIGHBOR": resize_nearest,
    "SOFTMAX": softmax,
    "SQUARED_DIFFERENCE": squared_difference,
    "SUB": sub,
    "SUM": reduce,
    "TRANSPOSE_CONV": transpose_conv,
    **dict.fromkeys(TABLES, lookup),
    ISLAND: island,
    ISLAND_OF_TWO: lookup_two,
}
"""The reader of each kind of operator that computes."""
