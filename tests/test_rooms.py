"""Who may import whom: the table of CONTRIBUTING.md, held against every import of the package."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

import onchip

ROOT = Path(onchip.__file__).parent

DATA = {
    *(
        "_core",
        "_verbs",
        "_validate",
        "board",
        "cells",
        "child",
        "chip",
        "chip_memory",
        "elementwise",
        "errors",
        "allowance",
        "files",
        "flags",
        "guard",
        "interrupt",
        "limits",
        "network",
    ),
    *("network_json", "toml_file", "units"),
}
"""What everything speaks of."""

PLANNER = DATA | {"plan", "check", "packing"}
PLANNERS = ("placement", "fusion", "branches", "segments", "corun")
EXECUTOR = DATA | {"plan", "check", "readers", "zoo"}

ROOMS: dict[str, set[str]] = {
    **dict.fromkeys((*DATA, "plan", "zoo", "packing"), DATA),
    "readers": DATA | {"zoo"},
    "check": DATA | {"plan"},
    **dict.fromkeys(("placement", "fusion", "branches", "segments"), PLANNER),
    "corun": DATA,
    "joint": PLANNER | {"placement", "fusion"},
    "baselines": PLANNER | {"placement", "segments"},
    "mcu": EXECUTOR,
    "run": EXECUTOR,
    "run/local": EXECUTOR | {"run", "corun"},
    "run/mcu": DATA | {"mcu"},
    "modules": DATA | {"plan", "check"},
    "report": DATA | {"plan", "check", "modules", "corun"},
    "export": EXECUTOR | {"run", "corun"},
    "progress": {"placement"},
    "budgets": DATA | {"plan", "placement", "progress"},
}
"""By room, which others it may import; `api`, `cli`, `results` and the package stand above them all."""

ABOVE = {
    *("api", "cli", "proving", "replanning", "results", "sweep", "corun_profiles", "crash"),
    "__init__",
}


def room_of(parts: tuple[str, ...]) -> str:
    """The room of a module below the package, by the parts of its path or name."""
    if not parts:
        return "__init__"
    return "/".join(parts[:2]) if parts[:2] in (("run", "local"), ("run", "mcu")) else parts[0]


def imports(file: Path) -> Iterator[tuple[str, ...]]:
    """The modules below the package that a file imports."""
    for node in ast.walk(ast.parse(file.read_text())):
        names: list[str] = []
        if isinstance(node, ast.Import):
            names = [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{file}: a relative import"
            names = [f"{node.module}.{alias.name}" for alias in node.names]
        for name in names:
            if name.split(".")[0] == "onchip":
                yield tuple(name.split(".")[1:])


FILES = sorted(ROOT.rglob("*.py"))


def test_every_room_stands_in_the_table() -> None:
    rooms = {room_of(file.relative_to(ROOT).with_suffix("").parts) for file in FILES}
    assert rooms - ABOVE <= set(ROOMS), "a new room: say in CONTRIBUTING.md and here what it may import"


@pytest.mark.parametrize("room", sorted(ROOMS))
def test_a_room_imports_only_what_it_may(room: str) -> None:
    for file in FILES:
        if room_of(file.relative_to(ROOT).with_suffix("").parts) != room:
            continue
        for parts in imports(file):
            there = room_of(parts)
            assert there == room or there in ROOMS[room], (
                f"{file.relative_to(ROOT)} imports {'.'.join(parts)}"
            )


def test_no_planner_imports_another() -> None:
    """Said by itself, so that no edit of the table above lets it slip."""
    for file in FILES:
        room = room_of(file.relative_to(ROOT).with_suffix("").parts)
        if room in PLANNERS:
            assert not {room_of(parts) for parts in imports(file)} & (set(PLANNERS) - {room}), file


def test_the_judges_import_no_planner() -> None:
    """The checker, the executors and what shows plans: what they say of a plan owes its planner nothing."""
    for file in FILES:
        room = room_of(file.relative_to(ROOT).with_suffix("").parts)
        if room in ("check", "run", "mcu", "run/mcu", "modules"):
            assert not {room_of(parts) for parts in imports(file)} & set(PLANNERS), file
