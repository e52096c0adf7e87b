"""Element-wise kernels with vectors: sums and products four bytes at a time, extremes and tables sixteen.

A chunk is read before it is written, and chunks follow each other in the order of the line: an output may
overlap an input as in `elements`. A line without gaps is one run of bytes, whatever its channels. Factors are
the same for all channels, so they lie in general registers; how a value is scaled depends on its shift alone:

    HALF    (a + offset) * unit / 2      the factor is 1/2, as that of the operand of the larger scale is
    FLAT    VQRDMULH                     no shift
    RIGHT   VQRDMULH, VRSHL              halves away from zero, once negative values lost a little
    LEFT    VSHL, VQRDMULH
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from enum import Enum

from onchip.microcontroller.int8.model import Add, Mul, Pairwise
from onchip.microcontroller.kernel_language import Kernel, Kind
from onchip.microcontroller.kernel_language.builder import Value
from onchip.microcontroller.kernel_language.intrinsics import call
from onchip.microcontroller.kernel_language.ir import Const, Expr, Var, as_expr

__all__ = ["VECTOR_FORMS", "By", "Operands", "VectorElements", "by_of", "by_shift"]

LANES, BYTES = 4, 16
BLOCK = 16
"""Bytes that a turn of the loop makes."""
VECTOR_FORMS = ("add", "sub", "sub_turned", "square", "mul", "least", "most", "table")
"""The functions that have a kernel with vectors."""


class By(Enum):
    """The form of scaling by one factor."""

    HALF = "half"
    FLAT = "flat"
    RIGHT = "right"
    LEFT = "left"

    def __str__(self) -> str:
        return self.value


def by_of(layer: Pairwise) -> tuple[By, ...]:
    """Return the forms of a layer's factors: of both operands, if they have any, then of the result."""
    if isinstance(layer, Add):
        operands = [
            By.HALF if (m, s) == (1 << 30, 0) and 0 < layer.left_shift <= 20 else by_shift(s)
            for m, s in zip(layer.multipliers, layer.shifts, strict=True)
        ]
        return (*operands, by_shift(layer.shift))
    return (by_shift(layer.shift),) if isinstance(layer, Mul) else ()


def by_shift(shift: int) -> By:
    """Return the form of a factor with a shift, to the left if positive."""
    return By.FLAT if shift == 0 else By.RIGHT if shift < 0 else By.LEFT


@dataclass(frozen=True)
class _Factor:
    """A factor in registers, its shift as TensorFlow Lite has it."""

    by: By
    multiplier: Var
    shift: Expr

    def scaled(self, value: Expr) -> Expr:
        """Return four values scaled."""
        match self.by:
            case By.FLAT | By.HALF:
                return call("scaled_flat4", value, self.multiplier)
            case By.RIGHT:
                return call("scaled_right4", value, self.multiplier, self.shift)
        return call("scaled_left4", value, self.multiplier, self.shift)


@dataclass(frozen=True)
class Operands:
    """The places of a run: both inputs (one, if there is no second in RAM) and the output."""

    first: Expr
    second: Expr | None
    out: Expr


