"""Windows over maps: padding, pools, means, resizing."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from onchip.microcontroller.int8.onnx_qdq.steps import Step
from onchip.microcontroller.int8.onnx_qdq.tables import INT8
from onchip.microcontroller.int8.onnx_qdq.values import CHANNELS_LAST, Held, Values
from onchip.readers.tflite_graph import Quantisation

__all__ = ["mean", "pad", "padded", "pool", "resize"]

SAME, VALID = 0, 1


def padded(
    values: Values, step: Step, held: Held, kernel: Sequence[int], value: int | None = None
) -> tuple[Held, dict[str, Any]]:
    """Return a map with its padding around it, and the options of a window over it."""
    stride, dilation = step.many("strides", (1, 1)), step.many("dilations", (1, 1))
    options: dict[str, Any] = {"Padding": VALID, "StrideH": stride[0], "StrideW": stride[1]}
    options |= {"DilationHFactor": dilation[0], "DilationWFactor": dilation[1]}
    pads = step.many("pads", (0, 0, 0, 0))
    match step.text("auto_pad", "NOTSET"):
        case "SAME_UPPER":
            options["Padding"] = SAME
            return held, options
        case "SAME_LOWER":
            raise values.refuse(step, "pads in front first (SAME_LOWER)")
        case "VALID":
            pads = [0, 0, 0, 0]
    if not any(pads):
        return held, options
    around = ((0, 0), (pads[0], pads[2]), (pads[1], pads[3]), (0, 0))
    return _around(values, step, held, around, value), options


def _around(
    values: Values, step: Step, held: Held, around: Sequence[tuple[int, int]], value: int | None
) -> Held:
    row = values.tables.rows[held.row]
    if any(n < 0 for pair in around for n in pair):
        raise values.refuse(step, f"pads by {list(around)}")
    shape = [n + sum(pair) for n, pair in zip(row.shape, around, strict=True)]
    made = values.tables.row(f"{row.name} padded", shape, INT8, row.quantisation)
    inputs = [held.row, values.tables.whole("paddings", around)]
    if value is not None:
        inputs.append(values.tables.row("padding", (1,), INT8, row.quantisation, np.array([value])))
    values.tables.node(step.index, "PAD" if value is None else "PADV2", inputs, (made,))
    return Held(made, held.lies)


def pad(values: Values, step: Step) -> Held:
    """Add padding by a constant."""
    amounts = values.numbers(step, 1, "pads")
    held = values.reading(step)
    if amounts is None or step.text("mode", "constant") != "constant" or len(amounts) != 2 * len(held.lies):
        raise values.refuse(step, "pads by no constants")
    of = values.quantisation(held)
    fill = float(step.attributes.get("value", 0.0))
    if len(step.inputs) > 2 and step.inputs[2]:
        stored = values.stored.get(step.inputs[2])
        fill = float((stored.reals() if stored else values.needed(step, 2, "a value")).reshape(-1)[0])
    byte = int(np.clip(np.round(fill / of.scales[0]) + of.zero_points[0], -128, 127))
    around = [(0, 0)] * len(held.lies)
    for axis, place in enumerate(held.lies):
        around[place] = (amounts[axis], amounts[axis + len(held.lies)])
    return _around(values, step, held, around, None if byte == of.zero_points[0] else byte)


def pool(values: Values, step: Step) -> Held:
    """Add a pool; a maximum's padding is the smallest byte, a mean's counts only if the file says so."""
    held = values.ordered(step, values.reading(step), CHANNELS_LAST)
    kernel = step.many("kernel_shape", ())
    greatest = step.op == "MaxPool"
    if len(kernel) != 2 or any(d != 1 for d in step.many("dilations", (1, 1))):
        raise values.refuse(step, f"has kernel {kernel} with dilation {step.many('dilations', (1, 1))}")
    pads = step.many("pads", (0, 0, 0, 0))
    shape = values.shape(step.outputs[0])
    counted = bool(step.whole("count_include_pad", 0))
    if not greatest and any(pads) and not counted:
        seen = values.tables.rows[held.row].shape[1:3]
        stride = step.many("strides", (1, 1))
        spans = [
            max(0, (n - 1) * s + k - size)
            for n, s, k, size in zip(shape[2:], stride, kernel, seen, strict=True)
        ]
        if pads != [spans[0] // 2, spans[1] // 2, spans[0] - spans[0] // 2, spans[1] - spans[1] // 2]:
            raise values.refuse(step, f"is a mean of what lies inside a map padded by {pads}")
        options = padded(values, step, held, kernel)[1] if not any(pads) else {}
        options = {"Padding": SAME, "StrideH": stride[0], "StrideW": stride[1], **options}
    else:
        held, options = padded(values, step, held, kernel, -128 if greatest else None)
    if step.whole("ceil_mode", 0):
        row = values.tables.rows[held.row]
        stride = step.many("strides", (1, 1))
        if any((row.shape[1 + i] - kernel[i]) % stride[i] for i in (0, 1)):
            raise values.refuse(step, "has windows that reach out of the map (ceil_mode)")
    options |= {"FilterHeight": kernel[0], "FilterWidth": kernel[1]}
    made = values.like(step.outputs[0], shape, CHANNELS_LAST, values.quantisation(held))
    kind = "MAX_POOL_2D" if greatest else "AVERAGE_POOL_2D"
    values.tables.node(step.index, kind, (held.row,), (made.row,), **options)
    return made


def mean(values: Values, step: Step, out: Quantisation) -> Held:
    """Add a mean over some axes, or over a whole map."""
    held = values.reading(step)
    rank = len(held.lies)
    axes = list(range(2, rank)) if step.op == "GlobalAveragePool" else values.numbers(step, 1, "axes")
    if axes is None:
        axes = list(range(rank))
    axes = sorted({axis % rank for axis in axes})
    places = sorted(held.lies[axis] for axis in axes)
    row = values.tables.rows[held.row]
    shape = [1 if i in places else n for i, n in enumerate(row.shape)]
    name = step.outputs[0]
    made = Held(values.tables.row(name, shape, INT8, out), held.lies)
    values.tables.node(step.index, "MEAN", (held.row, values.tables.whole("axes", places)), (made.row,))
    wanted = values.shape(name)
    if len(wanted) == rank:
        return made
    flat = values.plain(step, made)
    last = values.like(f"{name} flat", wanted, tuple(range(len(wanted))), out)
    values.tables.node(step.index, "RESHAPE", (flat.row,), (last.row,))
    return last


def resize(values: Values, step: Step) -> Held:
    """Add a resizing of rows and columns, in the ways that TensorFlow has too."""
    held = values.ordered(step, values.reading(step), CHANNELS_LAST)
    shape, row = values.shape(step.outputs[0]), values.tables.rows[held.row]
    mode, where = step.text("mode", "nearest"), step.text("coordinate_transformation_mode", "half_pixel")
    if step.op == "Upsample":
        where = "asymmetric"
    if shape[1] != row.shape[3] or mode not in ("nearest", "linear"):
        raise values.refuse(step, f"resizes {list(row.shape)} to {list(shape)} by {mode}")
    whole = all(shape[2 + i] % row.shape[1 + i] == 0 for i in (0, 1))
    flags = {"AlignCorners": int(where == "align_corners"), "HalfPixelCenters": 0}
    if mode == "linear":
        if where not in ("half_pixel", "pytorch_half_pixel", "align_corners", "asymmetric"):
            raise values.refuse(step, f"resizes with coordinates {where}")
        flags["HalfPixelCenters"] = int(where.endswith("half_pixel"))
    elif not (whole and where != "align_corners") and not (
        where == "asymmetric" and step.text("nearest_mode", "round_prefer_floor") == "floor"
    ):
        raise values.refuse(step, f"resizes {list(row.shape)} to {list(shape)} with coordinates {where}")
    made = values.like(step.outputs[0], shape, CHANNELS_LAST, values.quantisation(held))
    kind = "RESIZE_NEAREST_NEIGHBOR" if mode == "nearest" else "RESIZE_BILINEAR"
    size = values.tables.whole("size", shape[2:])
    values.tables.node(step.index, kind, (held.row, size), (made.row,), **flags)
    return made
