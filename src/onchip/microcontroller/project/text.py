"""Text of C: lines that know their indentation, and sums and products without needless terms."""

from __future__ import annotations

import re
from collections.abc import Mapping
from types import TracebackType
from typing import Self

__all__ = ["Text", "minus", "plus", "times"]

WIDTH = 100

_ATOM = re.compile(r"[A-Za-z0-9_]+(->[A-Za-z0-9_]+|\[[A-Za-z0-9_]+\]|\([^()]*\))*")
_NUMBER = re.compile(r"-?\d+")
_WORD = re.compile(r"[A-Za-z_]\w*")


def plus(a: str, b: str) -> str:
    """Return a + b."""
    if b == "0" or a == "0":
        return a if b == "0" else b
    found = re.fullmatch(r"(.*) ([+-]) (\d+)", a)
    if _NUMBER.fullmatch(b) and found and _balanced(found[1]):
        rest = (int(found[3]) if found[2] == "+" else -int(found[3])) + int(b)
        return _shifted(found[1], rest)
    if _NUMBER.fullmatch(b):
        return _shifted(a, int(b))
    return f"{a} + {b}"


def _shifted(a: str, number: int) -> str:
    if _NUMBER.fullmatch(a):
        return str(int(a) + number)
    return a if number == 0 else f"{a} {'+-'[number < 0]} {abs(number)}"


def _balanced(text: str) -> bool:
    return text.count("(") == text.count(")")


def minus(a: str, b: str) -> str:
    """Return a - b."""
    if _NUMBER.fullmatch(b):
        return plus(a, str(-int(b)))
    if a == b:
        return "0"
    return f"{a} - {b if _ATOM.fullmatch(b) or _is_product(b) else f'({b})'}"


def _is_product(text: str) -> bool:
    left, _, right = text.partition(" * ")
    return bool(_ATOM.fullmatch(left) and _ATOM.fullmatch(right))


def times(a: str, factor: int) -> str:
    """Return a * factor."""
    if factor == 0 or a == "0":
        return "0"
    if _NUMBER.fullmatch(a):
        return str(int(a) * factor)
    if factor == 1:
        return a
    if re.fullmatch(r"(.*) % \d+", a):
        return f"{a} * {factor}"
    return f"{a if _ATOM.fullmatch(a) else f'({a})'} * {factor}"


class Text:
    """Lines of C."""

    def __init__(self) -> None:
        self._lines: list[str] = []
        self._depth = 0

    def say(self, line: str) -> None:
        """Add a line at the depth of the open blocks; a long one is wrapped at its commas."""
        text = "    " * self._depth + line
        while len(text) > WIDTH and ", " in text[:WIDTH] and not line.lstrip().startswith(("/", "*")):
            at = text.rindex(", ", 0, WIDTH) + 1
            if not text[:at].strip():
                break
            self._lines.append(text[:at])
            text = "    " * (self._depth + 2) + text[at + 1 :]
        self._lines.append(text)

    def block(
        self, head: str, end: str = "}", *, before: str = "", locals: Mapping[str, str] | None = None
    ) -> Text.Block:
        """Return a block of lines in braces behind `head`; without a head, without braces.

        Of the `locals`, declarations by name, the block begins with those whose names its lines use.
        """
        return Text.Block(self, head, end, before, locals or {})

    def __str__(self) -> str:
        return "".join(line + "\n" for line in self._lines)

    class Block:
        """Braces around the lines that are added while it is open."""

        def __init__(self, text: Text, head: str, end: str, before: str, locals: Mapping[str, str]) -> None:
            self._text, self._head, self._end, self._before = text, head, end, before
            self._locals = locals
            self._first = 0

        def __enter__(self) -> Self:
            if self._head and self._text._depth == 0 and self._text._lines:
                self._text.say("")
            if self._before:
                self._text.say(self._before)
            if self._head:
                function = self._text._depth == 0
                self._text.say(self._head if function else self._head + " {")
                if function:
                    self._text.say("{")
                self._text._depth += 1
                self._first = len(self._text._lines)
            return self

        def __exit__(
            self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
        ) -> None:
            if self._head:
                used = set(_WORD.findall("\n".join(self._text._lines[self._first :])))
                indent = "    " * self._text._depth
                for name, declaration in self._locals.items():
                    if name in used:
                        self._text._lines.insert(self._first, indent + declaration)
                self._text._depth -= 1
                self._text.say(self._end)
