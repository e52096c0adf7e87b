"""The data of a traced kernel: a function of statements over typed expressions, all frozen.

Expressions have no effects; loads happen where a statement holds them. Integers have 32 bits and wrap.
Pointers count bytes in RAM and words of four bytes in flash.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from enum import Enum
from typing import TypeAlias

__all__ = [
    "Assign",
    "Binary",
    "Call",
    "Comment",
    "Const",
    "Declare",
    "DotRun",
    "Expr",
    "Fill",
    "FlashByte",
    "FlashLoad",
    "FlashVector",
    "Free",
    "Function",
    "If",
    "Kind",
    "Line",
    "Load",
    "Lookup",
    "Loop",
    "Move",
    "Statement",
    "Store",
    "Taps",
    "Type",
    "Var",
    "Word",
    "as_expr",
    "parts",
    "walk",
]


class Type(Enum):
    """The type of a value, by its name in C."""

    INT = "int32_t"
    WORD = "s8x4"
    """Four int8, the first in the lowest byte."""
    PAIR = "s16x2"
    """Two int16, the first in the lower half."""
    VECTOR = "s8x16"
    """Sixteen int8."""
    LANES = "s32x4"
    """Four integers."""
    HALVES = "s16x8"
    """Eight int16."""
    WIDE = "int64_t"
    """An integer of 64 bits: only intrinsics make and take it."""
    INPUT = "const int8_t *"
    """Bytes of RAM that are read."""
    OUTPUT = "int8_t *"
    """Bytes of RAM that are written, and may be read."""
    FLASH = "const int32_t *"
    """Constants, word by word."""
    LINES = "const int8_t *const *"
    """Pointers to the lines of a map."""


class Kind(Enum):
    """The number of bytes of RAM that a load or a store moves, and their type."""

    BYTE = "byte"
    """One byte, its sign extended: INT."""
    HALF = "half"
    """Two bytes at any address, the sign extended: INT."""
    WORD = "word"
    """Four bytes at any address: WORD."""
    INT = "int"
    """Four bytes at any address: INT."""
    PAIR = "pair"
    """Four bytes at any address, two int16: PAIR."""
    VECTOR = "vector"
    """Sixteen bytes at any address: VECTOR."""
    LANES = "lanes"
    """The lowest bytes of four integers at any address: LANES."""
    HALVES = "halves"
    """The lowest bytes of eight int16 at any address: HALVES."""
    INTS = "ints"
    """Four integers at any address: LANES."""

    @property
    def type(self) -> Type:
        own = {Kind.WORD: Type.WORD, Kind.VECTOR: Type.VECTOR}
        own |= {Kind.LANES: Type.LANES, Kind.INTS: Type.LANES}
        return {**own, Kind.HALVES: Type.HALVES, Kind.PAIR: Type.PAIR}.get(self, Type.INT)

    @property
    def size(self) -> int:
        wide = {Kind.VECTOR: 16, Kind.INTS: 16, Kind.HALVES: 8}
        return {Kind.BYTE: 1, Kind.HALF: 2, **wide}.get(self, 4)

    @property
    def elements(self) -> int:
        """The elements of a vector, 1 for all else."""
        return {Kind.VECTOR: 16, Kind.HALVES: 8, Kind.LANES: 4, Kind.INTS: 4}.get(self, 1)


class _Operators:
    """Python's operators on expressions build expressions; constants fold."""

    def __add__(self, other: Expr | int) -> Expr:
        return binary("+", self, other)

    def __radd__(self, other: int) -> Expr:
        return binary("+", other, self)

    def __sub__(self, other: Expr | int) -> Expr:
        return binary("-", self, other)

    def __rsub__(self, other: int) -> Expr:
        return binary("-", other, self)

    def __mul__(self, other: Expr | int) -> Expr:
        return binary("*", self, other)

    def __rmul__(self, other: int) -> Expr:
        return binary("*", other, self)

    def __floordiv__(self, other: Expr | int) -> Expr:
        return binary("/", self, other)

    def __mod__(self, other: Expr | int) -> Expr:
        return binary("%", self, other)

    def __lshift__(self, other: Expr | int) -> Expr:
        return binary("<<", self, other)

    def __rshift__(self, other: Expr | int) -> Expr:
        return binary(">>", self, other)

    def __and__(self, other: Expr | int) -> Expr:
        return binary("&", self, other)

    def __lt__(self, other: Expr | int) -> Expr:
        return binary("<", self, other)

    def __le__(self, other: Expr | int) -> Expr:
        return binary("<=", self, other)

    def __gt__(self, other: Expr | int) -> Expr:
        return binary(">", self, other)

    def __ge__(self, other: Expr | int) -> Expr:
        return binary(">=", self, other)

    def equals(self, other: Expr | int) -> Expr:
        """Return the expression that both are the same integer (`==` compares expressions as data)."""
        return binary("==", self, other)

    def __neg__(self) -> Expr:
        return binary("-", 0, self)


