"""Operators that read or write elements by index: several axes together, windows, grids, sums at indices."""

from __future__ import annotations

import math

import numpy as np
import torch

from onchip.readers.torch_export.exporter import ELEMENT, Exporter, Node, arguments, kind_of, rule, shape
from onchip.readers.torch_export.layout import source_of


@rule("index", "_unsafe_index")
def _index(to: Exporter, node: Node) -> None:
    """Emit indices along one axis, or along several together."""
    a = arguments(node)
    source, name = source_of(node), to.path(node)
    given = [(axis, index) for axis, index in enumerate(a["indices"]) if index is not None]
    if any(index.meta["val"].dtype == torch.bool for _, index in given):
        raise to.refuse(node, "selects by a mask, so that its shape depends on the contents")
    if len(given) == 1:
        ((axis, index),) = given
        to.values[node] = to.emit("Gather", name, [to.value(source), to.value(index)], axis=axis)
        return
    here, axes = shape(source), [axis for axis, _ in given]
    common = list(torch.broadcast_shapes(*(tuple(shape(index)) for _, index in given)))
    side_by_side = axes == list(range(axes[0], axes[-1] + 1))
    if side_by_side and axes[0] and all(index in to.known for _, index in given):
        _of_known(to, node, axes, [to.known[index] for _, index in given])
        return
    rest = [axis for axis in range(len(here)) if axis not in axes]
    value = to.value(source)
    if axes != list(range(len(axes))):
        value = to.emit("Transpose", f"{name}.first", [value], perm=[*axes, *rest])
    columns = []
    for axis, index in given:
        column = to.operand(f"{name}.{axis}", index, torch.int64)
        if shape(index) != common:
            target = to.constant(f"{name}.{axis}.shape", common)
            column = to.emit("Expand", f"{name}.{axis}.expand", [column, target])
        columns.append(to.reshape(f"{name}.{axis}.column", column, common, [*common, 1]))
    indices = to.emit("Concat", f"{name}.indices", columns, axis=len(common))
    value = to.emit("GatherND", name, [value, indices])
    if side_by_side and axes[0]:
        # What was picked stands where the first of these axes was.
        order = [*range(len(common), len(common) + axes[0]), *range(len(common))]
        order += range(len(common) + axes[0], len(common) + len(rest))
        value = to.emit("Transpose", f"{name}.back", [value], perm=order)
    to.values[node] = value


def _of_known(to: Exporter, node: Node, axes: list[int], indices: list[torch.Tensor]) -> None:
    """Emit known indices of neighbouring axes as those of one axis."""
    source, name = source_of(node), to.path(node)
    here = shape(source)
    sizes = [here[axis] for axis in axes]
    wide = [np.asarray(i) for i in torch.broadcast_tensors(*indices)]
    rows = [i % size for i, size in zip(wide, sizes, strict=True)]
    flat = np.ravel_multi_index(tuple(rows), sizes)
    joined = [*here[: axes[0]], math.prod(sizes), *here[axes[-1] + 1 :]]
    value = to.reshape(f"{name}.flat", to.value(source), here, joined)
    picked = to.tensor(to.unique(f"{name}.indices"), torch.as_tensor(flat, dtype=torch.int64))
    to.values[node] = to.emit("Gather", name, [value, picked], axis=axes[0])


@rule("unfold")
def _unfold(to: Exporter, node: Node) -> None:
    """Emit windows along an axis as a look-up of their elements, which stand last."""
    a = arguments(node)
    source, name = source_of(node), to.path(node)
    here = shape(source)
    axis = a["dimension"] % len(here)
    starts = torch.arange(0, here[axis] - a["size"] + 1, a["step"])
    indices = to.tensor(to.unique(f"{name}.indices"), starts[:, None] + torch.arange(a["size"])[None])
    value = to.emit("Gather", name, [to.value(source), indices], axis=axis)
    order = [i for i in range(len(here) + 1) if i != axis + 1] + [axis + 1]
    if order != sorted(order):
        value = to.emit("Transpose", f"{name}.last", [value], perm=order)
    to.values[node] = value


