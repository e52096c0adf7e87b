"""Products whose results are rounded to integers: in a box as in the whole, bit for bit.

A last bit of a sum of floats decides now and then to which integer it is rounded. The order in which
onnxruntime adds up one element of a product depends on the number of columns, and on whether there is one
row; not on the values beside it. So a box is multiplied with as many columns as the whole has, zeros in place
of the others, and with two rows at least. A sum that a nest takes apart is made at once when its last part
comes: chips add up whole numbers, which is exact in any order. So are the sums, of floats as well, of nodes
that are taken apart nowhere else: reductions, products with narrow weights or with a function inside.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from math import prod
from typing import TYPE_CHECKING, Any

import numpy as np

from onchip.network.axes import Buffer, Cut
from onchip.run.tiled.nests.boxed import Boxed
from onchip.run.tiled.nests.forms import (
    FULL,
    Atom,
    Dim,
    Form,
    NotCompact,
    Span,
    box_of,
    extents,
    is_cut,
    size_of,
)

if TYPE_CHECKING:
    import onnx

    from onchip.run.tiled.nests.kernel import Kernel, Read, Source

__all__ = ["InParts", "Waiting", "as_in_the_whole", "convolution_as_in_the_whole"]

Array = np.ndarray[Any, Any]


class InParts(NotCompact):
    """A sum is cut that has to be made at once: an integer is made of it, or its node has no parts."""


def as_in_the_whole(boxed: Boxed, node: onnx.NodeProto, form: Form, inputs: dict[int, str]) -> None:
    """Add a `MatMul` or `Gemm` on boxes; `inputs` are its operands by position, `form` is the result's."""
    made, rows, columns = node.output[0], form[-2], form[-1]
    whole = boxed.shape(made)
    gemm = node.op_type == "Gemm"
    places = (
        (1, 0)[not boxed.number(node, "transA", 0)] if gemm else len(boxed.form(inputs[0])) - 2,
        (1, 0)[boxed.number(node, "transB", 0)] if gemm else len(boxed.form(inputs[1])) - 1,
    )
    changed = dict(inputs)
    if whole[-2] > 1 and is_cut(rows):
        changed[0] = _padded(boxed, inputs[0], places[0], rows, 2, f"{made}@rows")
    if is_cut(columns):
        changed[1] = _padded(boxed, inputs[1], places[1], columns, whole[-1], f"{made}@columns")
        if 2 in inputs:
            own = boxed.form(inputs[2])
            if len(own) > 1 and size_of(own[-2]) > 1:
                raise NotCompact("an addend of rows has no rule for boxes that are rounded")
            if size_of(own[-1]) > 1:
                changed[2] = _padded(boxed, inputs[2], len(own) - 1, columns, whole[-1], f"{made}@addend")
    if changed == inputs:
        boxed.keep(node, form, inputs)
        return
    settings = {a.name: a.f if a.type == 1 else a.i for a in node.attribute}
    operands = [changed[i] for i in range(len(changed))]
    boxed.emit(node.op_type, operands, f"{made}@wide", form, **settings)
    first, axes = f"{made}@first", f"{made}@axes"
    boxed.fold([(first, np.zeros(2, np.int64)), (axes, np.array([-2, -1], np.int64))])
    ends = f"{made}@ends"
    boxed.fed[ends] = lambda spans: np.array(extents((rows, columns), spans), np.int64)
    boxed.emit("Slice", [f"{made}@wide", first, ends, axes], made, form)


MANY = 65
"""From so many positions on a convolution's sums are added up alike."""

Settings = Callable[[Sequence[Span]], dict[str, int | list[int]]]


