"""A plan made again: the same network, planner and options on another budget."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import fields, replace
from pathlib import Path

from onchip import api
from onchip.base import guard
from onchip.base.errors import InputError, NegativeAnswer, UsageError
from onchip.comparison.what_if import what_if as over_budgets
from onchip.machines.chip import RATES, Chip, Rates, builtin_chips, load_chip
from onchip.network import Network
from onchip.network.repeats import folded
from onchip.planners import registry
from onchip.planners.limits import Limits
from onchip.planners.protocol import FiguresOnly
from onchip.plans import Plan
from onchip.readers import ReadOptions, Source
from onchip.report.what_if import WhatIf

__all__ = ["network_at", "replanner", "session_in_turn", "source_at", "what_if"]


def what_if(
    plan: Plan,
    *,
    model: str | Path | None = None,
    chip: str | Path | Chip | None = None,
    budgets: Sequence[int] | None = None,
    time_limit: float | None = None,
    progress: Callable[[str], None] | None = None,
) -> WhatIf:
    """Return DRAM bytes of a plan's network for other budgets in bytes, each a plan of its own.

    `model` is the model's current path, if it has moved; `chip` is needed for a chip that is not built in;
    `time_limit` are the seconds for each plan. Raises `UsageError` where the model or the chip is not known,
    `InputError` when the model has changed.
    """
    return over_budgets(plan, replanner(plan, model, chip, time_limit), budgets, progress, seconds=time_limit)


def replanner(
    plan: Plan,
    model: str | Path | None = None,
    chip: str | Path | Chip | None = None,
    time_limit: float | None = None,
) -> Callable[[int], Plan]:
    """Return the function that makes the plan for another budget; see `what_if`."""
    source, on = _source(plan, model), _chip(plan, chip)
    network = source if isinstance(source, Network) else source.network
    name = str(plan.options.get("planner", "placement"))
    planner = registry.find(name)
    if planner is None or not planner.anywhere:
        raise UsageError(f"plans by {name} cannot be made again for another budget", item="--what-if")
    if plan.pins or plan.state or plan.caches:
        raise UsageError("what is pinned or handed on has addresses in this budget", item="--what-if")
    options = planner.options_of(plan)

    def again(budget: int) -> Plan:
        limits = replace(Limits.of(options), time_limit=guard.left(time_limit))
        try:
            return planner.solve(network, on, budget, options, limits)
        except FiguresOnly:
            raise UsageError("what this fuser finds is no plan", item="--what-if") from None

    return again


def network_at(plan: Plan, name: str, length: int) -> Network:
    """Return the network of a plan with another size of the dimension `name`, as its planner saw it.

    Raises `InputError` where the model is missing or has changed.
    """
    network = source_at(plan, name, length).network
    resident = plan.options.get("weights") == "resident" and plan.chip.weight_scratchpad_bytes is None
    return network.with_resident_weights() if resident else network


def source_at(plan: Plan, name: str, length: int) -> Source:
    """Return the model of a plan with another size of the dimension `name`. Raises as `network_at` does."""
    from onchip.readers.reference import check_named
    from onchip.run.source import read_options

    how = read_options(plan)
    others = [part for part in how.dims.split(",") if part and part.rpartition("=")[0].strip() != name]
    check_named(plan.network.source)
    given = {f.name: v for f in fields(how) if (v := getattr(how, f.name)) and f.name != "dims"}
    source = api.load(plan.network.source, **given, dims=",".join([*others, f"{name}={length}"]))
    if plan.network.sha256 != source.network.sha256:
        raise InputError("the model changed since it was planned", where=plan.network.source)
    return source


def session_in_turn(path: Path, steps: int | None = None) -> Iterator[tuple[Plan, Source]]:
    """Yield the plans of a session's file with their models, in the order in which they are executed.

    `steps` are the steps behind the prompt (None: all). Raises `PlanFormatError` for a file that is none.
    """
    from onchip.by_length.judge import read_session, row_plan
    from onchip.by_length.session import new_rows
    from onchip.by_length.stretch import at_network
    from onchip.run.source import read_options

    _, prompt, table = read_session(path)
    given = {f.name: v for f in fields(ReadOptions) if (v := getattr(read_options(prompt), f.name))}
    yield prompt, api.load(prompt.network.source, **given)
    length, name, done = table["from"], table["dimension"], 0
    while length <= table["to"] and (steps is None or done < steps):
        row = row_plan(table, path, length)
        plan = at_network(row, network_at(row, name, length))
        if plan is None:
            raise NegativeAnswer(f"{path}: the plan of {name} {length:,} is not legal there")
        own = {**plan.options, "dims": source_at(row, name, length).options.dims}
        yield replace(plan, options=own), source_at(row, name, length)
        length, done = length + new_rows(plan), done + 1


def _source(plan: Plan, model: str | Path | None) -> Source | Network:
    """Return the model read again; the plan's own network where it names no model."""
    from onchip.readers.reference import check_named
    from onchip.run.source import read_options

    named = str(model or plan.network.source)
    if not named or (model is None and named.endswith(".json")):
        if plan.options.get("weights") == "resident" or any(t.patches for t in plan.network.tensors):
            raise UsageError("the network of this plan is not the one that was read: name it with --model")
        return folded(plan.network).network
    if model is None:
        check_named(named)
    how = read_options(plan)
    source = api.load(named, **{f.name: v for f in fields(how) if (v := getattr(how, f.name))})
    if plan.network.sha256 and source.network.sha256 and plan.network.sha256 != source.network.sha256:
        raise InputError("the model changed since it was planned", where=named)
    return source


def _chip(plan: Plan, chip: str | Path | Chip | None) -> Chip:
    if isinstance(chip, Chip):
        return chip
    if chip is None and all(known.name != plan.chip.name for known in builtin_chips()):
        raise UsageError("is no built-in chip: name its file with --chip", where=plan.chip.name)
    on = load_chip(plan.chip.name if chip is None else chip)
    if (on.name, on.alignment_bytes) != (plan.chip.name, plan.chip.alignment_bytes):
        raise UsageError(f"the plan is for chip {plan.chip.name}, not {on.name}", item="--chip")
    if on.memories and not plan.chip.memories:  # tiles in one of them: its rates, and those of DRAM's part
        rates = Rates(**{key: getattr(plan.chip, key) for key in RATES})
        return replace(on, memories=(), scratchpad_bytes=plan.budget, rates=rates)
    return on
