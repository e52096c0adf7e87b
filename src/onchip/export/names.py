"""Names from a model as identifiers: any text may stand in a model, and none of it may reach a program."""

from __future__ import annotations

import re
from collections.abc import Iterable

__all__ = ["identifiers", "plain"]

_LONGEST = 48
"""C99 promises 63 significant characters; the rest is for prefixes and numbers."""


def plain(text: str, longest: int = _LONGEST) -> str:
    """The text with all but ASCII letters, digits and single underscores replaced, cut to `longest`."""
    return re.sub(r"[^A-Za-z0-9]+", "_", text).strip("_")[:longest].strip("_") or "unnamed"


def identifiers(names: Iterable[str], *, upper: bool = False) -> dict[str, str]:
    """An identifier for each name, all different; what would be the same gets a number."""
    found: dict[str, str] = {}
    used: dict[str, int] = {}
    for name in names:
        base = plain(name)
        base = candidate = base.upper() if upper else base
        while candidate in used:
            used[base] += 1
            candidate = f"{base}_{used[base]}"
        used[candidate] = 1
        found[name] = candidate
    return found
