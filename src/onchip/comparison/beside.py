"""The simple method beside exact placement, on the modules of one network: `onchip branches --beside`.

Both use the same chip, sizes and modules (`onchip.planners.modules.region` defines what is counted). Exact
placement runs every operator whole, so it cannot plan a module that fits only when streamed; the rows report
that.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from onchip.base import guard
from onchip.base.errors import Infeasible
from onchip.base.interrupt import until_interrupted
from onchip.comparison.beside_rows import BesideRow, Zero
from onchip.machines.chip import Chip
from onchip.network import Network
from onchip.planners import placement
from onchip.planners.branches.sizes import Sizes
from onchip.planners.limits import Limits
from onchip.planners.modules.region import Region, regions
from onchip.planners.placement import PlacementOptions
from onchip.plans import Plan

__all__ = ["Beside", "BesideRow", "Zero", "beside", "exact_zero", "simple_zero"]

SCAN = 8
"""The smaller buffers to try after the bisection: the method's traffic need not fall with the buffer."""


@dataclass(frozen=True, slots=True)
class Beside:
    """Both methods on the modules of a network. `simple_seconds` planned the whole network, `exact_seconds`
    the modules. `complete` is false after Ctrl-C: a smallest buffer whose search had not finished is None."""

    network: str
    chip: str
    budget: int
    rules: str
    rows: tuple[BesideRow, ...]
    simple_seconds: float
    exact_seconds: float
    simple_zero: Zero | None
    exact_zero: Zero | None
    complete: bool

    def data(self) -> dict[str, Any]:
        """Return everything, for JSON."""
        return {
            "network": self.network,
            "chip": self.chip,
            "budget": self.budget,
            "rules": self.rules,
            "rows": [
                {**{k: getattr(r, k) for k in r.__slots__}, "modules": list(r.modules)} for r in self.rows
            ],
            "simple_seconds": self.simple_seconds,
            "exact_seconds": self.exact_seconds,
            "simple_zero": _zero_data(self.simple_zero),
            "exact_zero": _zero_data(self.exact_zero),
            "complete": self.complete,
            "not_searched": self.not_searched,
        }

    @property
    def not_searched(self) -> dict[str, str]:
        """The smallest buffers that are unknown because their search did not finish, with the reason."""
        zeros = {"simple_zero": self.simple_zero, "exact_zero": self.exact_zero}
        return {name: "interrupted" for name, zero in zeros.items() if zero is None}

    def __repr__(self) -> str:
        from onchip.report.grid import one_screen

        return one_screen(str(self))

    def __str__(self) -> str:
        from onchip.comparison.beside_table import table
        from onchip.report.grid import printed

        return printed(table(self))


def _zero_data(zero: Zero | None) -> dict[str, int | None] | None:
    if zero is None:
        return None
    return {"bytes": zero.bytes, "at_least": zero.at_least, "tried": zero.tried}


def beside(
    plan: Plan,
    chip: Chip,
    again: Callable[[int], Plan | None],
    *,
    time_limit: float | None = 60.0,
    progress: Callable[[str], None] | None = None,
) -> Beside:
    """Place the modules of `plan` exactly, and find the smallest buffer without traffic of both methods.

    `again` plans the same network by the simple method within other budgets, None where it cannot.
    `time_limit` is for each exact search, in seconds. On Ctrl-C the answer has the finished parts.
    """
    say = progress or (lambda _: None)
    sizes = Sizes(plan.network, chip)
    rows: list[BesideRow] = []
    simple: Zero | None = None
    exact: Zero | None = None
    with until_interrupted() as stopped:
        limits = Limits(time_limit, cancelled=stopped)
        try:
            for region in regions(plan, sizes.resident, lambda n: _least(n, chip) > plan.budget):
                say(f"exact placement of {region.modules[0]}")
                with guard.part(time_limit):
                    rows.append(_row(region, chip, plan.budget, limits))
                if stopped():  # a search caught the interruption
                    raise KeyboardInterrupt
            whole = regions(plan, sizes.resident)
            say("exact placement: the smallest buffer without traffic")
            with guard.part(time_limit):
                exact = exact_zero(whole, chip, limits)
            if stopped():
                raise KeyboardInterrupt
            say("the simple method: the smallest buffer without traffic")
            simple = simple_zero(again, chip, plan)
        except KeyboardInterrupt:
            pass
    return Beside(
        network=plan.network.name,
        chip=chip.name,
        budget=plan.budget,
        rules=str(plan.options.get("rules", "paper")),
        rows=tuple(rows),
        simple_seconds=plan.result.seconds,
        exact_seconds=sum(row.seconds for row in rows),
        simple_zero=simple,
        exact_zero=exact,
        complete=simple is not None,
    )


