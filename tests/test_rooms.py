"""Who may import whom: the table of CONTRIBUTING.md, held against every import of the package."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from functools import cache
from graphlib import TopologicalSorter
from pathlib import Path

import pytest

import onchip

ROOT = Path(onchip.__file__).parent

LAYERS: tuple[tuple[str, ...], ...] = (
    ("base",),
    ("planners/limits", "planners/refusals"),
    ("machines", "network", "zoo", "planners/packing", "microcontroller/kernel_language", "contest"),
    ("plans", "readers", "multi_dnn"),
    ("check", "microcontroller/int8", "planners/protocol", "planners/fused_group"),
    (
        "planners/placement",
        "planners/fusion",
        "planners/branches",
        "planners/nests",
        "planners/modules",
        "run",
        "planners/registry",
    ),
    ("microcontroller/segments", "microcontroller/rows", "microcontroller/kernels", "microcontroller/made"),
    ("planners/joint", "planners/registry", "report", "export", "executorch", "multi_dnn/local"),
    ("microcontroller", "microcontroller/project", "microcontroller/compare", "comparison/baselines"),
    ("papers/hax_conn", "papers/optimus", "papers/vmcu"),
    ("planners/budgets", "comparison", "multi_dnn/export", "multi_dnn/report", "microcontroller/emulator"),
    ("results", "sweeps", "by_length", "multi_dnn/result", "methods"),
    ("microcontroller/result",),
    ("asked",),
    ("at_run_time", "on_microcontrollers"),
    ("api",),
    ("replanning",),
    ("cli",),
)
"""The rooms from the lowest layer up. A room imports rooms of lower layers only; none imports its equals."""

PLANNERS = frozenset(
    {
        "planners/placement",
        "planners/fusion",
        "planners/branches",
        "planners/nests",
        "microcontroller/segments",
        "microcontroller/rows",
        "multi_dnn",
        "planners/joint",
    }
)
COMPOSED = {"planners/joint": {"planners/placement", "planners/fusion", "planners/nests"}}
"""The only planner that uses others."""

JUDGES = ("check", "run", "planners/modules", "microcontroller/project", "microcontroller/emulator")
"""What they say of a plan owes its planner nothing."""

WINGS = ("microcontroller", "multi_dnn")
TOP = (
    "results",
    "sweeps",
    "by_length",
    "asked",
    "at_run_time",
    "on_microcontrollers",
    "api",
    "replanning",
    "cli",
)
"""What may know of a wing without being in it."""

LAYER = {room: n for n, rooms in enumerate(LAYERS) for room in rooms}
FILES = sorted(path for path in ROOT.rglob("*.py") if path.parent != ROOT or path.stem in LAYER)


def room_of(parts: tuple[str, ...]) -> str:
    """The room of a module below the package, by the parts of its path or name."""
    two = "/".join(parts[:2])
    return two if two in LAYER else parts[0] if parts else "_core"


@cache
def imports(file: Path) -> tuple[tuple[str, ...], ...]:
    """The modules below the package that a file imports."""
    return tuple(_imports(file))


def _imports(file: Path) -> Iterator[tuple[str, ...]]:
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


def home(file: Path) -> str:
    return room_of(file.relative_to(ROOT).with_suffix("").parts)


@cache
def uses() -> list[tuple[str, str, str]]:
    """By file, the room that it is in and a room that it imports; the compiled core is nobody's."""
    return [
        (file.relative_to(ROOT).as_posix(), home(file), room_of(parts))
        for file in FILES
        for parts in imports(file)
        if home(file) != room_of(parts) and room_of(parts) != "_core"
    ]


def test_every_room_has_a_layer() -> None:
    rooms = {home(file) for file in FILES if file.name != "__init__.py"}
    assert rooms <= set(LAYER), "a new room: say in CONTRIBUTING.md and here where it stands"
    assert {there for _, _, there in uses()} <= set(LAYER)


@pytest.mark.parametrize("room", sorted(LAYER))
def test_a_room_imports_lower_layers_only(room: str) -> None:
    assert [
        (file, there) for file, here, there in uses() if here == room and LAYER[there] >= LAYER[room]
    ] == []


def test_no_planner_imports_another() -> None:
    found = [use for use in uses() if {use[1], use[2]} <= PLANNERS and use[2] not in COMPOSED.get(use[1], ())]
    assert found == []


def test_the_judges_import_no_planner() -> None:
    assert [use for use in uses() if use[1] in JUDGES and use[2] in PLANNERS] == []


@pytest.mark.parametrize("wing", WINGS)
def test_nobody_below_the_top_knows_of_a_wing(wing: str) -> None:
    outside = [use for use in uses() if not use[1].startswith((wing, "papers/")) and use[1] not in TOP]
    assert [use for use in outside if use[2].startswith(wing)] == []


def test_nobody_imports_what_only_papers_need() -> None:
    assert [use for use in uses() if use[2].startswith("papers/")] == []


@pytest.mark.thorough
def test_no_files_import_one_another_in_a_circle() -> None:
    """Imports inside functions and those for type checkers count, too."""
    known: dict[tuple[str, ...], Path] = {}
    for file in ROOT.rglob("*.py"):
        parts = file.relative_to(ROOT).with_suffix("").parts
        known[parts[:-1] if parts[-1] == "__init__" else parts] = file

    def module(parts: tuple[str, ...]) -> tuple[str, ...]:
        return parts if parts in known else module(parts[:-1])

    below = {
        name: {module(parts) for parts in imports(file)} - {name, ()} for name, file in known.items() if name
    }
    TopologicalSorter(below).prepare()  # raises CycleError, which names the files