class VectorElements:
    """Emits runs of bytes. `second` is where the second operand comes from, `head` the words before it."""

    def __init__(
        self,
        k: Kernel,
        weights: Var,
        does: str,
        second: str,
        by: tuple[By, ...],
        exact: bool,
        head: int,
    ) -> None:
        self.k, self.weights, self.does, self.second, self.head = k, weights, does, second, head
        sums = {"add": self._sums, "sub": self._sums, "sub_turned": self._sums, "square": self._sums}
        makers = {**sums, "mul": self._products, "table": self._table}
        self.by, self.exact = by, exact
        self.lanes = BYTES if does == "table" or (not by and second != "constant pixel") else LANES
        self.kind = Kind.VECTOR if self.lanes == BYTES else Kind.LANES
        self.compute: Callable[[Expr, Expr], Expr] = makers.get(does, self._extreme)()

    # -- a run

    def run(self, at: Operands, count: Value, *, reverse: bool) -> None:
        """Emit `count` bytes of the output."""
        k, lanes = self.k, self.lanes
        fixed = self._fixed(at)
        all_ = as_expr(count)
        whole, rest = all_ & -lanes, all_ & (lanes - 1)
        if not isinstance(all_, Const):
            whole, rest = k.let("whole", whole), k.let("rest", rest)

        def last() -> None:
            if not isinstance(rest, Const):
                with k.when(rest > 0):
                    self._chunk(at, whole, fixed, rest)
            elif rest.value:
                self._chunk(at, whole, fixed, rest)

        if reverse:
            last()
            for c in k.loop(whole - lanes, -1, -lanes, name="c"):
                self._chunk(at, c, fixed)
            return
        blocks: Expr = as_expr(0)
        if lanes < BLOCK:
            blocks = all_ & -BLOCK
            if not isinstance(all_, Const):
                blocks = k.let("blocks", blocks)
            if blocks != Const(0):
                for c in k.loop(0, blocks, BLOCK, name="c"):
                    for i in range(0, BLOCK, lanes):
                        self._chunk(at, c + i, fixed)
        if blocks != whole:
            for c in k.loop(blocks, whole, lanes, name="c"):
                self._chunk(at, c, fixed)
        last()

    def _chunk(self, at: Operands, c: Expr, fixed: Expr | None, count: Expr | None = None) -> None:
        k = self.k
        a = k.RAMLoad(at.first, c, self.kind, name="a", count=count)
        b: Expr = a
        if fixed is not None:
            b = fixed
        elif self.second == "constant pixel":
            b = k.flash4(self.weights, (c >> 2) + self.head, "b")
        elif at.second is not None:
            b = k.RAMLoad(at.second, c, self.kind, name="b", count=count)
        k.RAMStore(at.out, c, self.compute(a, b), self.kind, count)

    def _fixed(self, at: Operands) -> Expr | None:
        """Return a second operand that is one byte for all, as `compute` takes it."""
        k = self.k
        if not self.second.endswith("one"):
            return None
        byte: Expr = k.let("b", k.constant_byte(self.weights, 4 * self.head))
        if self.second == "one" and at.second is not None:
            byte = k.RAMLoad(at.second, 0, Kind.BYTE, name="b")
        return k.let("fixed", call("sixteen" if self.lanes == BYTES else "four", byte))

    # -- what is made of four or sixteen bytes

    def _names(self, names: str) -> list[Var]:
        return [self.k.constant(self.weights, i, name) for i, name in enumerate(names.split())]

    def _factor(self, by: By, multiplier: Var, shift: Var) -> _Factor:
        # Words hold shifts to the right, except those of layers that have some to the left.
        return _Factor(by, multiplier, shift if self.exact else self.k.let("shift_left", 0 - shift))

    def _clamped(self, value: Expr, bounds: tuple[Expr, Expr]) -> Expr:
        return call("least4", call("most4", value, bounds[0]), bounds[1])

    def _bounds(self, low: Var, high: Var) -> tuple[Expr, Expr]:
        return self.k.let("lowest", call("four", low)), self.k.let("highest", call("four", high))

    def _sums(self) -> Callable[[Expr, Expr], Expr]:
        k = self.k
        a_offset, a_factor, a_shift, b_offset, b_factor, b_shift, unit, factor, shift, offset, low, high = (
            self._names(
                "a_offset a_multiplier a_shift b_offset b_multiplier b_shift unit"
                " multiplier shift output_offset low high"
            )
        )
        bounds = self._bounds(low, high)
        result = self._factor(self.by[2], factor, shift)
        units: dict[bool, tuple[Var, Var]] = {}
        for by in self.by[:2]:
            half = by is By.HALF
            if half not in units:
                size = k.let("half_unit", unit >> 1) if half else unit
                units[half] = (size, k.let("units", call("four", size)))

        def operand(name: str, by: By, moved: Var, by_what: _Factor) -> Callable[[Expr], Expr]:
            size, vector = units[by is By.HALF]
            offset_ = k.let(f"{name}_moved", moved * size)

            def value(x: Expr) -> Expr:
                found = k.let(f"{name}_unit", call("times4", x, vector, offset_))
                return found if by is By.HALF else k.let(name, by_what.scaled(found))

            return value

        left = operand("left", self.by[0], a_offset, self._factor(self.by[0], a_factor, a_shift))
        right = operand("right", self.by[1], b_offset, self._factor(self.by[1], b_factor, b_shift))

        def compute(a: Expr, b: Expr) -> Expr:
            x, y = left(a), right(b)
            name, pair = {"add": ("add4", (x, y)), "sub_turned": ("minus4", (y, x))}.get(
                self.does, ("minus4", (x, y))
            )
            total = k.let("total", call(name, *pair))
            if self.does == "square":
                total = k.let("squared", call("mul4", total, total))
            return self._clamped(k.let("y", call("plus4", result.scaled(total), offset)), bounds)

        return compute

    def _products(self) -> Callable[[Expr, Expr], Expr]:
        k = self.k
        a_offset, b_offset, factor, shift, offset, low, high = self._names(
            "a_offset b_offset multiplier shift output_offset low high"
        )
        bounds, result = self._bounds(low, high), self._factor(self.by[0], factor, shift)

        def compute(a: Expr, b: Expr) -> Expr:
            moved = (
                k.let("a_moved", call("plus4", a, a_offset)),
                k.let("b_moved", call("plus4", b, b_offset)),
            )
            product = k.let("product", call("mul4", *moved))
            return self._clamped(k.let("y", call("plus4", result.scaled(product), offset)), bounds)

        return compute

    def _extreme(self) -> Callable[[Expr, Expr], Expr]:
        name = f"{self.does}{16 if self.lanes == BYTES else 4}"
        return lambda a, b: call(name, a, b)

    def _table(self) -> Callable[[Expr, Expr], Expr]:
        return lambda a, b: self.k.lookup(self.weights, a, "found")
