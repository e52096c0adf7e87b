"""`module:function` as a MODEL: how it looks, and which of them this process was asked to import."""

from __future__ import annotations

import re

__all__ = ["imported", "is_reference", "remember", "split_reference"]

_NAME = r"[^\W\d]\w*(?:\.[^\W\d]\w*)*"
_REFERENCE = re.compile(f"({_NAME}):({_NAME})")
_imported: set[str] = set()


def is_reference(text: str) -> bool:
    """Whether a MODEL is of the form `package.module:function`."""
    return _REFERENCE.fullmatch(text) is not None and not text.startswith("zoo:")


def split_reference(text: str) -> tuple[str, str]:
    """Module and function of a text that `is_reference`."""
    match = _REFERENCE.fullmatch(text)
    assert match is not None
    return match[1], match[2]


def remember(text: str) -> None:
    """The user has named this reference, so importing it again is no surprise."""
    _imported.add(text)


def imported(text: str) -> bool:
    """Whether this process has been asked to import that reference."""
    return text in _imported
