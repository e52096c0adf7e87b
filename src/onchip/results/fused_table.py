"""Fused groups as a table for a terminal."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import Any, Protocol

from rich.console import Group, RenderableType
from rich.padding import Padding
from rich.text import Text

from onchip.network import Network
from onchip.report.grid import Grid
from onchip.report.grouped import GroupRow, group_table
from onchip.report.wording import SENTENCE, exact, short_size, visible

__all__ = ["table"]

BASELINES = {
    "none": "no fusion: every operator by itself",
    "dnnvm": "DNNVM: chains, all weights resident",
    "efficient_s": "Efficient-S: with joins and forks, all weights resident",
    "without_model": "without our cost model: all groups, at Efficient-S's price",
    "oracle": "oracle: inputs, outputs and weights, each once",
}


class InGroups(Protocol):
    """What the table shows of a network in fused groups (`onchip.Fused` says what each is)."""

    @property
    def network(self) -> Network: ...

    @property
    def chip(self) -> str: ...

    @property
    def budget(self) -> int: ...

    @property
    def batch(self) -> int: ...

    @property
    def status(self) -> str: ...

    @property
    def space(self) -> str: ...

    @property
    def note(self) -> str: ...

    @property
    def why_not(self) -> str: ...

    @property
    def executable(self) -> bool: ...

    @property
    def element_bytes(self) -> int: ...

    @property
    def dram_bytes(self) -> int: ...

    @property
    def dram_words(self) -> int | float: ...

    @property
    def lower_bound_bytes(self) -> int: ...

    @property
    def baselines_incomplete(self) -> Collection[str]: ...

    def rows(self) -> Sequence[GroupRow]: ...

    def data(self) -> dict[str, Any]: ...


def table(made: InGroups, width: int) -> RenderableType:
    """A rich renderable: what was found, the groups, and what others need."""
    groups = made.rows()
    head = Text(visible(f"{made.network.name} on {made.chip}"), style="bold")
    images = "" if made.batch == 1 else f", {made.batch:,} images"
    head.append(f", {exact(made.budget)}{images}: {status_words(made)}", style="not bold")
    parts: list[RenderableType] = [head, Text(_sentence(made, groups), style="dim")]
    parts += [Text(f"Among: {visible(made.space, SENTENCE)}.", style="dim"), Text()]
    heading = Text("Groups", style="bold")
    heading.append(
        "  thousands of words; bands: how many of how many rows; isoa: tensors a few channels at a time;"
        " kept: operators whose weights stay",
        style="not bold dim",
    )
    parts += [heading, Padding(group_table(groups, made.element_bytes, width - 2), (0, 0, 0, 2)), Text()]
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
    return Group(*parts)


def status_words(made: InGroups) -> str:
    """`optimal in its space`, or how far above the bound at most."""
    if made.status == "optimal":
        return "optimal in its space"
    if made.lower_bound_bytes <= 0:
        return f"{made.status}, no bound known"
    gap = 100 * (made.dram_bytes / made.lower_bound_bytes - 1)
    if gap > 100:
        return f"{made.status}, at most {1 + gap / 100:.1f} times the bound"
    return f"{made.status}, at most {gap:.2g} % above the bound"


def _sentence(made: InGroups, groups: Sequence[GroupRow]) -> str:
    fused = sum(len(g.operators) > 1 for g in groups)
    text = (
        f"{len(made.network.operators):,} operators in {len(groups):,} groups, {fused:,} of them fused;"
        f" {made.dram_words:,} words of {made.network.element} ({short_size(made.dram_bytes)}) cross to DRAM"
    )
    if made.status == "optimal":
        return f"{text}, and no partition of its space needs fewer."
    return f"{text}; no partition of its space needs fewer than {made.data()['lower_bound_words']:,}."


def _against(made: InGroups) -> Grid:
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
