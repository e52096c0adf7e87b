"""Prints a kernel as C: as a firmware engineer would have written it, with loops and names.

Every file that holds kernels begins with `c_prelude`: the intrinsics, once for cores with DSP instructions
and once for any other compiler, with the same results.
"""

from __future__ import annotations

from functools import cache
from importlib.resources import files

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
from onchip.microcontroller.kernel_language.names import c_comment
from onchip.microcontroller.kernel_language.tidy import names_used

__all__ = ["c_prelude", "c_prototype", "c_source"]

_BINDS = {
    "==": 1,
    "<": 2,
    "<=": 2,
    ">": 2,
    ">=": 2,
    "&": 0,
    ">>": 3,
    "+": 4,
    "-": 4,
    "*": 5,
    "/": 5,
    "%": 5,
}
_ATOM, _UNARY = 9, 8
_WIDTH = 100
_VECTORS = {Kind.LANES: "_lanes", Kind.HALVES: "_halves", Kind.VECTOR: "16", Kind.INTS: "_ints"}


@cache
def c_prelude() -> str:
    """Return the intrinsics, as the text of a header."""
    return (files("onchip.microcontroller.kernel_language") / "dsp.h.txt").read_text(encoding="utf-8")


def c_prototype(function: Function) -> str:
    """Return the function's declaration, without the semicolon."""
    head = f"void {function.name}("
    parameters = [_declared(p.type, p.name) for p in function.parameters]
    line = head + ", ".join(parameters) + ")"
    if len(line) <= _WIDTH:
        return line
    return head + "\n        " + ",\n        ".join(parameters) + ")"


def c_source(function: Function) -> str:
    """Return the function's definition, its comment above it."""
    lines: list[str] = []
    if function.says:
        lines.append("/* " + "\n * ".join(c_comment(s) for s in function.says) + " */")
    lines.append(c_prototype(function))
    lines.append("{")
    used = names_used(function)
    lines.extend(f"    (void){p.name};" for p in function.parameters if p.name not in used)
    for statement in function.body:
        lines.extend("    " + line if line[:1] != "#" else line for line in _statement(statement))
    lines.append("}")
    return "\n".join(lines) + "\n"


def _statement(statement: Statement) -> list[str]:
    match statement:
        case Declare(var, value, register):
            return [f"{_declared(var.type, var.name, constant=not register)} = {_expr(value)};"]
        case Assign(var, Binary(op, a, b, _)) if a == var and op in ("+", "-"):
            return [f"{var.name} {op}= {_expr(b)};"]
        case Assign(var, value):
            return [f"{var.name} = {_expr(value)};"]
        case FlashLoad(targets, pointer):
            return _flash_load(targets, pointer)
        case Store(Kind.BYTE, pointer, offset, value):
            text, tight = _bound(value)
            return [f"{_element(pointer, offset)} = (int8_t){text if tight == _ATOM else f'({text})'};"]
        case DotRun(rows, sources, w, run, fresh, piece):
            sums = [f"&{total.name}" for row in rows for total in row]
            given = [*sums, *map(_expr, sources), f"&{w.name}", str(run)]
            name = "dot_words" if piece == 4 else "dot"
            given += [] if piece == 4 else [str(int(fresh))]
            return [f"{name}_{len(rows)}x{len(rows[0])}({', '.join(given)});"]
        case Taps(sums_, sources, w, plus):
            name = f"taps{len(sources)}{'_plus' if plus else ''}"
            given = [*(f"&{total.name}" for total in sums_), f"&{w.name}", *map(_expr, sources)]
            return [f"{name}({', '.join([*given, *([_expr(plus)] if plus else [])])});"]
        case Store(kind, pointer, offset, value, count) if kind in _VECTORS:
            at = pointer if offset == Const(0) else Binary("+", pointer, offset, Type.OUTPUT)
            name, more = _some(kind, count)
            return [f"store{name}({_expr(at)}, {_expr(value)}{more});"]
        case Store(kind, pointer, offset, value):
            size = 2 if kind is Kind.HALF else 4
            return [f"store{size}({_expr(Binary('+', pointer, offset, Type.OUTPUT))}, {_expr(value)});"]
        case Move(target, source, count):
            return [f"move_bytes({_expr(target)}, {_expr(source)}, {_expr(count)});"]
        case Fill(target, value, count):
            return [f"fill_bytes({_expr(target)}, {_expr(value)}, {_expr(count)});"]
        case Free(pointer, count):
            return [f"/* RAMFree: {_expr(count)} bytes at {_expr(pointer)} */"]
        case Loop(counter, start, stop, step, body, unroll):
            move = f"++{counter.name}" if step == 1 else f"{counter.name} {'+-'[step < 0]}= {abs(step)}"
            head = f"for (int32_t {counter.name} = {_expr(start)}; {counter.name}"
            head += f" {'<>'[step < 0]} {_expr(stop)}; {move}) {{"
            pragma = [f"#pragma GCC unroll {unroll}"] if unroll else []
            return [*pragma, head, *_inner(body), "}"]
        case If(condition, then, otherwise):
            lines = [f"if ({_expr(condition)}) {{", *_inner(then)]
            return [*lines, "} else {", *_inner(otherwise), "}"] if otherwise else [*lines, "}"]
        case Comment(text):
            return [f"/* {c_comment(text)} */"]
    raise AssertionError(statement)


