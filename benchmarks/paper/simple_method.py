"""The evaluation of "A Simple Method ..." again, beside ours: the figures of docs/simple-method.md.

    python benchmarks/paper/simple_method.py [--only SECTION ...] [--into docs/simple-method.md] [--list]

Plans Inception v3 (299x299, 8 bits, no auxiliary head) on chip `exynos-npu` by the paper's rules and sets
every figure of the paper's table beside what the plan moves. Exit code 1 when one differs. Beside it the data
of the paper's figures 1, 9 and 10, and what other sizes of working memory, which it leaves open, would give.
`--into` draws the pictures, too (needs `pip install 'onchip[docs]'`). Some seconds.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable, Iterator
from functools import partial
from itertools import groupby
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from page_marks import Section, write
from simple_method_claims import claims
from simple_method_layers import NETWORKS, fig_1, sizes_by_layer
from simple_method_plan import (
    COLUMNS,
    PAPER,
    PAPER_ACCESSES,
    PAPER_REDUCTION,
    Measured,
    conclusion,
    differences,
    every_module,
    measure,
)
from working_memory import RULES


def table_1(found: Measured) -> Iterator[str]:
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


def fig_9(found: Measured) -> Iterator[str]:
    yield "KB:\n"
    yield "| module | W | naive W + FM | proposed W + FM |"
    yield "|---|--:|--:|--:|"
    for name, row in found.rows.items():
        at = dict(zip(COLUMNS, row, strict=True))
        yield f"| {name} | {at['W']:,g} | {_kb(at['naive overall'])} | {_kb(at['overall'])} |"


def fig_10(found: Measured) -> Iterator[str]:
    yield (
        "For every branch, in the order in which it runs, the layer with the least to spare: KB that it"
        " requires beside the module's input, with 128 bytes of biases for 32 channels, and KB that are"
        " available to it (the buffer without the inputs of the modules that the layer is in and without what"
        " earlier branches left), both with processing I. A module with a branch that requires more runs with"
        " II.\n"
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


def working(found: Measured) -> Iterator[str]:
    network, budget = found.made.plan.network, found.made.plan.budget
    modules = [p.module for p in found.again]
    yield "| a layer's working memory is | modules with II | FM, KB | same as the paper | branches descend |"
    yield "|---|---|--:|:-:|--:|"
    theirs = [name for name, row in PAPER.items() if name != "total" and row[3] and row[-1]]
    for key, rule in RULES.items():
        runs = list(every_module(network, modules, key, budget))
        two = [name for name, p in zip(PAPER, runs, strict=False) if p.processing == "II"]
        moved = sum(2 * p.written for p in runs[:-1]) + runs[-1].written
        same = "yes" if two == theirs and moved == PAPER["total"][3] * 1024 else "no"
        descend = f"{sum(p.descends for p in runs)} of {len(runs)}"
        named = ", ".join(two) or "none"
        yield f"| {rule.title} | {named} | {_kb(moved / 1024)} | {same} | {descend} |"
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


def draw(folder: Path, found: Measured) -> None:
    """The paper's figures 1, 9 and 10."""
    from charts import Panel, bars, lines

    panels = []
    for name, title in NETWORKS.items():
        layers = sizes_by_layer(name)
        labels = [str(i) if i % 10 == 0 else "" for i in range(1, len(layers) + 1)]
        series = {
            "weights": [layer.weights / 1024 for layer in layers],
            "feature maps": [layer.maps / 1024 for layer in layers],
        }
        panels.append(Panel(f"{title}, by layer", labels, series))
    lines(folder / "simple-layers.svg", panels, unit="KB", across=1)
    names = [name for name in found.rows if name != "total"]
    at = {name: dict(zip(COLUMNS, found.rows[name], strict=True)) for name in names}
    columns = {"proposed W + FM": "overall", "naive W + FM": "naive overall", "W": "W"}
    series = {title: [at[name][column] for name in names] for title, column in columns.items()}
    bars(folder / "simple-accesses.svg", [Panel("off-chip accesses", names, series)], unit="KB")
    panels = []
    for name, p in zip(PAPER, found.again, strict=False):
        labels = [f"{layer.branch}" for layer in p.layers]
        series = {
            "required": [layer.required / 1024 for layer in p.layers],
            "available": [layer.available / 1024 for layer in p.layers],
        }
        panels.append(Panel(f"{name}: layers by branch", labels, series))
    bars(folder / "simple-required.svg", panels, unit="KB", across=4)


SECTIONS: dict[str, Callable[[Measured], Iterator[str]]] = {
    "claims": claims,
    "fig1": lambda _: fig_1(),
    "table1": table_1,
    "fig9": fig_9,
    "fig10": fig_10,
    "working": working,
}


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n")[0])
    parser.add_argument("--only", nargs="+", metavar="SECTION", choices=SECTIONS, default=[*SECTIONS])
    parser.add_argument("--into", type=Path, metavar="PAGE")
    parser.add_argument("--list", action="store_true", help="names of the sections")
    args = parser.parse_args()
    if args.list:
        print("\n".join(SECTIONS))
        return
    found = measure()
    sections: dict[str, Section] = {name: partial(SECTIONS[name], found) for name in args.only}
    write(sections, args.into)
    if args.into is not None:
        draw(args.into.parent / "images", found)
    wrong = list(differences(found))
    for line in wrong:
        print(line, file=sys.stderr)
    raise SystemExit(1 if wrong else 0)


if __name__ == "__main__":
    main()
