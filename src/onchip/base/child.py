"""Interpreters that this one starts: they take no module from the current folder.

A folder of models may hold a `types.py`, and a child that looks there first would run it.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping

__all__ = ["environment", "interpreter", "own_path"]


def interpreter() -> list[str]:
    """Return the beginning of a child's command line: this Python, with modules from its own places only."""
    return [sys.executable, "-P"]


def environment(**more: str) -> Mapping[str, str]:
    """Return this process's environment and `more`; `PYTHONPATH` keeps only absolute folders."""
    found = {**os.environ, **more}
    if "PYTHONPATH" in found:
        paths = [p for p in found["PYTHONPATH"].split(os.pathsep) if os.path.isabs(p)]
        found["PYTHONPATH"] = os.pathsep.join(paths)
        if not paths:
            del found["PYTHONPATH"]
    return found


def own_path() -> list[str]:
    """Return this process's module path without the current folder."""
    try:
        here = os.path.realpath(os.getcwd())
    except OSError:  # the folder is gone
        here = ""
    return [path for path in sys.path if path and os.path.realpath(path) != here]
