"""The C of an operator's nodes: for every value a function of its indices.

A value is computed where it is asked for, from the elements that it needs; so a box of a result needs no
boxes of what lies between. What is dear is kept: the last element of a product, the last row of a softmax or
a norm.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from math import prod
from typing import TYPE_CHECKING, Any

import numpy as np

from onchip.base.errors import UsageError
from onchip.export.loops.text import ctype, flat, literal, regrouped
from onchip.run.tiled.nests.forms import FULL, Dim

if TYPE_CHECKING:
    import onnx

__all__ = ["Nodes", "Rule", "Value"]

Numbers = np.ndarray[Any, Any]


@dataclass(frozen=True)
class Value:
    """A value as a C function of its indices."""

    function: str
    shape: tuple[int, ...]
    kind: np.dtype[Any]

    def at(self, indices: Sequence[str]) -> str:
        """Return the C of an element."""
        return f"{self.function}({', '.join(indices)})"


Rule = Callable[["Nodes", "onnx.NodeProto"], None]


class Nodes:
    """The functions so far of operator `name`.

    `values` are what it reads; `constants` the model's other constants, of which `array` gives the C function
    of an element by its position. `cut` has for some products the pieces of their sum's index: an axis of the
    operator and its size each, -1 for one that is never cut; `total` is the product of which it leaves sums.
    """

    def __init__(
        self,
        name: str,
        values: Mapping[str, Value],
        constants: Mapping[str, Numbers],
        signature: Mapping[str, tuple[int, tuple[int, ...]]],
        opset: int,
        array: Callable[[str, Numbers], str],
        total: str = "",
        cut: Dim = (),
    ) -> None:
        self.name, self.values, self.constants = name, dict(values), dict(constants)
        self.signature, self.opset, self.array = signature, opset, array
        self.total, self.cut = total, cut
        self.lines: list[str] = []
        self.keys: list[str] = []
        """The statics that say what is kept; -1 forgets it."""
        self.count = 0
        self.rounded = False
        """True if integers are made of sums of floats, whose last bit counts."""
        self.pairs = self.paired = False
        """True if the places of partial sums hold two, that of blocks and that in a block; and if they do."""
        self.simple = True
        """True while every element needs elements at its own position only."""

    # -- what is known ---------------------------------------------------------------------------------------

    def kind(self, name: str) -> np.dtype[Any]:
        """Return the type of a value's elements."""
        from onnx import helper

        if name in self.values:
            return self.values[name].kind
        if name in self.constants:
            return np.dtype(self.constants[name].dtype)
        if name not in self.signature or not self.signature[name][0]:
            raise self.refuse(f"the type of {name} is not known")
        found: np.dtype[Any] = np.dtype(helper.tensor_dtype_to_np_dtype(self.signature[name][0]))
        return found

    def shape(self, name: str) -> tuple[int, ...]:
        """Return the shape of a value."""
        if name in self.values:
            return self.values[name].shape
        if name in self.constants:
            return tuple(self.constants[name].shape)
        if name not in self.signature:
            raise self.refuse(f"the shape of {name} is not known")
        return self.signature[name][1]

    def refuse(self, why: str) -> UsageError:
        """Return the error that names the operator."""
        return UsageError(f"has no C: {why}", item=f"operator {self.name}")

    def value(self, name: str) -> Value:
        """Return a value, a constant among them."""
        if name not in self.values:
            if name not in self.constants:
                raise self.refuse(f"{name} is not known")
            number = self.constants[name]
            function, c = f"{self.prefix}_c{self.count}", ctype(number.dtype)
            self.count += 1
            names = [f"i{n}" for n in range(number.ndim)]
            if number.size == 1:
                body = literal(number.reshape(-1)[0], number.dtype)
            else:
                body = f"{self.array(name, number)}({flat(names, number.shape)})"
            self.function(function, c, names, [f"return {body};"], unused=number.size == 1)
            self.values[name] = Value(function, tuple(number.shape), np.dtype(number.dtype))
        return self.values[name]

    prefix = ""

    def scalar(self, name: str) -> float:
        """Return a constant of one element."""
        if name not in self.constants or self.constants[name].size != 1:
            raise self.refuse(f"{name} is no constant of one element")
        return float(self.constants[name].reshape(-1)[0])

    def whole(self, node: onnx.NodeProto, position: int, attribute: str) -> list[int] | None:
        """Return a list of whole numbers, an attribute or a constant operand; None without one."""
        for a in node.attribute:
            if a.name == attribute:
                return list(a.ints) if a.ints else [a.i]
        name = node.input[position] if 0 < position < len(node.input) else ""
        if not name:
            return None
        if name not in self.constants:
            raise self.refuse(f"{name} is no constant")
        return [int(n) for n in np.asarray(self.constants[name]).reshape(-1)]

    def number(self, node: onnx.NodeProto, attribute: str, default: float) -> float:
        """Return an attribute that is a number."""
        for a in node.attribute:
            if a.name == attribute:
                return float(a.f) if a.type == 1 else float(a.i)
        return default

    def text(self, node: onnx.NodeProto, attribute: str, default: str) -> str:
        """Return an attribute that is a word."""
        return next((a.s.decode() for a in node.attribute if a.name == attribute), default)

    # -- what is written -------------------------------------------------------------------------------------

    def function(
        self, name: str, c: str, names: Sequence[str], body: Sequence[str], *, unused: bool = False
    ) -> None:
        """Write a function of indices."""
        said = ", ".join(f"ix {n}" for n in names) or "void"
        self.lines += [f"static inline {c} {name}({said})", "{"]
        text = "\n".join(body)
        for n in names:
            if unused or not _mentions(text, n):
                self.lines.append(f"    (void){n};")
        self.lines += [f"    {line}" for line in body]
        self.lines += ["}"]

    def emit(
        self,
        output: str,
        body: Callable[[list[str]], Sequence[str] | str],
        *,
        keep: bool = False,
        shape: Sequence[int] | None = None,
        kind: np.dtype[Any] | None = None,
    ) -> Value:
        """Write the function of a value; `body` gives its statements, or its expression, for its indices.

        With `keep` the last element is kept for when it is asked for again.
        """
        shape = self.shape(output) if shape is None else tuple(shape)
        kind = self.kind(output) if kind is None else kind
        names = [f"i{n}" for n in range(len(shape))]
        c = ctype(kind)
        name = f"{self.prefix}_v{self.count}"
        self.count += 1
        made = body(names)
        statements = [f"return {made};"] if isinstance(made, str) else list(made)
        if keep:
            inner, key, last = f"{name}_of", f"{name}_key", f"{name}_last"
            self.function(inner, c, names, statements)
            self.lines += [f"static ix {key} = -1;", f"static {c} {last};"]
            self.keys.append(key)
            call = f"{inner}({', '.join(names)})"
            place = flat(names, shape)
            statements = [
                f"const ix at = {place};",
                f"if (at != {key}) {{ const {c} v = {call}; {last} = v; {key} = at; }}",
                f"return {last};",
            ]
        self.function(name, c, names, statements)
        self.values[output] = Value(name, tuple(shape), kind)
        return self.values[output]

    def row(
        self,
        output: str,
        over: Sequence[int],
        value: Value,
        body: Sequence[str],
        kind: np.dtype[Any] | None = None,
    ) -> None:
        """Write a value of which each row is made together: `row[j]` from what `body` does with `row`.

        A row are all elements along the dimensions `over`; `row` holds those of `value` before. Names in
        `body`: `row`, and the indices i0, i1, ... of an element of the row.
        """
        self.simple = False
        shape = value.shape
        kind = self.kind(output) if kind is None else kind
        kept = [i for i in range(len(shape)) if i not in over]
        size = prod(shape[i] for i in over)
        name = f"{self.prefix}_v{self.count}"
        self.count += 1
        self.lines += [f"static ix {name}_key = -1;", f"static float {name}_row[{size}];"]
        self.keys.append(f"{name}_key")
        names = [f"i{n}" for n in range(len(shape))]
        key = flat([names[i] for i in kept], [shape[i] for i in kept])
        inner = regrouped(["j"], [size], [shape[i] for i in over])
        indices = list(names)
        for i, index in zip(over, inner, strict=True):
            indices[i] = index
        said = ", ".join(f"ix {n}" for n in names)
        self.lines += [f"static void {name}_make({said})", "{", f"    float *row = {name}_row;"]
        self.lines += [f"    (void)i{i};" for i in range(len(shape))]
        self.lines += [f"    for (ix j = 0; j < {size}; ++j) row[j] = {_float(value, indices)};"]
        self.lines += [f"    {line}" for line in body]
        self.lines += ["}"]
        place = flat([names[i] for i in over], [shape[i] for i in over])
        cast = "" if kind == np.float32 else f"({ctype(kind)})"
        self.function(
            name,
            ctype(kind),
            names,
            [
                f"const ix at = {key};",
                f"if (at != {name}_key) {{ {name}_make({', '.join(names)}); {name}_key = at; }}",
                f"return {cast}{name}_row[{place}];",
            ],
        )
        self.values[output] = Value(name, shape, kind)

    def broadcast(self, name: str, indices: Sequence[str]) -> str:
        """Return an element of a value that is repeated to a shape of these indices."""
        value = self.value(name)
        mine = indices[len(indices) - len(value.shape) :]
        return value.at(["0" if n == 1 else i for i, n in zip(mine, value.shape, strict=True)])

    def pieces(self, product: str, size: int) -> list[tuple[int, int]]:
        """Return the pieces of a product's sum: an axis that a nest may cut, or -1, and the size of each."""
        if product != self.total or not self.cut:
            return [(-1, size)]
        found = [(atom.axis if atom.axis != FULL else -1, atom.size) for atom in self.cut]
        if prod(n for _, n in found) != size:
            raise self.refuse("its sum is cut otherwise than its product")
        return found

    def over(self, product: str, size: int, index: str) -> tuple[list[str], str]:
        """Return the loops over a product's sum, as far as it is summed now, and the line of its index."""
        loops, names = [], []
        pieces = self.pieces(product, size)
        for n, (axis, length) in enumerate(pieces):
            low, high = (
                ("0", str(length)) if axis < 0 else (f"{self.prefix}_a{axis}_lo", f"{self.prefix}_a{axis}_hi")
            )
            loops.append(f"for (ix {index}{n} = {low}; {index}{n} < {high}; ++{index}{n})")
            names.append(f"{index}{n}")
        return loops, f"const ix {index} = {flat(names, [n for _, n in pieces])};"

    def begun(self, product: str, inner: int) -> str:
        """Return how many of a sum's `inner` products were added before what is added now."""
        if product != self.total or not self.cut:
            return "0"
        sizes = [atom.size for atom in self.cut]
        lows = ["0" if atom.axis == FULL else f"{self.prefix}_a{atom.axis}_lo" for atom in self.cut]
        return f"({flat(lows, sizes)}) * {inner // prod(sizes)}"


def _float(value: Value, indices: Sequence[str]) -> str:
    found = value.at(indices)
    return found if value.kind == np.float32 else f"(float){found}"


def _mentions(text: str, name: str) -> bool:
    import re

    return re.search(rf"\b{name}\b", text) is not None
