"""The C of products and windows: matrices, convolutions, pools. Sums are of doubles, rounded once."""

from __future__ import annotations

from collections.abc import Sequence
from math import prod
from typing import TYPE_CHECKING

import numpy as np

from onchip.export.loops.nodes import Nodes, Rule, Value
from onchip.export.loops.order import Order, order_of
from onchip.export.loops.text import ctype, literal

if TYPE_CHECKING:
    import onnx

__all__ = ["PRODUCTS"]

F32 = np.dtype(np.float32)


def _finish(nodes: Nodes, node: onnx.NodeProto, product: Value, bias: str, factor: str = "") -> None:
    """Add a bias to a product; `bias` is written over i0, i1, ..."""
    if not bias and not factor:
        nodes.values[node.output[0]] = product
        return
    nodes.emit(node.output[0], lambda i: f"{product.at(i)}{factor}{bias}")


def _sum(
    nodes: Nodes,
    output: str,
    loops: Sequence[str],
    factors: tuple[str, str],
    end: str,
    shape: Sequence[int],
    order: Order | None = None,
    inner: int = 0,
    begin: str = "0.0f",
) -> Value:
    """Write a product: the sum of `factors` over loops, which `end` closes, of `inner` products in all.

    Of the one of which sums are left, what was summed before is added. `begin` is added first.
    """
    nodes.simple = nodes.simple and output == nodes.total
    a, b = factors
    before = ""
    if output == nodes.total:
        before = f"{nodes.prefix}_before({', '.join(f'i{n}' for n in range(len(shape)))})"
    if order is None or (before and order.four):
        last = f"return (float)(a + {before});" if before else "return (float)a;"
        lines = ["double a = 0.0;", *loops, f"a += (double){a} * (double){b};", end, last]
    elif order.four:
        lines = [
            f"float t = {begin}, a = 0.0f;", "ix n = 0;", f"const ix whole = {inner // 4 * 4};", *loops,
            f"const float p = {a} * {b};",
            "if (n >= whole) { t += p; } else { a = n % 4 == 0 ? p : a + p; if (n % 4 == 3) t += a; }",
            "++n;", end, "return t;",
        ]  # fmt: skip
    elif inner <= order.block:
        start = f"(float){before}" if before else "0.0f"
        last = "return a;" if begin == "0.0f" else f"return a + {begin};"
        lines = [f"float a = {start};", *loops, f"a = fmaf({a}, {b}, a);", end, last]
    else:
        # Of two sums, that of blocks and that in a block, one place holds one: then the last bit may differ.
        resumed = [f"if (n % {order.block} == 0) t = (float){before}; else a = (float){before};"]
        ends = ["return t + a;"]
        if before and nodes.pairs:
            at = before.partition("(")[2]
            resumed = [f"{nodes.prefix}_resume(&t, &a, {at};"]
            ends = [f"{nodes.prefix}_t = t;", f"{nodes.prefix}_a = a;", *ends]
            nodes.paired = True
            nodes.lines.append(f"static float {nodes.prefix}_t, {nodes.prefix}_a;")
        lines = [
            f"float t = {'0.0f' if before else begin}, a = 0.0f;",
            f"ix n = {nodes.begun(output, inner)};",
            *(resumed if before else []),
            *loops,
            f"a = fmaf({a}, {b}, a);",
            f"if (++n % {order.block} == 0) {{ t += a; a = 0.0f; }}",
            end,
            *ends,
        ]
    return nodes.emit(f"{output}@sum", lambda _: lines, keep=True, shape=shape, kind=F32)


def _matmul(nodes: Nodes, node: onnx.NodeProto) -> None:
    a, b = node.input
    left, right = nodes.value(a), nodes.value(b)
    shape = nodes.shape(node.output[0])
    rank = len(shape)
    if min(len(left.shape), len(right.shape)) < 2 or left.kind != F32 or right.kind != F32:
        raise nodes.refuse("a product with a vector, or of whole numbers")
    size = left.shape[-1]
    loops, index = nodes.over(node.output[0], size, "k")
    names = [f"i{n}" for n in range(rank)]

    def own(value: Value, last: list[str]) -> str:
        outer = names[rank - len(value.shape) : rank - 2]
        return value.at([*("0" if n == 1 else i for i, n in zip(outer, value.shape, strict=False)), *last])

    rows = prod(left.shape[:-1]) if len(right.shape) == 2 else left.shape[-2]
    order = order_of(rows, right.shape[-1], size) if nodes.rounded else None
    factors = own(left, [names[-2], "k"]), own(right, ["k", names[-1]])
    product = _sum(nodes, node.output[0], [*loops, f"{{ {index}"], factors, "}", shape, order, size)
    _finish(nodes, node, product, "")