@rule("im2col")
def _patches(to: Exporter, node: Node) -> None:
    """Emit the patches of a map as columns: look-ups of rows, then of columns, in the padded map."""
    a = arguments(node)
    source, name = a["self"], to.path(node)
    here = shape(source)
    if len(here) != 4:
        raise to.refuse(node, "has an input without a batch dimension")
    value, pad = to.value(source), list(a["padding"])
    if any(pad):
        pads = to.constant(f"{name}.pads", [0, 0, *pad, 0, 0, *pad])
        value = to.emit("Pad", f"{name}.padded", [value, pads])
    counts = []
    for i, axis in ((0, 2), (1, 4)):
        kernel, dilation, stride = a["kernel_size"][i], a["dilation"][i], a["stride"][i]
        taps = torch.arange(kernel) * dilation
        starts = torch.arange(0, here[2 + i] + 2 * pad[i] - (kernel - 1) * dilation, stride)
        places = to.tensor(to.unique(f"{name}.{'yx'[i]}"), taps[:, None] + starts[None])
        value = to.emit("Gather", f"{name}.{('rows', 'columns')[i]}", [value, places], axis=axis)
        counts += [kernel, len(starts)]
    value = to.emit("Transpose", f"{name}.taps", [value], perm=[0, 1, 2, 4, 3, 5])
    (down, high), (right, wide) = counts[:2], counts[2:]
    made = [here[0], here[1], down, right, high, wide]
    columns = [here[0], here[1] * down * right, high * wide]
    to.values[node] = to.reshape(name, value, made, columns)


@rule("meshgrid")
def _meshgrid(to: Exporter, node: Node) -> None:
    a = arguments(node)
    tensors, name = list(a["tensors"]), to.path(node)
    crossed = a.get("indexing") == "xy" and len(tensors) > 1
    places = [1, 0, *range(2, len(tensors))] if crossed else list(range(len(tensors)))
    parts = []
    for i, (tensor, place) in enumerate(zip(tensors, places, strict=True)):
        made = [int(n) for n in node.meta["val"][i].shape]
        along = [size if axis == place else 1 for axis, size in enumerate(made)]
        value = to.reshape(f"{name}.{i}.along", to.value(tensor), shape(tensor), along)
        parts.append(to.emit("Expand", f"{name}.{i}", [value, to.constant(f"{name}.{i}.shape", made)]))
    to.parts[node] = parts


@rule("index_add", "index_copy")
def _index_add(to: Exporter, node: Node) -> None:
    """Emit rows that are added, or copied, to those that indices name."""
    a = arguments(node)
    name, dtype, made = to.path(node), node.meta["val"].dtype, shape(a["source"])
    axis = a["dim"] % len(made)
    rows = to.value(a["source"])
    if a.get("alpha", 1) != 1:
        factor = to.operand(f"{name}.factor", a["alpha"], dtype)
        rows = to.emit("Mul", f"{name}.scaled", [rows, factor])
    index = to.operand(f"{name}.index", a["index"], torch.int64)
    along = [size if i == axis else 1 for i, size in enumerate(made)]
    index = to.reshape(f"{name}.along", index, shape(a["index"]), along)
    index = to.emit("Expand", f"{name}.everywhere", [index, to.constant(f"{name}.shape", made)])
    how = "add" if kind_of(node) == "index_add" else "none"
    operands = [to.value(a["self"]), index, rows]
    to.values[node] = to.emit("ScatterElements", name, operands, axis=axis, reduction=how)


@rule("scatter", "scatter_add", "scatter_reduce")
def _scatter(to: Exporter, node: Node) -> None:
    a = arguments(node)
    name, where = to.path(node), shape(a["index"])
    kind = kind_of(node)
    words = {"sum": "add", "add": "add", "prod": "mul", "multiply": "mul", "amax": "max", "amin": "min"}
    how = "add" if kind == "scatter_add" else words.get(a.get("reduce") or "", "none")
    if kind == "scatter_reduce" and (how == "none" or not a.get("include_self", True)):
        raise to.refuse(node, "reduces in a way that ONNX has not")
    if "src" in a:
        if shape(a["src"]) != where:
            raise to.refuse(node, "takes a part of what it scatters")
        rows = to.value(a["src"])
    else:
        value = to.operand(f"{name}.value", a["value"], node.meta["val"].dtype)
        rows = to.emit("Expand", f"{name}.values", [value, to.constant(f"{name}.shape", where)])
    index = to.operand(f"{name}.index", a["index"], torch.int64)
    operands = [to.value(a["self"]), index, rows]
    to.values[node] = to.emit("ScatterElements", name, operands, axis=a["dim"], reduction=how)


@rule("one_hot")
def _one_hot(to: Exporter, node: Node) -> None:
    a, name = arguments(node), to.path(node)
    depth = to.constant(f"{name}.depth", [shape(node)[-1]])
    values = to.constant(f"{name}.values", [0, 1])
    index = to.operand(name, a["self"], torch.int64)
    value = to.emit("OneHot", name, [index, depth, values], axis=-1)
    to.values[node] = to.emit("Cast", f"{name}.cast", [value], to=ELEMENT[node.meta["val"].dtype])
