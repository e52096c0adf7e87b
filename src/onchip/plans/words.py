"""The lexer of the text form: a line is words; a word that is not plain is written as a JSON string."""

from __future__ import annotations

import json
import re
from collections.abc import Collection, Iterable

__all__ = ["KEYWORDS", "SECTION", "TILED", "Word", "split", "word", "words"]

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
_WORD = re.compile(r'\s*(?:#.*|("(?:[^"\\]|\\.)*")|([^\s"#]\S*))', re.ASCII)


def word(name: str, keywords: Collection[str] = ()) -> str:
    """A name as one word, on a line that has `keywords` of its own."""
    plain = _PLAIN.fullmatch(name) and name not in KEYWORDS and name not in keywords
    return name if plain else json.dumps(name)


def words(names: Iterable[str], keywords: Collection[str] = ()) -> str:
    """Names as words, each with a space before it."""
    return "".join(f" {word(n, keywords)}" for n in names)


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
