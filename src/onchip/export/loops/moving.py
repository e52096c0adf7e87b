"""The C of nodes that move elements: shapes, parts, maps of another size."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from onchip.export.loops.nodes import Nodes, Rule
from onchip.export.loops.text import literal, regrouped

if TYPE_CHECKING:
    import onnx

__all__ = ["MOVING"]

F32 = np.dtype(np.float32)


def _same_order(nodes: Nodes, node: onnx.NodeProto) -> None:
    value, shape = nodes.value(node.input[0]), nodes.shape(node.output[0])
    nodes.emit(node.output[0], lambda i: value.at(regrouped(i, shape, value.shape)))


def _transpose(nodes: Nodes, node: onnx.NodeProto) -> None:
    nodes.simple = False
    value = nodes.value(node.input[0])
    order = nodes.whole(node, 0, "perm") or list(reversed(range(len(value.shape))))
    nodes.emit(node.output[0], lambda i: value.at([i[order.index(n)] for n in range(len(order))]))


def _concat(nodes: Nodes, node: onnx.NodeProto) -> None:
    nodes.simple = False
    values = [nodes.value(name) for name in node.input]
    axis = int(nodes.number(node, "axis", 0)) % len(values[0].shape)

    def made(i: list[str]) -> list[str]:
        found, first = [], 0
        for n, value in enumerate(values, 1):  # one value may come more than once
            own = list(i)
            own[axis] = f"{i[axis]} - {first}"
            first += value.shape[axis]
            call = f"return {value.at(own)};"
            found.append(call if n == len(values) else f"if ({i[axis]} < {first}) {call}")
        return found

    nodes.emit(node.output[0], made)


def _slice(nodes: Nodes, node: onnx.NodeProto) -> None:
    nodes.simple = False
    value = nodes.value(node.input[0])
    starts, axes, steps = (
        nodes.whole(node, at, name) for at, name in ((1, "starts"), (3, "axes"), (4, "steps"))
    )
    assert starts is not None
    axes = list(range(len(starts))) if axes is None else [axis % len(value.shape) for axis in axes]
    steps = steps or [1] * len(axes)

    def made(i: list[str]) -> str:
        own = list(i)
        for axis, start, step in zip(axes, starts, steps, strict=True):
            size = value.shape[axis]
            begin = start + size if start < 0 else start
            begin = min(max(begin, 0), size - 1 if step < 0 else size)
            own[axis] = f"{begin} + {i[axis]} * ({step})"
        return value.at(own)

    nodes.emit(node.output[0], made)


def _split(nodes: Nodes, node: onnx.NodeProto) -> None:
    nodes.simple = False
    value = nodes.value(node.input[0])
    axis, first = int(nodes.number(node, "axis", 0)) % len(value.shape), 0
    for name in node.output:
        begin = first
        first += nodes.shape(name)[axis]
        nodes.emit(
            name,
            lambda i, b=begin: value.at([f"{x} + {b}" if n == axis else x for n, x in enumerate(i)]),  # type: ignore[misc]
        )


def _gather(nodes: Nodes, node: onnx.NodeProto) -> None:
    nodes.simple = False
    value, picked = nodes.value(node.input[0]), nodes.value(node.input[1])
    axis = int(nodes.number(node, "axis", 0)) % len(value.shape)
    deep = len(picked.shape)

    def made(i: list[str]) -> list[str]:
        at = picked.at(i[axis : axis + deep])
        return [
            f"const ix at = (ix){at};",
            f"const ix from = at < 0 ? at + {value.shape[axis]} : at;",
            f"return {value.at([*i[:axis], 'from', *i[axis + deep :]])};",
        ]

    nodes.emit(node.output[0], made)


def _expand(nodes: Nodes, node: onnx.NodeProto) -> None:
    nodes.simple = False
    nodes.emit(node.output[0], lambda i: nodes.broadcast(node.input[0], i))


def _tile(nodes: Nodes, node: onnx.NodeProto) -> None:
    nodes.simple = False
    value = nodes.value(node.input[0])
    nodes.emit(
        node.output[0], lambda i: value.at([f"{x} % {n}" for x, n in zip(i, value.shape, strict=True)])
    )


def _deeper(nodes: Nodes, node: onnx.NodeProto) -> None:
    nodes.simple = False
    value, size = nodes.value(node.input[0]), int(nodes.number(node, "blocksize", 1))
    n, c, h, w = value.shape
    if node.op_type == "SpaceToDepth":
        parts, order = [n, c, h // size, size, w // size, size], [0, 3, 5, 1, 2, 4]
    elif nodes.text(node, "mode", "DCR") == "CRD":
        parts, order = [n, c // size**2, size, size, h, w], [0, 1, 4, 2, 5, 3]
    else:
        parts, order = [n, size, size, c // size**2, h, w], [0, 3, 4, 1, 5, 2]
    shape = nodes.shape(node.output[0])

    def made(i: list[str]) -> str:
        turned = regrouped(i, shape, [parts[k] for k in order])
        return value.at(regrouped([turned[order.index(k)] for k in range(6)], parts, value.shape))

    nodes.emit(node.output[0], made)


def _pad(nodes: Nodes, node: onnx.NodeProto) -> None:
    nodes.simple = False
    value, pads = nodes.value(node.input[0]), nodes.whole(node, 1, "pads")
    assert pads is not None
    rank = len(value.shape)
    if nodes.text(node, "mode", "constant") != "constant" or len(pads) != 2 * rank:
        raise nodes.refuse("padding that repeats the map")
    fill = 0.0
    if len(node.input) > 2 and node.input[2]:
        fill = nodes.scalar(node.input[2])

    def made(i: list[str]) -> list[str]:
        lines, own = [], list(i)
        for n in range(rank):
            if pads[n] or pads[rank + n]:
                lines.append(f"const ix p{n} = {i[n]} - ({pads[n]});")
                lines.append(f"if (p{n} < 0 || p{n} >= {value.shape[n]}) return {literal(fill, value.kind)};")
                own[n] = f"p{n}"
        return [*lines, f"return {value.at(own)};"]

    nodes.emit(node.output[0], made)


def _resize(nodes: Nodes, node: onnx.NodeProto) -> None:
    nodes.simple = False
    value, shape = nodes.value(node.input[0]), nodes.shape(node.output[0])
    mode = nodes.text(node, "mode", "nearest")
    how = nodes.text(node, "coordinate_transformation_mode", "half_pixel")
    how = "asymmetric" if node.op_type == "Upsample" else how
    nearest = nodes.text(node, "nearest_mode", "round_prefer_floor")
    cut = [n for n in range(len(shape)) if shape[n] != value.shape[n]]
    if mode not in ("nearest", "linear") or how not in (
        "asymmetric",
        "half_pixel",
        "pytorch_half_pixel",
        "align_corners",
    ):
        raise nodes.refuse(f"a resize that is {mode} and {how}")
    stated = node.input[2] if len(node.input) > 2 else node.input[1] if node.op_type == "Upsample" else ""
    scales = (
        nodes.constants[stated].reshape(-1)
        if stated in nodes.constants and nodes.constants[stated].size
        else None
    )

    def place(n: int, i: str) -> str:
        scale = np.float32(shape[n] / value.shape[n] if scales is None else scales[n])
        if how == "align_corners":
            return f"(float){i} * {value.shape[n] - 1}.0f / {max(shape[n] - 1, 1)}.0f"
        if how == "asymmetric":
            return f"(float){i} / {literal(scale, F32)}"
        if how == "pytorch_half_pixel" and shape[n] == 1:
            return "0.0f"
        return f"((float){i} + 0.5f) / {literal(scale, F32)} - 0.5f"

    if mode == "nearest":
        rounds = {
            "floor": "floorf(x)",
            "ceil": "ceilf(x)",
            "round_prefer_floor": "ceilf(x - 0.5f)",
            "round_prefer_ceil": "floorf(x + 0.5f)",
        }

        def made(i: list[str]) -> str:
            own = list(i)
            for n in cut:
                own[n] = f"nearest({rounds[nearest].replace('x', place(n, i[n]))}, {value.shape[n]})"
            return value.at(own)

        nodes.emit(node.output[0], made)
        return
    if len(cut) > 2:
        raise nodes.refuse("a linear resize of more than two dimensions")

    def mixed(i: list[str]) -> list[str]:
        lines, own = [], list(i)
        for n in cut:
            size = value.shape[n]
            lines.append(f"const float f{n} = fminf(fmaxf({place(n, i[n])}, 0.0f), {size - 1}.0f);")
            lines.append(f"const ix l{n} = (ix)f{n}, h{n} = l{n} + 1 < {size} ? l{n} + 1 : l{n};")
            lines.append(f"const float w{n} = f{n} - (float)l{n};")
        terms = [("", list(own))]
        for n in cut:
            terms = [
                (f"{weight}{part} * ", [side if k == n else x for k, x in enumerate(index)])
                for weight, index in terms
                for part, side in ((f"(1.0f - w{n})", f"l{n}"), (f"w{n}", f"h{n}"))
            ]
        return [*lines, "return " + " + ".join(f"{weight}{value.at(index)}" for weight, index in terms) + ";"]

    nodes.emit(node.output[0], mixed)


MOVING: dict[str, Rule] = {
    **dict.fromkeys(("Reshape", "Flatten", "Squeeze", "Unsqueeze", "Identity", "Dropout"), _same_order),
    **dict.fromkeys(("DepthToSpace", "SpaceToDepth"), _deeper),
    **dict.fromkeys(("Resize", "Upsample"), _resize),
    "Concat": _concat,
    "Expand": _expand,
    "Gather": _gather,
    "Pad": _pad,
    "Slice": _slice,
    "Split": _split,
    "Tile": _tile,
    "Transpose": _transpose,
}
