"""Inception v3 by the simple method: our plan in the columns of the paper's Table 1, and what differs."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from working_memory import RULES, Processed, processed

import onchip
from onchip.machines.chip import load_chip
from onchip.network import Network
from onchip.planners.branches.modules import Module
from onchip.planners.branches.options import BranchOptions
from onchip.planners.branches.plan import BranchPlan, plan_branches
from onchip.planners.branches.sizes import Sizes
from onchip.planners.modules.table import Row, kilobytes, module_table

__all__ = [
    "COLUMNS",
    "PAPER",
    "PAPER_ACCESSES",
    "PAPER_REDUCTION",
    "Measured",
    "conclusion",
    "differences",
    "every_module",
    "measure",
]

COLUMNS = (
    "W",
    "naive FM",
    "naive overall",
    "FM",
    "overall",
    "ratio %",
    "FM ratio %",
    "naive reads",
    "naive writes",
    "reads",
    "writes",
)

PAPER: dict[str, tuple[float, ...]] = {
    "inception-a1": (249, 2308.5, 2557.5, 0, 249, 9.74, 0.00, 8, 8, 0, 0),
    "inception-a2": (270, 2835, 3105, 0, 270, 8.70, 0.00, 8, 8, 0, 0),
    "inception-a3": (277.5, 3078, 3355.5, 0, 277.5, 8.27, 0.00, 8, 8, 0, 0),
    "reduction-a": (1125, 1798.5, 2923.5, 300, 1425, 48.74, 16.68, 5, 5, 0, 3),
    "inception-b1": (1264, 2700, 3964, 300, 1564, 39.46, 11.11, 11, 11, 1, 0),
    "inception-b2": (1648, 2850, 4498, 0, 1648, 36.64, 0.00, 11, 11, 0, 0),
    "inception-b3": (1648, 2850, 4498, 0, 1648, 36.64, 0.00, 11, 11, 0, 0),
    "inception-b4": (2088, 3000, 5088, 0, 2088, 41.04, 0.00, 11, 11, 0, 0),
    "reduction-b": (1656, 1580, 3236, 0, 1656, 51.17, 0.00, 7, 7, 0, 0),
    "inception-c1": (4920, 808, 5728, 0, 4920, 85.89, 0.00, 10, 10, 0, 0),
    "inception-c2": (5928, 1096, 7024, 0, 5928, 84.40, 0.00, 10, 10, 0, 0),
    "total": (21073.5, 24904, 45977.5, 600, 21673.5, 47.14, 2.41, 100, 100, 1, 3),
}
"""Table 1 of the paper: KB of 1,024 bytes, per cent, accesses."""

PAPER_REDUCTION, PAPER_ACCESSES = 97.59, 50
"""Per cent less feature-map bytes, and 1 / this many accesses, in its conclusion."""


@dataclass(frozen=True)
class Measured:
    """Our plan, its table in the paper's columns, and a second computation of what decides about I and II."""

    made: BranchPlan
    rows: dict[str, tuple[float, ...]]
    names: dict[str, str]
    again: tuple[Processed, ...]


def measure() -> Measured:
    chip = load_chip("exynos-npu")
    network = onchip.load("zoo:inception_v3").network
    assert chip.scratchpad_bytes is not None
    made = plan_branches(network, chip, chip.scratchpad_bytes, BranchOptions())
    table = module_table(made.plan)
    if len(table.modules) != len(PAPER) - 1:
        raise SystemExit(f"{len(table.modules)} modules instead of {len(PAPER) - 1}")
    names = dict(zip(PAPER, (row.name for row in table.modules), strict=False))
    rows = {name: figures(row) for name, row in zip(PAPER, (*table.modules, table.total), strict=True)}
    modules = [item for item in made.detection.items if isinstance(item, Module)]
    again = tuple(every_module(made.plan.network, modules, "strided", made.plan.budget))
    return Measured(made, rows, names, again)


def figures(row: Row) -> tuple[float, ...]:
    """A row in the paper's columns, rounded as it rounds."""
    weights, naive, moved = (kilobytes(n) for n in (row.weight_bytes, row.naive_fm_bytes, row.fm_bytes))
    return (
        weights,
        naive,
        weights + naive,
        moved,
        weights + moved,
        round(100 * (row.ratio or 0.0), 2),
        round(100 * (row.fm_ratio or 0.0), 2),
        row.naive_reads,
        row.naive_writes,
        row.reads,
        row.writes,
    )


def differences(found: Measured) -> Iterator[str]:
    """Every figure that is not the paper's, and every layer on which the two computations differ."""
    for name, theirs in PAPER.items():
        for column, a, b in zip(COLUMNS, theirs, found.rows[name], strict=True):
            if a != b:
                yield f"{name}: {column} is {b:,}, in the paper {a:,}"
    less, times = conclusion(found)
    if less != PAPER_REDUCTION:
        yield f"{less} % fewer bytes, in the paper {PAPER_REDUCTION}"
    if times != PAPER_ACCESSES:
        yield f"1/{times:g} of the accesses, in the paper 1/{PAPER_ACCESSES}"
    for module, once in zip(_sections(found.made), found.again, strict=True):
        if module != once.processing:
            yield f"{once.module.name}: {module}, computed again {once.processing}"


def conclusion(found: Measured) -> tuple[float, float]:
    """Per cent less feature-map bytes, and naive accesses for each of ours."""
    total = dict(zip(COLUMNS, found.rows["total"], strict=True))
    accesses = total["reads"] + total["writes"]
    share = 100 * (1 - total["FM"] / total["naive FM"])
    return round(share, 2), (total["naive reads"] + total["naive writes"]) / accesses if accesses else 0.0


def _sections(made: BranchPlan) -> list[str | None]:
    return [section.processing for section in made.plan.sections if section.merge is not None]


def every_module(network: Network, modules: Sequence[Module], rule: str, budget: int) -> Iterator[Processed]:
    sizes = Sizes(network, load_chip("exynos-npu"))
    for module in modules:
        yield processed(network, sizes, module, RULES[rule], budget)
