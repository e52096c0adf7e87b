"""Names from a model as identifiers: a model may contain any text, and none of it may reach a program."""

from __future__ import annotations

import re
from collections.abc import Iterable

__all__ = ["identifiers", "plain"]

_LONGEST = 48
"""The identifier's limit: C99 has 63 significant characters; the rest is for prefixes and numbers."""


def plain(text: str, longest: int = _LONGEST) -> str:
    """Return the text, cut to `longest`; only ASCII letters, digits and single underscores remain."""
    return re.sub(r"[^A-Za-z0-9]+", "_", text).strip("_")[:longest].strip("_") or "unnamed"


def identifiers(names: Iterable[str], *, upper: bool = False) -> dict[str, str]:
    """Return a distinct identifier for each name; a duplicate gets a number."""
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
