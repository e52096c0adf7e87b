"""Element-wise operators, and those that move numbers or join them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from onchip.microcontroller.int8.onnx_qdq.steps import Step
from onchip.microcontroller.int8.onnx_qdq.tables import INT8
from onchip.microcontroller.int8.onnx_qdq.values import Held, Quantised, Values
from onchip.readers.tflite_graph import Quantisation

__all__ = ["concat", "fixed", "pair", "reshape", "single", "sliced", "split", "transpose"]

PAIRS = {"Add": "ADD", "Sub": "SUB", "Mul": "MUL", "Max": "MAXIMUM", "Min": "MINIMUM"}
SINGLE = {
    "Relu": "RELU",
    "LeakyRelu": "LEAKY_RELU",
    "HardSwish": "HARD_SWISH",
    "Elu": "ELU",
    "Abs": "ABS",
    "Gelu": "GELU",
}
FIXED = {
    "Sigmoid": ("LOGISTIC", Quantisation((1 / 256,), (-128,), 0)),
    "Softmax": ("SOFTMAX", Quantisation((1 / 256,), (-128,), 0)),
    "Tanh": ("TANH", Quantisation((1 / 128,), (0,), 0)),
}
"""Operators that TensorFlow makes on one scale only."""


def pair(values: Values, step: Step, out: Quantisation, activation: int) -> Held:
    """Add a function of two maps, or of a map and constants."""
    kind = PAIRS[step.op]
    if len(step.inputs) != 2:
        raise values.refuse(step, f"has {len(step.inputs)} operands")
    maps = [name for name in step.inputs if name in values.held]
    if not maps:
        raise values.refuse(step, f"reads {step.inputs[0]}, which is not quantised")
    first = max((values.held[name] for name in maps), key=lambda h: np.prod(values.tables.rows[h.row].shape))
    rows = []
    for name in step.inputs:
        if name in values.held:
            held = values.held[name]
            if len(held.lies) != len(first.lies):
                raise values.refuse(step, "spreads an operand of fewer axes")
            held = values.ordered(step, held, first.lies)
        else:
            held = _constant(values, step, name, first)
        if kind in ("MAXIMUM", "MINIMUM"):
            held = (
                values.rescaled(step, held, out)
                if name in values.held
                else _constant(values, step, name, first, out)
            )
        rows.append(held.row)
    made = values.like(step.outputs[0], values.shape(step.outputs[0]), first.lies, out)
    options = {} if kind in ("MAXIMUM", "MINIMUM") else {"FusedActivationFunction": activation}
    values.tables.node(step.index, kind, rows, (made.row,), **options)
    return made


def _constant(values: Values, step: Step, name: str, of: Held, on: Quantisation | None = None) -> Held:
    """Add a constant operand of a map, its axes as the map's, on a scale of its own unless one is given."""
    stored = values.stored.get(name)
    found = stored.reals() if stored is not None else values.constant(name)
    if found is None:
        raise values.refuse(step, f"reads {name}, which is not quantised")
    found = np.asarray(found, np.float64)
    whole = found.reshape((1,) * (len(of.lies) - found.ndim) + found.shape)
    if on is None and stored is not None and len(stored.scales) == 1 and _fits(stored):
        scale, zero = stored.scales[0], int(np.clip(-128 - stored.values.min(initial=0), -128, 127))
        zero = (
            max(zero, 0)
            if stored.values.min(initial=0) < -128
            else min(0, 127 - int(stored.values.max(initial=0)))
        )
        on = Quantisation((scale,), (zero,), 0)
    if on is None:
        on = Quantisation((float(np.float32(max(np.abs(found).max(initial=0), 1e-30) / 127)),), (0,), 0)
    bytes_ = np.clip(np.round(whole / on.scales[0]) + on.zero_points[0], -128, 127).astype(np.int8)
    order = [of.lies.index(place) for place in range(len(of.lies))]
    turned = bytes_.transpose(order)
    return Held(values.tables.row(name, turned.shape, INT8, on, turned), of.lies)


def _fits(stored: Quantised) -> bool:
    return int(stored.values.max(initial=0)) - int(stored.values.min(initial=0)) <= 255


