"""A network in modules of branches, and the bytes they move: the result of `onchip.branches`."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, fields
from typing import TYPE_CHECKING, Any

from onchip.base.figures import data
from onchip.machines.chip import Chip
from onchip.network import Network
from onchip.planners.modules.regions import regions_of
from onchip.planners.modules.table import WRITERS, ModuleTable, Row, module_table, skip_rows
from onchip.plans import Plan as Program
from onchip.results.branched_parts import BranchedModule, Layer, LongSkip, Unmerged

if TYPE_CHECKING:
    from onchip.comparison.beside import Beside
    from onchip.planners.branches.modules import Detection
    from onchip.planners.branches.plan import BranchPlan
    from onchip.planners.limits import Progress
    from onchip.results.planned import Plan

__all__ = ["Branched", "BranchedModule", "Layer", "LongSkip", "Unmerged"]


@dataclass(frozen=True)
class Branched:
    """A network's modules processed by the simple method: the plan, and Table 1 of its paper for it.

    Every figure of `table` is counted on the plan's program. `plan` covers the whole network: modules on
    chip, the layers outside any streamed. `seconds` is the time of planning, `options` are the planner's.
    """

    network: Network
    chip: str
    budget: int
    plan: Plan
    table: ModuleTable
    modules: tuple[BranchedModule, ...]
    long_skips: tuple[LongSkip, ...]
    unmerged: tuple[Unmerged, ...]
    seconds: float
    options: Mapping[str, Any]
    again: Callable[[int], Program | None] = field(repr=False, compare=False)
    """The same network's plan within other budgets, None where some layer does not fit."""
    machine: Chip = field(repr=False)

    def beside(self, *, time_limit: float | None = 60.0, progress: Progress | None = None) -> Beside:
        """Return the modules placed exactly, on the same chip and sizes, and both methods' smallest buffers.

        `time_limit` is for each exact search, in seconds; after Ctrl-C the result has the finished parts.
        """
        from onchip.comparison.beside import beside

        return beside(self.plan, self.machine, self.again, time_limit=time_limit, progress=progress)

    @property
    def rows(self) -> tuple[Row, ...]:
        """The modules' rows."""
        return self.table.modules

    @property
    def total(self) -> Row:
        """All modules together: the last row of Table 1."""
        return self.table.total

    @property
    def status(self) -> str:
        """`optimal` where nothing moves that the plan could leave out, else `feasible`."""
        return self.plan.result.status

    @property
    def processing(self) -> Mapping[str, int]:
        """The number of modules with processing I and with processing II."""
        count = Counter(row.processing for row in self.rows)
        return {kind: count[kind] for kind in ("I", "II")}

    def data(self) -> dict[str, Any]:
        """Return the result as JSON data: KB of 1,024 bytes, ratios in percent, None for 0 / 0."""
        result = self.plan.result
        return {
            "network": self.network.name,
            "chip": self.chip,
            "budget": self.budget,
            "element": self.network.element,
            "status": self.status,
            "space": result.space,
            "seconds": self.seconds,
            "options": dict(self.options),
            "modules": [_module_data(m) for m in self.modules],
            "total": self.total.data(),
            "outside": [{"name": row.name, **row.data()} for row in self.table.outside],
            "outside_total": self.table.total_outside.data(),
            "network_total": self.table.network.data(),
            "long_skips": [data(s, WRITERS) | data(s.cost, WRITERS) for s in self.long_skips],
            "rejected": [data(u, WRITERS) for u in self.unmerged],
            "traffic_bytes": result.traffic_bytes,
            "compulsory_bytes": result.compulsory_bytes,
            "weight_bytes": result.weight_bytes,
            "dram_bytes": result.dram_bytes,
            "peak_bytes": result.peak_bytes,
        }

    def __repr__(self) -> str:
        from onchip.report.grid import one_screen

        return one_screen(str(self))

    def __str__(self) -> str:
        from onchip.report.grid import WIDTH, printed
        from onchip.results.branched_table import table

        return printed(table(self, WIDTH))


def _module_data(module: BranchedModule) -> dict[str, Any]:
    section = module.section
    return {
        "name": module.row.name,
        "start": section.start,
        "merge": section.merge,
        "processing": section.processing,
        **module.row.data(),
        "branches": [list(branch) for branch in section.branches],
        "regions": [data(region, WRITERS) for region in module.regions],
        "layers": [data(layer, WRITERS) for layer in module.layers],
    }


def branched_of(made: BranchPlan, chip: Chip, plan: Plan, again: Callable[[int], Program | None]) -> Branched:
    """Return the planner's answer as the user's result; `plan` is its plan with the verbs."""
    network, rows, layers = plan.network, module_table(plan), _layers(made)
    modules = tuple(
        BranchedModule(row, section, regions, layers.get(section.name, ()))
        for row, section, regions in zip(rows.rows, plan.sections, regions_of(plan), strict=True)
        if row.is_module
    )
    return Branched(
        network,
        chip.name,
        plan.budget,
        plan,
        rows,
        modules,
        _long_skips(made.detection, plan),
        tuple(Unmerged(network.operators[r.merge].name, r.reason) for r in made.detection.rejected),
        made.seconds,
        {f.name: getattr(made.options, f.name) for f in fields(made.options)},
        again,
        chip,
    )


def _layers(made: BranchPlan) -> dict[str, tuple[Layer, ...]]:
    """Return the layers by module, in running order."""
    found: dict[str, list[Layer]] = {}
    for fit in made.layers:
        layer = Layer(fit.operator, fit.branch, fit.required, fit.available, fit.forwarded)
        found.setdefault(fit.module, []).append(layer)
    return {name: tuple(layers) for name, layers in found.items()}


def _long_skips(detection: Detection, plan: Plan) -> tuple[LongSkip, ...]:
    network, found = plan.network, detection.long_skips
    names = [(network.tensors[s.tensor].name, network.operators[s.reader].name) for s in found]
    return tuple(
        LongSkip(tensor, reader, skip.span, cost)
        for (tensor, reader), skip, cost in zip(names, found, skip_rows(plan, names), strict=True)
    )
