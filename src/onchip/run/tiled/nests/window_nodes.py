"""The rules of nodes over whose operands windows slide: convolutions, pools, pads, resizes.

A node runs on the rows that its box needs. What its windows read beyond the map it gets as padding: just as
much as is missing there. A node that makes several rows of each makes all that its rows give, of which the
box takes its own.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from onchip.network.operators import Side
from onchip.run.tiled.nests.boxed import Boxed
from onchip.run.tiled.nests.forms import (
    FULL,
    PART,
    Atom,
    Dim,
    NotCompact,
    Span,
    extent,
    is_cut,
    is_whole,
    range_of,
    size_of,
    tidy,
)

if TYPE_CHECKING:
    import onnx

__all__ = ["join", "pad", "padding", "pool", "resize", "sliding", "spatial", "transposed"]

Spans = Sequence[Span]


@dataclass(frozen=True, slots=True)
class Slid:
    """Windows along one dimension: that of the result, and the positions missing before and behind a box."""

    dim: Dim
    missing: Callable[[Spans], tuple[int, int]]


def slid(dim: Dim, size: int, made: int, stride: int, before: int, span: int) -> Slid:
    """Return windows of `span` over a dimension of `size`, the first `before` positions ahead of it.

    Raises `NotCompact` where the box has other positions than these windows need.
    """
    behind = max(0, (made - 1) * stride + span - before - size)
    if max(before, behind) >= span and (before or behind):
        raise NotCompact("padding is as wide as its windows")
    if is_whole(dim):
        return Slid(tidy([Atom(FULL, made)]), lambda _: (before, behind))
    if len(dim) != 1:
        raise NotCompact("windows slide over several axes in one")
    [atom] = dim
    if atom.axis == PART and atom.first == 0:
        left = max(0, (made - 1) * stride + span - before - atom.count)
        return Slid(tidy([Atom(FULL, made)]), lambda _: (before, left))
    exact = (stride, before, span, made) == (1, 0, 1, size)
    if atom.axis >= 0 and atom.window is None and exact:
        return Slid(dim, lambda _: (0, 0))
    if atom.axis < 0 or atom.window is None:
        raise NotCompact("its windows are cut")
    w = atom.window
    if (w.stride, w.before, w.span, w.per) != (stride, before - atom.first, span, 1):
        raise NotCompact("other windows than its reach says slide over it")

    def missing(spans: Spans) -> tuple[int, int]:
        low, high = spans[atom.axis]
        count = atom.count or atom.size
        return max(0, w.before - low * stride), max(0, (high - 1) * stride - w.before + span - count)

    return Slid((Atom(atom.axis, made),), missing)


def spatial(boxed: Boxed, node: onnx.NodeProto, value: str, kernel: Sequence[int]) -> list[Slid]:
    """Return the windows of a convolution or pool over all dimensions of a value behind the second."""
    form, size = boxed.form(value)[2:], boxed.shape(value)[2:]
    made, rank = boxed.shape(node.output[0])[2:], len(boxed.shape(value)) - 2
    strides = boxed.setting(node, 0, "strides") or (1,) * rank
    dilations = boxed.setting(node, 0, "dilations") or (1,) * rank
    spans = [(k - 1) * d + 1 for k, d in zip(kernel, dilations, strict=True)]
    auto = next((a.s for a in node.attribute if a.name == "auto_pad"), b"NOTSET")
    before = (boxed.setting(node, 0, "pads") or (0,) * rank)[:rank]
    if auto != b"NOTSET":
        total = [
            max(0, (m - 1) * s + span - n) for m, s, span, n in zip(made, strides, spans, size, strict=True)
        ]
        more = auto == b"SAME_LOWER"
        before = tuple(0 if auto == b"VALID" else (n + more) // 2 for n in total)
    return [slid(*one) for one in zip(form, size, made, strides, before, spans, strict=True)]


def padding(windows: Sequence[Slid]) -> Callable[[Spans], dict[str, int | list[int]]]:
    """Return the attributes of a node with padding for what is missing."""

    def found(spans: Spans) -> dict[str, int | list[int]]:
        missing = [one.missing(spans) for one in windows]
        return {"pads": [n for n, _ in missing] + [n for _, n in missing]}

    return found


def sliding(
    pads: Callable[[Spans], dict[str, int | list[int]]], groups: Dim
) -> Callable[[Spans], dict[str, int | list[int]]]:
    """Return the attributes of a convolution with padding, and with the groups that are in the box."""
    return lambda spans: pads(spans) | {"group": extent(groups, spans)}


def pool(boxed: Boxed, node: onnx.NodeProto) -> None:
    """A maximum or mean of each window."""
    value = node.input[0]
    form = boxed.form(value)
    boxed.reorders |= node.op_type != "MaxPool"
    kernel = boxed.setting(node, 0, "kernel_shape") or ()
    windows = spatial(boxed, node, value, kernel)
    if any(node.output[1:]):
        raise NotCompact("the places of its maxima are read")
    pads = padding(windows)
    if boxed.number(node, "count_include_pad", 0) and boxed.number(node, "ceil_mode", 0):
        raise NotCompact("some of its padding counts, and some does not")
    ceil: dict[str, int | list[int]] = {"ceil_mode": 0} if boxed.number(node, "ceil_mode", 0) else {}
    boxed.keep(node, (*form[:2], *(one.dim for one in windows)))
    boxed.settings[node.output[0]] = lambda spans: pads(spans) | ceil


def pad(boxed: Boxed, node: onnx.NodeProto) -> None:
    """A constant around a map."""
    mode = next((a.s for a in node.attribute if a.name == "mode"), b"constant")
    amounts = boxed.setting(node, 1, "pads")
    if mode != b"constant" or amounts is None or (len(node.input) > 3 and node.input[3]):
        raise NotCompact("a pad of another mode has no rule for boxes")
    value = node.input[0]
    form, size, made = boxed.form(value), boxed.shape(value), boxed.shape(node.output[0])
    windows = []
    for dim, n, m, before in zip(form, size, made, amounts, strict=False):
        cut = is_whole(dim) and (before < 0 or m < n + before)
        if cut:
            raise NotCompact("a pad that cuts off has no rule for boxes")
        windows.append(_moved(dim, n, m, before))
    dims = tuple(one.dim for one in windows)
    if len(node.input) < 2:
        boxed.keep(node, dims)
        boxed.settings[node.output[0]] = padding(windows)
        return
    name = f"{node.output[0]}@pads"
    pads = padding(windows)
    boxed.fed[name] = lambda spans: np.array(pads(spans)["pads"], np.int64)
    boxed.keep(node, dims, {1: name})


def _moved(dim: Dim, size: int, made: int, before: int) -> Slid:
    """Return windows of one position that begin `before` positions ahead."""
    if is_whole(dim):
        return Slid(tidy([Atom(FULL, made)]), lambda _: (before, made - size - before))
    [atom] = dim if len(dim) == 1 else [Atom(FULL, 1)]
    if atom.axis >= 0 and atom.window is None and (before, made) == (0, size):
        return Slid(dim, lambda _: (0, 0))
    w = atom.window
    if atom.axis < 0 or w is None or (w.stride, w.before, w.span, w.per) != (1, before - atom.first, 1, 1):
        raise NotCompact("its padding is cut")

    def missing(spans: Spans) -> tuple[int, int]:
        low, high = spans[atom.axis]
        here = range_of(atom, spans)
        first = min(max(0, w.before - low), high - low)
        return first, high - low - first - (here[1] - here[0])

    return Slid((Atom(atom.axis, made),), missing)


def join(boxed: Boxed, node: onnx.NodeProto, places: Sequence[int], axis: int) -> None:
    """Join operands, the inputs at some places; where a box has parts of them, it takes its own."""
    import onnx

    operands = [node.input[at] for at in places]
    forms = [boxed.form(name) for name in operands]
    axis %= len(forms[0])
    wanted: dict[int, Dim] = {}
    for at in range(len(forms[0])):
        if at != axis:
            dims = [form[at] for form in forms]
            wanted[at] = next(filter(is_cut, dims), dims[0])
    names = [boxed.fitted(name, wanted) for name in operands]
    form = boxed.form(names[0])
    joined = tidy([Atom(FULL, sum(size_of(form[axis]) for form in forms))])
    made = (*form[:axis], joined, *form[axis + 1 :])
    changed = dict(zip(places, names, strict=True))
    if not any(_slides(form[axis]) for form in forms):
        for name in names:
            boxed.whole(name, [axis])
        boxed.keep(node, made, changed)
        return
    inner = onnx.NodeProto()
    inner.CopyFrom(node)
    inner.output[0] = f"{node.output[0]}@all"
    boxed.keep(inner, made, changed)
    _take(boxed, names, axis, inner.output[0], node.output[0])


def _take(boxed: Boxed, operands: Sequence[str], axis: int, made: str, output: str) -> None:
    """Take the box's own positions of a concat of which windows cut operands."""
    dims, before, atoms = [boxed.form(name)[axis] for name in operands], 0, list[Atom]()
    axes = {dim[0].axis for dim in dims if _slides(dim)}
    if len(axes) != 1:
        raise NotCompact("its operands are cut along several axes")
    [along] = axes
    for dim in dims:
        size = size_of(dim)
        atom = dim[0] if _slides(dim) else Atom(FULL, size)
        if not is_whole(dim) and (
            atom.window != Side(size, along, before=before) or (atom.first, atom.count) != (0, size)
        ):
            raise NotCompact("its operands are cut otherwise than its result")
        atoms.append(atom)
        before += size

    def places(spans: Spans) -> Any:
        low, high = spans[along]
        found, base, first = [], 0, 0
        for atom in atoms:
            here = range_of(atom, spans) if atom.axis >= 0 else (0, atom.size)
            a, b = max(low, first), min(high, first + atom.size)
            found.append(np.arange(a, b) - first - here[0] + base)
            base, first = base + here[1] - here[0], first + atom.size
        return np.concatenate(found).astype(np.int64)

    index = f"{output}@places"
    boxed.fed[index] = places
    form = boxed.form(made)
    boxed.emit(
        "Gather", [made, index], output, (*form[:axis], (Atom(along, before),), *form[axis + 1 :]), axis=axis
    )


