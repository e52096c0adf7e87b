"""Runs a kernel in Python, byte by byte: the oracle of the printed C, and a check of its memory accesses.

RAM records the owner of every byte. A kernel is stopped when it reads a byte that was never written, that was
freed, that lies outside, or that another tensor has overwritten. This proves that an overlap of input and
output that the kernel's contract allows leaves every byte in place until its last reader.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

from onchip.microcontroller.kernel_language.intrinsics import INTRINSICS, signed
from onchip.microcontroller.kernel_language.ir import (
    Assign,
    Binary,
    Call,
    Comment,
    Const,
    Declare,
    Expr,
    FlashByte,
    FlashLoad,
    FlashVector,
    Free,
    Function,
    If,
    Kind,
    Line,
    Load,
    Loop,
    Statement,
    Store,
    Type,
    Var,
    Word,
)

__all__ = ["Fault", "Pointer", "Ram", "run"]

_Frame: TypeAlias = dict[str, Any]
_Code: TypeAlias = Callable[[_Frame], Any]


class Fault(Exception):
    """A kernel touched a byte of RAM that it must not touch."""


@dataclass(frozen=True, slots=True)
class Pointer:
    """An address, and the tensor that is expected there."""

    owner: str
    address: int

    def __add__(self, offset: int) -> Pointer:
        return Pointer(self.owner, self.address + offset)


class Ram:
    """Bytes, each with the tensor that owns it or without."""

    def __init__(self, size: int) -> None:
        self.bytes = bytearray(size)
        self.owner: list[str | None] = [None] * size

    def put(self, pointer: Pointer, content: bytes) -> None:
        """Store the bytes there, owned by the pointer's tensor."""
        for i, byte in enumerate(content):
            self.store(pointer, i, byte)

    def get(self, pointer: Pointer, count: int) -> bytes:
        """Return the owner's bytes."""
        return bytes(self.load(pointer, i) for i in range(count))

    def load(self, pointer: Pointer, offset: int) -> int:
        at = self._at(pointer, offset, "reads")
        holder = self.owner[at]
        if holder != pointer.owner:
            state = "nobody has written or somebody has freed" if holder is None else f"is {holder}'s by now"
            raise Fault(f"byte {offset} at {pointer.address} of {pointer.owner} is read, which {state}")
        return self.bytes[at]

    def store(self, pointer: Pointer, offset: int, byte: int) -> None:
        at = self._at(pointer, offset, "writes")
        self.bytes[at] = byte & 0xFF
        self.owner[at] = pointer.owner

    def free(self, pointer: Pointer, count: int) -> None:
        for i in range(count):
            at = self._at(pointer, i, "frees")
            if self.owner[at] == pointer.owner:
                self.owner[at] = None

    def _at(self, pointer: Pointer, offset: int, does: str) -> int:
        at = pointer.address + offset
        if not 0 <= at < len(self.bytes):
            raise Fault(f"{pointer.owner} {does} at {at}, outside of {len(self.bytes)} bytes")
        return at


@dataclass(frozen=True, slots=True)
class _Flash:
    words: Sequence[int]
    at: int = 0

    def __add__(self, offset: int) -> _Flash:
        return _Flash(self.words, self.at + offset)


def run(function: Function, ram: Ram, arguments: Mapping[str, Any]) -> None:
    """Call the kernel: integers, `Pointer`s, lists of pointers for lines, lists of words for flash.

    Raises `Fault` if it reads or writes where it must not.
    """
    frame: _Frame = {}
    for parameter in function.parameters:
        value = arguments[parameter.name]
        frame[parameter.name] = _Flash(value) if parameter.type is Type.FLASH else value
    _block(function.body, ram)(frame)


def _block(body: Sequence[Statement], ram: Ram) -> _Code:
    steps = [_statement(s, ram) for s in body if not isinstance(s, Comment)]

    def do(frame: _Frame) -> None:
        for step in steps:
            step(frame)

    return do


def _statement(statement: Statement, ram: Ram) -> _Code:
    match statement:
        case Declare(var, value, _) | Assign(var, value):
            name, code = var.name, _expr(value, ram)

            def assign(frame: _Frame) -> None:
                frame[name] = code(frame)

            return assign
        case FlashLoad(targets, pointer):
            names, source = [t.name for t in targets], pointer.name
            lanes = targets[0].type is Type.LANES

            def load(frame: _Frame) -> None:
                flash = frame[source]
                if flash.at < 0 or flash.at + len(names) > len(flash.words):
                    raise Fault(f"{source} is read past its end")
                for i, target in enumerate(names):
                    word = flash.words[flash.at + i]
                    frame[target] = (
                        _packed(list((word & 0xFFFFFFFF).to_bytes(4, "little")), True) if lanes else word
                    )
                frame[source] = flash + len(names)

            return load
        case Store(kind, pointer_, offset, value):
            where, by, what = _expr(pointer_, ram), _expr(offset, ram), _expr(value, ram)
            size = kind.size

            def store(frame: _Frame) -> None:
                at, plus, word = where(frame), by(frame), what(frame)
                apart = 32 if kind is Kind.LANES else 8
                for i in range(size):
                    ram.store(at, plus + i, word >> (apart * i))

            return store
        case Free(pointer_, count):
            where, many = _expr(pointer_, ram), _expr(count, ram)
            return lambda frame: ram.free(where(frame), many(frame))
        case Loop(counter, start, stop, step, body, _):
            first, last, inner, name = _expr(start, ram), _expr(stop, ram), _block(body, ram), counter.name

            def loop(frame: _Frame) -> None:
                frame[name] = first(frame)
                while frame[name] < last(frame) if step > 0 else frame[name] > last(frame):
                    inner(frame)
                    frame[name] += step

            return loop
        case If(condition, then, otherwise):
            test, yes, no = _expr(condition, ram), _block(then, ram), _block(otherwise, ram)
            return lambda frame: yes(frame) if test(frame) else no(frame)
    raise AssertionError(statement)


