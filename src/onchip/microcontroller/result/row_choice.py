"""Plans by rows beside those of chains and whole tensors: the one with fewer bytes is taken."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from onchip.base.errors import Infeasible, ModelError, NeedsTraffic
from onchip.base.short_names import short_names
from onchip.microcontroller.int8.shapes import macs
from onchip.microcontroller.result.microcontroller_plan import MicrocontrollerPlan, planned_for
from onchip.microcontroller.row_plan import ALIGNMENT, plan_of_rows, planned_rows, row_spaces
from onchip.microcontroller.row_points import RowsAnew, points_of
from onchip.microcontroller.rows.addresses import place
from onchip.microcontroller.rows.law import lives, profile
from onchip.microcontroller.rows.of_model import row_model
from onchip.microcontroller.rows.search import search
from onchip.planners.limits import NO_LIMITS, Limits

if TYPE_CHECKING:
    from onchip.microcontroller.int8.model import Int8Model
    from onchip.microcontroller.result.microcontroller_whole import States
    from onchip.microcontroller.rows.makers import RowModel
    from onchip.microcontroller.segments import SegmentOptions
    from onchip.network import Network

__all__ = ["RowPlans", "planned_by_method", "rows_too_little"]

Key = tuple[str, frozenset[str], bool]
"""The form of the input, the layers that share kernels, and whether kernels may be slower to save bytes."""

SECONDS = 60.0
"""The time for the order of rows and their addresses, where a network is so large that it matters."""

NEAR = 1.10
"""Rows are planned in full where a first plan takes at most so many times the bytes of the chains."""

FIRST_MOVES = 40
"""States that the search for a first plan opens."""


@dataclass
class RowPlans:
    """Plans by rows of one network that are known, by how its input comes and which kernels are shared."""

    found: dict[Key, RowsAnew] = field(default_factory=dict)
    twice: dict[Key, tuple[RowsAnew, ...]] = field(default_factory=dict)
    quick: dict[Key, tuple[int, int]] = field(default_factory=dict)

    def once(
        self, model: Int8Model, shared: Collection[str], options: SegmentOptions, limits: Limits | None = None
    ) -> RowsAnew:
        """Return the plan that makes nothing twice. Raises `ModelError` where a network has no rows."""
        key = _key(shared, options)
        if key not in self.found:
            rows = _rows(model, options)
            plan, sizes = planned_rows(rows, shared, limits or _limits(options), shrink=key[2])
            self.found[key] = RowsAnew(rows, plan, tuple(sizes))
        return self.found[key]

    def below(
        self, model: Int8Model, shared: Collection[str], options: SegmentOptions, most: int | None
    ) -> RowsAnew | None:
        """Return the plan that makes nothing twice; None where it will hardly take fewer than `most`."""
        key = _key(shared, options)
        if most is not None and key not in self.found:
            if key not in self.quick:
                self.quick[key] = _first(_rows(model, options), shared)
            bound, first = self.quick[key]
            if bound >= most or first > most * NEAR:
                return None
        return self.once(model, shared, options)

    def anew(
        self, model: Int8Model, shared: Collection[str], options: SegmentOptions, limits: Limits | None = None
    ) -> tuple[RowsAnew, ...]:
        """Return plans that make something twice, from the least work to the fewest bytes."""
        key = _key(shared, options)
        if key not in self.twice:
            again = options.input == "again"
            limits = limits or Limits.of(options)
            self.twice[key] = points_of(
                _rows(model, options), shared, again=again, shrink=key[2], limits=limits
            )
        return self.twice[key]


def _key(shared: Collection[str], options: SegmentOptions) -> Key:
    return options.input, frozenset(shared), options.objective != "free"  # which costs no instructions


def _limits(options: SegmentOptions) -> Limits:
    return Limits.of(options) if options.time_limit is not None else NO_LIMITS.patient(SECONDS)


def _rows(model: Int8Model, options: SegmentOptions) -> RowModel:
    held = options.input == "held"
    rows = row_model(model, kernels=True, held=held)
    return replace(rows, graph=rows.graph.held() if held else rows.graph.by_rows())


def _first(rows: RowModel, shared: Collection[str]) -> tuple[int, int]:
    """Return the bound of a plan, and the bytes of one that is found soon."""
    order = search(rows.graph, share=False, most_states=0, most_moves=FIRST_MOVES)
    spaces = row_spaces(rows, shared, least=True)
    found = place(
        rows.graph, order.schedule, outputs=rows.outputs, alignment=ALIGNMENT, spaces=spaces, tighten=False
    )
    return order.bound, found.bytes


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

    Of several plans that fit it is the one with the least work and, of these, the fewest bytes; with the
    objective `least` it is the one with the fewest bytes. Raises `Infeasible`, `NeedsTraffic`, or
    `ModelError` where the method does not apply.
    """
    refused: Infeasible | NeedsTraffic | ModelError | None = None
    chains = None
    if options.method != "rows":
        try:
            chains = planned_for(network, ram_bytes, options, states)
        except (Infeasible, NeedsTraffic, ModelError) as no:
            if options.method == "chains":
                raise
            refused = no
    if options.method == "chains":
        assert chains is not None
        return chains
    most = chains.plan.result.extent_bytes if chains is not None else getattr(refused, "needs", None)
    plans = [] if chains is None else [chains]
    try:
        if options.method == "rows":
            once: RowsAnew | None = known.once(model, shared, options)
        else:
            once = known.below(model, shared, options, most)
        found = [] if once is None else [once]
        own = sum(macs(layer) for layer in model.layers)
        fits = [plan.plan.result.macs or 0 for plan in plans] + [
            x.macs for x in found if x.bytes <= ram_bytes
        ]
        if options.objective == "least" or (options.objective == "free" and min(fits, default=own + 1) > own):
            found += known.anew(model, shared, options)
        for one in found:
            if one.bytes <= ram_bytes:
                plan = plan_of_rows(one.rows, one.plan, one.sizes, shared=shared)
                if plan.result.extent_bytes <= ram_bytes:
                    plans.append(MicrocontrollerPlan(plan, None))
        if found and not plans:
            one = min(found, key=lambda x: x.bytes)
            needs = plan_of_rows(one.rows, one.plan, one.sizes, shared=shared).result.extent_bytes
            if refused is None or isinstance(refused, ModelError) or needs < refused.needs:
                refused = rows_too_little(one, needs, ram_bytes)
    except ModelError as no:  # it has no rows
        refused = refused or no
    if not plans:
        assert refused is not None
        raise refused
    if options.objective == "least":
        return min(plans, key=lambda p: (p.plan.result.extent_bytes, p.plan.result.macs or 0))
    return min(plans, key=lambda p: (p.plan.result.macs or 0, p.plan.result.extent_bytes))


def rows_too_little(found: RowsAnew, needs: int, has: int) -> Infeasible:
    """Return the error that so many bytes are too few; it names the step that needs the most."""
    rows, schedule = found.rows, found.plan.placed.schedule
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
