"""One network, one budget, every planner and baseline side by side: what `onchip compare` answers."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

from onchip.base import guard
from onchip.base.errors import Infeasible, InputError, NegativeAnswer, UsageError
from onchip.base.interrupt import until_interrupted
from onchip.comparison import baselines
from onchip.comparison.baselines import DoesNotFit
from onchip.comparison.options import CompareOptions, other_planners
from onchip.comparison.row import Row
from onchip.machines.chip import Chip
from onchip.network import Network
from onchip.planners import placement, registry
from onchip.planners.limits import Limits, Progress
from onchip.planners.placement import PlacementOptions
from onchip.planners.placement.claim import space_of
from onchip.plans import Plan

__all__ = ["CompareOptions", "Comparison", "Row", "compare", "other_planners"]


@dataclass(frozen=True, slots=True)
class Comparison:
    """The rows in the chosen order: other planners, strategies, then baselines.

    `complete` is false after Ctrl-C. `bound` is the proved lower bound (bytes of traffic) of any plan within
    `budget` that keeps tensors whole, 0 when none is known. `limit_bytes` are the bytes that every plan of
    every planner moves: inputs in, outputs out and each weight once. `time_limit` are the seconds that a row
    had; None for no limit.
    """

    network: str
    chip: str
    budget: int
    weights: str
    bound: int
    limit_bytes: int
    rows: tuple[Row, ...]
    complete: bool
    time_limit: float | None = None

    def data(self) -> dict[str, Any]:
        """Return everything but the plans, for JSON."""
        own = {name: getattr(self, name) for name in self.__slots__ if name != "rows"}
        return {**own, "rows": [row.data() for row in self.rows]}

    def __getitem__(self, scheme: str) -> Row:
        """Return the row of that name; raises `KeyError` when there is none."""
        for row in self.rows:
            if row.scheme == scheme:
                return row
        raise KeyError(scheme)

    def __repr__(self) -> str:
        from onchip.report.grid import one_screen

        return one_screen(str(self))

    def __str__(self) -> str:
        from onchip.comparison.comparison_table import table
        from onchip.report.grid import printed

        return printed(table(self))


def compare(
    network: Network,
    chip: Chip,
    budget: int,
    options: CompareOptions,
    progress: Progress | None = None,
) -> Comparison:
    """Plan `network` within `budget` bytes with every chosen planner and baseline, each certified.

    Raises `Infeasible` when some operator does not fit whole and no planner that may tile it has a plan. On
    Ctrl-C the answer has the finished rows; before the first row `KeyboardInterrupt` passes through.
    """
    rows: list[Row] = []
    bound = 0
    planned = placement.as_planned(network, chip, PlacementOptions(weights=options.weights))
    problem = placement.Problem.of(planned, chip.alignment_bytes)
    missing: Infeasible | None = None
    try:
        space = space_of(planned, PlacementOptions(weights=options.weights))
        placement.refuse_if_infeasible(planned, problem, budget, space)
    except Infeasible as no:
        missing = no
        if not options.others:
            raise
    with until_interrupted() as stopped:
        try:
            for name in options.others:
                with guard.part(options.time_limit):
                    rows.append(_other(name, network, chip, budget, options, progress, stopped))
                if stopped():
                    raise KeyboardInterrupt
            for asked in options.asked:
                with guard.part(options.time_limit):
                    made = missing or _strategy(network, chip, budget, asked, progress, stopped)
                rows.append(_row(_name_of(asked), _title_of(asked), made))
                if asked.order == "free" and isinstance(made, Plan):
                    bound = max(bound, made.result.lower_bound_bytes)
                if stopped():
                    raise KeyboardInterrupt
            order, took = None, 0.0
            for name in options.baselines:
                scheme = baselines.SCHEMES[name]
                if missing:
                    rows.append(_row(name, scheme.title, missing))
                    continue
                if progress is not None:
                    progress(name)
                if scheme.order == "minpeak" and order is None:
                    found = placement.minimum_peak(
                        problem, limits=_limits(options, f"{name}: the least-peak order", progress, stopped)
                    )
                    order, took = found.order, found.seconds
                if stopped():
                    raise KeyboardInterrupt
                fixed = order if scheme.order == "minpeak" else None
                result = baselines.solve(
                    name, network, chip, budget, weights=options.weights, order=fixed, bound=bound
                )
                rows.append(_row(name, scheme.title, result, took if fixed is not None else 0.0))
        except KeyboardInterrupt:
            if not rows:
                raise
    if missing and all(row.plan is None for row in rows):
        raise missing
    asked_for = len(options.others) + len(options.asked) + len(options.baselines)
    best = min((r.dram_bytes for r in rows if r.dram_bytes is not None), default=0)
    return Comparison(
        network=network.name,
        chip=chip.name,
        budget=budget,
        weights=options.weights,
        bound=bound,
        limit_bytes=min((r.plan.limit_bytes for r in rows if r.plan is not None), default=0),
        rows=tuple(replace(r, reduction=1 - best / r.dram_bytes) if r.dram_bytes else r for r in rows),
        complete=len(rows) == asked_for and not stopped(),
        time_limit=options.time_limit,
    )


def _other(
    name: str,
    network: Network,
    chip: Chip,
    budget: int,
    options: CompareOptions,
    progress: Progress | None,
    stopped: Callable[[], bool],
) -> Row:
    """Return the row of a planner other than placement, with the reason where it has no plan."""
    planner = registry.find(name)
    assert planner is not None
    if progress is not None:
        progress(name)
    solve = planner.compared or planner.solve
    made: Plan | Infeasible | str
    try:
        limits = _limits(options, name, progress, stopped)
        made = solve(network, chip, budget, planner.options(), limits)
    except Infeasible as no:
        made = no
    except (InputError, UsageError, NegativeAnswer) as no:
        made = str(no)
    return _row(name, planner.title, made)


def _name_of(options: PlacementOptions) -> str:
    return options.strategy if options.order == "free" else f"{options.strategy}:{options.order}"


def _title_of(options: PlacementOptions) -> str:
    kept = "onchip plan --no-fuse: tensors whole"
    return kept if options.order == "free" else f"{kept}, {options.order} order"


def _strategy(
    network: Network,
    chip: Chip,
    budget: int,
    options: PlacementOptions,
    progress: Progress | None,
    stopped: Callable[[], bool],
) -> Plan:
    name = _name_of(options)
    if progress is not None:
        progress(name)
    return placement.plan(network, chip, budget, options, _limits(options, name, progress, stopped))


def _row(name: str, title: str, made: Plan | DoesNotFit | Infeasible | str, before: float = 0.0) -> Row:
    """Return a planner's answer as a row; `before` are seconds of work that several rows share."""
    if isinstance(made, Plan):
        r = made.result
        figures = (r.traffic_bytes, r.dram_bytes, r.peak_bytes, r.extent_bytes)
        return Row(name, title, r.status, *figures, None, r.seconds + before, None, made, gap=_gap(made))
    none = (None, None, None, None)
    if isinstance(made, str):
        return Row(name, title, "no plan", *none, None, before, None, None, made)
    seconds = made.seconds if isinstance(made, DoesNotFit) else 0.0
    return Row(name, title, "does not fit", *none, made.needs, seconds + before, None, None)


def _gap(plan: Plan) -> float:
    """Return the plan's largest possible excess of DRAM bytes, among the plans that its bound covers."""
    r = plan.result
    least = r.dram_lower_bound_bytes
    if least is None:
        least = r.dram_bytes - r.traffic_bytes + r.lower_bound_bytes
    return 0.0 if r.status == "optimal" or least <= 0 else r.dram_bytes / least - 1


def _limits(
    options: CompareOptions | PlacementOptions,
    name: str,
    progress: Progress | None,
    stopped: Callable[[], bool],
) -> Limits:
    """Return the limits of a row; its search reports progress under the row's name."""
    say = None if progress is None else lambda line: progress(f"{name}: {line}")
    return Limits.of(options, say, stopped)
