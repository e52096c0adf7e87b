"""Names that a user may have meant."""

from __future__ import annotations

import difflib
from collections.abc import Iterable

__all__ = ["did_you_mean"]


def did_you_mean(given: str, known: Iterable[str], *, otherwise: str = "", most: int = 3) -> str:
    """Return `did you mean a or b`, of at most `most` known names; `otherwise` where none is close."""
    close = difflib.get_close_matches(given.lower(), list(known), n=most, cutoff=0.5)
    return f"did you mean {' or '.join(close)}" if close else otherwise
