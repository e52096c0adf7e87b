"""The language: the methods that a kernel in Python calls while it is traced.

A loop is a Python `for` whose body runs once:

    k = Kernel("doubled", "Each byte of a line, doubled.")
    source, target, count = k.input("source"), k.output("target"), k.number("count")
    for i in k.loop(0, count, name="i"):
        byte = k.RAMLoad(source, i, Kind.BYTE, name="byte")
        k.RAMStore(target, i, k.saturate(byte * 2))
    function = k.finish()
"""

from __future__ import annotations

from collections.abc import Generator, Iterator, Sequence
from contextlib import contextmanager
from typing import TypeAlias

from onchip.microcontroller.kernel_language.intrinsics import call
from onchip.microcontroller.kernel_language.ir import (
    Assign,
    Comment,
    Const,
    Declare,
    DotRun,
    Expr,
    Fill,
    FlashByte,
    FlashLoad,
    FlashVector,
    Free,
    Function,
    If,
    Kind,
    Line,
    Load,
    Lookup,
    Loop,
    Move,
    Statement,
    Store,
    Taps,
    Type,
    Var,
    Word,
    as_expr,
    binary,
)
from onchip.microcontroller.kernel_language.names import c_name
from onchip.microcontroller.kernel_language.tidy import tidied
from onchip.microcontroller.kernel_language.validate import validate

__all__ = ["Kernel", "Pairs", "Value"]

Value: TypeAlias = Expr | int
Pairs: TypeAlias = tuple[Var, Var]
"""Four int8 as two pairs of int16: bytes 0 and 2, bytes 1 and 3."""