@dataclass(frozen=True, slots=True)
class Const(_Operators):
    """An integer known when the kernel is traced."""

    value: int
    type: Type = Type.INT


@dataclass(frozen=True, slots=True)
class Var(_Operators):
    """A named value: a parameter, a local, a loop's counter."""

    name: str
    type: Type


@dataclass(frozen=True, slots=True)
class Binary(_Operators):
    """Integer arithmetic or comparison as in C; pointer + integer; `min` and `max`."""

    op: str
    a: Expr
    b: Expr
    type: Type


@dataclass(frozen=True, slots=True)
class Call(_Operators):
    """An intrinsic of `onchip.microcontroller.kernel_language.intrinsics`."""

    name: str
    arguments: tuple[Expr, ...]
    type: Type


@dataclass(frozen=True, slots=True)
class Load(_Operators):
    """The value at pointer + offset bytes in RAM; of a vector the first `count` elements, then zeros."""

    kind: Kind
    pointer: Expr
    offset: Expr
    count: Expr | None = None

    @property
    def type(self) -> Type:
        return self.kind.type


@dataclass(frozen=True, slots=True)
class Line(_Operators):
    """The pointer to a line."""

    lines: Var
    index: Expr
    type: Type = Type.INPUT


@dataclass(frozen=True, slots=True)
class Word(_Operators):
    """The constant at an index of flash."""

    pointer: Var
    index: Expr
    type: Type = Type.INT


@dataclass(frozen=True, slots=True)
class FlashByte(_Operators):
    """The int8 at an index of flash, counted in bytes."""

    pointer: Var
    index: Expr
    type: Type = Type.INT


@dataclass(frozen=True, slots=True)
class FlashVector(_Operators):
    """Integers of flash from an index, counted in words: the bytes of a word or two, or four words."""

    pointer: Var
    index: Expr
    form: str
    type: Type


@dataclass(frozen=True, slots=True)
class Lookup(_Operators):
    """Sixteen int8 of a table of 256 in flash: those of the numbers -128 to 127 in `index`."""

    pointer: Var
    index: Expr
    type: Type = Type.VECTOR


Expr: TypeAlias = Const | Var | Binary | Call | Load | Line | Word | FlashByte | FlashVector | Lookup


@dataclass(frozen=True, slots=True)
class Declare:
    """A new local; one that is assigned to later is a register, the others are names for values."""

    var: Var
    value: Expr
    register: bool = False


@dataclass(frozen=True, slots=True)
class Assign:
    """A register takes a new value."""

    var: Var
    value: Expr


@dataclass(frozen=True, slots=True)
class FlashLoad:
    """New locals take the next words of flash; the pointer moves past them."""

    targets: tuple[Var, ...]
    pointer: Var


@dataclass(frozen=True, slots=True)
class Store:
    """Bytes of RAM take a value: its lowest byte, its lowest two, or all. Of a vector `count` elements.

    There may be fewer than `count`: a vector has no more than its own.
    """

    kind: Kind
    pointer: Expr
    offset: Expr
    value: Expr
    count: Expr | None = None


@dataclass(frozen=True, slots=True)
class DotRun:
    """Sums take the products of a run of bytes, a piece at a time: `sums` by pixel and channel.

    `sources` point to the run of each pixel. The weights are those of a piece of so many bytes (a vector, or
    a word) for each channel, then of the next piece, in whole words a channel at the end; `w` moves past
    them. `fresh` sums begin at zero.
    """

    sums: tuple[tuple[Var, ...], ...]
    sources: tuple[Expr, ...]
    w: Var
    run: int
    fresh: bool
    piece: int = 16


