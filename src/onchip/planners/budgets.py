"""The names of budgets, and the budgets that a plan is compared with."""

from __future__ import annotations

import operator
import re
from dataclasses import replace
from typing import Any

from onchip.base import guard
from onchip.base.errors import ChipError, UsageError
from onchip.base.units import MAX_BYTES, parse_bytes
from onchip.machines.chip import Chip, Memory
from onchip.network import Network
from onchip.planners.limits import Limits, Progress
from onchip.plans import Plan, Run

__all__ = ["context_of", "memories_within", "own_budget", "resolve_budget", "sized"]

NAMES = ("MR", "MH", "MP")
"""The names of budgets."""

SECONDS_EACH = 1e-4
"""The fewest seconds for each operator that leave time for the comparison."""

CONTEXT_SECONDS = 10.0
"""The most seconds spent on finding the smallest budget without traffic, once the plan is made."""


def own_budget(on: Chip, budget: str | int | None, purpose: str) -> int:
    """Return a budget given as a size, or without one the chip's scratchpad."""
    if budget is None:
        return _own(on, purpose)
    if isinstance(budget, str) and budget.strip().upper() in NAMES:
        raise UsageError(f"{budget.strip()} is a name for `plan` and `compare`: give a size", item="--budget")
    return sized(budget)


def resolve_budget(
    network: Network,
    on: Chip,
    budget: str | int | None,
    placing: Any,
    progress: Progress | None = None,
) -> int:
    """Return the budget in bytes; see `plan`."""
    if budget is None:
        return _own(on, "a plan", " (or MR, the least in which every operator runs whole; MP or MH)")
    name = budget.strip().upper() if isinstance(budget, str) else ""
    if name.isalpha() and name not in NAMES:
        given = str(budget)[:40]
        raise UsageError(f"{given!r} is neither a size, as 512KiB, nor MR, MP or MH", item="--budget")
    return sized(_named(network, on, name, placing, progress) if name in NAMES else budget)


def _own(on: Chip, purpose: str, names: str = "") -> int:
    """Return the chip's scratchpad; `names` are words on what else a budget may be."""
    if on.scratchpad_bytes is None:
        unknown = ", which no document that its file names has" if "scratchpad_bytes" in on.unknown else ""
        raise ChipError(
            f"states no scratchpad_bytes{unknown}: {purpose} needs a budget, as in --budget 512KiB{names},"
            " or a --chip that states them (`onchip chips`)",
            where=f"chip {on.name}",
        )
    return on.scratchpad_bytes


def memories_within(on: Chip, budget: str | int | None) -> tuple[Memory, ...]:
    """Return a chip's memories, with the sizes of a budget like "sram=256KiB,psram=8MiB"."""
    if budget is None:
        return on.memories
    sizes: dict[str, int] = {}
    names = [m.name for m in on.memories]
    for part in re.split(r",(?=\s*[A-Za-z])", str(budget)):
        name, equals, size = part.strip().partition("=")
        if not equals or name not in names or name in sizes:
            raise UsageError(
                f"{str(budget)[:60]!r}: chip {on.name} has several memories; give a size for one or more, as"
                f" {','.join(f'{m}=SIZE' for m in names)}",
                item="--budget",
            )
        sizes[name] = sized(size)
    return tuple(replace(m, bytes=sizes.get(m.name, m.bytes)) for m in on.memories)


def sized(budget: str | int, option: str = "--budget") -> int:
    """Return a budget given as a size; errors name the `option`."""
    if isinstance(budget, str):
        bytes_ = parse_bytes(budget, option=option)
    elif type(budget) is bool or not hasattr(budget, "__index__"):
        raise UsageError(f"{budget!r} is no number of bytes", item=option)
    else:
        bytes_ = operator.index(budget)
    if not 0 < bytes_ <= MAX_BYTES:
        raise UsageError(f"{bytes_:,} is not from 1 byte to 1 TiB", item=option)
    return bytes_


def _named(network: Network, on: Chip, name: str, placing: Any, progress: Progress | None) -> int:
    """Return the bytes of MR, MH or MP."""
    from onchip.planners import placement

    network = placement.as_planned(network, on, placing)
    if name == "MR" and (placing.order == "free" or not placing.in_place):
        return placement.Problem.of(network, on.alignment_bytes, in_place=placing.in_place).minimum_budget
    limits = Limits.of(placing, progress)
    named = placement.budgets(network, on, limits, in_place=placing.in_place, order=placing.order)
    return int(getattr(named, name.lower()))


def context_of(
    planned: Plan, network: Network, on: Chip, placing: Any, progress: Progress | None
) -> dict[str, int]:
    """Return budgets to compare the plan with: the least of any plan, and the least without traffic."""
    from onchip.planners import placement

    if planned.caches:  # those budgets are of networks whose inputs are all loaded
        return {}
    problem = placement.Problem.of(planned.network, on.alignment_bytes, in_place=placing.in_place)
    if placing.in_place and placing.order != "free":  # then an operator's need depends on the order
        ran = (step.operator for step in planned.program if isinstance(step, Run))
        problem = problem.in_order(planned.network.operator_id[name] for name in ran)
    found = {"mr_bytes": problem.minimum_budget}
    left = CONTEXT_SECONDS
    if placing.time_limit is not None:
        # Half of the rest: the plan is still to be written.
        spare = min(guard.left(placing.time_limit) or 0.0, placing.time_limit - planned.result.seconds)
        left = min(left, spare / 2)
    if left > SECONDS_EACH * len(planned.network.operators) and not (placing.pin or placing.state):
        limits = replace(Limits.of(placing, progress), time_limit=left)
        zero = placement.zero_traffic(network, on, placing, limits)
        found["mp_bytes"] = zero.at_least
        if zero.budget is not None:
            found["zero_traffic_bytes"] = zero.budget
    return found
