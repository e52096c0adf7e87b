"""Exports of a package that are imported on first use.

A package's options are light, and every command names them; its searches are not. A package that exports both
imports the options and leaves the searches to `exports`. No module may have the name of such an export:
Python would return the module.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from importlib import import_module
from typing import Any

__all__ = ["exports"]


def exports(package: str, **homes: str) -> tuple[Callable[[str], Any], Callable[[], list[str]]]:
    """Return `__getattr__` and `__dir__` of a package, where `homes` are the names by their module.

    A home is a module of the package, and its names are separated by spaces: `search="Found minimum_peak"`.
    """
    home = {name: f"{package}.{module}" for module, names in homes.items() for name in names.split()}

    def get(name: str) -> Any:
        if name not in home:
            raise AttributeError(f"module {package!r} has no attribute {name!r}")
        found = getattr(import_module(home[name]), name)
        setattr(sys.modules[package], name, found)
        return found

    def listed() -> list[str]:
        return sorted({*vars(sys.modules[package]), *home})

    return get, listed
