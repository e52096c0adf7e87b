"""Plans by rows beside those of chains and whole tensors: the one with fewer bytes is taken."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from onchip.base.errors import Infeasible, ModelError, NeedsTraffic
from onchip.base.short_names import short_names
from onchip.microcontroller.result.microcontroller_plan import MicrocontrollerPlan, planned_for
from onchip.microcontroller.row_plan import ALIGNMENT, plan_of_rows, planned_rows, row_spaces
from onchip.microcontroller.rows.addresses import place
from onchip.microcontroller.rows.law import lives, profile
from onchip.microcontroller.rows.of_model import row_model
from onchip.microcontroller.rows.search import search
from onchip.planners.limits import NO_LIMITS, Limits

if TYPE_CHECKING:
    from onchip.microcontroller.int8.model import Int8Model
    from onchip.microcontroller.result.microcontroller_whole import States
    from onchip.microcontroller.rows.makers import RowModel
    from onchip.microcontroller.rows.planning import RowPlan
    from onchip.microcontroller.segments import SegmentOptions
    from onchip.network import Network
    from onchip.plans import Plan

__all__ = ["RowPlans", "planned_by_method"]

SECONDS = 60.0
"""The time for the order of rows and their addresses, where a network is so large that it matters."""

NEAR = 1.10
"""Rows are planned in full where a first plan takes at most so many times the bytes of the chains."""

FIRST_MOVES = 40
"""States that the search for a first plan opens."""


@dataclass
class RowPlans:
    """Plans by rows of one network that are known, by how its input comes and which kernels are shared."""

    found: dict[tuple[bool, bool, frozenset[str]], tuple[RowModel, RowPlan, list[int]]] = field(
        default_factory=dict
    )

    def of(
        self, model: Int8Model, shared: Collection[str], options: SegmentOptions, most: int | None
    ) -> tuple[RowModel, RowPlan, list[int]] | None:
        """Return the rows of a network, their plan, and their kernels' workspaces.

        None where a first plan takes many more bytes than `most`. Raises `ModelError` where it has no rows.
        """
        held = options.input == "held"
        shrink = options.objective != "free"  # which costs no instructions
        key = held, shrink, frozenset(shared)
        if key not in self.found:
            rows = row_model(model, kernels=True, held=held)
            rows = replace(rows, graph=rows.graph.held() if held else rows.graph.by_rows())
            if most is not None and _first(rows, shared) > most * NEAR:
                return None
            limits = Limits.of(options) if options.time_limit is not None else NO_LIMITS.patient(SECONDS)
            self.found[key] = (rows, *planned_rows(rows, shared, limits, shrink=shrink))
        return self.found[key]


def _first(rows: RowModel, shared: Collection[str]) -> int:
    """Return the bytes of a plan that is found soon."""
    order = search(rows.graph, share=False, most_states=0, most_moves=FIRST_MOVES)
    spaces = row_spaces(rows, shared, least=True)
    found = place(
        rows.graph, order.schedule, outputs=rows.outputs, alignment=ALIGNMENT, spaces=spaces, tighten=False
    )
    return found.bytes


def planned_by_method(
    model: Int8Model,
    network: Network,
    ram_bytes: int,
    options: SegmentOptions,
    states: States,
    shared: Collection[str],
    known: RowPlans,
) -> MicrocontrollerPlan:
    """Return the plan of a network by `options.method` within so many bytes of RAM.

    Raises `Infeasible`, `NeedsTraffic`, or `ModelError` where the method does not apply.
    """
    if options.method == "chains":
        return planned_for(network, ram_bytes, options, states)
    if options.method == "rows":
        return MicrocontrollerPlan(_by_rows(model, ram_bytes, options, shared, known, None), None)
    refused: Infeasible | NeedsTraffic | ModelError | None = None
    chains = None
    try:
        chains = planned_for(network, ram_bytes, options, states)
    except (Infeasible, NeedsTraffic, ModelError) as no:
        refused = no
    most = chains.plan.result.extent_bytes if chains is not None else getattr(refused, "needs", None)
    try:
        rows = _by_rows(model, ram_bytes, options, shared, known, most)
    except ModelError:  # it has no rows
        rows = None
    except Infeasible as no:
        if refused is None or isinstance(refused, ModelError) or no.needs < refused.needs:
            refused = no
        rows = None
    if rows is not None and (chains is None or rows.result.extent_bytes < chains.plan.result.extent_bytes):
        return MicrocontrollerPlan(rows, None)
    if chains is not None:
        return chains
    assert refused is not None
    raise refused


def _by_rows(
    model: Int8Model,
    ram_bytes: int,
    options: SegmentOptions,
    shared: Collection[str],
    known: RowPlans,
    most: int | None,
) -> Plan:
    found = known.of(model, shared, options, most)
    if found is None:
        raise ModelError("takes fewer bytes in chains", where=model.name)
    rows, plan, sizes = found
    made = plan_of_rows(rows, plan, sizes, shared=shared)
    needs = made.result.extent_bytes
    if needs > ram_bytes:
        raise _too_little(rows, plan, needs, ram_bytes)
    return made


def _too_little(rows: RowModel, found: RowPlan, needs: int, has: int) -> Infeasible:
    """Return the error that so many bytes are too few; it names the step that needs the most."""
    schedule = found.placed.schedule
    bytes_ = profile(rows.graph, schedule, share=False)
    peak = max(bytes_.index(max(bytes_)) - 1, 0)
    alive: dict[int, int] = {}
    for life in lives(rows.graph, schedule):
        if life.made <= peak <= life.read:
            alive[life.operator] = alive.get(life.operator, 0) + life.bytes
    short = short_names(op.name for op in rows.graph.operators)
    return Infeasible(
        needs=needs,
        has=has,
        operator=rows.graph.operators[schedule[peak]].name,
        tensors=tuple((f"rows of {short[rows.graph.operators[i].name]}", n) for i, n in alive.items()),
    )