def _gemm(nodes: Nodes, node: onnx.NodeProto) -> None:
    left, right = nodes.value(node.input[0]), nodes.value(node.input[1])
    turned = [bool(nodes.number(node, name, 0)) for name in ("transA", "transB")]
    alpha, beta = nodes.number(node, "alpha", 1.0), nodes.number(node, "beta", 1.0)
    size = left.shape[0 if turned[0] else 1]
    loops, index = nodes.over(node.output[0], size, "k")
    one = left.at(["k", "i0"] if turned[0] else ["i0", "k"])
    other = right.at(["i1", "k"] if turned[1] else ["k", "i1"])
    shape = nodes.shape(node.output[0])
    bias = ""
    if len(node.input) > 2 and node.input[2]:
        bias = f" + {nodes.broadcast(node.input[2], ['i0', 'i1'])}"
        bias += "" if beta == 1.0 else f" * {literal(np.float32(beta), F32)}"
    factor = "" if alpha == 1.0 else f" * {literal(np.float32(alpha), F32)}"
    order = order_of(shape[0], shape[1], size) if nodes.rounded and alpha == 1.0 else None
    begin = "0.0f"
    if order is not None and bias and node.output[0] != nodes.total:
        begin, bias = bias.removeprefix(" + "), ""
    opened = [*loops, f"{{ {index}"]
    product = _sum(nodes, node.output[0], opened, (one, other), "}", shape, order, size, begin)
    _finish(nodes, node, product, bias, factor)


