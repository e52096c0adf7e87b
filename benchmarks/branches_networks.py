"""Networks by the simple method beside exact placement: the figures of docs/branches-figures.md.

    python benchmarks/branches_networks.py measure DATA.json [--time-limit SECONDS] [NAME ...]
    python benchmarks/branches_networks.py render DATA.json [--into docs/branches-figures.md]

Zoo networks on chip `exynos-npu` (1 MiB, 8 bits, 4x4 patches), the paper's rules and ours; what DATA.json has
of other networks stays. Exact placement gets `--time-limit` for each search, and plans the same modules with
the same sizes. Seconds of planning are CPU time, so that what else the machine does hardly counts: the
least of five runs, of fewer where together they take more than two seconds.
"""

from __future__ import annotations

import argparse
import json
import math
import os
import platform
import re
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, TypeVar

import onchip
from onchip.base.errors import Infeasible, OnchipError
from onchip.comparison.beside import beside
from onchip.machines.chip import load_chip
from onchip.network import Network
from onchip.planners import placement
from onchip.planners.branches.modules import Module
from onchip.planners.branches.options import BranchOptions
from onchip.planners.branches.plan import BranchPlan, plan_branches
from onchip.planners.branches.sizes import Sizes
from onchip.planners.modules.region import regions
from onchip.planners.modules.table import module_table
from onchip.planners.placement import PlacementOptions
from onchip.plans import Plan

BEGIN, END = "<!-- figures: begin -->", "<!-- figures: end -->"
NAMES = (
    "inception_v3", "googlenet", "squeezenet1_0", "resnet18", "resnet50", "mobilenet_v2", "mnasnet1_0",
    "shufflenet_v2_x1_0", "inception_resnet_v2", "resnet152", "resnext50_32x4d",
    "mobilenet_v3_large", "darts", "vit_b_16",
    "densenet121", "alexnet", "vgg16", "mobilenet_v1", "amoebanet_d", "inception_v4", "fcn_resnet50",
    "deeplabv3_resnet50", "transformer", "s3d", "r2plus1d_18",
)  # fmt: skip
"""The paper's kinds of networks first, then others, some of which have no such module or do not fit."""

CHIP = load_chip("exynos-npu")
BUDGET = CHIP.scratchpad_bytes or 0
RULES = ("paper", "ours")
Row = dict[str, Any]
T = TypeVar("T")


def measure(name: str, time_limit: float) -> Row:
    network = onchip.load(f"zoo:{name}").network
    row: Row = {"network": name, "operators": len(network.operators)}
    for rules in RULES:
        options = BranchOptions(rules=rules)
        made, seconds = quickest(lambda: plan_branches(network, CHIP, BUDGET, options))  # noqa: B023
        row |= of_method(rules, made, seconds)
        try:
            found = beside(made.plan, CHIP, again(network, options), time_limit=time_limit)
        except KeyboardInterrupt:
            raise SystemExit(130) from None
        row[rules]["beside"] = found.data()
        if rules == "paper":
            row["exact_seconds"] = exactly(made.plan, time_limit)
    return row


def exactly(plan: Plan, time_limit: float) -> float:
    """CPU seconds of placing the modules of which every operator fits whole."""
    options = PlacementOptions(in_place=True, time_limit=time_limit)
    total = 0.0
    for region in regions(plan, Sizes(plan.network, CHIP).resident, lambda n: least(n) > BUDGET):
        if least(region.network) <= BUDGET:
            total += quickest(lambda: placement.plan(region.network, CHIP, BUDGET, options))[1]  # noqa: B023
    return total


def least(network: Network) -> int:
    """The bytes without which some operator cannot run whole."""
    return placement.Problem.of(network, CHIP.alignment_bytes, in_place=True).minimum_budget


def quickest(work: Callable[[], T]) -> tuple[T, float]:
    """What `work` gives and the CPU seconds of its fastest run."""
    fastest, spent = math.inf, 0.0
    for _ in range(5):
        began = time.process_time()
        result = work()
        took = time.process_time() - began
        fastest, spent = min(fastest, took), spent + took
        if spent > 2.0:
            break
    return result, fastest


