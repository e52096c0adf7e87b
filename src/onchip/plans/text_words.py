"""The words of the text form: a line is words; a word that is not plain is written as a JSON string.

Functions that read them raise `ValueError` with the reason.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Collection, Iterable

from onchip.plans.file_limits import Option

__all__ = [
    "KEYWORDS",
    "SECTION",
    "TILED",
    "Word",
    "address",
    "counted",
    "counts",
    "integer",
    "names",
    "scalar",
    "split",
    "word",
    "words",
]

Word = tuple[str, bool]
"""A word of a line, and whether it was quoted: a quoted word is a name, never a keyword."""

KEYWORDS = frozenset({
    "in", "out", "weights", "workspace", "macs",
    "geometry", "input", "output", "kernel", "stride", "padding", "dilation", "groups", "layout", "traversal",
    "scratch", "subgroups", "operators", "refills", "resident",
    "over", "by", "streaming",
})  # fmt: skip

TILED = {
    "tiling": ("tiling", "rows", "channels", "images", "streaming"),
    "blocks": ("blocks", "rows", "columns", "output_channels", "channels", "keep_weights"),
    "boxes": ("boxes", "order"),
    "rings": ("rings", "strips", "fetched", "stage"),
}
"""The words of a tiled group's line, by the one it starts with; on any other line they are plain names."""

SECTION = ("start", "merge", "processing", "branch")
"""The words of a section's line; on any other line they are plain names."""

_PLAIN = re.compile(r"[A-Za-z0-9_./][A-Za-z0-9_./+\-]*", re.ASCII)
_INTEGER = re.compile(r"-?[0-9]{1,18}", re.ASCII)
_DIGITS = re.compile(r"-?[0-9]+", re.ASCII)
_WORD = re.compile(r'\s*(?:#.*|("(?:[^"\\]|\\.)*")|([^\s"#]\S*))', re.ASCII)


def word(name: str, keywords: Collection[str] = ()) -> str:
    """Return a name as one word, on a line that has `keywords` of its own."""
    plain = _PLAIN.fullmatch(name) and name not in KEYWORDS and name not in keywords
    return name if plain else json.dumps(name)


def words(names: Iterable[str], keywords: Collection[str] = ()) -> str:
    """Return names as words, each with a space before it."""
    return "".join([f" {word(n, keywords)}" for n in names])


def counted(rows: Iterable[tuple[str, int]]) -> str:
    """Return a number for each of some names: `x:10 "a b":3`."""
    return " ".join([f"{word(name)}:{n}" for name, n in rows])


def split(line: str) -> list[Word]:
    """Return the words of a line, without its comment."""
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


def names(words: Iterable[Word]) -> tuple[str, ...]:
    """Return the texts of words."""
    return tuple([text for text, _ in words])


def integer(text: str) -> int:
    """Return a whole number."""
    if not _INTEGER.fullmatch(text):
        raise ValueError(f"{text[:60]!r} is not a whole number of at most 18 digits")
    return int(text)


def address(text: str) -> int:
    """Return a number like `@8`."""
    if not text.startswith("@"):
        raise ValueError(f"expected an address like @0, found {text[:60]!r}")
    return integer(text[1:])


def counts(words: Iterable[Word]) -> tuple[tuple[str, int], ...]:
    """Return the (name, number) pairs of `x:10 "a b":3`.

    A plain name and its number are one word; a quoted name is a word, then `:3`.
    """
    found: dict[str, int] = {}
    rest = iter(words)
    for text, quoted in rest:
        name, _, number = (text, "", next(rest, ("", False))[0]) if quoted else text.rpartition(":")
        if quoted and number[:1] != ":":
            raise ValueError(f"expected a number like :10 after {text[:60]!r}")
        count = integer(number.removeprefix(":"))
        if name in found:
            raise ValueError(f"{name[:60]} is given twice")
        found[name] = count
    return tuple(found.items())


def scalar(word: Word) -> Option:
    """Return a quoted word as a string, another one as a JSON number, true, false or null."""
    text, quoted = word
    if quoted:
        return text
    if _DIGITS.fullmatch(text):
        return integer(text)
    try:
        value = json.loads(text)
    except (ValueError, RecursionError):
        value = ()
    if not isinstance(value, float | bool | None) or (type(value) is float and not math.isfinite(value)):
        raise ValueError(f"{text[:60]!r} is not a JSON string, finite number, true, false or null")
    return value
