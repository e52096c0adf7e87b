"""Joint plans in bands, blocks and boxes as nests of loops: the tables of docs/joint.md, "As nests of loops".

    .venv/bin/python benchmarks/joint_as_nests.py [--chips CHIP ...] [--time-limit S] [--only PATTERN]
        [--with-nests]

Each network of the zoo is planned without nests (`--no-nests`), and that plan's groups are told as nests, by
the checker: `in tiles` are the DRAM bytes of the plan (MB of 10^6 bytes), `as nests` those of the same plan
then, `taken` the most bytes on chip at once then. With `--with-nests` the last column has those of the plan
that joint planning finds with nests, proved by the checker, and a table tells which of their groups stay
in bands, blocks and boxes. The last tables count the groups. Exit code 1
where a plan with nests moves more than one without, or a plan without them is no legal plan as nests.
"""

from __future__ import annotations

import argparse
import fnmatch
import os
import platform
import sys
from collections import Counter

import onchip
from onchip import zoo
from onchip.base.errors import Infeasible
from onchip.check import check
from onchip.check.as_nests import DIFFERENCES, REASONS, AsNests, Compared, plan_as_nests
from onchip.machines.chip import Chip, load_chip
from onchip.network import Network
from onchip.planners.joint import JointOptions
from onchip.planners.joint.planning import solve
from onchip.planners.placement import PlacementOptions
from onchip.plans import Nest, Plan

LESS = ("lives", "unread", "once")
"""Reasons to take less."""

CHIPS = ("optimus-1", "optimus-6", "exynos-npu", "eyeriss", "shidiannao")


def planned(network: Network, chip: Chip, seconds: float, *, nests: bool) -> Plan | None:
    """The plan of a network in the chip's scratchpad; None if there is none."""
    budget = chip.require("scratchpad_bytes", "a plan")
    placing = PlacementOptions(time_limit=seconds)
    try:
        made = solve(network, chip, budget, JointOptions(fuse=True, nests=nests), placing)
    except Infeasible:
        return None
    check(made.plan)
    return made.plan


def row(name: str, chip: Chip, plan: Plan, found: AsNests | None, beside: Plan | None) -> str:
    """One network on one chip."""
    moved = [plan.result.dram_bytes, plan.result.dram_bytes if found is None else found.dram_bytes]
    shown = [f"{n / 1e6:.3f}" for n in moved]
    taken = plan.result.peak_bytes if found is None else found.peak_bytes
    fits = "no tiles" if found is None else found.fits
    cells = [name, chip.name, *shown, f"{taken:,}", f"{plan.budget:,}", fits]
    return (
        f"| {' | '.join([*cells, *([] if beside is None else [f'{beside.result.dram_bytes / 1e6:.3f}'])])} |"
    )


def compared(after: int, before: int) -> str:
    return "as much" if after == before else "less" if after < before else "more"


def counted(groups: list[Compared]) -> None:
    """Print the groups of all plans by what they take, and by the reasons."""
    print("\n| runs in | groups | scratch | DRAM bytes |")
    print("|---|--:|---|---|")
    kinds: Counter[tuple[str, str, str]] = Counter()
    for g in groups:
        if g.nest_scratch_bytes is None or g.nest_dram_bytes is None:
            kinds[g.form, "no nest", ""] += 1
        else:
            scratch = compared(g.nest_scratch_bytes, g.scratch_bytes)
            kinds[g.form, scratch, compared(g.nest_dram_bytes, g.dram_bytes)] += 1
    for (form, scratch, moved), count in sorted(kinds.items()):
        print(f"| {form} | {count:,} | {scratch} | {moved} |")
    print("\n| reason | groups | means |")
    print("|---|--:|---|")
    reasons = Counter(name for g in groups for name in g.reasons)
    for name, text in (REASONS | DIFFERENCES).items():
        if reasons[name]:
            print(f"| {name} | {reasons[name]:,} | {text} |")


def written(plans: list[Plan]) -> None:
    """Print how the groups of plans with nests are written, and why some stay in tiles."""
    forms, reasons = Counter[str](), Counter[str]()
    for plan in plans:
        forms.update(type(group.tiling).__name__ for group in plan.groups)
        told = plan_as_nests(plan)
        for g in () if told is None else told.groups:
            if g.nest_scratch_bytes is not None and g.nest_scratch_bytes > g.scratch_bytes:
                reasons["more scratch: " + ", ".join(n for n in g.reasons if n not in LESS)] += 1
            else:
                reasons["more bytes: " + ", ".join(n for n in g.reasons if n not in LESS)] += 1
    stay = sum(n for form, n in forms.items() if form != "Nest")
    left = sum(any(not isinstance(g.tiling, Nest) for g in plan.groups) for plan in plans)
    print(f"\n{len(plans)} plans: {forms['Nest']:,} groups in nests, {stay:,} of {left} plans in tiles")
    print("\n| stays in tiles, as its nest takes | groups |")
    print("|---|--:|")
    for reason, count in reasons.most_common():
        print(f"| {reason} | {count:,} |")


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n")[0])
    parser.add_argument("--chips", nargs="+", default=CHIPS)
    parser.add_argument("--time-limit", type=float, default=20)
    parser.add_argument("--only", default="*", metavar="PATTERN")
    parser.add_argument("--with-nests", action="store_true")
    args = parser.parse_args()
    print(f"<!-- {platform.machine()}, {os.cpu_count()} cores; at most {args.time_limit:g} s a plan -->")
    last = (" with nests |", "--:|") if args.with_nests else ("", "")
    print(f"| network | chip | in tiles | as nests | taken | budget | fits |{last[0]}")
    print(f"|---|---|--:|--:|--:|--:|---|{last[1]}")
    bad, groups, fits = 0, list[Compared](), Counter[str]()
    with_nests: list[Plan] = []
    for at in args.chips:
        chip = load_chip(at)
        for name in fnmatch.filter(zoo.names(), args.only):
            network = onchip.load(f"zoo:{name}", dtype=chip.element).network
            plan = planned(network, chip, args.time_limit, nests=False)
            if plan is None:
                continue
            found = plan_as_nests(plan)
            beside = planned(network, chip, args.time_limit, nests=True) if args.with_nests else None
            with_nests += [] if beside is None else [beside]
            groups += [] if found is None else found.groups
            fits["no tiles" if found is None else found.fits] += 1
            bad += beside is not None and beside.result.dram_bytes > plan.result.dram_bytes
            bad += found is not None and found.fits == "refused"
            print(row(name, chip, plan, found, beside), flush=True)
    print("\nPlans: " + ", ".join(f"{n} {how}" for how, n in fits.most_common()))
    counted(groups)
    if with_nests:
        written(with_nests)
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main())