def _least(network: Network, chip: Chip) -> int:
    """Return the bytes without which some operator cannot run whole."""
    return placement.Problem.of(network, chip.alignment_bytes, in_place=True).minimum_budget


def _anew(limits: Limits) -> Limits:
    """Return the same limits for one more search, within the time left for its part of the work."""
    return limits.anew(guard.left(limits.time_limit))


def _row(region: Region, chip: Chip, budget: int, limits: Limits) -> BesideRow:
    options = PlacementOptions(in_place=True)
    modules, simple = region.modules, region.traffic_bytes
    count = len(region.network.operators)
    try:
        made = placement.plan(region.network, chip, budget, options, _anew(limits)).result
    except Infeasible as no:
        return BesideRow(modules, count, simple, "does not fit", None, None, None, no.needs, 0.0)
    copied = None
    if region.copied is region.network:
        copied = made.traffic_bytes
    elif _least(region.copied, chip) <= budget:
        copied = placement.plan(region.copied, chip, budget, options, _anew(limits)).result.traffic_bytes
    return BesideRow(
        modules,
        count,
        simple,
        made.status,
        made.traffic_bytes,
        made.lower_bound_bytes,
        copied,
        None,
        made.seconds,
        made.space,
    )


# -- the smallest buffer without traffic -----------------------------------------------------------------


def exact_zero(found: Sequence[Region], chip: Chip, limits: Limits) -> Zero:
    """Return the least bytes in which exact placement needs no traffic in any region.

    They are proved where `at_least` agrees.
    """
    options = PlacementOptions(in_place=True)
    answers = [placement.zero_traffic(r.held, chip, options, _anew(limits)) for r in found]
    at_least = max((a.at_least for a in answers), default=0)
    if not answers or any(a.budget is None for a in answers):
        return Zero(None, at_least)
    return Zero(max(a.budget or 0 for a in answers), at_least)


def simple_zero(again: Callable[[int], Plan | None], chip: Chip, plan: Plan, *, scan: int = SCAN) -> Zero:
    """Return the smallest buffer with which the simple method moves nothing between layers of the modules.

    It is found by bisection; then `scan` smaller buffers are tried, because less room may also do. It is None
    when no buffer does, as with a long connection between modules.
    """

    def nothing(budget: int) -> bool:
        made = again(budget)
        if made is None:
            return False
        sizes = Sizes(made.network, chip)
        return not any(r.strict_bytes for r in regions(made, sizes.resident))

    unit = chip.alignment_bytes
    network = plan.network
    most = sum(chip.round_up(t.bytes) for t in network.tensors)
    most += max((chip.round_up(op.workspace) for op in network.operators), default=0)
    high = plan.budget
    while not nothing(high):
        if high >= most:
            return Zero(None)
        high = min(2 * high, most)
    tried = 0
    low, found = 0, True
    while found:
        while low + unit < high:
            middle = (low + high) // 2 // unit * unit
            tried += 1
            low, high = (low, middle) if nothing(middle) else (middle, high)
        found = False
        for i in range(1, scan + 1):
            smaller = high * i // (scan + 1) // unit * unit
            tried += 1
            if 0 < smaller < high and nothing(smaller):
                low, high, found = max(0, high * (i - 1) // (scan + 1) // unit * unit), smaller, True
                break
    return Zero(high, 0, tried)
