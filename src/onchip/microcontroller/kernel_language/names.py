"""Names for C: letters, digits, underscores, and no word with another meaning in C or in the header."""

from __future__ import annotations

import re

__all__ = ["c_comment", "c_name"]

_WORDS = """
auto break case char const continue default do double else enum extern float for goto if inline int long
register restrict return short signed sizeof static struct switch typedef union unsigned void volatile while
main asm bool true false
"""
_TAKEN = frozenset(_WORDS.split())


def c_name(text: str) -> str:
    """Return the text as an identifier: invalid characters become underscores; never a keyword of C."""
    name = re.sub(r"[^A-Za-z0-9_]", "_", text) or "_"
    if name[0].isdigit() or name in _TAKEN:
        name = f"k_{name}"
    return name


def c_comment(text: str) -> str:
    """Return the text for a comment: it can neither end the comment nor break its line."""
    plain = "".join(c if c.isprintable() else "?" for c in text)
    return plain.replace("*/", "*_/").replace("/*", "/_*").rstrip("\\")
