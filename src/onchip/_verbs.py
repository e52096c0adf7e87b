"""Packages that are verbs as well: `onchip.plan(...)` plans, and `onchip.plan` holds the plan program.

A name can be bound to one thing only, and whichever import comes last decides: with a function there,
`import onchip.plan.text as text` fails, with the package `onchip.plan(...)` does. So the package
itself can be called.
"""

from __future__ import annotations

from importlib import import_module
from types import ModuleType
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from inspect import Signature

__all__ = ["VERBS", "Front"]

VERBS = ("branches", "chip", "corun", "mcu", "plan", "sweep")
"""Packages (and a module) that can be called."""


class _Callable(ModuleType):
    # A module with a function of `onchip.api` behind its name.

    @property
    def __doc__(self) -> str:  # type: ignore[override]
        """The verb's, then the package's own."""
        from inspect import getdoc

        return f"{getdoc(self.__wrapped__)}\n\n{self.__dict__['__doc__']}"

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        return self.__wrapped__(*args, **kwargs)

    @property
    def __wrapped__(self) -> Any:
        """The function: `help`, `inspect.signature` and the like look here."""
        return getattr(import_module("onchip.api"), self.__name__.rpartition(".")[2])

    @property
    def __signature__(self) -> Signature:
        from inspect import signature

        return signature(self.__wrapped__)


class Front(ModuleType):
    """The package `onchip`, which lets the packages inside it that are verbs be called.

    The import system binds a package's modules to it by `setattr`, whichever import comes first; so none of
    them has to know of the verb that goes by its name.
    """

    def __setattr__(self, name: str, value: object) -> None:
        if name in VERBS and isinstance(value, ModuleType):
            value.__class__ = _Callable
        super().__setattr__(name, value)