def single(values: Values, step: Step, out: Quantisation) -> Held:
    """Add a function of one number, which may change the scale."""
    held = values.reading(step)
    row = values.tables.rows[held.row]
    made = Held(values.tables.row(step.outputs[0], row.shape, INT8, out), held.lies)
    alpha = float(step.attributes.get("alpha", 0.01 if step.op == "LeakyRelu" else 1.0))
    options: dict[str, Any] = {"Approximate": int(step.text("approximate", "none") == "tanh")}
    if step.op == "Elu" and alpha != 1.0:
        raise values.refuse(step, f"has alpha {alpha}")
    values.tables.node(step.index, SINGLE[step.op], (held.row,), (made.row,), beta=alpha, **options)
    return made


def fixed(values: Values, step: Step) -> Held:
    """Add a function that is made on one scale only."""
    kind, on = FIXED[step.op]
    held = values.reading(step)
    if step.op == "Softmax":
        axis = step.whole("axis", -1 if values.graph.opsets.get("", 0) >= 13 else 1) % len(held.lies)
        if held.lies[axis] != len(held.lies) - 1:
            held = values.plain(step, held)
            if axis != len(held.lies) - 1:
                raise values.refuse(step, f"is over axis {axis} of {len(held.lies)}, not the last")
    row = values.tables.rows[held.row]
    made = Held(values.tables.row(step.outputs[0], row.shape, INT8, on), held.lies)
    values.tables.node(step.index, kind, (held.row,), (made.row,))
    return made


def reshape(values: Values, step: Step) -> Held:
    """Add another shape of the same numbers."""
    held = values.plain(step, values.reading(step))
    shape = values.shape(step.outputs[0])
    made = values.like(step.outputs[0], shape, tuple(range(len(shape))), values.quantisation(held))
    values.tables.node(step.index, "RESHAPE", (held.row,), (made.row,))
    return made


def transpose(values: Values, step: Step) -> Held:
    """Return the same numbers with their axes in another order: nothing moves until an operator needs it."""
    held = values.reading(step)
    order = step.many("perm", range(len(held.lies))[::-1])
    return Held(held.row, tuple(held.lies[axis] for axis in order))


def concat(values: Values, step: Step, out: Quantisation) -> Held:
    first = values.reading(step)
    rows = []
    for position in range(len(step.inputs)):
        held = values.ordered(step, values.reading(step, position), first.lies)
        rows.append(values.rescaled(step, held, out).row)
    made = values.like(step.outputs[0], values.shape(step.outputs[0]), first.lies, out)
    axis = first.lies[step.whole("axis", 0) % len(first.lies)]
    values.tables.node(step.index, "CONCATENATION", rows, (made.row,), Axis=axis)
    return made


def sliced(values: Values, step: Step) -> Held:
    held = values.reading(step)
    rank = len(held.lies)
    starts, ends = values.numbers(step, 1, "starts"), values.numbers(step, 2, "ends")
    axes = values.numbers(step, 3, "axes") or list(range(len(starts or ())))
    steps = values.numbers(step, 4, "steps") or [1] * len(axes)
    if starts is None or ends is None:
        raise values.refuse(step, "takes no constant places")
    row = values.tables.rows[held.row]
    begin, end, apart = [0] * rank, list(row.shape), [1] * rank
    for axis, first, last, by in zip(axes, starts, ends, steps, strict=True):
        place = held.lies[axis % rank]
        places = range(row.shape[place])[first:last:by]
        if by < 1 or not places:
            raise values.refuse(step, f"takes [{first}, {last}) by {by} of {row.shape[place]}")
        begin[place], end[place], apart[place] = places[0], places[-1] + 1, by
    return _cut(values, step, held, step.outputs[0], begin, end, apart)


def _cut(
    values: Values,
    step: Step,
    held: Held,
    name: str,
    begin: Sequence[int],
    end: Sequence[int],
    apart: Sequence[int],
) -> Held:
    made = values.like(name, values.shape(name), held.lies, values.quantisation(held))
    settings = [values.tables.whole("places", part) for part in (begin, end, apart)]
    values.tables.node(step.index, "STRIDED_SLICE", (held.row, *settings), (made.row,))
    return made


def split(values: Values, step: Step) -> list[Held]:
    held = values.reading(step)
    rank = len(held.lies)
    axis = step.whole("axis", 0) % rank
    place, at, found = held.lies[axis], 0, []
    for name in step.outputs:
        size = values.shape(name)[axis]
        begin, end = [0] * rank, list(values.tables.rows[held.row].shape)
        begin[place], end[place], at = at, at + size, at + size
        found.append(_cut(values, step, held, name, begin, end, [1] * rank))
    return found
