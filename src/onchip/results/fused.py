"""A network in fused groups, with its bounds and baselines: the result of `onchip.fuse`."""

from __future__ import annotations

import warnings
from collections.abc import Mapping
from dataclasses import dataclass, fields
from typing import TYPE_CHECKING, Any

from onchip.base import figures
from onchip.machines.chip import ELEMENTS
from onchip.network import Network
from onchip.planners.fused_group import FusedGroup

if TYPE_CHECKING:
    from rich.console import RenderableType

    from onchip.planners.fusion.fuse import FusedPlan
    from onchip.results.planned import Plan

__all__ = ["Fused", "FusedGroup", "table"]

BASELINES = {
    "none": "no fusion: every operator by itself",
    "dnnvm": "DNNVM: chains, all weights resident",
    "efficient_s": "Efficient-S: with joins and forks, all weights resident",
    "without_model": "without our cost model: all groups, at Efficient-S's price",
    "oracle": "oracle: inputs, outputs and weights, each once",
}


@dataclass(frozen=True)
class Fused:
    """A network's fused groups: the least DRAM traffic found, and a lower bound of any partition's.

    `plan` runs them, and is None where no machine could; `why_not` is the reason why `executable` is False.
    `lower_bound_bytes` bounds `dram_bytes` over all partitions into groups that the options allow: `status`
    is `optimal` where it is reached. `baselines` are DRAM bytes by name, counted like the result's own:
    `none` (no fusion), `dnnvm`, `efficient_s`, `without_model`, and `oracle`, which no plan can beat.
    `options` are those of the search; `space` names the partitions and tilings that the bound ranges over,
    `note` is a sentence about the search, if any. Baselines named in `baselines_incomplete` are only the best
    found.
    """

    network: Network
    chip: str
    budget: int
    batch: int
    groups: tuple[FusedGroup, ...]
    plan: Plan | None
    why_not: str
    status: str
    dram_bytes: int
    lower_bound_bytes: int
    baselines: Mapping[str, int | None]
    seconds: float
    options: Mapping[str, Any]
    note: str = ""
    space: str = ""
    baselines_incomplete: tuple[str, ...] = ()

    @property
    def executable(self) -> bool:
        """True if there is a plan that `onchip run` can execute."""
        return self.plan is not None and not self.why_not

    @property
    def element_bytes(self) -> int:
        """The bytes of a word."""
        return ELEMENTS.get(self.network.element, 1)

    @property
    def dram_words(self) -> int | float:
        """The words that cross to and from DRAM."""
        return self._words(self.dram_bytes)

    def _words(self, n: int) -> int | float:
        whole, rest = divmod(n, self.element_bytes)
        return n / self.element_bytes if rest else whole

    def data(self) -> dict[str, Any]:
        """Return the result as JSON data; words are of the network's element."""
        groups = [figures.data(group, {"words": self._words}) for group in self.groups]
        baselines = {k: None if n is None else self._words(n) for k, n in self.baselines.items()}
        return {
            "network": self.network.name,
            "chip": self.chip,
            "budget": self.budget,
            "batch": self.batch,
            "element": self.network.element,
            "groups": groups,
            "dram_words": self.dram_words,
            "status": self.status,
            "space": self.space,
            "executable": self.executable,
            "why_not_executable": self.why_not,
            "lower_bound_words": -(-self.lower_bound_bytes // self.element_bytes),
            "baselines": baselines,
            "baselines_incomplete": list(self.baselines_incomplete),
            "seconds": self.seconds,
            "options": dict(self.options),
            "note": self.note,
        }

    def rows(self) -> tuple[FusedGroup, ...]:
        """Return the groups, under their former name for display."""
        warnings.warn("Fused.rows() is Fused.groups", FutureWarning, stacklevel=2)
        return self.groups

    def __repr__(self) -> str:
        from onchip.report.grid import one_screen

        return one_screen(str(self))

    def __str__(self) -> str:
        from onchip.report.grid import WIDTH, printed

        return printed(table(self, WIDTH))


def fused_of(made: FusedPlan, chip: str, plan: Plan | None, unsupported: str = "") -> Fused:
    """Return the planner's answer as the user's result; `unsupported`: why `onchip run` refuses the plan."""
    from onchip.planners.fusion.program import group_names

    problem = made.problem
    return Fused(
        problem.network,
        chip,
        problem.budget,
        problem.batch,
        tuple(
            cost.figures(problem.network, name)
            for name, cost in zip(group_names(problem.network, made.groups), made.groups, strict=True)
        ),
        plan,
        made.not_executable or unsupported,
        made.status,
        made.dram_bytes,
        made.lower_bound_bytes,
        made.baselines,
        made.seconds,
        {f.name: getattr(problem.options, f.name) for f in fields(problem.options)},
        made.note,
        made.space,
        made.baselines_incomplete,
    )


def table(made: Fused, width: int) -> RenderableType:
    """Return a rich renderable: what was found, the groups, and the baselines' bytes."""
    from rich.console import Group
    from rich.padding import Padding
    from rich.text import Text

    from onchip.report.grouped import group_legend, group_table
    from onchip.report.wording import SENTENCE, SPACE, exact, visible

    head = Text(visible(f"{made.network.name} on {made.chip}"), style="bold")
    images = "" if made.batch == 1 else f", {made.batch:,} images"
    head.append(f", {exact(made.budget)}{images}: {status_words(made)}", style="not bold")
    parts: list[RenderableType] = [head, Text(_sentence(made), style="dim")]
    groups = group_table(made.groups, width - 2, element=made.element_bytes)
    parts += [Text(), Text("Groups", style="bold"), Padding(groups, (0, 0, 0, 2))]
    parts += [Padding(Text(group_legend(groups, words=True), style="dim"), (0, 0, 0, 2)), Text()]
    parts += [Text("Against", style="bold"), Padding(_against(made), (0, 0, 0, 2)), Text()]
    parts.append(
        Text(
            "executable: onchip run executes the plan"
            if made.executable
            else f"not executable: {visible(made.why_not)}"
        )
    )
    if made.note:
        parts.append(Text(visible(made.note)))
    space = Text(f"Among: {visible(made.space, SENTENCE)}.", style="dim")
    parts += [Text(), Text(SPACE, style="bold"), Padding(space, (0, 0, 0, 2))]
    return Group(*parts)


def status_words(made: Fused) -> str:
    """Return `optimal in its space`, or the largest excess over the bound."""
    if made.status == "optimal":
        return "optimal in its space"
    if made.lower_bound_bytes <= 0:
        return f"{made.status}, no bound known"
    gap = 100 * (made.dram_bytes / made.lower_bound_bytes - 1)
    if gap > 100:
        return f"{made.status}, at most {1 + gap / 100:.1f} times the bound"
    return f"{made.status}, at most {gap:.2g} % above the bound"


def _sentence(made: Fused) -> str:
    from onchip.report.wording import short_size

    groups = made.groups
    fused = sum(len(g.operators) > 1 for g in groups)
    text = (
        f"{len(made.network.operators):,} operators in {len(groups):,} groups, {fused:,} of them fused;"
        f" {made.dram_words:,} words of {made.network.element} ({short_size(made.dram_bytes)}) cross to DRAM"
    )
    limit = None if made.plan is None else -(-made.plan.limit_bytes // made.element_bytes)
    least = "" if limit is None else f" Every schedule moves {limit:,}."
    if made.status == "optimal":
        return f"{text}, and no partition of its space needs fewer.{least}"
    return f"{text}; no partition of its space needs fewer than {made.data()['lower_bound_words']:,}.{least}"


def _against(made: Fused) -> RenderableType:
    from onchip.report.grid import Grid

    rows = Grid(("words", True), ("this has", True), ("what", False))
    words = made.data()["baselines"]
    for name, what in BASELINES.items():
        n = words.get(name)
        if name in made.baselines_incomplete:
            what += " (best found)"
        if n is None:
            rows.add_row("-", "", what)
        else:
            rows.add_row(f"{n:,}", f"{100 * made.dram_words / n:.1f} %" if n else "", what)
    return rows
