"""Checks of a traced kernel: every name is known where it is used, every type fits its place."""

from __future__ import annotations

from collections.abc import Iterable

from onchip.base.errors import OnchipError
from onchip.microcontroller.kernel_language.intrinsics import INTRINSICS
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
    parts,
)
from onchip.microcontroller.kernel_language.names import c_name

__all__ = ["KernelError", "validate"]

_INTEGER = ("+", "-", "*", "/", "%", "<<", ">>", "&", "<", "<=", ">", ">=", "==", "min", "max")
_RAM = (Type.INPUT, Type.OUTPUT)
_BLOCKS = {16: ((1, 2), (2, 2), (3, 2), (1, 4)), 4: ((1, 2), (1, 4))}
"""Pixels and channels of the blocks of `DotRun`, by the bytes of a piece."""


class KernelError(OnchipError):
    """A kernel without meaning."""


def validate(function: Function) -> None:
    """Raise `KernelError`, naming the kernel and what in it is wrong."""
    _Validator(function).check()


class _Validator:
    def __init__(self, function: Function) -> None:
        self.function = function
        self.known: dict[str, Type] = {}
        self.registers: set[str] = set()

    def check(self) -> None:
        for parameter in self.function.parameters:
            self.name(parameter)
        self.block(self.function.body)

    def fail(self, reason: str) -> KernelError:
        return KernelError(f"kernel {self.function.name}: {reason}")

    def name(self, var: Var, register: bool = False) -> None:
        if c_name(var.name) != var.name:
            raise self.fail(f"{var.name!r} is no name in C")
        if var.name in self.known:
            raise self.fail(f"{var.name} is declared twice")
        self.known[var.name] = var.type
        (self.registers.add if register else self.registers.discard)(var.name)

    def block(self, body: tuple[Statement, ...]) -> None:
        outer, registers = dict(self.known), set(self.registers)
        for statement in body:
            self.statement(statement)
        self.known, self.registers = outer, registers

    def statement(self, statement: Statement) -> None:
        match statement:
            case Declare(var, value, register):
                self.takes(f"{var.name}", value, var.type)
                self.name(var, register)
            case Assign(var, value):
                if var.name not in self.registers:
                    raise self.fail(f"{var.name} is set, but is no register")
                self.takes(var.name, var, var.type)
                self.takes(f"{var.name}", value, var.type)
            case FlashLoad(targets, pointer):
                self.takes("FlashLoad", pointer, Type.FLASH)
                if pointer.name not in self.registers:
                    raise self.fail(f"FlashLoad moves {pointer.name}, which is no register")
                for target in targets:
                    self.name(target)
            case Store(kind, pointer, offset, value, count):
                self.takes("RAMStore", pointer, Type.OUTPUT)
                self.takes("RAMStore's offset", offset, Type.INT)
                self.takes("RAMStore's value", value, kind.type)
                self.some("RAMStore stores", kind, count)
            case DotRun(rows, sources, w, run, fresh, piece):
                block = len(rows), len(rows[0])
                if run < 1 or len(rows) != len(sources) or block not in _BLOCKS.get(piece, ()):
                    raise self.fail(f"no block makes {len(rows)} pixels of {run} bytes so")
                if piece == 4 and (fresh or run % piece):
                    raise self.fail(f"no block of words makes {run} bytes so")
                self.sums("dot_run", (total for row in rows for total in row), Type.INT)
                self.pointers("dot_run", sources, w)
            case Taps(sums, sources, w, plus):
                if len(sources) not in (1, 2) or (plus is not None and len(sources) > 1):
                    raise self.fail(f"no block makes {len(sources)} taps so")
                self.sums("taps", sums, Type.LANES)
                self.pointers("taps", sources, w)
                if plus is not None:
                    self.takes("what taps add", plus, Type.INT)
            case Move(target, source, count):
                self.takes("a move", target, Type.OUTPUT)
                self.takes("a move's source", source, *_RAM)
                self.takes("a move's count", count, Type.INT)
            case Fill(target, value, count):
                self.takes("a fill", target, Type.OUTPUT)
                self.takes("a fill's value", value, Type.INT)
                self.takes("a fill's count", count, Type.INT)
            case Free(pointer, count):
                self.takes("RAMFree", pointer, *_RAM)
                self.takes("RAMFree's count", count, Type.INT)
            case Loop(counter, start, stop, step, body, unroll):
                self.takes(f"the start of {counter.name}", start, Type.INT)
                self.takes(f"the end of {counter.name}", stop, Type.INT)
                if step == 0:
                    raise self.fail(f"the loop of {counter.name} does not move")
                if unroll < 0:
                    raise self.fail(f"the loop of {counter.name} is unrolled {unroll} times")
                outer = dict(self.known)
                self.name(counter)
                self.block(body)
                self.known = outer
            case If(condition, then, otherwise):
                self.takes("a condition", condition, Type.INT)
                self.block(then)
                self.block(otherwise)
            case Comment():
                pass

    def sums(self, what: str, sums: Iterable[Var], type_: Type) -> None:
        for total in sums:
            if total.name not in self.registers:
                raise self.fail(f"{what} adds to {total.name}, which is no register")
            self.takes(f"{what}'s sum", total, type_)

    def pointers(self, what: str, sources: Iterable[Expr], w: Var) -> None:
        for source in sources:
            self.takes(f"{what}'s source", source, *_RAM)
        self.takes(what, w, Type.FLASH)
        if w.name not in self.registers:
            raise self.fail(f"{what} moves {w.name}, which is no register")

    def some(self, what: str, kind: Kind, count: Expr | None) -> None:
        """Check how many elements of a vector are loaded or stored."""
        if count is None:
            return
        self.takes(f"what {what}", count, Type.INT)
        if kind.elements == 1 or (isinstance(count, Const) and count.value < 1):
            raise self.fail(f"{what} {count.value if isinstance(count, Const) else 'some'} of its elements")

    def takes(self, what: str, value: Expr, *types: Type) -> None:
        # Writable bytes may be read: an OUTPUT is an INPUT too.
        given = self.type(value)
        if given not in types and not (given is Type.OUTPUT and Type.INPUT in types):
            wanted = " or ".join(t.name for t in types)
            raise self.fail(f"{what} takes {wanted}, not {value.type.name}")

    def type(self, value: Expr) -> Type:
        for part in parts(value):
            self.type(part)
        match value:
            case Const(number):
                if not -(1 << 31) <= number < 1 << 32:
                    raise self.fail(f"{number} does not fit 32 bits")
            case Var(name, type_):
                if name not in self.known:
                    raise self.fail(f"{name} is not known here")
                if self.known[name] is not type_:
                    raise self.fail(f"{name} is {self.known[name].name}, not {type_.name}")
            case Binary(op, a, b, _):
                pointer = op in ("+", "-") and a.type in (*_RAM, Type.FLASH)
                if op not in _INTEGER or b.type is not Type.INT or not (pointer or a.type is Type.INT):
                    raise self.fail(f"{a.type.name} {op} {b.type.name} has no meaning")
            case Call(name, arguments):
                if name not in INTRINSICS:
                    raise self.fail(f"there is no intrinsic {name}")
                takes = INTRINSICS[name].takes
                if tuple(a.type for a in arguments) != takes:
                    given = ", ".join(a.type.name for a in arguments)
                    raise self.fail(f"{name} takes ({', '.join(t.name for t in takes)}), not ({given})")
            case Load(kind, pointer_, offset, count):
                self.takes("RAMLoad", pointer_, *_RAM)
                self.takes("RAMLoad's offset", offset, Type.INT)
                self.some("RAMLoad loads", kind, count)
            case Lookup(flash, index):
                self.takes("a lookup", flash, Type.FLASH)
                self.takes("a lookup's index", index, Type.VECTOR)
            case Line(lines, index):
                self.takes("a line", lines, Type.LINES)
                self.takes("a line's index", index, Type.INT)
            case Word(flash, index) | FlashByte(flash, index) | FlashVector(flash, index):
                self.takes("a constant", flash, Type.FLASH)
                self.takes("a constant's index", index, Type.INT)
        return value.type
