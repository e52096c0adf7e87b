"""Models that may run code, `module:function` and `.pt2` files: the record of those that the user has named.

Plans, schedules and specs are data from anywhere. A model that may run code is not read if only they name it.
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
    """Return whether a MODEL is of the form `package.module:function`."""
    return _REFERENCE.fullmatch(text) is not None and not text.startswith("zoo:")


def split_reference(text: str) -> tuple[str, str]:
    """Return module and function of a text that `is_reference`."""
    match = _REFERENCE.fullmatch(text)
    assert match is not None
    return match[1], match[2]


def may_run_code(text: str) -> bool:
    """Return whether reading this MODEL may run code of its author."""
    return is_reference(text) or Path(text).suffix.lower() == ".pt2"  # as `load` asks: `a.pt2/.` is one too


def remember(text: str) -> None:
    """Record that the user has named this model, so that it may be read again."""
    _named.add(_key(text))


def check_named(text: str, how: str = "--model", *, where: str | None = None) -> None:
    """Raise `UsageError` for a model that may run code, unless the user of this process has named it.

    `text` is the model that a file names, `how` the option that would name it, `where` that file if known.
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
