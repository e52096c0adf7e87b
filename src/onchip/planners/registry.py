"""All planners by name: onchip's own, and registered ones.

A planner from outside is registered with `register(planner)`, or by its package with an entry point of the
group `onchip.planners` that names a `Planner`. Entry points are read when all planners are listed, or when a
name is not known.
"""

from __future__ import annotations

import sys
from functools import cache
from importlib import import_module
from pathlib import Path

from onchip.base.errors import UsageError
from onchip.planners.protocol import Planner

__all__ = ["GROUP", "find", "home_of", "listed", "register", "section"]

GROUP = "onchip.planners"
"""The group of entry points."""

OWN = {
    "placement": "onchip.planners.placement.planner:PLANNER",
    "fusion": "onchip.planners.fusion.planner:PLANNER",
    "joint": "onchip.planners.joint.planner:PLANNER",
    "branches": "onchip.planners.branches.planner:PLANNER",
    "baseline": "onchip.planners.placement.planner:BASELINE",
    "memories": "onchip.planners.placement.memories.planner:PLANNER",
    "segments": "onchip.microcontroller.segments.planner:PLANNER",
}
"""Name -> place of its `Planner`, which is imported on use; in the order of listings."""

_registered: dict[str, Planner] = {}


def register(planner: Planner) -> None:
    """Make a planner available by its name. Raises `UsageError` for a name that another one has."""
    if _registered.get(planner.name) == planner:
        return
    taken = (*map(_own, OWN), *_registered.values())
    if any(planner.name == other.name or planner.key == other.key for other in taken):
        raise UsageError("there is a planner of that name", item=planner.name)
    _registered[planner.name] = planner


def find(name: str) -> Planner | None:
    """Return the planner whose plans record that name; None if there is none."""
    if name in OWN:
        return _own(name)
    if name not in _registered:
        _from_entry_points()
    return _registered.get(name)


def listed() -> tuple[Planner, ...]:
    """Return all planners for any network, chip and number of bytes, onchip's own first."""
    _from_entry_points()
    return (*_own_listed(), *(p for p in _registered.values() if p.anywhere))


def section(key: str) -> Planner | None:
    """Return the listed planner with that name in a sweep's spec; None if there is none."""
    for planner in (*_own_listed(), *_registered.values()):
        if planner.anywhere and planner.key == key:
            return planner
    _from_entry_points()
    return next((p for p in _registered.values() if p.anywhere and p.key == key), None)


def home_of(planner: Planner) -> tuple[str, str]:
    """Return the module of a planner from outside, whose import registers it, and the folder to find it in.

    Both are empty for onchip's own. Raises `UsageError` for one that no other process can import.
    """
    if planner.name in OWN:
        return "", ""
    name = planner.solve.__module__
    file = getattr(sys.modules.get(name), "__file__", None)
    if name == "__main__" or not file:
        raise UsageError("must stand in a module that workers can import", item=planner.name)
    path = Path(file).absolute()
    levels = name.count(".") + (path.name == "__init__.py")
    return name, str(path.parents[levels])


def _own_listed() -> tuple[Planner, ...]:
    return tuple(planner for planner in map(_own, OWN) if planner.anywhere)


@cache
def _own(name: str) -> Planner:
    module, _, attribute = OWN[name].partition(":")
    planner = getattr(import_module(module), attribute)
    assert isinstance(planner, Planner)
    return planner


@cache
def _by_entry_point() -> dict[str, Planner]:
    from importlib import metadata  # slow to import

    found = {}
    for entry in metadata.entry_points(group=GROUP):
        planner = entry.load()
        if not isinstance(planner, Planner):
            raise UsageError(f"is no Planner, but {type(planner).__name__}", item=f"{GROUP}: {entry.value}")
        found[planner.name] = planner
    return found


def _from_entry_points() -> None:
    for planner in _by_entry_point().values():
        register(planner)