_ARITHMETIC: dict[str, Callable[[Any, Any], Any]] = {
    "+": lambda a, b: signed(a + b),
    "-": lambda a, b: signed(a - b),
    "*": lambda a, b: signed(a * b),
    "/": lambda a, b: int(a / b) if abs(a) < 1 << 50 else a // b,
    "%": lambda a, b: a - b * int(a / b),
    "<<": lambda a, b: signed(a << b),
    ">>": lambda a, b: a >> b,
    "&": lambda a, b: signed(a & b),
    "<": lambda a, b: a < b,
    "<=": lambda a, b: a <= b,
    ">": lambda a, b: a > b,
    ">=": lambda a, b: a >= b,
    "==": lambda a, b: a == b,
    "min": min,
    "max": max,
}


def _packed(found: Sequence[int], lanes: bool) -> int:
    """Return bytes as the integer of a vector: one behind the other, or each as an integer of 32 bits."""
    if not lanes:
        return int.from_bytes(bytes(found), "little")
    return sum(((b - 256 if b & 0x80 else b) & 0xFFFFFFFF) << (32 * i) for i, b in enumerate(found))


def _expr(expr: Expr, ram: Ram) -> _Code:
    match expr:
        case Const(value, _):
            return lambda frame: value
        case Var(name, _):
            return lambda frame: frame[name]
        case Binary(op, a, b, type_):
            left, right = _expr(a, ram), _expr(b, ram)
            if type_ is not Type.INT:
                if op == "-":
                    return lambda frame: left(frame) + -right(frame)
                return lambda frame: left(frame) + right(frame)
            compute = _ARITHMETIC[op]
            return lambda frame: compute(left(frame), right(frame))
        case Call(name, arguments, _):
            act, codes = INTRINSICS[name].compute, [_expr(a, ram) for a in arguments]
            return lambda frame: act(*(code(frame) for code in codes))
        case Load(kind, pointer, offset, count):
            where, by = _expr(pointer, ram), _expr(offset, ram)
            if kind in (Kind.VECTOR, Kind.LANES):
                many = count if kind is Kind.VECTOR else 4

                def vector(frame: _Frame) -> int:
                    at, plus = where(frame), by(frame)
                    found = [ram.load(at, plus + i) for i in range(many)]
                    return _packed(found, kind is Kind.LANES)

                return vector
            if kind is Kind.BYTE:

                def byte(frame: _Frame) -> int:
                    found = ram.load(where(frame), by(frame))
                    return found - 256 if found & 0x80 else found

                return byte

            size, above = kind.size, 8 * (4 - kind.size)

            def word(frame: _Frame) -> int:
                at, plus = where(frame), by(frame)
                return signed(sum(ram.load(at, plus + i) << (8 * i + above) for i in range(size))) >> above

            return word
        case Line(lines, index):
            held, which = _expr(lines, ram), _expr(index, ram)
            return lambda frame: held(frame)[which(frame)]
        case Word(pointer, index):
            source, which = pointer.name, _expr(index, ram)

            def constant(frame: _Frame) -> int:
                flash, at = frame[source], frame[source].at + which(frame)
                if not 0 <= at < len(flash.words):
                    raise Fault(f"{source} is read outside of its words")
                return int(flash.words[at])

            return constant
        case FlashVector(pointer, index, form):
            name_of, nth_word = pointer.name, _expr(index, ram)

            def some(frame: _Frame) -> int:
                flash, at = frame[name_of], frame[name_of].at + nth_word(frame)
                count = 1 if form == "bytes4" else 4
                if not 0 <= at <= len(flash.words) - count:
                    raise Fault(f"{name_of} is read outside of its words")
                word = sum((int(flash.words[at + i]) & 0xFFFFFFFF) << (32 * i) for i in range(count))
                return _packed(list(word.to_bytes(4, "little")), True) if form == "bytes4" else word

            return some
        case FlashByte(pointer, index):
            words, nth = pointer.name, _expr(index, ram)

            def one(frame: _Frame) -> int:
                flash, (word, at) = frame[words], divmod(nth(frame), 4)
                if not 0 <= flash.at + word < len(flash.words):
                    raise Fault(f"{words} is read outside of its words")
                found = int(flash.words[flash.at + word] >> (8 * at)) & 0xFF
                return found - 256 if found & 0x80 else found

            return one
    raise AssertionError(expr)
