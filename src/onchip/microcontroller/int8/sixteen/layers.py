"""The operators that become layers of 16-bit numbers, and the function that reads each."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace

from onchip.microcontroller.int8.model import Concat, Layer, Pad, Resize
from onchip.microcontroller.int8.read_maps import concat, pack, pad, resize_nearest
from onchip.microcontroller.int8.read_site import Site
from onchip.microcontroller.int8.reduce import reduce
from onchip.microcontroller.int8.sixteen.elements import curve, leaky_relu, pair, quantize, relu
from onchip.microcontroller.int8.sixteen.pools import pool
from onchip.microcontroller.int8.sixteen.softmax import softmax
from onchip.microcontroller.int8.sixteen.sums import conv, depthwise, fully_connected, transpose_conv
from onchip.microcontroller.int8.sixteen.values import in_bytes

__all__ = ["LAYERS16"]


def _moved(read: Callable[[Site], Layer]) -> Callable[[Site], Layer]:
    """Return the reader of an operator that only moves bytes: of twice as many, as int8's layer."""

    def layer(site: Site) -> Layer:
        found = read(site)
        if isinstance(found, Pad):
            found = replace(found, channels=(2 * found.channels[0], 2 * found.channels[1]))
        if not isinstance(found, Pad | Concat | Resize):
            raise site.refuse("is not supported in INT16")
        shapes = tuple(in_bytes(shape) for shape in found.input_shapes)
        return replace(found, input_shapes=shapes, output_shape=in_bytes(found.output_shape))

    return layer


LAYERS16: Mapping[str, Callable[[Site], Layer]] = {
    "ADD": pair,
    "AVERAGE_POOL_2D": pool,
    "CONCATENATION": _moved(concat),
    "CONV_2D": conv,
    "DEPTHWISE_CONV_2D": depthwise,
    "FULLY_CONNECTED": fully_connected,
    "LEAKY_RELU": leaky_relu,
    "LOGISTIC": curve,
    "MAXIMUM": pair,
    "MAX_POOL_2D": pool,
    "MEAN": reduce,
    "MINIMUM": pair,
    "MUL": pair,
    "PACK": _moved(pack),
    "PAD": _moved(pad),
    "QUANTIZE": quantize,
    "RELU": relu,
    "RELU6": relu,
    "RESIZE_NEAREST_NEIGHBOR": _moved(resize_nearest),
    "SOFTMAX": softmax,
    "SUB": pair,
    "SUM": reduce,
    "TANH": curve,
    "TRANSPOSE_CONV": transpose_conv,
}
"""The reader of each kind of operator that reads or makes numbers of 16 bits."""
