"""Small networks of operators that move bytes, look them up, multiply matrices, or keep some for later."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from onchip.microcontroller.int8.factors import Scale
from onchip.microcontroller.made import Map, WideBuilder

__all__ = ["WIDE"]

Make = Callable[[WideBuilder], list[Map]]


def image(b: WideBuilder) -> Map:
    return b.conv(b.input((1, 7, 8, 4)), 6, 3)


def tables(b: WideBuilder) -> list[Map]:
    x = b.leaky_relu(image(b))
    x = b.table("ELU", b.conv(x, 5), lambda v: np.where(v < 0, np.expm1(v), v))
    x = b.table("ABS", b.conv(x, 5), np.abs, table="AbsOptions")
    return [b.tanh(b.conv(b.table("RELU", b.conv(x, 5), lambda v: np.maximum(v, 0)), 3))]


def pairs(b: WideBuilder) -> list[Map]:
    x, y = image(b), None
    y = b.conv(x, 6, 3)
    greater, smaller = (b.extremum(x, y, greatest=which) for which in (True, False))
    apart = b.sub(greater, smaller)
    return [b.conv(b.squared_difference(apart, y), 3), b.sub(b.constant((1, 1, 1, 6)), x)]


def moves(b: WideBuilder) -> list[Map]:
    x = image(b)
    one, two, three = b.split(x, (1, 2, 3), 3)
    turned = b.transpose(three, (0, 2, 1, 3))
    x = b.moved("STRIDED_SLICE", turned, (1, 4, 7, 3), (0, 1, 0, 0), (1, 8, 7, 3), (1, 2, 1, 1),
                table="StridedSliceOptions")  # fmt: skip
    pairs = b.pack(one, one, axis=4)
    return [b.conv(x, 4, 3), b.conv(b.reshape(pairs, (1, 7, 8, 2)), 2), b.conv(two, 3)]


def channels_first(b: WideBuilder) -> list[Map]:
    return [b.transpose(b.conv(b.transpose(b.input((1, 3, 7, 8)), (0, 2, 3, 1)), 5, 3), (0, 3, 1, 2))]


def transposed_convolutions(b: WideBuilder) -> list[Map]:
    x = b.transpose_conv(b.input((1, 3, 4, 4)), 5, 3, 2)
    return [b.transpose_conv(b.conv(x, 3), 2, 3, 3, same=False)]


def logarithms(b: WideBuilder) -> list[Map]:
    x = b.conv(b.input((1, 4, 6, 5)), 7)
    return [b.log_softmax(x), b.log_softmax(b.quantize(x, Scale(x.scale.scale * 4, x.scale.zero_point)))]


def matrices(b: WideBuilder) -> list[Map]:
    x, y = (b.reshape(b.conv(b.input((1, 4, 6, 5)), 5), (1, 2, 12, 5)) for _ in range(2))
    shares = b.softmax(b.matmul(x, y, turned=(False, True)))
    return [b.matmul(shares, y), b.matmul(x, y, turned=(True, False))]


def reductions(b: WideBuilder) -> list[Map]:
    x = image(b)
    total = b.reduced("SUM", b.transpose(x, (0, 3, 1, 2)), (2,))
    highest = b.reduced("REDUCE_MAX", x, (1, 3), keep=False)
    lowest = b.reshape(b.reduced("REDUCE_MIN", x, (1,), keep=False), (1, 1, 8, 6))
    return [b.conv(b.mean(x, (3,)), 3, 3), total, highest, b.conv(lowest, 3)]


def several_of_both(b: WideBuilder) -> list[Map]:
    x, y = b.input((1, 6, 5, 3)), b.input((1, 6, 5, 4))
    x = b.conv(x, 4, 3)
    return [b.conv(b.add(x, y), 3), b.depthwise(x, 3), b.mean(y)]


def streaming(b: WideBuilder) -> list[Map]:
    x = b.conv(b.delayed(b.input((1, 3, 2, 4)), 2), 6, (5, 1), padding="VALID")
    return [b.conv(b.delayed(x, 4), 3, (5, 1), padding="VALID")]


def svdfs(b: WideBuilder) -> list[Map]:
    x = b.svdf(b.fully_connected(b.input((1, 20)), 12), 6, 2, 5)
    return [b.fully_connected(b.svdf(x, 4, 1, 3, wide=True), 4)]


def small_cells(b: WideBuilder) -> list[Map]:
    """Cells on scales below that of the tanh, whose numbers it shifts to the right."""
    x = b.lstm(b.input((1, 3, 10)), 6, cell=2.0**-17)
    y = b.lstm(x, 5, cell=2.0**-13)
    return [b.reshape(y, (1, 15)), b.reshape(b.lstm(x, 5, cell=2.0**-20), (1, 15))]


def lstms(b: WideBuilder) -> list[Map]:
    return [b.fully_connected(b.reshape(b.lstm(b.lstm(b.input((1, 3, 10)), 6), 5), (1, 15)), 4)]


WIDE: dict[str, Make] = {
    "logarithms": logarithms,
    "tables": tables,
    "pairs": pairs,
    "moves": moves,
    "channels first": channels_first,
    "transposed convolutions": transposed_convolutions,
    "matrices": matrices,
    "reductions": reductions,
    "several of both": several_of_both,
    "streaming": streaming,
    "SVDF": svdfs,
    "LSTM": lstms,
    "LSTM with small cells": small_cells,
}
"""A network of each kind."""