class Kernel:
    """A function under construction. Every method adds a statement; `finish` returns the checked function."""

    def __init__(self, name: str, *says: str) -> None:
        self._name, self._says = c_name(name), says
        self._parameters: list[Var] = []
        self._body: list[Statement] = []
        self._used: set[str] = set()

    # -- parameters, in the order in which they are named

    def input(self, name: str) -> Var:
        """Add a pointer to bytes that are read."""
        return self._parameter(name, Type.INPUT)

    def output(self, name: str) -> Var:
        """Add a pointer to bytes that are written."""
        return self._parameter(name, Type.OUTPUT)

    def lines(self, name: str) -> Var:
        """Add pointers to the lines of a map."""
        return self._parameter(name, Type.LINES)

    def flash(self, name: str) -> Var:
        """Add a pointer to constants."""
        return self._parameter(name, Type.FLASH)

    def number(self, name: str) -> Var:
        """Add an integer."""
        return self._parameter(name, Type.INT)

    # -- the verbs of vMCU, section 6.1

    def RegAlloc(self, name: str, value: Value = 0) -> Var:
        """Declare a register: a local that `set` may change, of the type of its first value."""
        first = as_expr(value)
        return self._declare(name, first, register=True)

    def RAMLoad(
        self,
        pointer: Expr,
        offset: Value = 0,
        kind: Kind = Kind.WORD,
        name: str = "x",
        count: Value | None = None,
    ) -> Var:
        """Load from pointer + offset bytes: one byte, two as a number, four of them, an integer, a vector.

        Of a vector no more than the first `count` elements are read; the others are zeros.
        """
        some = None if count is None else as_expr(count)
        return self._declare(name, Load(kind, pointer, as_expr(offset), some))

    def FlashLoad(self, pointer: Var, *names: str, type: Type = Type.INT) -> tuple[Var, ...]:
        """Load the next words of flash, one for each name; the pointer, a register, moves past them."""
        targets = tuple(self._var(name, type) for name in names)
        self._say(FlashLoad(targets, pointer))
        return targets

    def constant(self, pointer: Var, index: Value, name: str, type: Type = Type.INT) -> Var:
        """Load the word of flash at an index; the pointer stays."""
        return self._declare(name, Word(pointer, as_expr(index), type))

    def constant_byte(self, pointer: Var, index: Value) -> Expr:
        """Return the int8 of flash at an index counted in bytes."""
        return FlashByte(pointer, as_expr(index))

    def flash4(self, pointer: Var, index: Value, name: str, *, words: bool = False) -> Var:
        """Load four integers of flash: the bytes of the word at an index, or four `words`."""
        form = "words4" if words else "bytes4"
        return self._declare(name, FlashVector(pointer, as_expr(index), form, Type.LANES))

    def flash8(self, pointer: Var, index: Value, name: str) -> Var:
        """Load eight int8 of flash as int16: the bytes of two words from an index on."""
        return self._declare(name, FlashVector(pointer, as_expr(index), "bytes8", Type.HALVES))

    def lookup(self, pointer: Var, index: Expr, name: str) -> Var:
        """Load sixteen bytes of a table of 256 in flash, by numbers from -128 to 127."""
        return self._declare(name, Lookup(pointer, index))

    def Dot(self, sums: Sequence[Var], x: Pairs, weights: Sequence[Pairs]) -> None:
        """Add four products to each sum: those of `x` with the weights of the sum's channel."""
        for half in (0, 1):
            for total, w in zip(sums, weights, strict=True):
                self.set(total, call("dot2", x[half], w[half], total))

    def dot_run(
        self,
        sums: Sequence[Sequence[Var]],
        sources: Sequence[Expr],
        w: Var,
        run: int,
        *,
        fresh: bool = False,
        piece: int = 16,
    ) -> None:
        """Add the products of a run to every sum, so many bytes at a time; see `DotRun`."""
        self._say(DotRun(tuple(tuple(row) for row in sums), tuple(sources), w, run, fresh, piece))

    def taps(self, sums: tuple[Var, Var], sources: Sequence[Expr], w: Var, plus: Expr | None = None) -> None:
        """Add one or two taps to the sums of eight channels; see `Taps`."""
        self._say(Taps(sums, tuple(sources), w, plus))

    def RAMStore(
        self, pointer: Expr, offset: Value, value: Value, kind: Kind = Kind.BYTE, count: Value | None = None
    ) -> None:
        """Store `value` as one byte or as more at pointer + offset bytes; of a vector the first `count`."""
        some = None if count is None else as_expr(count)
        self._say(Store(kind, pointer, as_expr(offset), as_expr(value), some))

    def move(self, target: Expr, source: Expr, count: Value) -> None:
        """Copy bytes of RAM; the places may overlap."""
        self._say(Move(target, source, as_expr(count)))

    def fill(self, target: Expr, value: Value, count: Value) -> None:
        """Store the lowest byte of a value in so many places."""
        self._say(Fill(target, as_expr(value), as_expr(count)))

    def RAMFree(self, pointer: Expr, count: Value) -> None:
        """Free bytes that are never read again: they may be overwritten from now on."""
        self._say(Free(pointer, as_expr(count)))

    def Broadcast(self, value: Value, name: str = "pair") -> Var:
        """Put a value in both halves of a pair."""
        return self._declare(name, call("broadcast", value))

    # -- values

    def let(self, name: str, value: Value) -> Var:
        """Name a value."""
        return self._declare(name, as_expr(value))

    def set(self, register: Var, value: Value) -> None:
        """Give the register a new value."""
        self._say(Assign(register, as_expr(value)))

    def line(self, lines: Var, index: Value) -> Expr:
        """Return the pointer to a line."""
        return Line(lines, as_expr(index))

    def widen(self, word: Expr, name: str, plus: Expr | None = None) -> Pairs:
        """Widen four int8 to two pairs of int16, with `plus` added to both halves of each."""
        if plus is None:
            even, odd = call("widen_even", word), call("widen_odd", word)
        else:
            even, odd = call("widen_even_plus", plus, word), call("widen_odd_plus", plus, word)
        return self._declare(f"{name}_even", even), self._declare(f"{name}_odd", odd)

    def least(self, a: Value, b: Value) -> Expr:
        return binary("min", a, b)

    def most(self, a: Value, b: Value) -> Expr:
        return binary("max", a, b)

    def saturate(self, value: Value) -> Expr:
        """Clamp to int8."""
        return call("saturate", value)

    # -- control

    def loop(
        self, start: Value, stop: Value, step: int = 1, *, name: str = "i", unroll: int = 0
    ) -> Iterator[Expr]:
        """Yield the counter once: the statements until the generator resumes are the body.

        `unroll` is a hint to the compiler. A loop known to run once is no loop: its counter is its start.
        """
        first, last = as_expr(start), as_expr(stop)
        if isinstance(first, Const) and isinstance(last, Const):
            turns = len(range(first.value, last.value, step))
            if turns == 1:
                yield first
                return
        known = set(self._used)
        counter = self._var(name, Type.INT)
        outer, self._body = self._body, []
        yield counter
        body, self._body, self._used = self._body, outer, known
        self._say(Loop(counter, first, last, step, tuple(body), unroll))

    def span(self, start: Value, stop: Value, *, reverse: bool = False, name: str = "i") -> Iterator[Expr]:
        """Loop over [start, stop), from its end if `reverse`."""
        if reverse:
            return self.loop(as_expr(stop) - 1, as_expr(start) - 1, -1, name=name)
        return self.loop(start, stop, name=name)

    @contextmanager
    def when(self, condition: Value) -> Iterator[None]:
        """Run the statements inside if the condition holds."""
        body = yield from self._block()
        test = as_expr(condition)
        if not isinstance(test, Const):
            self._say(If(test, tuple(body)))
        elif test.value:
            self._body.extend(body)

    @contextmanager
    def otherwise(self) -> Iterator[None]:
        """Run the statements inside if the condition of the preceding `when` does not hold."""
        last = self._body.pop()
        if not isinstance(last, If) or last.otherwise:
            raise TypeError("otherwise() follows a when() that depends on a value")
        body = yield from self._block()
        self._say(If(last.condition, last.then, tuple(body)))

    def says(self, text: str) -> None:
        """Add a comment to the C."""
        self._say(Comment(text))

    def finish(self) -> Function:
        """Return the function; `KernelError` names what is wrong with it."""
        said = Function(self._name, tuple(self._parameters), tuple(self._body), self._says)
        validate(said)
        return tidied(said)

    # --

    def _block(self) -> Generator[None, None, list[Statement]]:
        known, outer, self._body = set(self._used), self._body, []
        yield
        body, self._body, self._used = self._body, outer, known
        return body

    def _parameter(self, name: str, type: Type) -> Var:
        var = self._var(name, type)
        self._parameters.append(var)
        return var

    def _declare(self, name: str, value: Expr, *, register: bool = False) -> Var:
        var = self._var(name, value.type)
        self._say(Declare(var, value, register))
        return var

    def _var(self, name: str, type: Type) -> Var:
        plain, number = c_name(name), 2
        unique = plain
        while unique in self._used:
            unique, number = f"{plain}_{number}", number + 1
        self._used.add(unique)
        return Var(unique, type)

    def _say(self, statement: Statement) -> None:
        self._body.append(statement)