def _inner(body: tuple[Statement, ...]) -> list[str]:
    lines = [line for statement in body for line in _statement(statement)]
    return [line if line[:1] == "#" else "    " + line for line in lines]


def _flash_load(targets: tuple[Var, ...], pointer: Var) -> list[str]:
    lines: list[str] = []
    for i in range(0, len(targets) - 1, 2):
        a, b = targets[i], targets[i + 1]
        lines += [f"{a.type.value} {a.name}, {b.name};", f"LOAD2({a.name}, {b.name}, {pointer.name});"]
    if len(targets) % 2:
        lines.append(f"{_declared(targets[-1].type, targets[-1].name, constant=True)} = *{pointer.name}++;")
    return lines


def _declared(type_: Type, name: str, constant: bool = False) -> str:
    if type_.value.endswith("*"):
        return f"{type_.value}{'const ' if constant else ''}{name}"
    return f"{'const ' if constant else ''}{type_.value} {name}"


def _some(kind: Kind, count: Expr | None) -> tuple[str, str]:
    """Return the end of the name of a load or store, and its last argument: how many elements it moves."""
    name = _VECTORS.get(kind, "2" if kind is Kind.HALF else "4")
    whole = count is None or (isinstance(count, Const) and count.value >= kind.elements)
    return (name, "") if whole or count is None else (f"{name}_some", f", {_expr(count)}")


def _element(pointer: Expr, offset: Expr) -> str:
    base = _expr(pointer) if isinstance(pointer, Var) else f"({_expr(pointer)})"
    return f"{base}[{_expr(offset)}]"


def _expr(expr: Expr) -> str:
    return _bound(expr)[0]


def _bound(expr: Expr) -> tuple[str, int]:
    match expr:
        case Const(value, _):
            # C has no negative literals: the least integer would be a larger type negated.
            return ("INT32_MIN", _ATOM) if value == -(1 << 31) else (str(value), _ATOM if value >= 0 else 6)
        case Var(name, _):
            return name, _ATOM
        case Binary(op, a, b, _) if op in ("min", "max"):
            return f"{'smaller' if op == 'min' else 'larger'}({_expr(a)}, {_expr(b)})", _ATOM
        case Binary("<<", a, b, _):
            # Only in unsigned C is it defined to shift bits out to the left.
            (left, tight), (right, loose) = _bound(a), _bound(b)
            left, right = (t if tied == _ATOM else f"({t})" for t, tied in ((left, tight), (right, loose)))
            return f"(int32_t)((uint32_t){left} << {right})", _UNARY
        case Binary(op, a, b, _):
            level = _BINDS[op]
            (left, tight), (right, loose) = _bound(a), _bound(b)
            # Parentheses around mixed operators whose precedence readers do not know.
            mixed = op in (">>", "&")
            left = f"({left})" if tight < level or (mixed and tight < _ATOM) else left
            right = f"({right})" if loose <= level or (mixed and loose < _ATOM) else right
            return f"{left} {op} {right}", level
        case Call(name, arguments, _):
            return f"{name}({', '.join(_expr(a) for a in arguments)})", _ATOM
        case Load(Kind.BYTE, pointer, offset):
            return _element(pointer, offset), _ATOM
        case Load(kind, pointer, offset, count):
            at = pointer if offset == Const(0) else Binary("+", pointer, offset, pointer.type)
            name, more = _some(kind, count)
            return f"load{name}({_expr(at)}{more})", _ATOM
        case Lookup(words, index):
            return f"lookup16({words.name}, {_expr(index)})", _ATOM
        case Line(array, index) | Word(array, index):
            return f"{array.name}[{_expr(index)}]", _ATOM
        case FlashVector(words, index, form):
            at = words if index == Const(0) else Binary("+", words, index, Type.FLASH)
            return f"load_{form}({_expr(at)})", _ATOM
        case FlashByte(words, index):
            return f"((const int8_t *){words.name})[{_expr(index)}]", _ATOM
    raise AssertionError(expr)
