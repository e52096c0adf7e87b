"""The kernel of functions of two maps of 16-bit numbers, element by element.

Sums add operands on twice the larger scale, 15 bits up. So the operand of the larger scale has the factor
1/2, and is moved up by 14 bits; the other has a factor below 1/2 (`RIGHT`), and a number of 16 bits times a
factor of 31 takes no product of 64. Halves away from zero are halves up once negative values lost a little:

    operand   (number * multiplier / 2**16, rounded, + half + (number >> 31)) >> right
    result    (2 * sum * multiplier / 2**32, rounded, + half + (sum >> 31)) >> right,   half = 2**(right - 1)

where `half` is added by the instruction that rounds. With vectors, numbers of even and of odd places are
widened, and saturated on their way back. A turn reads its numbers before it writes any that a later one
reads, and turns follow each other in the order of the row: an output may overlap an input at any distance at
which it does not run ahead of it.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from math import prod
from typing import Literal

from onchip.machines.cores import Forms
from onchip.microcontroller.int8.sixteen.elements import UP, Does16, Pair16
from onchip.microcontroller.int8.sixteen.values import HIGHEST, LOWEST
from onchip.microcontroller.kernel_language import Function, Kernel, Kind
from onchip.microcontroller.kernel_language.builder import Value
from onchip.microcontroller.kernel_language.intrinsics import call
from onchip.microcontroller.kernel_language.ir import Const, Expr, Var, as_expr
from onchip.microcontroller.kernels.elements import packed
from onchip.microcontroller.kernels.elements_vector import By, by_shift
from onchip.microcontroller.kernels.numbers import number_at, put_number
from onchip.microcontroller.kernels.own_use import OwnUse

__all__ = ["pair16_use"]

PAIR_WORDS = 8
NAMES = "first first_shift second second_shift multiplier shift low high"
TURN, EIGHT = 4, 8
"""Numbers that a turn of a loop makes: one by one, and with vectors."""
_SUMS = ("add", "sub", "sub_turned")


@dataclass(frozen=True, kw_only=True)
class PairShape:
    """The parameters that a kernel is specialised on; the second operand has `spread` numbers."""

    does: Does16
    columns: int
    channels: int
    spread: Literal["map", "pixel", "one"]
    constant: bool = False
    by: tuple[By, ...] = ()
    """The scales of factors: of both operands of a sum, and of the result."""
    clamped: bool = False
    vector: bool = False


def pair16_use(layer: Pair16, forms: Forms = "packed") -> OwnUse:
    """Return the kernel of a layer."""
    _, _, columns, wide = layer.output_shape
    size = prod(layer.input_shapes[1]) if layer.constant is None else layer.constant.size
    spread: Literal["map", "pixel", "one"] = "one" if size == 2 else "pixel" if size == wide else "map"
    if spread == "pixel" and size == prod(layer.output_shape):
        spread = "map"
    words = [*layer.first, *layer.second, *layer.factor, layer.low, layer.high]
    if layer.constant is not None:
        words += packed(layer.constant)
    factors = [layer.first, layer.second] if layer.does in _SUMS else []
    if layer.does in ("mul", *_SUMS):
        factors.append(layer.factor)
    shape = PairShape(
        does=layer.does,
        columns=columns,
        channels=wide // 2,
        spread=spread,
        constant=layer.constant is not None,
        by=tuple(By.HALF if factor == (1 << 30, 0) else by_shift(factor[1]) for factor in factors),
        clamped=(layer.low, layer.high) != (LOWEST, HIGHEST),
        vector=forms == "vector" and bool(factors) and (layer.constant is None or spread == "one"),
    )
    return OwnUse("pair16", _pair, shape, words, by_forms=partial(pair16_use, layer))


def _pair(name: str, shape: PairShape) -> Function:
    k = Kernel(
        name, f"{shape.does} of 16-bit numbers of {shape.channels} channels: pixels [x0, x1) of row y."
    )
    lines, out, x0, x1, y = k.lines("lines"), k.output("out"), k.number("x0"), k.number("x1"), k.number("y")
    weights = k.flash("weights")
    emit = _Pairs(k, shape, weights)
    row = k.let("row", y * (shape.columns * shape.channels))
    first = k.let("first_map", k.line(lines, 0) + row * 2)
    second = None
    if not shape.constant:
        second = k.let("second_map", k.line(lines, 1) + (row * 2 if shape.spread == "map" else 0))
    if shape.spread == "one":
        one: Expr = k.let("number", emit.constant(0)) if second is None else number_at(k, second, 0, name="b")
        emit.same = one
    if shape.spread == "pixel":
        for x in k.loop(x0, x1, name="x"):
            at = k.let("at", x * shape.channels)
            emit.run(first + at * 2, second, as_expr(0), out + at * 2, shape.channels)
    else:
        begin = k.let("begin", x0 * shape.channels)
        other = second + begin * 2 if second is not None and shape.spread == "map" else None
        place = row + begin if shape.spread == "map" else as_expr(0)
        emit.run(first + begin * 2, other, place, out + begin * 2, (x1 - x0) * shape.channels)
    return k.finish()


class _Pairs:
    """Emits runs of numbers. `same` is the second operand where it is one number for all."""

    def __init__(self, k: Kernel, shape: PairShape, weights: Var) -> None:
        self.k, self.shape, self.weights = k, shape, weights
        self.same: Expr | None = None
        self.of = {name: k.constant(weights, i, name) for i, name in enumerate(NAMES.split())}
        self.fixed: dict[str, Expr] = {}

    def constant(self, at: Value) -> Expr:
        """Return a number of the constant operand."""
        place = as_expr(at) * 2 + 4 * PAIR_WORDS
        if not isinstance(place, Const):
            place = self.k.let("place", place)
        high, low = (self.k.constant_byte(self.weights, place + i) for i in (1, 0))
        return high * 256 + (low & 255)

    def run(self, first: Expr, second: Expr | None, place: Expr, out: Expr, count: Value) -> None:
        """Emit `count` numbers, `place` being that of the run in a constant operand."""
        k, vector = self.k, self.shape.vector
        many = as_expr(count) if isinstance(count, int) else k.let("count", count)
        a, o = k.let("a_run", first), k.let("o_run", out)
        b = second if second is None else k.let("b_run", second)
        turn = EIGHT if vector else TURN
        whole, rest = many & -turn, many & (turn - 1)
        if not isinstance(many, Const):
            whole = k.let("whole", whole)
        self._settle()

        def number(i: Value) -> None:
            x = number_at(k, a, i, name="a")
            y: Expr
            if self.same is not None:
                y = self.same
            elif b is not None:
                y = number_at(k, b, i, name="b")
            else:
                y = k.let("b", self.constant(place + i))
            put_number(k, o, i, self._number(x, y))

        if whole != Const(0):
            for i in k.loop(0, whole, turn, name="i"):
                if vector:
                    self._eight(a, b, o, i)
                    continue
                for each in range(turn):
                    number(i + each)
        if isinstance(many, Const) and not vector:
            for last_ones in range(many.value & -turn, many.value):
                number(last_ones)
        elif vector:
            last = rest if isinstance(rest, Const) else k.let("rest", rest)
            if last != Const(0):
                with k.when(last > 0):
                    self._eight(a, b, o, whole, last * 2)
        else:
            for at in k.loop(whole, many, name="i"):
                number(at)

    # -- what is the same for all numbers

    def _settle(self) -> None:
        """Emit what scaling needs, once in front of a run."""
        k, shape, of = self.k, self.shape, self.of
        names = ("first", "second", "")[3 - len(shape.by) :]
        for by, name in zip(shape.by, names, strict=True):
            if by is By.RIGHT and not shape.vector:
                shift = of[f"{name}_shift"] if name else of["shift"]
                right = k.let("right", 0 - shift)
                self.fixed[f"{name}right"] = right
                self.fixed[f"{name}half"] = k.let("half", as_expr(1) << (right - 1))
        if shape.vector and shape.clamped:
            self.fixed["low"], self.fixed["high"] = (
                k.let("bound", call("four", of[n])) for n in ("low", "high")
            )
        if self.same is not None and shape.vector:
            if shape.does == "mul":
                self.fixed["same"] = k.let("same", call("eight_numbers", self.same))
            else:
                other = call("scaled", self.same << UP, of["second"], of["second_shift"])
                self.fixed["same"] = k.let("same", call("four", other))

    # -- one number

    def _number(self, a: Expr, b: Expr) -> Expr:
        k, shape = self.k, self.shape
        match shape.does:
            case "least" | "most":
                return k.least(a, b) if shape.does == "least" else k.most(a, b)
            case "mul":
                y = self._product(k.let("product", a * b))
            case _:
                one, other = self._operand("first", shape.by[0], a), self._operand("second", shape.by[1], b)
                y = self._sum(
                    k.let("total", _joined(shape.does, one, other, lambda p, q: p + q, lambda p, q: p - q))
                )
        made = k.let("made", y)
        if shape.clamped:
            return k.least(k.most(made, self.of["low"]), self.of["high"])
        return call("saturate16", made)

    def _operand(self, name: str, by: By, x: Expr) -> Expr:
        if by is By.HALF:
            return x << (UP - 1)
        if by is not By.RIGHT:
            return call("scaled", x << UP, self.of[name], self.of[f"{name}_shift"])
        times = call("number_times", x, self.of[name], self.fixed[f"{name}half"])
        return self.k.let(name, (times + (x >> 31)) >> self.fixed[f"{name}right"])

    def _sum(self, total: Expr) -> Expr:
        of = self.of
        if self.shape.by[-1] is not By.RIGHT:
            return call("scaled", total, of["multiplier"], of["shift"])
        times = call("high_product_plus", total << 1, of["multiplier"], self.fixed["half"])
        return (times + (total >> 31)) >> self.fixed["right"]

    def _product(self, product: Expr) -> Expr:
        of = self.of
        if self.shape.by[-1] is not By.RIGHT:
            return call("scaled", product, of["multiplier"], of["shift"])
        times = call("doubled_product", product, of["multiplier"])
        return (times + self.fixed["half"] + (product >> 31)) >> self.fixed["right"]

    # -- eight numbers

    def _eight(self, a: Expr, b: Expr | None, o: Expr, i: Value, count: Value | None = None) -> None:
        k, does = self.k, self.shape.does
        x = k.RAMLoad(a, as_expr(i) * 2, Kind.VECTOR, name="a", count=count)
        y: Expr | None = None
        if b is not None:
            y = k.RAMLoad(b, as_expr(i) * 2, Kind.VECTOR, name="b", count=count)
        made = []
        for place in ("even", "odd"):
            if does == "mul":
                found: Expr = k.let(
                    "product", call(f"{place}_products", x, self.fixed["same"] if y is None else y)
                )
            else:
                one = self._operands("first", self.shape.by[0], x, place)
                other = (
                    self.fixed["same"] if y is None else self._operands("second", self.shape.by[1], y, place)
                )
                add, minus = (partial(call, name) for name in ("add4", "minus4"))
                found = k.let("total", _joined(does, one, other, add, minus))
            made.append(
                k.let("made", self._clamped(self._scaled("multiplier", "shift", self.shape.by[-1], found)))
            )
        k.RAMStore(o, as_expr(i) * 2, call("numbers8", *made), Kind.VECTOR, count)

    def _operands(self, name: str, by: By, x: Expr, place: str) -> Expr:
        if by is By.HALF:
            return call(f"{place}s_up14", x)
        return self.k.let(name, self._scaled(name, f"{name}_shift", by, call(f"{place}s_up15", x)))

    def _scaled(self, multiplier: str, shift: str, by: By, value: Expr) -> Expr:
        factor = self.of[multiplier]
        if by in (By.FLAT, By.HALF):
            return call("scaled_flat4", value, factor)
        return call(f"scaled_{by.value}4", value, factor, self.of[shift])

    def _clamped(self, value: Expr) -> Expr:
        if not self.shape.clamped:
            return value
        return call("least4", call("most4", value, self.fixed["low"]), self.fixed["high"])


def _joined(
    does: Does16,
    one: Expr,
    other: Expr,
    add: Callable[[Expr, Expr], Expr],
    minus: Callable[[Expr, Expr], Expr],
) -> Expr:
    """Return the sum or the difference of two operands."""
    if does == "add":
        return add(one, other)
    return minus(one, other) if does == "sub" else minus(other, one)
