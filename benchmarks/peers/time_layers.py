"""The layers of a network as mappers of one layer at a time know them: loops of a convolution.

`layers_of` derives them from the reaches of onchip's operators; `network_of` makes of one of them a network
of one operator again. So a mapper and onchip plan the same loops with the same sizes.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from math import prod

from onchip.network import Network, OperatorSpec, Reach, Side
from onchip.network.operators import Constant, Operator
from onchip.network.reaches import reach_for

__all__ = ["Layer", "Slide", "layers_of", "network_of"]


@dataclass(frozen=True)
class Slide:
    """One direction of a map: `outputs` windows of `taps`, each `stride` further, over `inputs`.

    The first window begins `before` the first input: what lies beyond the inputs on either side is padding.
    """

    outputs: int
    inputs: int
    taps: int = 1
    stride: int = 1
    before: int = 0

    @property
    def reached(self) -> int:
        """Inputs from the first window's begin to the last one's end, padding included."""
        return (self.outputs - 1) * self.stride + self.taps

    @property
    def after(self) -> int:
        """Padding behind the last input; negative where no window reaches the last ones."""
        return self.reached - self.before - self.inputs


@dataclass(frozen=True)
class Layer:
    """Sums O[g][k][y][x] += W[g][k][c][fy][fx] * I[g][c][iy][ix]; a matrix product has one row of windows.

    Groups g are channels of a depthwise convolution, or heads: then W is made by another layer.
    """

    groups: int
    outputs: int
    inputs: int
    rows: Slide
    columns: Slide

    @property
    def macs(self) -> int:
        """Multiply-accumulates, with those of padding."""
        taps = self.rows.taps * self.columns.taps
        return self.groups * self.outputs * self.inputs * taps * self.rows.outputs * self.columns.outputs

    @property
    def input_bytes(self) -> int:
        """Bytes of the operand with windows, one each element, without what no window reaches."""
        sides = [min(side.inputs, side.reached - side.before) for side in (self.rows, self.columns)]
        return self.groups * self.inputs * prod(sides)

    @property
    def weight_bytes(self) -> int:
        """Bytes of the other operand."""
        return self.groups * self.outputs * self.inputs * self.rows.taps * self.columns.taps

    @property
    def output_bytes(self) -> int:
        """Bytes of the output."""
        return self.groups * self.outputs * self.rows.outputs * self.columns.outputs

    @property
    def least_bytes(self) -> int:
        """Bytes that must cross: every operand and the output once."""
        return self.input_bytes + self.weight_bytes + self.output_bytes

    @property
    def name(self) -> str:
        """Its sizes in short."""
        kernel = f" {self.rows.taps}x{self.columns.taps}" if self.rows.taps * self.columns.taps > 1 else ""
        groups = f"{self.groups} x " if self.groups > 1 else ""
        stride = f"/{self.columns.stride}" if self.columns.stride > 1 else ""
        pixels = f"{self.rows.outputs}x{self.columns.outputs}"
        at = pixels if self.rows.outputs > 1 else f"{self.columns.outputs}"
        return f"{groups}{self.inputs} to {self.outputs}{kernel}{stride}, {at}"


def layers_of(network: Network) -> Counter[Layer]:
    """Return the layers with multiply-accumulates, each with the number of equal ones.

    Raises `ValueError` for one that is no such sum.
    """
    found: Counter[Layer] = Counter()
    for operator in network.operators:
        if operator.work:
            found[_layer(network, operator)] += 1
    return found


def _layer(network: Network, operator: Operator) -> Layer:
    reach = reach_for(network, operator)
    if reach is None:
        raise ValueError(f"{operator.name}: no reach")
    outputs = range(len(reach.output))

    def factor(sides: tuple[Side, ...]) -> tuple[int, int]:
        """Return the axes of sums that it goes along, of which a mask has none, and its elements."""
        return sum(side.axis >= len(outputs) for side in sides), prod(side.size for side in sides)

    kernels = [constant.sides for constant in reach.weights if not constant.late]
    if not kernels and len(reach.reads) < 2:
        raise ValueError(f"{operator.name}: both factors are one tensor")
    other = max([*kernels, *reach.reads[1:]], key=factor)
    maps, others = ({side.axis: side for side in sides} for sides in (reach.reads[0], other))
    of = reach.extents
    both = [axis for axis in outputs if axis in maps and axis in others]
    rows_of = [axis for axis in outputs if axis in maps and axis not in others]
    channels = [axis for axis in outputs if axis not in maps]
    layer = Layer(
        prod(of[axis] for axis in both),
        prod(of[axis] for axis in channels),
        prod(of[axis] for axis in range(len(outputs), len(of))),
        *_slides([(of[axis], maps[axis]) for axis in rows_of if of[axis] > 1]),
    )
    if layer.macs != operator.work:
        raise ValueError(f"{operator.name}: {layer.macs} products instead of {operator.work}")
    return layer


def _slides(sides: list[tuple[int, Side]]) -> tuple[Slide, Slide]:
    """Return rows and columns; sides that no windows slide over are one."""
    plain = all(side.span == side.stride == 1 for _, side in sides)
    if plain and len(sides) != 2:
        count = prod(extent for extent, _ in sides)
        return Slide(1, 1), Slide(count, count)
    if len(sides) > 2:
        raise ValueError("windows along more than two sides")
    made = [Slide(extent, side.size, side.span, side.stride, side.before) for extent, side in sides]
    one = Slide(1, 1)
    return (one, one, *made)[-2], (one, one, *made)[-1]


def network_of(layer: Layer) -> Network:
    """Return the network of this layer alone, one byte each element, both operands and the output in DRAM."""
    g, k, y, x, c = range(5)
    rows, columns = layer.rows, layer.columns

    def slid(side: Slide, axis: int) -> Side:
        return Side(side.inputs, axis, side.stride, side.before, side.taps)

    taps = rows.taps * columns.taps
    kernel = (Side(layer.groups, g), Side(layer.outputs, k), Side(layer.inputs, c), Side(taps, span=taps))
    reach = Reach(
        (layer.groups, layer.outputs, rows.outputs, columns.outputs),
        ((Side(layer.groups, g), Side(layer.inputs, c), slid(rows, y), slid(columns, x)),),
        (Constant("W", layer.weight_bytes, kernel),),
        (layer.inputs,),
    )
    held = layer.groups * layer.inputs * rows.inputs * columns.inputs
    spec = OperatorSpec(
        "layer", "Conv", ["x"], ["y"], layer.weight_bytes, macs=layer.macs, reach=reach
    )  # fmt: skip
    return Network.build(
        layer.name, [("x", held, "input"), ("y", layer.output_bytes, "activation")], [spec], ["y"]
    )