def again(network: Network, options: BranchOptions) -> Callable[[int], Plan | None]:
    def plan(budget: int) -> Plan | None:
        try:
            return plan_branches(network, CHIP, budget, options).plan
        except Infeasible:
            return None

    return plan


def of_method(rules: str, made: BranchPlan, seconds: float) -> Row:
    table = module_table(made.plan)
    total = table.total
    modules = [item for item in made.detection.items if isinstance(item, Module)]
    facts = {
        "modules": len(modules),
        "depth": max((deepest(m) for m in modules), default=0),
        "long_skips": len(made.detection.long_skips),
        "rejected": len(made.detection.rejected),
        "inside": sum(row.operators for row in table.modules),
        "naive": total.naive_fm_bytes,
        "naive_accesses": total.naive_reads + total.naive_writes,
        "weights": total.weight_bytes,
    }
    method = {
        "fm": total.fm_bytes,
        "accesses": total.reads + total.writes,
        "two": sum(row.processing == "II" for row in table.modules),
        "seconds": seconds,
    }
    return {**facts, rules: method}


def deepest(module: Module) -> int:
    inner = [deepest(s) for branch in module.branches for s in branch.steps if isinstance(s, Module)]
    return 1 + max(inner, default=0)


# -- the page --------------------------------------------------------------------------------------------


def page(data: Row) -> str:
    rows = [r for name in NAMES for r in data["records"] if r["network"] == name]
    own = [r for r in rows if r["modules"]]
    without = [r["network"] for r in rows if not r["modules"] and "infeasible" not in r]
    too_large = [f"{r['network']} (`{r['infeasible']}`)" for r in rows if "infeasible" in r]
    parts = [
        f"<!-- {data['machine']} -->",
        "## What the modules move\n",
        *_moved(own),
        "\nWithout such a module: " + (", ".join(without) or "none") + ".",
        "\nWith a layer that fits in no way in 1 MiB, of those tried (the layer, and the bytes it needs):",
        (", ".join(too_large) or "none") + ".",
        "\n## Beside exact placement\n",
        *_beside(own),
        "\n## The smallest buffer\n",
        *_zero(own),
    ]
    return "\n".join(parts) + "\n"


def _moved(rows: list[Row]) -> Iterator[str]:
    yield (
        "Feature maps to and from DRAM inside the modules, in KB and accesses, as in Table 1: naive, by the"
        " paper's rules, by ours. *Depth* counts modules within modules, *inside* operators in modules, *II*"
        " modules that keep their output in DRAM.\n"
    )
    yield (
        "| network | modules | depth | inside | long skips | naive KB | accesses | paper KB | accesses | II"
        " | ours KB | accesses | II |"
    )
    yield "|---|" + "--:|" * 12
    for r in rows:
        p, o = r["paper"], r["ours"]
        yield (
            f"| {r['network']} | {r['modules']} | {r['depth']} | {r['inside']} of {r['operators']} |"
            f" {r['long_skips']} | {kb(r['naive'])} | {r['naive_accesses']:,} | {kb(p['fm'])} |"
            f" {p['accesses']:,} | {p['two']} | {kb(o['fm'])} | {o['accesses']:,} | {o['two']} |"
        )


