"""Operators that move or rename bytes: views, slices, concatenation, padding, indexing."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import torch
from onnx import helper

from onchip.readers.torch_export.exporter import Exporter, Node, arguments, kind_of, rule, shape
from onchip.readers.torch_export.layers import float_constant

LAST = (1 << 63) - 1
"""The end of a slice that goes to the end, at whatever size."""


def source_of(node: Node) -> Node:
    """Return the first operand."""
    source = node.args[0]
    assert isinstance(source, Node)
    return source


@rule(
    "dropout", "feature_dropout", "alpha_dropout", "native_dropout", "contiguous", "clone", "alias", "detach",
    "lift_fresh", "lift_fresh_copy", "positive", "expand_copy", "resolve_conj", "resolve_neg",
)  # fmt: skip
def _same(to: Exporter, node: Node) -> None:
    if kind_of(node) == "expand_copy":
        _expand(to, node)
        return
    value = to.value(source_of(node))
    if isinstance(node.meta["val"], torch.Tensor):
        to.values[node] = value
    else:
        to.parts[node] = [value]


@rule("flatten")
def _flatten(to: Exporter, node: Node) -> None:
    a = arguments(node)
    if (a["start_dim"], a["end_dim"]) == (1, -1):
        to.values[node] = to.emit("Flatten", to.path(node), [to.value(source_of(node))], axis=1)
    else:
        _view(to, node)


@rule(
    "view", "reshape", "unflatten", "unsqueeze", "squeeze", "view_as", "reshape_as", "_unsafe_view",
    "view_copy", "unsqueeze_copy", "squeeze_copy", "ravel",
)  # fmt: skip
def _view(to: Exporter, node: Node) -> None:
    source = source_of(node)
    if (
        math.prod(shape(source)) != math.prod(shape(node))
        or source.meta["val"].dtype != node.meta["val"].dtype
    ):
        raise to.refuse(node, "sees the bytes as another element type")
    name, target = to.path(node), ""
    if not all(isinstance(size, int) for size in node.meta["val"].shape):
        target = to.sizes(f"{name}.shape", node)
    to.values[node] = to.reshape(name, to.value(source), shape(source), shape(node), target)


@rule("expand", "expand_as", "broadcast_to")
def _expand(to: Exporter, node: Node) -> None:
    source = source_of(node)
    if math.prod(shape(source)) == math.prod(shape(node)):
        _view(to, node)
        return
    name = to.path(node)
    target = to.constant(f"{name}.shape", shape(node))
    to.values[node] = to.emit("Expand", name, [to.value(source), target])


@rule("repeat", "tile")
def _repeat(to: Exporter, node: Node) -> None:
    source, name = source_of(node), to.path(node)
    times = list(arguments(node)["repeats" if kind_of(node) == "repeat" else "dims"])
    here = shape(source)
    times = [1] * (len(here) - len(times)) + times
    full = [1] * (len(times) - len(here)) + here
    value = to.reshape(f"{name}.rank", to.value(source), here, full)
    to.values[node] = to.emit("Tile", name, [value, to.constant(f"{name}.times", times)])


@rule("repeat_interleave")
def _repeat_interleave(to: Exporter, node: Node) -> None:
    a = arguments(node)
    if not isinstance(a["repeats"], int) or a["dim"] is None:
        raise to.refuse(node, "repeats by a tensor or without an axis")
    source, name = source_of(node), to.path(node)
    here, axis = shape(source), a["dim"] % len(shape(source))
    apart = [*here[: axis + 1], 1, *here[axis + 1 :]]
    wide = [*here[: axis + 1], a["repeats"], *here[axis + 1 :]]
    value = to.reshape(f"{name}.apart", to.value(source), here, apart)
    value = to.emit("Expand", f"{name}.expand", [value, to.constant(f"{name}.shape", wide)])
    to.values[node] = to.reshape(name, value, wide, shape(node))


# ---------------------------------------------------------------------- transposing


@rule(
    "transpose", "permute", "t", "numpy_T", "mT", "matrix_H", "swapaxes", "swapdims", "movedim", "moveaxis",
    "transpose_copy", "permute_copy", "t_copy",
)  # fmt: skip
def _transpose(to: Exporter, node: Node) -> None:
    source, rank = source_of(node), len(shape(node))
    order = _order(node, rank)
    moved = [axis for axis in order if shape(source)[axis] != 1]
    if moved == sorted(moved):
        to.values[node] = to.reshape(to.path(node), to.value(source), shape(source), shape(node))
    else:
        to.values[node] = to.emit("Transpose", to.path(node), [to.value(source)], perm=order)


def _order(node: Node, rank: int) -> list[int]:
    kind, order = kind_of(node).removesuffix("_copy"), list(range(rank))
    if kind == "permute":
        return [axis % rank for axis in node.args[1]]
    if kind in ("movedim", "moveaxis"):
        sources, targets = (
            [axis % rank for axis in ([given] if isinstance(given, int) else given)]
            for given in node.args[1:3]
        )
        rest = iter(axis for axis in order if axis not in sources)
        return [sources[targets.index(i)] if i in targets else next(rest) for i in order]
    if kind == "numpy_T":
        return order[::-1]
    if kind in ("t", "mT", "matrix_H"):
        first, second = (rank - 2, rank - 1) if rank > 1 else (0, 0)
    else:
        first, second = (axis % rank for axis in node.args[1:3])
    order[first], order[second] = second, first
    return order


# ---------------------------------------------------------------------- parts


def cut(to: Exporter, name: str, value: str, axis: int, start: int, end: int, step: int = 1) -> str:
    """Emit a `Slice` along one axis."""
    bounds = {"starts": start, "ends": end, "axes": axis}
    operands = [to.constant(f"{name}.{key}", [bound]) for key, bound in bounds.items()]
    if step != 1:
        operands.append(to.constant(f"{name}.steps", [step]))
    return to.emit("Slice", name, [value, *operands])


@rule("select", "select_copy")
def _select(to: Exporter, node: Node) -> None:
    """Emit one index of an axis: a slice, so that a reader sees its bytes, and a reshape."""
    source, axis, index = node.args
    assert isinstance(source, Node)
    if not isinstance(axis, int) or not isinstance(index, int):
        raise to.refuse(node, "takes an index that is computed")
    axis %= len(shape(source))
    index %= shape(source)[axis]
    name = to.path(node)
    value = cut(to, name, to.value(source), axis, index, index + 1)
    kept = [1 if i == axis else size for i, size in enumerate(shape(source))]
    to.values[node] = to.reshape(f"{name}.reshape", value, kept, shape(node))


@rule("slice", "slice_copy", "narrow")
def _slice(to: Exporter, node: Node) -> None:
    a = arguments(node)
    source = source_of(node)
    axis = a["dim"] % len(shape(source))
    size = shape(source)[axis]
    if kind_of(node) == "narrow":
        a["start"] %= size
        a["end"] = a["start"] + a["length"]
        found = range(a["start"], a["end"])
    else:
        if any(isinstance(a[key], Node) for key in ("start", "end")):
            raise to.refuse(node, "takes a range that is computed")
        found = range(size)[a["start"] : a["end"] : a["step"]]
    if len(found) == size:
        to.values[node] = to.value(source)
        return
    if not found:
        raise to.refuse(node, "has zero bytes")
    open_ended = a["end"] is None or a["end"] >= size
    end = LAST if open_ended else found[-1] + 1
    to.values[node] = cut(to, to.path(node), to.value(source), axis, found[0], end, found.step)


@rule("chunk", "split", "split_with_sizes", "tensor_split", "unsafe_split", "unsafe_chunk", "split_copy")
def _split(to: Exporter, node: Node) -> None:
    source = source_of(node)
    axis = int(arguments(node)["dim"]) % len(shape(source))
    parts = [int(part.shape[axis]) for part in node.meta["val"]]
    name = to.unique(to.path(node))
    outputs = [to.unique(f"{name}.{index}") for index in range(len(parts))]
    operands = [to.value(source), to.constant(f"{name}.sizes", parts)]
    to.nodes.append(helper.make_node("Split", operands, outputs, name=name, axis=axis))
    to.parts[node] = outputs


@rule("unbind")
def _unbind(to: Exporter, node: Node) -> None:
    source, name = source_of(node), to.path(node)
    here = shape(source)
    axis = int(arguments(node)["dim"]) % len(here)
    kept = [1 if i == axis else size for i, size in enumerate(here)]
    sizes = to.constant(f"{name}.sizes", [1] * here[axis])
    parts = to.emit_many("Split", name, [to.value(source), sizes], here[axis], axis=axis)
    gone = here[:axis] + here[axis + 1 :]
    to.parts[node] = [to.reshape(f"{part}.reshape", part, kept, gone) for part in parts]


@rule("slice_scatter", "select_scatter")
def _scatter(to: Exporter, node: Node) -> None:
    """Emit a tensor with a range of one axis replaced: the part before, the new part, the part behind."""
    a = arguments(node)
    source, name, value = source_of(node), to.path(node), to.value(a["src"])
    here = shape(source)
    axis = a["dim"] % len(here)
    if kind_of(node) == "select_scatter":
        start = a["index"] % here[axis]
        found = range(start, start + 1)
        kept = [1 if i == axis else size for i, size in enumerate(here)]
        value = to.reshape(f"{name}.part", value, shape(a["src"]), kept)
    else:
        found = range(here[axis])[a["start"] : a["end"] : a["step"]]
    if found.step != 1:
        raise to.refuse(node, "replaces every so many-th element")
    parts = [value]
    if found.start > 0:
        parts.insert(0, cut(to, f"{name}.before", to.value(source), axis, 0, found.start))
    if found.stop < here[axis]:
        parts.append(cut(to, f"{name}.behind", to.value(source), axis, found.stop, here[axis]))
    to.values[node] = to.emit("Concat", name, parts, axis=axis) if len(parts) > 1 else value


# ---------------------------------------------------------------------- putting together


@rule("cat", "concat", "concatenate")
def _cat(to: Exporter, node: Node) -> None:
    a = arguments(node)
    dtype = node.meta["val"].dtype
    parts = [t for t in a["tensors"] if shape(t) != [0]]
    operands = [to.operand(f"{to.path(node)}.part", t, dtype) for t in parts]
    to.values[node] = to.emit("Concat", to.path(node), operands, axis=a["dim"])


@rule("stack")
def _stack(to: Exporter, node: Node) -> None:
    a = arguments(node)
    name, axis = to.path(node), a["dim"] % len(shape(node))
    parts = []
    for tensor in a["tensors"]:
        here = shape(tensor)
        parts.append(to.reshape(f"{name}.part", to.value(tensor), here, [*here[:axis], 1, *here[axis:]]))
    to.values[node] = to.emit("Concat", name, parts, axis=axis)


@rule(
    "pad", "constant_pad_nd", "reflection_pad1d", "reflection_pad2d", "replication_pad1d", "replication_pad2d"
)
def _pad(to: Exporter, node: Node) -> None:
    """Emit a `Pad`: torch lists (before, after) from the last axis on, ONNX all befores, then all afters."""
    a = arguments(node)
    kind = kind_of(node)
    modes = {"constant": "constant", "reflect": "reflect", "replicate": "edge", "circular": "wrap"}
    mode = modes[a.get("mode", {"refl": "reflect", "repl": "replicate"}.get(kind[:4], "constant"))]
    name, rank = to.path(node), len(shape(node))
    given = list(a["pad"] if "pad" in a else a["padding"])
    amounts = given + [0] * (2 * rank - len(given))
    before, after = amounts[-2::-2], amounts[::-2]
    operands = [to.value(a["self"]), to.constant(f"{name}.pads", before + after)]
    if a.get("value"):
        operands.append(float_constant(to, f"{name}.value", a["value"], node.meta["val"].dtype))
    settings = {} if mode == "constant" else {"mode": mode}
    to.values[node] = to.emit("Pad", name, operands, **settings)


@rule("roll")
def _roll(to: Exporter, node: Node) -> None:
    a = arguments(node)
    source, name = source_of(node), to.path(node)
    if not a["dims"]:
        raise to.refuse(node, "rolls without an axis")
    value = to.value(source)
    for shift, dim in zip(a["shifts"], a["dims"], strict=True):
        axis = dim % len(shape(source))
        size = shape(source)[axis]
        start = -shift % size
        if start:
            parts = [
                cut(to, f"{name}.end", value, axis, start, size),
                cut(to, f"{name}.begin", value, axis, 0, start),
            ]
            value = to.emit("Concat", name, parts, axis=axis)
    to.values[node] = value


@rule("flip")
def _flip(to: Exporter, node: Node) -> None:
    source, name = source_of(node), to.path(node)
    axes = [axis % len(shape(source)) for axis in arguments(node)["dims"]]
    settings: dict[str, Any] = {
        "starts": [-1] * len(axes),
        "ends": [np.iinfo(np.int64).min + 1] * len(axes),
        "axes": axes,
        "steps": [-1] * len(axes),
    }
    operands = [to.constant(f"{name}.{key}", value) for key, value in settings.items()]
    to.values[node] = to.emit("Slice", name, [to.value(source), *operands])


# ---------------------------------------------------------------------- indexing


@rule("index_select")
def _index_select(to: Exporter, node: Node) -> None:
    a = arguments(node)
    to.values[node] = to.emit(
        "Gather", to.path(node), [to.value(a["self"]), to.value(a["index"])], axis=a["dim"]
    )


@rule("gather")
def _gather(to: Exporter, node: Node) -> None:
    a = arguments(node)
    operands = [to.value(a["self"]), to.value(a["index"])]
    to.values[node] = to.emit("GatherElements", to.path(node), operands, axis=a["dim"])


@rule("tril", "triu")
def _triangle(to: Exporter, node: Node) -> None:
    name = to.path(node)
    diagonal = to.constant(f"{name}.diagonal", arguments(node)["diagonal"])
    operands = [to.value(source_of(node)), diagonal]
    to.values[node] = to.emit("Trilu", name, operands, upper=int(kind_of(node) == "triu"))


@rule("fill")
def _fill(to: Exporter, node: Node) -> None:
    given, name = node.args[1], to.path(node)
    if not isinstance(given, Node):
        _filled(to, node)
    elif given in to.known:
        to.known[node] = torch.full(shape(node), to.known[given].item(), dtype=node.meta["val"].dtype)
    else:
        value = to.operand(name, given, node.meta["val"].dtype)
        to.values[node] = to.emit("Expand", name, [value, to.constant(f"{name}.shape", shape(node))])


@rule("zeros_like", "ones_like", "full_like", "new_zeros", "new_ones", "new_full", "empty_like", "new_empty")
def _filled(to: Exporter, node: Node) -> None:
    """Fold a filled tensor: only the shape of the operand is used."""
    a = arguments(node)
    fill = a.get("fill_value", a.get("value", 1 if "ones" in kind_of(node) else 0))
    value = node.meta["val"]
    to.known[node] = torch.full(shape(node), fill, dtype=value.dtype)
