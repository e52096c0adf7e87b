"""The kernels of SVDF: the new state of a step, and the sums over it."""

from __future__ import annotations

from dataclasses import dataclass

from onchip.microcontroller.int8.svdf import SvdfState, SvdfSum
from onchip.microcontroller.kernel_language import Function, Kernel, Kind
from onchip.microcontroller.kernel_language.intrinsics import call
from onchip.microcontroller.kernel_language.ir import Expr
from onchip.microcontroller.kernels.elements import packed
from onchip.microcontroller.kernels.own_use import OwnUse

__all__ = ["load_number", "svdf_state_use", "svdf_sum_use"]

STATE_WORDS, SUM_WORDS = 4, 4
"""Words in front of the weights."""


@dataclass(frozen=True, kw_only=True)
class SvdfShape:
    """The parameters that both kernels are specialised on."""

    inputs: int
    filters: int
    memory: int
    width: int


def load_number(k: Kernel, pointer: Expr, index: Expr | int, width: int) -> Expr:
    """Return the number of one or two bytes at an index, the lower byte first."""
    if width == 1:
        return k.RAMLoad(pointer, index, Kind.BYTE, name="kept")
    low = k.RAMLoad(pointer, index * 2, Kind.BYTE, name="low")
    high = k.RAMLoad(pointer, index * 2 + 1, Kind.BYTE, name="high")
    return k.let("number", high * 256 + (low & 255))


def store_number(k: Kernel, pointer: Expr, index: Expr | int, value: Expr, width: int) -> None:
    """Store a number of one or two bytes at an index."""
    k.RAMStore(pointer, index * width, value)
    if width == 2:
        k.RAMStore(pointer, index * 2 + 1, value >> 8)


def svdf_state_use(layer: SvdfState) -> OwnUse:
    filters, inputs = layer.weights.shape
    words = [layer.input_offset, layer.multiplier, layer.shift, layer.zero_point, *packed(layer.weights)]
    shape = SvdfShape(inputs=inputs, filters=filters, memory=layer.memory, width=layer.width)
    return OwnUse("svdf_state", _state, shape, words)


def _state(name: str, shape: SvdfShape) -> Function:
    k = Kernel(name, f"The state of {shape.filters} filters: the old one without the oldest, and the newest.")
    lines, out, weights = k.lines("lines"), k.output("out"), k.flash("weights")
    names = ("input_offset", "multiplier", "shift", "zero_point")
    offset, multiplier, shift, zero = (k.constant(weights, i, name) for i, name in enumerate(names))
    x, old = k.let("x", k.line(lines, 0)), k.let("old", k.line(lines, 1))
    most = (1 << (8 * shape.width - 1)) - 1
    for f in k.loop(0, shape.filters, name="f"):
        total = k.RegAlloc("total", 0)
        for i in k.loop(0, shape.inputs, name="i"):
            w = k.constant_byte(weights, f * shape.inputs + i + 4 * STATE_WORDS)
            k.set(total, total + (k.RAMLoad(x, i, Kind.BYTE, name="byte") + offset) * w)
        result = k.let("result", call("scaled", total, multiplier, shift))
        held = k.let("held", k.least(k.most(result, -most - 1), most) + zero)
        row = k.let("row", f * shape.memory)
        for m in k.loop(0, shape.memory - 1, name="m"):
            store_number(k, out, row + m, load_number(k, old, row + m + 1, shape.width), shape.width)
        store_number(k, out, row + (shape.memory - 1), held, shape.width)
    return k.finish()


def svdf_sum_use(layer: SvdfSum) -> OwnUse:
    filters, memory = layer.weights.shape
    words = [layer.state_offset, layer.multiplier, layer.shift, layer.output_offset]
    words += [int(b) for b in layer.bias]
    words += (
        [int(w) for w in layer.weights.ravel()] if layer.width == 2 else packed(layer.weights.astype("i1"))
    )
    units = layer.bias.size
    shape = SvdfShape(inputs=units, filters=filters, memory=memory, width=layer.width)
    return OwnUse("svdf_sum", _sum, shape, words)


def _sum(name: str, shape: SvdfShape) -> Function:
    units, each = shape.inputs, shape.filters // shape.inputs * shape.memory
    k = Kernel(name, f"The sums over the state of {shape.filters} filters: {units} units.")
    lines, out, weights = k.lines("lines"), k.output("out"), k.flash("weights")
    names = ("state_offset", "multiplier", "shift", "output_offset")
    offset, multiplier, shift, output_offset = (k.constant(weights, i, name) for i, name in enumerate(names))
    state = k.let("state", k.line(lines, 0))
    for u in k.loop(0, units, name="u"):
        total = k.RegAlloc("total", k.constant(weights, u + SUM_WORDS, "bias"))
        for i in k.loop(0, each, name="i"):
            at = k.let("at", u * each + i)
            value = load_number(k, state, at, shape.width) + offset
            if shape.width == 2:
                w: Expr = k.constant(weights, at + (SUM_WORDS + units), "w")
            else:
                w = k.constant_byte(weights, at + 4 * (SUM_WORDS + units))
            k.set(total, total + value * w)
        y = k.let("y", call("scaled", total, multiplier, shift) + output_offset)
        k.RAMStore(out, u, k.least(k.most(y, -128), 127))
    return k.finish()