def _windows(
    nodes: Nodes, node: onnx.NodeProto, sizes: Sequence[int], kernel: Sequence[int], made: Sequence[int]
) -> tuple[list[int], list[int], list[int]]:
    """Return the strides, dilations and the padding before the first position, of each dimension."""
    rank = len(kernel)
    strides = nodes.whole(node, 0, "strides") or [1] * rank
    dilations = nodes.whole(node, 0, "dilations") or [1] * rank
    pads = nodes.whole(node, 0, "pads") or [0] * (2 * rank)
    auto = nodes.text(node, "auto_pad", "NOTSET")
    if auto.startswith("SAME"):
        pads = []
        for size, out, k, stride, dilation in zip(sizes, made, kernel, strides, dilations, strict=True):
            more = max(0, (out - 1) * stride + (k - 1) * dilation + 1 - size)
            pads.append(more // 2 if auto == "SAME_UPPER" else more - more // 2)
    return strides, dilations, pads[:rank]


def _slide(
    sizes: Sequence[int],
    windows: tuple[list[int], list[int], list[int]],
    kernel: Sequence[int],
    *,
    skip: bool = True,
) -> list[str]:
    """Return loops over a window's places y0, y1, ... of taps k0, k1, ...; with `skip` those in the map."""
    strides, dilations, pads = windows
    lines = []
    for n, (size, k) in enumerate(zip(sizes, kernel, strict=True)):
        lines.append(f"for (ix k{n} = 0; k{n} < {k}; ++k{n}) {{")
        lines.append(f"const ix y{n} = i{n + 2} * {strides[n]} - {pads[n]} + k{n} * {dilations[n]};")
        if skip:
            lines.append(f"if (y{n} < 0 || y{n} >= {size}) continue;")
    return lines


def _conv(nodes: Nodes, node: onnx.NodeProto) -> None:
    x, w = nodes.value(node.input[0]), nodes.value(node.input[1])
    shape = nodes.shape(node.output[0])
    groups = int(nodes.number(node, "group", 1))
    kernel, sizes = w.shape[2:], x.shape[2:]
    windows = _windows(nodes, node, sizes, kernel, shape[2:])
    inside, outside = w.shape[1], w.shape[0] // groups
    if groups > 1 and node.output[0] == nodes.total:
        raise nodes.refuse("a sum of a convolution in groups is cut")
    loops, index = nodes.over(node.output[0], inside, "c")
    taps, places = [f"k{n}" for n in range(len(kernel))], [f"y{n}" for n in range(len(kernel))]
    channel = "c" if groups == 1 else f"i1 / {outside} * {inside} + c"
    order, inner = None, inside * prod(kernel)
    if nodes.rounded:
        order = order_of(outside, prod(shape[2:]), inner)
    element = x.at(["i0", channel, *places])
    if order is None:
        opened = [*loops, f"{{ {index}", *_slide(sizes, windows, kernel)]
    else:
        opened = [*loops, f"{{ {index}", *_slide(sizes, windows, kernel, skip=False)]
        there = " && ".join(f"y{n} >= 0 && y{n} < {size}" for n, size in enumerate(sizes))
        opened.append(f"const float v = {there} ? {element} : 0.0f;")
        element = "v"
    factors = element, w.at(["i1", "c", *taps])
    end = "}" * (len(kernel) + 1)
    product = _sum(nodes, node.output[0], opened, factors, end, shape, order, inner)
    bias = f" + {nodes.value(node.input[2]).at(['i1'])}" if len(node.input) > 2 and node.input[2] else ""
    _finish(nodes, node, product, bias)


def _transposed(nodes: Nodes, node: onnx.NodeProto) -> None:
    x, w = nodes.value(node.input[0]), nodes.value(node.input[1])
    shape = nodes.shape(node.output[0])
    groups = int(nodes.number(node, "group", 1))
    kernel, sizes = w.shape[2:], x.shape[2:]
    strides, dilations, pads = _windows(nodes, node, sizes, kernel, shape[2:])
    if nodes.text(node, "auto_pad", "NOTSET") not in ("NOTSET", "VALID") or node.output[0] == nodes.total:
        raise nodes.refuse("a transposed convolution whose sum is cut, or that pads by itself")
    outside, inside = w.shape[1], x.shape[1] // groups
    body = [f"for (ix c = 0; c < {inside}; ++c) {{"]
    for n, (size, k) in enumerate(zip(sizes, kernel, strict=True)):
        body += [
            f"for (ix k{n} = 0; k{n} < {k}; ++k{n}) {{",
            f"const ix z{n} = i{n + 2} + {pads[n]} - k{n} * {dilations[n]};",
            f"const ix y{n} = z{n} / {strides[n]};",
            f"if (z{n} < 0 || z{n} % {strides[n]} != 0 || y{n} >= {size}) continue;",
        ]
    channel = "c" if groups == 1 else f"i1 / {outside} * {inside} + c"
    filters = "i1" if groups == 1 else f"i1 % {outside}"
    taps, places = [f"k{n}" for n in range(len(kernel))], [f"y{n}" for n in range(len(kernel))]
    factors = x.at(["i0", channel, *places]), w.at([channel, filters, *taps])
    bias = f" + {nodes.value(node.input[2]).at(['i1'])}" if len(node.input) > 2 and node.input[2] else ""
    end = "}" * (len(kernel) + 1)
    _finish(nodes, node, _sum(nodes, node.output[0], body, factors, end, shape), bias)


def _pool(nodes: Nodes, node: onnx.NodeProto) -> None:
    nodes.simple = False
    x, shape = nodes.value(node.input[0]), nodes.shape(node.output[0])
    kernel = nodes.whole(node, 0, "kernel_shape") or []
    sizes = x.shape[2:]
    windows = _windows(nodes, node, sizes, kernel, shape[2:])
    if len(node.output) > 1 and node.output[1]:
        raise nodes.refuse("a pool that gives places, too")
    places = [f"y{n}" for n in range(len(kernel))]
    element = x.at(["i0", "i1", *places])
    if node.op_type == "MaxPool":
        c = ctype(x.kind)
        least = "-INFINITY" if x.kind.kind == "f" else literal(np.iinfo(x.kind).min, x.kind)
        body = [
            f"{c} a = {least};",
            *_slide(sizes, windows, kernel),
            f"const {c} v = {element};",
            "if (v > a) a = v;",
            "}" * len(kernel),
            "return a;",
        ]
        nodes.emit(node.output[0], lambda _: body, keep=True)
        return
    if nodes.number(node, "count_include_pad", 0):
        # Places beyond the padding, as rounding up makes them, do not count.
        strides, _, pads = windows
        ends = nodes.whole(node, 0, "pads") or [0] * (2 * len(kernel))
        counts = [
            f"(min_ix(i{n + 2} * {strides[n]} - {pads[n]} + {k}, {size + ends[len(kernel) + n]})"
            f" - (i{n + 2} * {strides[n]} - {pads[n]}))"
            for n, (size, k) in enumerate(zip(sizes, kernel, strict=True))
        ]
        count, add = f"(double)({' * '.join(counts)})", ""
    else:
        count, add = "(double)n", " ++n;"
    body = [
        "double a = 0.0;",
        *(["ix n = 0;"] if add else []),
        *_slide(sizes, windows, kernel),
        f"a += (double){element};{add}",
        "}" * len(kernel),
        f"return (float)(a / {count});",
    ]
    nodes.emit(node.output[0], lambda _: body, keep=True)


def _einsum(nodes: Nodes, node: onnx.NodeProto) -> None:
    text = nodes.text(node, "equation", "").replace(" ", "")
    given, arrow, result = text.partition("->")
    terms = given.split(",")
    values = [nodes.value(name) for name in node.input]
    if not arrow or "." in text or node.output[0] == nodes.total:
        raise nodes.refuse("an equation with dots, or whose sum is cut")
    sizes = {
        letter: n
        for term, v in zip(terms, values, strict=True)
        for letter, n in zip(term, v.shape, strict=True)
    }
    index = {letter: f"i{n}" for n, letter in enumerate(result)}
    summed = [letter for letter in sizes if letter not in result]
    index |= {letter: f"k{n}" for n, letter in enumerate(summed)}
    one, *rest = (v.at([index[letter] for letter in term]) for term, v in zip(terms, values, strict=True))
    loops = [f"for (ix {index[x]} = 0; {index[x]} < {sizes[x]}; ++{index[x]})" for x in summed]
    factors = one, " * (double)".join(rest) or "1.0f"
    _finish(nodes, node, _sum(nodes, node.output[0], loops, factors, "", nodes.shape(node.output[0])), "")


PRODUCTS: dict[str, Rule] = {
    "AveragePool": _pool,
    "Conv": _conv,
    "ConvTranspose": _transposed,
    "Einsum": _einsum,
    "Gemm": _gemm,
    "MatMul": _matmul,
    "MaxPool": _pool,
}
