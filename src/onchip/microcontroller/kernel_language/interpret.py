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

            def load(frame: _Frame) -> None:
                flash = frame[source]
                if flash.at < 0 or flash.at + len(names) > len(flash.words):
                    raise Fault(f"{source} is read past its end")
                for i, target in enumerate(names):
                    frame[target] = flash.words[flash.at + i]
                frame[source] = flash + len(names)

            return load
        case DotRun():
            return _dot_run(statement, ram)
        case Taps():
            return _taps(statement, ram)
        case Store(kind, pointer_, offset, value, count):
            where, by, what = _expr(pointer_, ram), _expr(offset, ram), _expr(value, ram)
            upto = None if count is None else _expr(count, ram)

            def store(frame: _Frame) -> None:
                at, plus, word = where(frame), by(frame), what(frame)
                apart = {Kind.LANES: 32, Kind.HALVES: 16}.get(kind, 8)
                for i in range(_moved(kind, upto, frame)):
                    ram.store(at, plus + i, word >> (apart * i))

            return store
        case Move(target, source, moved):
            goes, comes, by_bytes = _expr(target, ram), _expr(source, ram), _expr(moved, ram)
            return lambda frame: ram.put(goes(frame), ram.get(comes(frame), by_bytes(frame)))
        case Fill(target, value, moved):
            fills, what_byte, so_many = _expr(target, ram), _expr(value, ram), _expr(moved, ram)
            return lambda frame: ram.put(fills(frame), bytes([what_byte(frame) & 0xFF]) * so_many(frame))
        case Free(pointer_, freed):
            where, many = _expr(pointer_, ram), _expr(freed, ram)
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


def _moved(kind: Kind, count: _Code | None, frame: _Frame) -> int:
    """Return the bytes that a load or a store moves."""
    each = kind.size // kind.elements
    return kind.size if count is None else each * min(kind.elements, count(frame))


def _int8(value: int) -> int:
    return (value & 0xFF) - 256 if value & 0x80 else value & 0xFF


def _flash_bytes(flash: _Flash, word: int, count: int) -> list[int]:
    """Return bytes of flash from a word on."""
    if flash.at + word < 0 or flash.at + word + -(-count // 4) > len(flash.words):
        raise Fault("weights are read outside of their words")
    return [_int8(int(flash.words[flash.at + word + i // 4]) >> (8 * (i % 4))) for i in range(count)]


def _dot_run(statement: DotRun, ram: Ram) -> _Code:
    pointers = [_expr(source, ram) for source in statement.sources]
    channels = len(statement.sums[0])

    def products(frame: _Frame) -> None:
        flash = frame[statement.w.name]
        lines = [pointer(frame) for pointer in pointers]
        if statement.fresh:
            frame.update({total.name: 0 for row in statement.sums for total in row})
        for begin in range(0, statement.run, statement.piece):
            count = min(statement.piece, statement.run - begin)
            words = -(-count // 4)
            weights = [_flash_bytes(flash, c * words, count) for c in range(channels)]
            for row, line in zip(statement.sums, lines, strict=True):
                found = [_int8(ram.load(line, begin + i)) for i in range(count)]
                for total, each in zip(row, weights, strict=True):
                    added = sum(a * b for a, b in zip(found, each, strict=True))
                    frame[total.name] = signed(frame[total.name] + added)
            flash = flash + channels * words
        frame[statement.w.name] = flash

    return products


def _taps(statement: Taps, ram: Ram) -> _Code:
    pointers = [_expr(source, ram) for source in statement.sources]
    plus = _expr(statement.plus, ram) if statement.plus else None

    def products(frame: _Frame) -> None:
        added, flash = plus(frame) if plus else 0, frame[statement.w.name]
        sums = [0] * 8
        for t, pointer in enumerate(pointers):
            weights, at = _flash_bytes(flash, 2 * t, 8), pointer(frame)
            for c, weight in enumerate(weights):
                sums[c] += (_int8(ram.load(at, c)) + added) * weight
        if any(not -(1 << 15) <= total < 1 << 15 for total in sums):
            raise Fault("the products of two taps do not fit sixteen bits")
        for half, total in enumerate(statement.sums):
            lanes = [signed(frame[total.name] >> (32 * i)) for i in range(4)]
            lanes = [signed(lane + sums[2 * i + half]) for i, lane in enumerate(lanes)]
            frame[total.name] = sum((lane & 0xFFFFFFFF) << (32 * i) for i, lane in enumerate(lanes))
        frame[statement.w.name] = flash + 2 * len(pointers)

    return products


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


def _lanes_of(word: int) -> int:
    """Return the bytes of a word as four integers, the integer of a vector."""
    return sum((_int8(word >> (8 * i)) & 0xFFFFFFFF) << (32 * i) for i in range(4))


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
            if kind.elements > 1:
                many = None if count is None else _expr(count, ram)
                bits = {Kind.LANES: 32, Kind.HALVES: 16}.get(kind, 8)

                def vector(frame: _Frame) -> int:
                    at, plus = where(frame), by(frame)
                    found = (ram.load(at, plus + i) for i in range(_moved(kind, many, frame)))
                    if bits == 8:
                        return sum(byte << (8 * i) for i, byte in enumerate(found))
                    each = enumerate(_int8(byte) & ((1 << bits) - 1) for byte in found)
                    return sum(value << (bits * i) for i, value in each)

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
                count = {"bytes4": 1, "bytes8": 2}.get(form, 4)
                if not 0 <= at <= len(flash.words) - count:
                    raise Fault(f"{name_of} is read outside of its words")
                word = sum((int(flash.words[at + i]) & 0xFFFFFFFF) << (32 * i) for i in range(count))
                if form == "bytes8":
                    return sum((_int8(word >> (8 * i)) & 0xFFFF) << (16 * i) for i in range(8))
                return _lanes_of(word) if form == "bytes4" else word

            return some
        case Lookup(pointer, index):
            held_in, numbers = pointer.name, _expr(index, ram)

            def looked_up(frame: _Frame) -> int:
                table = _flash_bytes(frame[held_in], 0, 256)
                found = (table[_int8(numbers(frame) >> (8 * i)) + 128] for i in range(16))
                return sum((value & 0xFF) << (8 * i) for i, value in enumerate(found))

            return looked_up
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
