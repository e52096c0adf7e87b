"""Joint plans in bands, blocks and boxes as nests of loops: docs/joint.md, "As nests of loops".

    .venv/bin/python benchmarks/joint_as_nests.py [--chips CHIP ...] [--with-nests [CHIP ...]]
        [--time-limit S] [--only PATTERN] [--into docs/joint.md]

Each network of the zoo is planned without nests (`--no-nests`), and that plan's groups are told as nests, by
the checker: `in tiles` are the DRAM bytes of the plan (MB of 10^6 bytes), `as nests` those of the same plan
then, `taken` the most bytes on chip at once then. For the chips of `--with-nests` joint planning plans again,
with nests, and the last section tells which groups stay in bands, blocks and boxes then, and which plans
move more than those without, as the clock ended their search. Every plan is a line on stderr as it comes.
Exit code 1 where a plan without nests is no legal plan as nests, or moves less than the one with nests that
is proved the least: lines on stderr say which.
"""

from __future__ import annotations

import argparse
import fnmatch
import sys
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from page_marks import write

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

CHIPS = ("optimus-1", "optimus-6", "exynos-npu", "eyeriss", "shidiannao")

LESS = ("lives", "unread", "once")
"""Reasons to take less."""

FITS = {
    "in place": "fit in place",
    "moved": "if addresses are found anew",
    "no": "not",
    "refused": "are no legal plan",
}

MEANINGS = {**REASONS, **DIFFERENCES, "unknown": "nothing says why"}

HEAD = "| network | chip | in tiles | as nests | taken | budget | fits |"
RULE = "|---|---|--:|--:|--:|--:|---|"


@dataclass(frozen=True)
class Planned:
    """A network on a chip: its plan without nests, the same as nests, and the plan with nests where asked."""

    name: str
    chip: str
    plan: Plan
    as_nests: AsNests | None
    with_nests: Plan | None

    @property
    def takes_more(self) -> bool:
        """Whether the plan does not fit as nests, or moves more."""
        found = self.as_nests
        return found is not None and (found.fits in ("no", "refused") or found.dram_bytes > _moved(self.plan))

    @property
    def row(self) -> str:
        """Its row on the page."""
        found = self.as_nests
        moved = _moved(self.plan) if found is None else found.dram_bytes
        taken = self.plan.result.peak_bytes if found is None else found.peak_bytes
        fits = "no tiles" if found is None else found.fits
        return (
            f"| {starred(self.name, self.plan)} | {self.chip} | {_moved(self.plan) / 1e6:.3f}"
            f" | {moved / 1e6:.3f} | {taken:,} | {self.plan.budget:,} | {fits} |"
        )

    @property
    def saved(self) -> int:
        """The bytes that the plan with nests moves less, where there is one."""
        return 0 if self.with_nests is None else _moved(self.plan) - _moved(self.with_nests)

    def faults(self) -> Iterator[str]:
        """What must not be, in a line each."""
        if self.as_nests is not None and self.as_nests.fits == "refused":
            yield f"{self.name} on {self.chip}: no legal plan as nests: {self.as_nests.refusal}"
        if self.with_nests is not None and self.saved < 0 and proved(self.with_nests):
            yield f"{self.name} on {self.chip}: moves less without nests than what is proved the least"


@dataclass(frozen=True)
class Campaign:
    """The plans, and the sections that tell about them."""

    plans: Sequence[Planned]
    seconds: float

    def groups(self) -> Iterator[str]:
        """How many plans fit as nests, and how many groups take more or less, with the reasons."""
        told = [one.as_nests for one in self.plans if one.as_nests is not None]
        groups = [group for found in told for group in found.groups]
        fits = Counter[str](found.fits for found in told)
        kinds = Counter(map(compared, groups))
        shown = ", ".join(f"{fits[how]} {words}" for how, words in FITS.items() if fits[how])
        fine = sum(count for (_, scratch, _), count in kinds.items() if scratch in ("as much", "less"))
        more = sum(count for (_, _, moved), count in kinds.items() if moved == "more")
        unproved = sum(not proved(one.plan) for one in self.plans)
        yield (
            f"{len(told)} of the {len(self.plans)} plans have groups in bands, blocks or boxes. As nests"
            f" {shown}. Of {len(groups):,} groups {fine:,} take no more scratch as nests, and {more:,} let"
            f" more bytes cross. {unproved} plans are not proved the least in {self.seconds:g} s.\n"
        )
        yield "| runs in | groups | scratch | DRAM bytes |"
        yield "|---|--:|---|---|"
        for (form, scratch, moved), count in sorted(kinds.items()):
            yield f"| {form} | {count:,} | {scratch} | {moved} |"
        yield ""
        yield "| reason | groups | means |"
        yield "|---|--:|---|"
        reasons = Counter(name for group in groups for name in group.reasons)
        for name, text in MEANINGS.items():
            if reasons[name]:
                yield f"| {name} | {reasons[name]:,} | {text} |"

    def plans_that_take_more(self) -> Iterator[str]:
        yield HEAD
        yield RULE
        yield from (one.row for one in self.plans if one.takes_more)

    def written(self) -> Iterator[str]:
        """How plans with nests are written, and why some of their groups stay in tiles."""
        both = [(one, one.with_nests) for one in self.plans if one.with_nests is not None]
        forms = Counter(isinstance(group.tiling, Nest) for _, plan in both for group in plan.groups)
        left = [found.groups for _, plan in both if (found := plan_as_nests(plan)) is not None]
        better = sum(one.saved > 0 for one, _ in both)
        worse = [(one, plan) for one, plan in both if one.saved < 0]
        yield (
            f"In the {len(both)} plans for {', '.join(dict.fromkeys(one.chip for one, _ in both))},"
            f" {forms[True]:,} groups are nests, and {forms[False]:,} groups of {len(left)} plans stay in"
            f" bands, blocks or boxes. {better} plans move less than those without nests, {len(worse)}"
            " move more.\n"
        )
        yield "| why it stays so | groups |"
        yield "|---|--:|"
        for why, count in Counter(stays(group) for groups in left for group in groups).most_common():
            yield f"| {why} | {count:,} |"
        if worse:
            yield "\n| moves more with nests | chip | without nests | with nests |"
            yield "|---|---|--:|--:|"
        for one, plan in worse:
            without = f"{_moved(one.plan) / 1e6:.3f}"
            yield f"| {starred(one.name, plan)} | {one.chip} | {without} | {_moved(plan) / 1e6:.3f} |"


