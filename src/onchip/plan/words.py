"""The lexer of the text form: a line is words; a word that is not plain is written as a JSON string."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable

__all__ = ["KEYWORDS", "Word", "split", "word"]

Word = tuple[str, bool]
"""A word of a line, and whether it was quoted: a quoted word is a name, never a keyword."""

KEYWORDS = frozenset({
    "in", "out", "weights", "workspace", "macs",
    "geometry", "input", "output", "kernel", "stride", "padding", "dilation", "groups", "layout", "traversal",
    "scratch", "subgroups", "operators", "refills", "resident",
    "over", "by", "streaming",
})  # fmt: skip

_PLAIN = re.compile(r"[A-Za-z0-9_./][A-Za-z0-9_./+\-]*", re.ASCII)
_WORD = re.compile(r'\s*(?:#.*|("(?:[^"\\]|\\.)*")|([^\s"#]\S*))', re.ASCII)


def word(name: str) -> str:
    """A name as one word."""
    return name if _PLAIN.fullmatch(name) and name not in KEYWORDS else json.dumps(name)


def words(names: Iterable[str]) -> str:
    """Names as words, each with a space before it."""
    return "".join(f" {word(n)}" for n in names)


def split(line: str) -> list[Word]:
    """The words of a line, without its comment. Raises `ValueError` with the reason."""
    try:
        line.encode()
    except UnicodeEncodeError:
        raise ValueError("has a lone surrogate, which is no text") from None
    found: list[Word] = []
    at, line = 0, line.rstrip()
    while at < len(line):
        match = _WORD.match(line, at)
        if match is None:
            raise ValueError("has an unclosed string")
        at = match.end()
        if match[1] is not None:
            try:
                text = json.loads(match[1])
                text.encode()
            except ValueError:
                raise ValueError(f"{match[1][:60]} is not a JSON string") from None
            found.append((text, True))
        elif match[2] is not None:
            found.append((match[2], False))
    return found