def _beside(rows: list[Row]) -> Iterator[str]:
    yield (
        "The same modules as networks of their own; KB beyond reading their inputs once and writing their"
        " outputs once. *Whole*: modules of which every operator fits the buffer whole; exact placement has"
        " no other way to run one, so the three columns behind it are about these modules alone. *Elsewhere*"
        " is what the simple method moves in the others, where it streams. \\*: not proved least in time.\n"
    )
    yield (
        "| network | whole | paper KB | ours KB | exact KB | elsewhere: paper KB | ours KB | paper ms"
        " | ours ms | exact ms |"
    )
    yield "|---|" + "--:|" * 9
    for r in rows:
        found = {rules: r[rules]["beside"]["rows"] for rules in RULES}
        fits = {k: [x for x in v if x["exact_bytes"] is not None] for k, v in found.items()}
        rest = {k: [x for x in v if x["exact_bytes"] is None] for k, v in found.items()}
        whole = sum(len(x["modules"]) for x in fits["paper"])
        exact = sum(x["exact_bytes"] for x in fits["paper"])
        star = "" if all(x["status"] == "optimal" for x in fits["paper"]) else " \\*"
        cells = [
            f"{whole} of {r['modules']}",
            *((kb(sum(x["simple_bytes"] for x in fits[k])) if whole else "-") for k in RULES),
            f"{kb(exact)}{star}" if whole else "-",
            *((kb(sum(x["simple_bytes"] for x in rest[k])) if rest[k] else "-") for k in RULES),
            *(ms(r[k]["seconds"]) for k in RULES),
            ms(r["exact_seconds"]) if whole else "-",
        ]
        yield f"| {r['network']} | " + " | ".join(cells) + " |"
    yield (
        "\nThe simple method's time is for the whole network, exact placement's for the modules in *whole*;"
        " both are CPU time, the least of five runs (of fewer, where they took over two seconds)."
    )


def _zero(rows: list[Row]) -> Iterator[str]:
    yield (
        "KiB with which nothing moves in the modules, their last output on chip. *At least*: proved for every"
        " order and placement of whole operators. The simple method streams what does not fit, and so may do"
        " with less.\n"
    )
    yield "| network | paper | ours | exact | at least | paper / exact |"
    yield "|---|" + "--:|" * 5
    for r in rows:
        zero = [r[k]["beside"]["simple_zero"]["bytes"] for k in RULES]
        exact = r["paper"]["beside"]["exact_zero"]
        ratio = f"{zero[0] / exact['bytes']:.2f}" if zero[0] and exact["bytes"] else ""
        cells = [*(kib(z) for z in zero), kib(exact["bytes"]), kib(exact["at_least"]), ratio]
        yield f"| {r['network']} | " + " | ".join(cells) + " |"


def kb(n: int) -> str:
    return f"{n / 1024:,.1f}" if n % 1024 else f"{n // 1024:,}"


def kib(n: int | None) -> str:
    return "none" if n is None else f"{n / 1024:,.1f}"


def ms(seconds: float) -> str:
    return f"{1e3 * seconds:,.1f}" if seconds < 0.1 else f"{1e3 * seconds:,.0f}"


def put_into(path: Path, text: str) -> None:
    """Replace what stands between the marks."""
    old = path.read_text()
    if BEGIN not in old or END not in old:
        raise SystemExit(f"{path}: has no {BEGIN} ... {END}")
    path.write_text(re.sub(f"{BEGIN}.*{END}", lambda _: f"{BEGIN}\n{text}{END}", old, flags=re.DOTALL))


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n")[0])
    parser.add_argument("action", choices=("measure", "render"))
    parser.add_argument("data", type=Path)
    parser.add_argument("names", nargs="*", default=list(NAMES))
    parser.add_argument("--time-limit", type=float, default=10.0)
    parser.add_argument("--into", type=Path, metavar="PAGE")
    args = parser.parse_intermixed_args()
    if args.action == "render":
        text = page(json.loads(args.data.read_text()))
        print(text) if args.into is None else put_into(args.into, text)
        return
    machine = f"{platform.machine()}, {os.cpu_count()} cores, one used; Python {platform.python_version()}"
    records = json.loads(args.data.read_text())["records"] if args.data.exists() else []
    failed = False
    for name in args.names:
        try:
            row = measure(name, args.time_limit)
        except Infeasible as no:
            row = {"network": name, "modules": 0, "infeasible": f"{no.operator} needs {no.needs:,} bytes"}
        except OnchipError as problem:
            print(name, problem, file=sys.stderr, flush=True)
            failed = True
            continue
        records = [r for r in records if r["network"] != name] + [row]
        args.data.write_text(json.dumps({"machine": machine, "records": records}, indent=1) + "\n")
        print(name, row.get("infeasible") or {k: row[k]["fm"] for k in RULES}, file=sys.stderr, flush=True)
    raise SystemExit(1 if failed else 0)


if __name__ == "__main__":
    main()
