"""Removes unused names: declarations that a shape made superfluous do not appear in the C."""

from __future__ import annotations

from dataclasses import replace

from onchip.microcontroller.kernel_language.ir import (
    Assign,
    Comment,
    Declare,
    DotRun,
    Expr,
    Fill,
    FlashLoad,
    Free,
    Function,
    If,
    Loop,
    Move,
    Statement,
    Store,
    Taps,
    Var,
    parts,
)

__all__ = ["names_used", "tidied"]


def tidied(function: Function) -> Function:
    """Return the same function without declarations whose names are never used after them."""
    return replace(function, body=_block(function.body, set()))


def names_used(function: Function) -> set[str]:
    """Return the parameters that the function uses."""
    live: set[str] = set()
    _block(function.body, live)
    return live


def _block(body: tuple[Statement, ...], live: set[str]) -> tuple[Statement, ...]:
    """Return the statements that matter.

    `live` are the names used after them, and is updated to those used from here on.
    """
    kept: list[Statement] = []
    for statement in reversed(body):
        match statement:
            case Declare(var, value):
                if var.name not in live:
                    continue
                live.discard(var.name)
                _use(value, live)
            case Assign(var, value):
                live.add(var.name)
                _use(value, live)
            case FlashLoad(targets, pointer):
                live -= {target.name for target in targets}
                live.add(pointer.name)
            case DotRun(rows, sources, w, _, _, _):
                live |= {w.name, *(total.name for row in rows for total in row)}
                for source in sources:
                    _use(source, live)
            case Taps(sums, sources, w, plus):
                live |= {w.name, *(total.name for total in sums)}
                for source in (*sources, *((plus,) if plus else ())):
                    _use(source, live)
            case Store(_, pointer_, offset, value, count):
                for expr in (pointer_, offset, value, *((count,) if count is not None else ())):
                    _use(expr, live)
            case Move(target, other, moved) | Fill(target, other, moved):
                for expr in (target, other, moved):
                    _use(expr, live)
            case Free(pointer_, freed):
                _use(pointer_, live)
                _use(freed, live)
            case Loop(counter, start, stop, _, inner):
                # A name used in one turn may be used in the next: the body is read twice.
                around = set(live)
                _block(inner, around)
                around.discard(counter.name)
                _use(stop, around)
                statement = replace(statement, body=_block(inner, around))
                around.discard(counter.name)
                live |= around
                _use(start, live)
                _use(stop, live)
            case If(condition, then, otherwise):
                yes, no = set(live), set(live)
                statement = replace(statement, then=_block(then, yes), otherwise=_block(otherwise, no))
                live |= yes | no
                _use(condition, live)
            case Comment():
                pass
        kept.append(statement)
    return tuple(reversed(kept))


def _use(expr: Expr, live: set[str]) -> None:
    if isinstance(expr, Var):
        live.add(expr.name)
    for part in parts(expr):
        _use(part, live)