def _slides(dim: Dim) -> bool:
    return len(dim) == 1 and dim[0].window is not None


def expanded(
    boxed: Boxed,
    source: str,
    made: str,
    factors: Mapping[int, tuple[int, int]],
    dims: Sequence[Dim],
    rows: Callable[[int, int], int],
) -> str:
    """Take the box's own positions of a value that its rows give, along some dimensions; return its name.

    `made` has, from a source's position i on, those from i * factor - `before` on (both by dimension);
    `dims` are the dimensions of the box, `rows` the positions that it has, by dimension and of the source's.
    """
    form = boxed.form(source)
    name = made
    out = list(boxed.form(made))
    for at, (factor, before) in factors.items():
        atom = form[at][0]

        def places(
            spans: Spans, at: int = at, atom: Atom = atom, factor: int = factor, before: int = before
        ) -> Any:
            low, high = spans[atom.axis]
            first, end = range_of(atom, spans)
            begin = (atom.first + first) * factor - before
            found = np.arange(low, high) - begin
            if len(found) and (found[0] < 0 or found[-1] >= rows(at, end - first)):
                return np.full(len(found), np.iinfo(np.int64).max)
            return found

        index = f"{made}@places{at}"
        boxed.fed[index] = places
        out[at] = dims[at]
        name = boxed.emit("Gather", [name, index], f"{index}/taken", tuple(out), axis=at)
    return name


