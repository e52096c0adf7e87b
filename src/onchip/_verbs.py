"""Packages that are verbs as well: `onchip.plan(...)` plans, and `onchip.plan` holds the plan program.

A name can be bound to one thing only, and whichever import comes last decides: with a function there,
`import onchip.plan.text as text` fails, with the package `onchip.plan(...)` does. So the package
itself can be called.
"""

from __future__ import annotations

import importlib
import inspect
import sys
from types import ModuleType
from typing import Any

__all__ = ["callable_as"]


class _Callable(ModuleType):
    # A module with a function of `onchip.api` behind its name.

    @property
    def __doc__(self) -> str:  # type: ignore[override]
        """The verb's, then the package's own."""
        return f"{inspect.getdoc(self.__wrapped__)}\n\n{self.__dict__['__doc__']}"

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        return self.__wrapped__(*args, **kwargs)

    @property
    def __wrapped__(self) -> Any:
        """The function: `help`, `inspect.signature` and the like look here."""
        return getattr(importlib.import_module("onchip.api"), self.__name__.rpartition(".")[2])

    @property
    def __signature__(self) -> inspect.Signature:
        return inspect.signature(self.__wrapped__)


def callable_as(package: str) -> None:
    """Let the package (or module) with this name be called as the verb of the same name in `onchip.api`.

    Its docstring begins with the verb's, so that `help(onchip.plan)` speaks of both.
    """
    sys.modules[package].__class__ = _Callable
