"""The checker is worth trusting because it stands alone."""

from __future__ import annotations

import ast
from pathlib import Path

import onchip.check

ALLOWED = (
    "onchip.check",
    "onchip.machines.chip",
    "onchip.machines.tile_rates",
    "onchip.base.errors",
    "onchip.network",
    "onchip.plans",
    "onchip.base.units",
)


def test_the_checker_imports_no_planner() -> None:
    for file in Path(onchip.check.__file__).parent.rglob("*.py"):
        for node in ast.walk(ast.parse(file.read_text())):
            names = [node.module or ""] if isinstance(node, ast.ImportFrom) else []
            names += [alias.name for alias in node.names] if isinstance(node, ast.Import) else []
            for name in names:
                if name.startswith("onchip"):
                    assert name.startswith(ALLOWED), (file.name, name)