@dataclass(frozen=True, slots=True)
class Taps:
    """Sums of eight channels, those of even number and those of odd number, take one or two taps.

    `sources` point to the channels of each tap, to which `plus` is added. `w` moves past the weights.
    """

    sums: tuple[Var, Var]
    sources: tuple[Expr, ...]
    w: Var
    plus: Expr | None


@dataclass(frozen=True, slots=True)
class Move:
    """Bytes of RAM take those of others; all are read before the first is written."""

    target: Expr
    source: Expr
    count: Expr


@dataclass(frozen=True, slots=True)
class Fill:
    """Bytes of RAM take the lowest byte of a value."""

    target: Expr
    value: Expr
    count: Expr


@dataclass(frozen=True, slots=True)
class Free:
    """Bytes of RAM that are never read again; it emits no code, but the interpreter enforces it."""

    pointer: Expr
    count: Expr


@dataclass(frozen=True, slots=True)
class Loop:
    """A loop with a counter from `start` while it is below `stop` (above, if `step` is negative)."""

    counter: Var
    start: Expr
    stop: Expr
    step: int
    body: tuple[Statement, ...]
    unroll: int = 0


@dataclass(frozen=True, slots=True)
class If:
    condition: Expr
    then: tuple[Statement, ...]
    otherwise: tuple[Statement, ...] = ()


@dataclass(frozen=True, slots=True)
class Comment:
    text: str


Statement: TypeAlias = (
    Declare | Assign | FlashLoad | Store | DotRun | Taps | Move | Fill | Free | Loop | If | Comment
)


@dataclass(frozen=True, slots=True)
class Function:
    """A kernel. `says` is its comment in C, a line each."""

    name: str
    parameters: tuple[Var, ...]
    body: tuple[Statement, ...]
    says: tuple[str, ...] = ()


_FOLDED: dict[str, Callable[[int, int], int]] = {
    "+": lambda a, b: a + b,
    "-": lambda a, b: a - b,
    "*": lambda a, b: a * b,
    "<": lambda a, b: int(a < b),
    "<=": lambda a, b: int(a <= b),
    ">": lambda a, b: int(a > b),
    ">=": lambda a, b: int(a >= b),
    "==": lambda a, b: int(a == b),
    "min": min,
    "max": max,
    "<<": lambda a, b: a << b,
    ">>": lambda a, b: a >> b,
    "&": lambda a, b: a & b,
}


def as_expr(value: Expr | int) -> Expr:
    """Return an integer as an expression; other expressions unchanged."""
    return Const(value) if isinstance(value, int) else value


def binary(op: str, a: object, b: object) -> Expr:
    """Return `a op b`, folded where both are known or one side changes nothing."""
    left, right = as_expr(a), as_expr(b)  # type: ignore[arg-type]
    if isinstance(left, Const) and isinstance(right, Const) and op in _FOLDED:
        return Const(int(_FOLDED[op](left.value, right.value)))
    if isinstance(right, Const):
        if right.value == 0 and op in ("+", "-", "<<", ">>"):
            return left
        if right.value == 1 and op in ("*", "/"):
            return left
        if right.value == 0 and op == "*":
            return right
    if isinstance(left, Const):
        if left.value == 0 and op == "+":
            return right
        if left.value == 1 and op == "*":
            return right
        if left.value == 0 and op == "*":
            return left
    type_ = left.type if left.type in (Type.INPUT, Type.OUTPUT, Type.FLASH) else Type.INT
    return Binary(op, left, right, type_)


def parts(expr: Expr) -> tuple[Expr, ...]:
    """Return the direct operands of an expression."""
    match expr:
        case Binary(_, a, b):
            return a, b
        case Call(_, arguments):
            return arguments
        case Load(_, pointer, offset, count):
            return (pointer, offset) if count is None else (pointer, offset, count)
        case Line(pointer, index) | Word(pointer, index) | FlashByte(pointer, index):
            return pointer, index
        case FlashVector(pointer, index) | Lookup(pointer, index):
            return pointer, index
    return ()


def walk(body: tuple[Statement, ...]) -> Iterator[Statement]:
    """Yield every statement, each loop and condition before its own statements."""
    for statement in body:
        yield statement
        match statement:
            case Loop():
                yield from walk(statement.body)
            case If():
                yield from walk(statement.then)
                yield from walk(statement.otherwise)
