"""A network in fused groups, and what its figures are worth: what `onchip.fuse` gives."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, fields
from typing import TYPE_CHECKING, Any

from onchip.machines.chip import ELEMENTS
from onchip.network import Network, bits
from onchip.plans import Blocks, Boxes

if TYPE_CHECKING:
    from onchip.planners.fusion.cost import GroupCost
    from onchip.planners.fusion.fuse import FusedPlan
    from onchip.report.grouped import GroupRow
    from onchip.results.planned import Plan

__all__ = ["Fused", "FusedGroup"]


@dataclass(frozen=True, slots=True)
class FusedGroup:
    """One group, in running order; operators and tensors by name, bytes of the whole batch.

    `rows` are those of a band (0: whole, or in blocks), `subgroups` the pieces it runs in, `images` how many
    a piece does at once. Of the tensors `streamed` a few channels are in the buffer at a time; the weights of
    `resident` operators stay there.
    """

    name: str
    operators: tuple[str, ...]
    rows: int
    subgroups: int
    images: int
    streamed: tuple[str, ...]
    resident: tuple[str, ...]
    scratch_bytes: int
    in_bytes: int
    out_bytes: int
    halo_bytes: int
    weight_bytes: int
    dram_bytes: int
    blocks: tuple[int, ...] | None = None
    """(output channels, rows, columns) of a block, for an operator that fits in no band of rows."""


@dataclass(frozen=True)
class Fused:
    """A network's fused groups: the least DRAM traffic that was found, and how little any partition needs.

    `plan` runs them, and is None where no machine could; `why_not` says why `executable` is False.
    `lower_bound_bytes` bounds `dram_bytes` over all partitions into groups that the options allow: `status`
    is `optimal` where it is reached. `baselines` are DRAM bytes by name, counted as the result's own: `none`
    (no fusion), `dnnvm`, `efficient_s`, `without_model`, and `oracle`, which no plan can beat. `options` are
    those of the search; `space` names the partitions and tilings that the bound ranges over, `note` is a
    sentence about the search where there is one to say. Baselines that are named in `baselines_incomplete`
    are only the best that was found.
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
        """Is there a plan that `onchip run` can execute?"""
        return self.plan is not None and not self.why_not

    @property
    def element_bytes(self) -> int:
        """Bytes of a word."""
        return ELEMENTS.get(self.network.element, 1)

    @property
    def dram_words(self) -> int | float:
        """Words that cross to DRAM."""
        return self._words(self.dram_bytes)

    def _words(self, n: int) -> int | float:
        whole, rest = divmod(n, self.element_bytes)
        return n / self.element_bytes if rest else whole

    def data(self) -> dict[str, Any]:
        """The result as JSON has it; words are of the network's element."""
        groups = [
            {
                "name": g.name,
                "operators": list(g.operators),
                "subgroups": g.subgroups,
                "rows": g.rows,
                "images": g.images,
                "streamed": list(g.streamed),
                "resident": list(g.resident),
                "scratch_bytes": g.scratch_bytes,
                "dram_words": self._words(g.dram_bytes),
                "in_words": self._words(g.in_bytes),
                "out_words": self._words(g.out_bytes),
                "halo_words": self._words(g.halo_bytes),
                "weight_words": self._words(g.weight_bytes),
                "blocks": None if g.blocks is None else list(g.blocks),
            }
            for g in self.groups
        ]
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

    def rows(self) -> tuple[GroupRow, ...]:
        """The groups ready to be shown."""
        from onchip.report.graph.units import bands_in_words, bands_shortly, label_of
        from onchip.report.grouped import GroupRow
        from onchip.report.wording import visible

        net, found = self.network, []
        for g in self.groups:
            operators = [net.operators[net.operator_id[name]] for name in g.operators]
            how = (g.rows, g.subgroups, g.images, g.blocks)
            found.append(
                GroupRow(
                    visible(g.name),
                    tuple(visible(name) for name in g.operators),
                    tuple(label_of(op) for op in operators),
                    bands_in_words(*how),
                    bands_shortly(*how),
                    len(g.streamed),
                    len(g.resident),
                    sum(op.weight_bytes > 0 for op in operators),
                    g.scratch_bytes,
                    g.in_bytes,
                    g.out_bytes,
                    g.halo_bytes,
                    g.weight_bytes,
                )
            )
        return tuple(found)

    def __str__(self) -> str:
        from rich.console import Console

        from onchip.results.fused_table import table

        console = Console(width=110, no_color=True)
        with console.capture() as capture:
            console.print(table(self, console.width))
        return capture.get()


def box_of(blocks: Blocks | Boxes | None) -> tuple[int, ...] | None:
    """The sides of a block, output channels first, or of a box; None without."""
    match blocks:
        case Boxes(sizes):
            return sizes
        case Blocks(rows, columns, output_channels):
            return output_channels, rows, columns
    return None


def groups_of(network: Network, costs: tuple[GroupCost, ...]) -> tuple[FusedGroup, ...]:
    """The groups by names, as a plan has them."""
    from onchip.planners.fusion.program import group_names

    found = []
    place = {v: i for i, v in enumerate(network.order)}
    for name, cost in zip(group_names(network, costs), costs, strict=True):
        members = sorted(bits(cost.members), key=place.__getitem__)
        read = written = 0
        for v in members:
            read, written = read | network.reads[v], written | network.writes[v]
        entering = sum(network.tensors[t].bytes for t in bits(read & ~written))
        b = cost.blocks
        found.append(
            FusedGroup(
                name,
                tuple(network.operators[v].name for v in members),
                cost.rows,
                cost.subgroups,
                cost.images,
                tuple(network.tensors[t].name for t in bits(cost.streamed)),
                tuple(network.operators[v].name for v in bits(cost.resident)),
                cost.scratch_bytes,
                min(entering, cost.io_bytes),
                max(0, cost.io_bytes - entering),
                cost.halo_bytes,
                cost.weight_bytes,
                cost.dram_bytes,
                box_of(b),
            )
        )
    return tuple(found)


def fused_of(made: FusedPlan, chip: str, plan: Plan | None, unsupported: str = "") -> Fused:
    """What the planner found, as its user meets it; `unsupported`: why `onchip run` takes no such plan."""
    problem = made.problem
    return Fused(
        problem.network,
        chip,
        problem.budget,
        problem.batch,
        groups_of(problem.network, made.groups),
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
