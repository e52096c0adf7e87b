"""Table 1 of "A Simple Method ..." again, beside ours: the figures of docs/simple-method.md.

    python benchmarks/paper/simple_method.py [--into docs/simple-method.md]

Plans Inception v3 (299x299, 8 bits, no auxiliary head) on chip `exynos-npu` by the paper's rules and sets
every figure of the paper's table beside what the plan moves. Exit code 1 when one differs. Behind it the data
of the paper's figures 9 and 10, and what other sizes of working memory, which it leaves open, would give.
"""

from __future__ import annotations

import argparse
import re
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import groupby
from pathlib import Path

from working_memory import RULES, Processed, processed

import onchip
from onchip.machines.chip import load_chip
from onchip.network import Network
from onchip.planners.branches.modules import Module
from onchip.planners.branches.options import BranchOptions
from onchip.planners.branches.plan import BranchPlan, plan_branches
from onchip.planners.branches.sizes import Sizes
from onchip.planners.modules.table import Row, kilobytes, module_table

BEGIN, END = "<!-- figures: begin -->", "<!-- figures: end -->"

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
    again = tuple(_all(made.plan.network, modules, "strided", made.plan.budget))
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


def _all(network: Network, modules: Sequence[Module], rule: str, budget: int) -> Iterator[Processed]:
    sizes = Sizes(network, load_chip("exynos-npu"))
    for module in modules:
        yield processed(network, sizes, module, RULES[rule], budget)


# -- the page --------------------------------------------------------------------------------------------


def page(found: Measured) -> str:
    """Everything between the page's marks."""
    parts = [
        "## Table 1\n",
        *_table_1(found),
        "\n## Fig. 9: all that crosses, weights and feature maps\n",
        *_fig_9(found),
        "\n## Fig. 10: required against available\n",
        *_fig_10(found),
        "\n## The working memory\n",
        *_working(found),
    ]
    return "\n".join(parts) + "\n"


def _table_1(found: Measured) -> Iterator[str]:
    yield (
        "The plan's figures; KB of 1,024 bytes. *Same* says whether all eleven are the paper's, to the last"
        " digit.\n"
    )
    yield "| module | in the file | " + " | ".join(COLUMNS) + " | same |"
    yield "|---|---|" + "--:|" * len(COLUMNS) + ":-:|"
    for name, theirs in PAPER.items():
        ours = found.rows[name]
        cells = (_figure(c, n) for c, n in zip(COLUMNS, ours, strict=True))
        same = "yes" if ours == theirs else "**no**"
        yield f"| {name} | {_code(found.names.get(name, ''))} | " + " | ".join(cells) + f" | {same} |"
    less, times = conclusion(found)
    figures = len(PAPER) * len(COLUMNS)
    wrong = list(differences(found))
    yield (
        f"\n{less} % fewer feature-map bytes (the paper: {PAPER_REDUCTION} %) and 1/{times:g} of the accesses"
        f" (1/{PAPER_ACCESSES}). {figures} figures compared, {len(wrong)} differ."
    )
    yield from (f"- {line}" for line in wrong)


def _fig_9(found: Measured) -> Iterator[str]:
    yield "KB:\n"
    yield "| module | W | naive W + FM | proposed W + FM |"
    yield "|---|--:|--:|--:|"
    for name, row in found.rows.items():
        at = dict(zip(COLUMNS, row, strict=True))
        yield f"| {name} | {at['W']:,g} | {_kb(at['naive overall'])} | {_kb(at['overall'])} |"


def _fig_10(found: Measured) -> Iterator[str]:
    yield (
        "For every branch, in the order in which it runs: KB that its hungriest layer requires beside the"
        " module's input, and KB that are available to it (the buffer without the inputs of the modules that"
        " the layer is in and without what earlier branches left), both with processing I. A module with a"
        " branch that requires more runs with II.\n"
    )
    most = max(len({layer.branch for layer in p.layers}) for p in found.again)
    yield "| module | " + " | ".join(f"branch {i + 1}" for i in range(most)) + " | processing |"
    yield "|---|" + "--:|" * most + ":-:|"
    for name, p in zip(PAPER, found.again, strict=False):
        cells = []
        for _, layers in groupby(p.layers, key=lambda layer: layer.branch):
            tight = max(layers, key=lambda layer: layer.required - layer.available)
            words = f"{tight.required / 1024:.1f} / {tight.available / 1024:.1f}"
            cells.append(f"**{words}**" if tight.required > tight.available else words)
        cells += [""] * (most - len(cells))
        yield f"| {name} | " + " | ".join(cells) + f" | {p.processing} |"


def _working(found: Measured) -> Iterator[str]:
    network, budget = found.made.plan.network, found.made.plan.budget
    modules = [p.module for p in found.again]
    yield "| a layer's working memory is | modules with II | FM, KB | same as the paper |"
    yield "|---|---|--:|:-:|"
    theirs = [name for name, row in PAPER.items() if name != "total" and row[3] and row[-1]]
    for key, rule in RULES.items():
        runs = list(_all(network, modules, key, budget))
        two = [name for name, p in zip(PAPER, runs, strict=False) if p.processing == "II"]
        moved = sum(2 * p.written for p in runs[:-1]) + runs[-1].written
        same = "yes" if two == theirs and moved == PAPER["total"][3] * 1024 else "no"
        yield f"| {rule.title} | {', '.join(two) or 'none'} | {_kb(moved / 1024)} | {same} |"
    yield (
        "\nWith II a module's output is written by its branches and read once by the next module: twice its"
        " size. What layers of modules with II stream for want of room would come on top."
    )


def _figure(column: str, n: float) -> str:
    return f"{n:.2f}" if column.endswith("%") else _kb(n)


def _kb(n: float) -> str:
    return f"{n:,.0f}" if n == int(n) else f"{n:,.1f}"


def _code(name: str) -> str:
    return f"`{name}`" if name else ""


def put_into(path: Path, text: str) -> None:
    """Replace what stands between the marks."""
    old = path.read_text()
    if BEGIN not in old or END not in old:
        raise SystemExit(f"{path}: has no {BEGIN} ... {END}")
    path.write_text(re.sub(f"{BEGIN}.*{END}", lambda _: f"{BEGIN}\n{text}{END}", old, flags=re.DOTALL))


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n")[0])
    parser.add_argument("--into", type=Path, metavar="PAGE")
    args = parser.parse_args()
    found = measure()
    text = page(found)
    if args.into is None:
        print(text)
    else:
        put_into(args.into, text)
    wrong = list(differences(found))
    for line in wrong:
        print(line, file=sys.stderr)
    raise SystemExit(1 if wrong else 0)


if __name__ == "__main__":
    main()