def proved(plan: Plan) -> bool:
    return plan.result.status == "optimal"


def starred(name: str, plan: Plan) -> str:
    """The network's name, with a star if its plan is not proved: more time may find another one."""
    return name if proved(plan) else f"{name} \\*"


def _moved(plan: Plan) -> int:
    return plan.result.dram_bytes


def compared(group: Compared) -> tuple[str, str, str]:
    """How a group runs, what scratch its nest takes beside it, and how many bytes cross then."""
    if group.nest_scratch_bytes is None or group.nest_dram_bytes is None:
        return group.form, "no nest", ""
    scratch = _beside(group.nest_scratch_bytes, group.scratch_bytes)
    return group.form, scratch, _beside(group.nest_dram_bytes, group.dram_bytes)


def _beside(after: int, before: int) -> str:
    return "as much" if after == before else "less" if after < before else "more"


def stays(group: Compared) -> str:
    """Why joint planning leaves a group in tiles."""
    _, scratch, moved = compared(group)
    why = ", ".join(name for name in group.reasons if name not in LESS)
    if scratch == "no nest":
        return f"it has no nest: {why}"
    if "more" not in (scratch, moved):
        return "its nest takes no more"
    return f"its nest {'takes more scratch' if scratch == 'more' else 'lets more bytes cross'}: {why}"


def planned(network: Network, chip: Chip, seconds: float, *, nests: bool) -> Plan | None:
    """The plan of a network in the chip's scratchpad; None if there is none."""
    budget = int(chip.require("scratchpad_bytes", "a plan"))
    placing = PlacementOptions(time_limit=seconds)
    try:
        made = solve(network, chip, budget, JointOptions(fuse=True, nests=nests), placing)
    except Infeasible:
        return None
    check(made.plan)
    return made.plan


def campaign(asked: argparse.Namespace) -> Iterator[Planned]:
    """Plan every network on every chip; each is shown on stderr as it comes."""
    for at in asked.chips:
        chip = load_chip(at)
        for name in fnmatch.filter(zoo.names(), asked.only):
            source = onchip.load(f"zoo:{name}", dtype=chip.element)
            plan = planned(source.network, chip, asked.time_limit, nests=False)
            if plan is None:
                continue
            again = at in asked.with_nests
            with_nests = planned(source.network, chip, asked.time_limit, nests=True) if again else None
            one = Planned(name, chip.name, plan, plan_as_nests(plan), with_nests)
            print(one.row, *one.faults(), sep="\n", file=sys.stderr, flush=True)
            yield one


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n")[0])
    parser.add_argument("--chips", nargs="+", default=CHIPS, metavar="CHIP")
    parser.add_argument(
        "--with-nests",
        nargs="*",
        default=("optimus-6",),
        metavar="CHIP",
        help="those planned with nests, too",
    )
    parser.add_argument("--time-limit", type=float, default=5, metavar="S", help="of every plan")
    parser.add_argument("--only", default="*", metavar="PATTERN", help="of networks")
    parser.add_argument("--into", type=Path, metavar="PAGE")
    asked = parser.parse_args()
    print(HEAD, RULE, sep="\n", file=sys.stderr)
    made = Campaign(tuple(campaign(asked)), asked.time_limit)
    sections = {"as nests": made.groups, "more as nests": made.plans_that_take_more}
    if any(one.with_nests for one in made.plans):
        sections["with nests"] = made.written
    write(sections, asked.into)
    return 1 if any(line for one in made.plans for line in one.faults()) else 0


if __name__ == "__main__":
    sys.exit(main())
