"""One chip in the words of several tools, and what they say of a network's layers on it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace

from time_layers import Layer
from time_peers import Answer

from onchip.machines.tile_rates import ArraySide, Channel, TileRates

__all__ = [
    "BANDWIDTH", "GIGA", "HINTS", "KIB", "RATES", "SIDE", "SUMS", "Many", "Row", "cycles_on", "of",
    "scalesim_asks", "summed", "zigzag_asks",
]  # fmt: skip

SIDE, BANDWIDTH, KIB = 32, 16, 1024
GIGA = 10**9
RATES = TileRates(
    GIGA, (Channel(BANDWIDTH * GIGA),), 0, (ArraySide("out", SIDE), ArraySide("out", SIDE))
)  # fmt: skip
SUMS = replace(RATES, sides=(ArraySide("sum", SIDE), ArraySide("out", SIDE)))
"""The same chip with sums along one side, as an array that holds weights in place has them."""

HINTS = {"D1": ["K", "G"], "D2": ["OY", "OX"]}
"""ZigZag's loops on the sides of `RATES`: channels of outputs on one, pixels on the other."""

Many = Mapping[Layer, int]


@dataclass(frozen=True)
class Row:
    """A network in a scratchpad, and what everybody says of its layers; onchip's figure of it as a whole."""

    name: str
    room: int
    layers: Counter[Layer]
    zigzag: dict[Layer, Answer]
    scalesim: dict[Layer, Answer]
    alone: dict[Layer, Answer]
    whole: Answer
    work: float


def summed(layers: Many, figure: Callable[[Layer], float]) -> float:
    """Return the sum of a figure over all layers, equal ones each."""
    return sum(count * figure(layer) for layer, count in layers.items())


def of(answers: Mapping[Layer, Answer], name: str) -> Callable[[Layer], float]:
    """Return a figure of an answer by layer."""
    return lambda layer: float(answers[layer][name])


def cycles_on(layer: Layer, rows: int = SIDE, columns: int = SIDE) -> int:
    """Return the cycles of an array with pixels along its rows and channels of outputs along its columns, or
    groups where there are several: these fill one side alone. Edges that are not filled count.
    """
    pixels = layer.rows.outputs * layer.columns.outputs
    sums = layer.inputs * layer.rows.taps * layer.columns.taps
    folds = layer.groups * -(-pixels // rows) * -(-layer.outputs // columns)
    return folds * sums


def zigzag_asks(room: int, hints: Mapping[str, list[str]]) -> Answer:
    """Return what ZigZag is asked beside layers: its effort is the default, one spatial mapping a layer."""
    chip = {"bytes": room, "bandwidth": BANDWIDTH, "array": [SIDE, SIDE], "hints": hints}
    return {**chip, "lpf": 6, "mappings": 1}


def scalesim_asks(kib: int, dataflow: str) -> Answer:
    """Return what SCALE-Sim is asked beside layers: a third of the scratchpad for each operand."""
    parts = [kib - 2 * (kib // 3), kib // 3, kib // 3]
    return {"kib": parts, "bandwidth": BANDWIDTH, "array": [SIDE, SIDE], "dataflow": dataflow}