def resize(boxed: Boxed, node: onnx.NodeProto) -> None:
    """Whole times as many positions: a box's rows give all of theirs, and it takes its own."""
    value = node.input[0]
    form, size, made = boxed.form(value), boxed.shape(value), boxed.shape(node.output[0])
    how = next((a.s for a in node.attribute if a.name == "coordinate_transformation_mode"), b"half_pixel")
    if len(node.input) > 2 and how not in (b"asymmetric", b"half_pixel", b"pytorch_half_pixel"):
        raise NotCompact("its rows are not resized alike")
    if any(a.name in ("axes", "antialias") and (a.i or a.ints) for a in node.attribute):
        raise NotCompact("a resize of some axes has no rule for boxes")
    factors: dict[int, tuple[int, int]] = {}
    dims: list[Dim] = []
    for at, (dim, n, m) in enumerate(zip(form, size, made, strict=True)):
        if n == m:
            dims.append(dim)
        elif is_whole(dim):
            dims.append(tidy([Atom(FULL, m)]))
        elif len(dim) == 1 and dim[0].window is not None and m % n == 0:
            factors[at] = (m // n, 0)
            dims.append((Atom(dim[0].axis, m),))
        else:
            raise NotCompact("it is resized by other than whole factors")
    import onnx

    boxed.reorders |= next((a.s for a in node.attribute if a.name == "mode"), b"nearest") != b"nearest"
    scales = np.array([m / n for n, m in zip(size, made, strict=True)], np.float32)
    inner = onnx.NodeProto()
    inner.CopyFrom(node)
    inner.output[0] = f"{node.output[0]}@all"
    old = len(node.input) == 2
    given = f"{node.output[0]}@scales"
    boxed.fold([(given, scales)])
    del inner.input[1:]
    inner.input.extend([given] if old else [node.input[1], given])
    boxed.keep(inner, tuple(dims))
    name = expanded(boxed, value, inner.output[0], factors, dims, lambda at, n: n * factors[at][0])
    boxed.emit("Identity", [name], node.output[0], tuple(dims))


def transposed(boxed: Boxed, node: onnx.NodeProto) -> None:
    """A transposed convolution, without padding: the box takes its own of what its rows give."""
    import onnx

    x, w = node.input[:2]
    form, shape, kernel = boxed.form(x), boxed.shape(x), boxed.shape(w)
    boxed.reorders = True
    rank = len(shape) - 2
    if any(
        a.name in ("auto_pad", "output_shape") and (a.s not in (b"", b"NOTSET") or a.ints)
        for a in node.attribute
    ):
        raise NotCompact("a transposed convolution of a stated size has no rule for boxes")
    made = boxed.shape(node.output[0])
    strides = boxed.setting(node, 0, "strides") or (1,) * rank
    dilations = boxed.setting(node, 0, "dilations") or (1,) * rank
    pads = boxed.setting(node, 0, "pads") or (0,) * (2 * rank)
    more = boxed.setting(node, 0, "output_padding") or (0,) * rank
    boxed.whole(x, [1])
    boxed.whole(w, [0] if boxed.number(node, "group", 1) == 1 else [0, 1])
    factors: dict[int, tuple[int, int]] = {}
    dims: list[Dim] = []
    kept = [list(pads[:rank]), list(pads[rank:])]
    reach = [(kernel[2 + i] - 1) * dilations[i] for i in range(rank)]
    for i in range(rank):
        dim = form[2 + i]
        if is_whole(dim):
            dims.append(tidy([Atom(FULL, made[2 + i])]))
            continue
        if len(dim) != 1 or dim[0].window is None or more[i]:
            raise NotCompact("it is not cut along its windows")
        factors[2 + i] = (strides[i], pads[i])
        kept[0][i] = kept[1][i] = 0
        dims.append((Atom(dim[0].axis, made[2 + i]),))
    inner = onnx.NodeProto()
    inner.CopyFrom(node)
    inner.output[0] = f"{node.output[0]}@all"
    channels = boxed.form(w)[1] if boxed.number(node, "group", 1) == 1 else tidy([Atom(FULL, made[1])])
    out = (form[0], channels, *dims)
    changed = {2: boxed.fitted(node.input[2], {0: channels})} if len(node.input) > 2 and node.input[2] else {}
    boxed.keep(inner, out, changed)
    boxed.settings[inner.output[0]] = lambda _: {"pads": kept[0] + kept[1]}
    name = expanded(
        boxed, x, inner.output[0], factors, out,
        lambda at, n: (n - 1) * strides[at - 2] + reach[at - 2] + 1,
    )  # fmt: skip
    boxed.emit("Identity", [name], node.output[0], out)
