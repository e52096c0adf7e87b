"""Models that may run code, `module:function` and `.pt2` files: which of them the user has named.

Plans, schedules and specs are data from anywhere. Such a model that only they name is not read.
"""

from __future__ import annotations

import os
import re
from pathlib import Path

from onchip.base.errors import UsageError

__all__ = ["check_named", "is_reference", "may_run_code", "remember", "split_reference"]

_NAME = r"[^\W\d]\w*(?:\.[^\W\d]\w*)*"
_REFERENCE = re.compile(f"({_NAME}):({_NAME})")
_named: set[str] = set()


def is_reference(text: str) -> bool:
    """Whether a MODEL is of the form `package.module:function`."""
    return _REFERENCE.fullmatch(text) is not None and not text.startswith("zoo:")


def split_reference(text: str) -> tuple[str, str]:
    """Module and function of a text that `is_reference`."""
    match = _REFERENCE.fullmatch(text)
    assert match is not None
    return match[1], match[2]


def may_run_code(text: str) -> bool:
    """Whether reading this MODEL may run code of whoever made it."""
    return is_reference(text) or Path(text).suffix.lower() == ".pt2"  # as `load` asks: `a.pt2/.` is one too


def remember(text: str) -> None:
    """The user has named this model, so reading it again is no surprise."""
    _named.add(_key(text))


def check_named(text: str, how: str = "--model", *, where: str | None = None) -> None:
    """Raise `UsageError` for a model that may run code, unless this process was asked by its user to read it.

    `text` is what a file names, `how` the option that would name it, `where` that file if it is known.
    """
    if may_run_code(text) and _key(text) not in _named:
        does = "importing it runs code" if is_reference(text) else "reading it may run code"
        what = "a spec is only data" if how == "--trust" else "a plan is only data"
        reason = f"{does}, and {what}: name it with {how}"
        raise UsageError(reason, where=where, item=text) if where else UsageError(reason, where=text)


def _key(text: str) -> str:
    if is_reference(text) or "\0" in text:
        return text
    return os.path.realpath(text)