def convolution_as_in_the_whole(
    boxed: Boxed, node: onnx.NodeProto, form: Form, inputs: dict[int, str], settings: Settings
) -> None:
    """Add a `Conv` without groups on boxes; `settings` are its attributes in a box."""
    import onnx

    made, whole = node.output[0], boxed.shape(node.output[0])
    least, space = min(MANY, prod(whole[2:])), form[2:]
    step = (boxed.setting(node, 0, "strides") or (1,))[-1]
    changed = dict(inputs)
    if whole[1] > 1 and is_cut(form[1]):
        for at in (1, 2):
            if at in inputs:
                changed[at] = _padded(boxed, inputs[at], 0, form[1], 2, f"{made}@filters{at}")

    def wider(spans: Sequence[Span]) -> dict[str, int | list[int]]:
        found = settings(spans)
        *outer, last = extents(space, spans)
        rows, pads = prod(outer), found["pads"]
        if isinstance(pads, list) and rows * last < least:
            found["pads"] = [*pads[:-1], pads[-1] + (-(-least // rows) - last) * step]
        return found

    wide = onnx.NodeProto()
    wide.CopyFrom(node)
    wide.output[0] = f"{made}@wide"
    boxed.keep(wide, form, changed)
    boxed.settings[f"{made}@wide"] = wider
    axes = list(range(1, len(form)))
    first, along, ends = f"{made}@first", f"{made}@axes", f"{made}@ends"
    boxed.fold([(first, np.zeros(len(axes), np.int64)), (along, np.array(axes, np.int64))])
    boxed.fed[ends] = lambda spans: np.array(extents(form[1:], spans), np.int64)
    boxed.emit("Slice", [f"{made}@wide", first, ends, along], made, form)


def _padded(boxed: Boxed, name: str, at: int, dim: Dim, least: int, made: str) -> str:
    """Return a value with zeros behind its dimension `at`, in a box `dim`, up to `least` positions."""
    form = boxed.form(name)
    rank, amounts = len(form), f"{made}@amounts"

    def more(spans: Sequence[Span]) -> Array:
        pads = np.zeros(2 * rank, np.int64)
        pads[rank + at] = max(0, least - extents((dim,), spans)[0])
        return pads

    boxed.fed[amounts] = more
    wide = (*form[:at], (Atom(FULL, least),), *form[at + 1 :])
    return boxed.emit("Pad", [name, amounts], made, wide)


class Waiting:
    """Keeps the operands of a sum until the last part comes, and makes the result of all of them at once.

    `make` returns the kernel of the operator with its sums whole. The operands are found again by the box of
    the output: every part of a sum has to come in the same boxes, so loops around it run turn by turn.
    """

    approximate = False
    sums = True

    def __init__(
        self, axes: Cut, cut: set[int], output: Buffer, sources: Sequence[Source], make: Callable[[], Kernel]
    ) -> None:
        self.axes, self.made, self.sources = axes, output.sides, sources
        self.summed = {axis for axis in axes.sums if axis in cut}
        self.kernel = make()
        self.kept: dict[tuple[Span, ...], dict[int, Array]] = {}

    def part(self, read: Read, spans: Sequence[Span], *, first: bool) -> Array:
        """Keep what the sum is made of; nothing is added up yet."""
        kept = self.kept.setdefault(self._key(spans), {})
        for i, source in enumerate(self.sources):
            slides = source.use.slides or (None,) * len(source.use.axes)
            summed = [
                axis in self.summed or (window is not None and window.axis in self.summed)
                for axis, window in zip(source.use.axes, slides, strict=True)
            ]
            if not any(summed) or not source.filled:
                continue
            box, sides = read(i), source.buffer.sides
            if i not in kept:
                sizes = [
                    side if along else n for along, side, n in zip(summed, sides, box.shape, strict=True)
                ]
                kept[i] = np.zeros(sizes, box.dtype)
            places = box_of(source.use, sides, spans, self.summed)
            here = (
                slice(*place) if along else slice(None) for along, place in zip(summed, places, strict=True)
            )
            kept[i][tuple(here)] = box
        return np.zeros(
            [high - low for low, high in box_of(self.axes.writes, self.made, spans, ())], np.float32
        )

    def finish(self, total: Array, read: Read, spans: Sequence[Span]) -> Array:
        """Return the box of the result."""
        kept = self.kept.pop(self._key(spans))
        whole = [(0, self.axes.axes[i]) if i in self.summed else span for i, span in enumerate(spans)]
        return self.kernel.part(lambda i: kept[i] if i in kept else read(i), whole, first=True)

    def _key(self, spans: Sequence[Span]) -> tuple[Span, ...]:
        return tuple(spans[: self.axes.outputs])
