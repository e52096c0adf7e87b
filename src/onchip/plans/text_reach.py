"""The line `reach OPERATOR output ... sums ... read ... weight NAME BYTES ...` of a plan, written and read.

Behind `sums` may stand `carries VALUES AXIS ...`: what sums of parts carry, and the axes that share it.
Behind the bytes of a weight may stand `late`: it changes complete sums alone.

A side is one word, `SIZE,AXIS,STRIDE,BEFORE,SPAN,PER`: `512` alone for all of it, `10,1` where it goes along
an axis index by index. Omitted numbers are those of the shorter form. Here is only the form of the line; what
a reach means stands in network/operators.py (`Reach`, `Side`).
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from onchip.network import Constant, Reach, Side
from onchip.plans.text_words import Word, word

__all__ = ["reach_of", "reach_text"]

_MARKS = ("output", "sums", "carries", "read", "weight")


def reach_text(operator: str, reach: Reach) -> str:
    """Return the line; names are quoted where necessary."""
    line = f"reach {word(operator)} output{''.join(f' {n}' for n in reach.output)}"
    line += f" sums{''.join(f' {n}' for n in reach.sums)}" if reach.sums else ""
    across = "".join(f" {axis}" for axis in reach.across)
    line += f" carries {reach.carries}{across}" if reach.carries or across else ""
    line += "".join(f" read{_sides(sides)}" for sides in reach.reads)
    return line + "".join(
        f" weight {word(c.name, _MARKS)} {c.bytes}{' late' * c.late}{_sides(c.sides)}" for c in reach.weights
    )


def _sides(sides: Sequence[Side]) -> str:
    return "".join(f" {_side(side)}" for side in sides)


def _side(side: Side) -> str:
    if side == Side(side.size, span=side.size):
        return str(side.size)
    if side == Side(side.size, side.axis):
        return f"{side.size},{side.axis}"
    return ",".join(map(str, side.numbers))


def reach_of(words: Sequence[Word]) -> Reach:
    """Return the reach in the words behind the operator's name. Raises `ValueError` with the reason."""
    plain: dict[str, tuple[int, ...]] = {}
    reads: list[tuple[Side, ...]] = []
    weights: list[Constant] = []
    late = False
    for mark, rest in _parts(words):
        if mark == "weight":
            if len(rest) < 2 or not re.fullmatch(r"[0-9]{1,18}", rest[1][0], re.ASCII):
                raise ValueError("a weight has a name, its bytes, and then its sides")
            (name, _), (size, _), *rest = rest
            late = rest[:1] == [("late", False)]
            rest = rest[late:]
        sides = [_read(text) for text, _ in rest]
        if not mark or None in sides:
            raise ValueError(
                "a reach is `output`, `sums`, `carries`, `read`, `weight`, each with sides like 512 or 10,1"
            )
        found = tuple(side for side in sides if side is not None)
        if mark in ("output", "sums", "carries"):
            if mark in plain or any(side != Side(side.size, span=side.size) for side in found):
                raise ValueError(
                    "a reach has one output, sums over one list of axes, and carries once, of plain numbers"
                )
            plain[mark] = tuple(side.size for side in found)
        elif mark == "read":
            reads.append(found)
        else:
            weights.append(Constant(name, int(size), found, late))
    if "output" not in plain:
        raise ValueError("a reach has one output, of plain sizes")
    if "carries" in plain and not plain["carries"]:
        raise ValueError("behind `carries` stands a number of values")
    carries, *across = plain.get("carries", (0,))
    return Reach(plain["output"], tuple(reads), tuple(weights), plain.get("sums", ()), carries, tuple(across))


def _parts(words: Sequence[Word]) -> list[tuple[str, list[Word]]]:
    """Return the words behind every mark; words before the first mark have an empty mark."""
    found: list[tuple[str, list[Word]]] = []
    for text, quoted in words:
        if not quoted and text in _MARKS:
            found.append((text, []))
        else:
            if not found:
                found.append(("", []))
            found[-1][1].append((text, quoted))
    return found


def _read(text: str) -> Side | None:
    numbers = text.split(",")
    if not all(re.fullmatch(r"-?[0-9]{1,18}", n, re.ASCII) for n in numbers):
        return None
    match [int(n) for n in numbers]:
        case [size]:
            return Side(size, span=size)
        case [size, axis]:
            return Side(size, axis)
        case [size, axis, stride, before, span, per]:
            return Side(size, axis, stride, before, span, per)
    return None
