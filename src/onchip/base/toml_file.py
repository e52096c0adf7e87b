"""TOML from strangers: its size is bounded before the parser reads it.

The time of Python's parser grows with the square of a key's dotted parts, and with a table's depth for each
of its lines. So the file's size and the parts of its keys are counted first, in one pass over the text.
"""

from __future__ import annotations

import re
import tomllib
from typing import Any

from onchip.base.errors import InputError
from onchip.base.limits import VARIABLE, limits

__all__ = ["MOST_PARTS", "parse_toml"]

MOST_PARTS = 24
"""The most dotted parts of a key; real ones have three."""

_NUMBER = re.compile(r"(?<![\w.-])[+-]?[0-9][0-9_]*\.[0-9][0-9_]*(?:[eE][+-]?[0-9_]+)?(?![\w.-])")
_DOT = re.compile(r"\.\s*[\w'\"-]")
_TEXT = re.compile(r'"""|\'\'\'|"(?:[^"\\\n]|\\.)*"|\'[^\'\n]*\'')


def parse_toml(
    content: bytes, *, what: str, where: str, error: type[InputError] = InputError
) -> dict[str, Any]:
    """Return the table in a TOML file's bytes; `what` is what the file should describe ("a chip").

    Raises `error` naming `where`, and the line if there is one, for a file that is too large, a key of too
    many dotted parts, too deep nesting, and invalid TOML.
    """
    most = limits().toml_bytes
    if len(content) > most:
        reason = f"larger than {most:,} bytes ({VARIABLE}TOML_BYTES sets how much is read)"
        raise error(reason, where=where)
    try:
        text = content.decode("utf-8-sig")
        _count_parts(text, where, error)
        return tomllib.loads(text)
    except RecursionError:
        raise error(f"is not TOML of {what} (nested too deeply)", where=where) from None
    except ValueError as problem:  # no UTF-8, no TOML, or a number of thousands of digits
        raise error(f"is not TOML ({str(problem)[:200]})", where=where) from None


def _count_parts(text: str, where: str, error: type[InputError]) -> None:
    """Refuse a line with `MOST_PARTS` dots or more, not counting those within numbers and quoted texts."""
    for number, line in enumerate(text.split("\n"), 1):
        if line.count(".") < MOST_PARTS:
            continue
        # A quoted part of a key is a part like any other; dots within quotes do not count.
        bare = _NUMBER.sub("0", _TEXT.sub("q", line).partition("#")[0])
        if len(_DOT.findall(bare)) >= MOST_PARTS:
            raise error(f"a key of more than {MOST_PARTS} dotted parts", where=where, item=f"line {number}")
