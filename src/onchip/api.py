"""The commands in Python: load, chip, plan, fuse, branches, corun, mcu, compare. Plans run themselves."""

from __future__ import annotations

import operator
from collections.abc import Callable, Sequence
from dataclasses import fields, replace
from math import inf
from pathlib import Path
from typing import TYPE_CHECKING, Any

import onchip.mcu  # noqa: F401  here: `onchip.mcu` is a verb beside its package
from onchip.board import load_board
from onchip.branches.options import BranchOptions  # here: `onchip.branches` is a verb beside its package
from onchip.chip import Chip, load_chip
from onchip.corun.request import (
    CorunOptions,
    workload_of,
)  # here: `onchip.corun` is a verb beside its package
from onchip.errors import Infeasible, UsageError
from onchip.network import Network
from onchip.plan import Plan as PlanProgram
from onchip.plan import Run, read_plan
from onchip.planned import Plan
from onchip.units import MAX_BYTES, parse_bytes

if TYPE_CHECKING:
    from onchip import placement
    from onchip.board import Board
    from onchip.branched import Branched
    from onchip.comparison import Comparison
    from onchip.corun.profile import Profile
    from onchip.corun.soc import SoC
    from onchip.corunned import Corunned
    from onchip.fused import Fused
    from onchip.mcu.model import Int8Model
    from onchip.microcontroller import Microcontroller
    from onchip.readers import Source

__all__ = ["Plan", "branches", "chip", "compare", "corun", "fuse", "load", "mcu", "plan", "read"]

CONTEXT_SECONDS = 10.0
"""At most this long is spent on finding the smallest budget without traffic, once the plan is made."""

Progress = Callable[[str], None]
"""Called now and then with one line that says how far a long search is."""


def load(model: str | Path, **options: Any) -> Source:
    """Read a network: `zoo:NAME`, an `.onnx` or `.tflite` file, or a network as `.json`.

    `options` are the fields of `ReadOptions` (granularity, dtype, dims, ...). The result has the `network`
    that planners see. Raises `ModelError` naming the file, the node and the reason.
    """
    from onchip.readers import ReadOptions
    from onchip.readers import load as read_model

    return read_model(model, _options(ReadOptions, options))


def chip(name_or_path: str | Path = "generic") -> Chip:
    """A built-in chip by name, or one from a TOML file by path."""
    return load_chip(name_or_path)


def read(path: str | Path) -> Plan:
    """Read a plan file, JSON or text."""
    return Plan.of(read_plan(path))


def plan(
    model: str | Path | Source | Network,
    chip: str | Path | Chip = "generic",
    budget: str | int | None = None,
    *,
    progress: Progress | None = None,
    **options: Any,
) -> Plan:
    """Plan a network onto a chip's scratchpad, with the least traffic to DRAM.

    `budget` is bytes, a size like "512KiB", or "MR", "MH", "MP" (the least any plan can have, the middle, and
    the least peak of any order); without it, the chip's own scratchpad, or for the objective `peak` what it
    takes. `options` are the fields of
    `ReadOptions` (when `model` is to be read) and `PlacementOptions`.

    Raises `Infeasible` naming the operator that does not fit, `ModelError`, `ChipError` or `UsageError`.
    """
    from onchip import placement

    model, options = _read_if_needed(model, options)
    placing = _options(placement.PlacementOptions, options)
    network = _network(model)
    on = chip if isinstance(chip, Chip) else load_chip(chip)
    as_it_takes = budget is None and placing.objective == "peak" and on.scratchpad_bytes is None
    bytes_ = None if as_it_takes else resolve_budget(network, on, budget, placing, progress)
    planned = placement.plan(network, on, bytes_, placing, progress=_lines(progress))
    context = _context(planned, network, on, placing, progress)
    return _recorded(planned, model, **context)


def fuse(
    model: str | Path | Source | Network,
    chip: str | Path | Chip = "generic",
    budget: str | int | None = None,
    *,
    progress: Progress | None = None,
    **options: Any,
) -> Fused:
    """Decide which operators of a network run as fused, tiled groups, with the fewest bytes to and from DRAM.

    `budget` is bytes or a size like "512KiB"; without it, the chip's own scratchpad. `options` are the fields
    of `ReadOptions` (when `model` is to be read: `batch` is one; the elements of a zoo network are the chip's
    unless `dtype` says otherwise) and `FusionOptions`.

    >>> import onchip
    >>> made = onchip.fuse("zoo:squeezenet1_0", "optimus", batch=4)
    >>> made.status, made.plan.check().dram_bytes == made.dram_bytes < made.baselines["none"]
    ('optimal', True)

    Raises `Infeasible` naming the operator that fits in no way, `ModelError`, `ChipError` or `UsageError`.
    """
    from onchip.fused import fused_of
    from onchip.fusion.fuse import fuse as fuse_network
    from onchip.fusion.options import FusionOptions

    on = chip if isinstance(chip, Chip) else load_chip(chip)
    model, options = _read_if_needed(model, _as_the_chip(model, on, options))
    fusing = _options(FusionOptions, options)
    bytes_ = _own_budget(on, budget, "fusion")
    made = fuse_network(_network(model), on, bytes_, fusing, progress=_counts(progress))
    plan = None if made.plan is None else _recorded(made.plan, model)
    return fused_of(made, on.name, plan, _cannot_run(model, plan))


def branches(
    model: str | Path | Source | Network,
    chip: str | Path | Chip = "exynos-npu",
    budget: str | int | None = None,
    *,
    progress: Progress | None = None,
    **options: Any,
) -> Branched:
    """Find a network's modules of branches and keep their feature maps on chip, by the simple method.

    `budget` is bytes or a size like "512KiB"; without it, the chip's own scratchpad. `options` are the fields
    of `ReadOptions` (when `model` is to be read; the elements of a zoo network are the chip's unless `dtype`
    says otherwise) and `BranchOptions`. Layers outside modules are streamed. A network without any module has
    a plan, too, and a table without rows. Source: Kim et al., A Simple Method, Algorithms 1 to 6.

    >>> import onchip
    >>> made = onchip.branches("zoo:inception_v3")
    >>> len(made.rows), made.total.naive_reads, made.total.reads, made.total.writes
    (11, 100, 1, 3)

    Raises `Infeasible` naming the operator that fits in no way, `ModelError`, `ChipError` or `UsageError`.
    """
    from onchip.branched import branched_of
    from onchip.branches.plan import plan_branches

    on = chip if isinstance(chip, Chip) else load_chip(chip)
    model, options = _read_if_needed(model, _as_the_chip(model, on, options))
    branching = _options(BranchOptions, options)
    network = _network(model)
    bytes_ = _own_budget(on, budget, "branches")
    made = plan_branches(network, on, bytes_, branching, progress=progress)

    def again(within: int) -> PlanProgram | None:
        try:
            return plan_branches(network, on, within, branching).plan
        except Infeasible:
            return None

    return branched_of(made, on, _recorded(made.plan, model), again)


def corun(
    models: Sequence[str | Path | Source | Network | Profile],
    soc: str | Path | SoC = "xavier-agx",
    objective: str = "latency",
    contention: str | None = None,
    *,
    progress: Progress | None = None,
    **options: Any,
) -> Corunned:
    """Schedule several networks at once on the processing units of one SoC that share its memory.

    A model is what `load` takes, a network, or a `Profile` or its file; the same may stand there twice.
    `objective` is `latency` (of the slowest network), `throughput` (frames per second) or `rates` (sum of
    1 / latency); `contention` a set of the SoC's constants (None: the SoC's own choice, `light` for the
    built-in boards). `options` are the fields of `ReadOptions`, `CorunOptions` and `SolveOptions`. GoogleNet
    from the zoo on xavier-agx has the profile that was measured; others are synthetic and say so. Source:
    Dagli and Belviranli, Shared Memory-contention-aware Concurrent DNN Execution (HaX-CoNN).

    >>> import onchip
    >>> made = onchip.corun(["zoo:googlenet", "zoo:googlenet"])
    >>> made.status, made.makespan_ms < 3.598 < made.baselines["gpu alone"]
    ('optimal', True)

    Raises `ProfileError`, `ChipError`, `ModelError` or `UsageError`.
    """
    from onchip.corun.soc import SoC
    from onchip.corun.soc_file import load_soc
    from onchip.corun.solution import parse_objective
    from onchip.corun.solve import SolveOptions, solve
    from onchip.corun_profiles import Profiles
    from onchip.corunned import corunned_of
    from onchip.readers import ReadOptions

    if isinstance(models, str | Path) or not models:
        raise UsageError("expected a list of networks", item="models")
    aim = parse_objective(objective)
    kinds = {kind: {f.name for f in fields(kind)} for kind in (ReadOptions, CorunOptions, SolveOptions)}
    options["contention"] = contention
    unknown = sorted(set(options).difference(*kinds.values()))
    if unknown:
        known = ", ".join(name for names in kinds.values() for name in sorted(names))
        raise UsageError(f"no such option; known: {known}", item=unknown[0])
    reading, asked, solving = ({k: v for k, v in options.items() if k in names} for names in kinds.values())
    on = soc if isinstance(soc, SoC) else load_soc(soc)
    how = CorunOptions(**asked)
    named = [str(model) for model in models if isinstance(model, str | Path)]
    source = Profiles.asked(on, named, how.profile, how.most_groups, reading)
    workload = workload_of([source.of(model, progress) for model in models], on, how)
    if progress is not None:
        progress("searching schedules")
    how_hard = SolveOptions(**solving)
    if how_hard.time_limit is not None and not 0 <= how_hard.time_limit < inf:
        raise UsageError(f"{how_hard.time_limit} is no number of seconds", item="--time-limit")
    for name in ("tries", "nodes", "switches", "seed"):
        value = getattr(how_hard, name)
        if value is not None and value < 0:
            raise UsageError(f"{value} is below 0", item=f"--{name}")
    made = solve(workload, aim, how_hard)
    return corunned_of(made, on.default_contention if contention is None else contention)


def mcu(
    model: str | Path | Int8Model,
    board: str | Path | Board = "nucleo-f411re",
    ram: str | int | None = None,
    *,
    plan: str | Path | PlanProgram | None = None,
    run: bool = False,
    runs: int = 3,
    progress: Progress | None = None,
    **options: Any,
) -> Microcontroller:
    """Plan an int8 network onto a microcontroller and write its C; run it on the emulated core if asked to.

    `model` is a `.tflite` file, `made:NAME` (a network made from a seed), or one read already. `ram` is bytes
    or a size like "24KiB", stack and all; without it, the board's. `plan` is a plan for this network, or its
    file, instead of one made here. `run` builds the program, runs it on `runs` random inputs behind a guard
    and compares every byte. `options` are the fields of `SegmentOptions`. Without a cross compiler the
    figures are those of the plan alone.

    Raises `Infeasible` naming the layer that does not fit, `ModelError`, `ChipError`, `UsageError`, and with
    `run` `MissingTool` or `EmulationFailed`. What a board lacks for the linked program is in the result.
    """
    from onchip.board import Board
    from onchip.mcu.load import int8_model
    from onchip.mcu.network import network_of
    from onchip.mcu.project import sources_of
    from onchip.microcontroller_build import built
    from onchip.segments import SegmentOptions
    from onchip.segments import plan as plan_segments

    planning = _options(SegmentOptions, options)
    on = board if isinstance(board, Board) else load_board(board)
    if ram is not None:
        on = replace(on, ram_bytes=_sized(ram))
    if runs < 1:
        raise UsageError("at least 1", item="runs")
    read_model = int8_model(model) if isinstance(model, str | Path) else model
    if progress is not None:
        progress("planning")

    def build(program: PlanProgram) -> Microcontroller:
        certified = Plan.of(program)
        sources = sources_of(certified, read_model)
        if progress is not None:
            progress("building and running" if run else "building")
        return built(read_model, on, certified, sources, runs=runs if run else 0)

    if plan is not None:
        given = Plan.of(read_plan(plan) if isinstance(plan, str | Path) else plan)
        given.check()
        return build(given)
    network = network_of(read_model)
    made = build(plan_segments(network, on.ram_bytes, planning))
    beside = made.ram_bytes - made.arena_bytes
    if any(memory == "RAM" for memory, *_ in made.short) and 0 < beside < on.ram_bytes:
        # The stack and other statics are known now: a plan that leaves them their place, if there is one.
        try:
            return build(plan_segments(network, on.ram_bytes - beside, planning))
        except Infeasible:
            return made
    return made


def _network(model: Source | Network) -> Network:
    """What planners see of a model."""
    return model if isinstance(model, Network) else model.network


def _recorded(plan: PlanProgram, model: Source | Network, **more: int) -> Plan:
    """The plan with its verbs, and with how its model was read among its options, and `more`."""
    how = {} if isinstance(model, Network) else how_read(model.options)
    return Plan.of(replace(plan, options={**how, **plan.options, **more}))


def _own_budget(on: Chip, budget: str | int | None, purpose: str) -> int:
    """A budget that is a size, or without one the chip's scratchpad."""
    if budget is None:
        return int(on.require("scratchpad_bytes", f"{purpose} without --budget"))
    return _sized(budget)


def _as_the_chip(model: object, on: Chip, options: dict[str, Any]) -> dict[str, Any]:
    """The options, with the chip's elements for a zoo network unless they say which."""
    zoo = isinstance(model, str) and model.startswith("zoo:")
    if zoo and options.get("dtype") is None and on.element in ("int8", "int16", "float32"):
        return {
            **options,
            "dtype": "file" if on.element == "float32" else on.element,
        }  # the zoo's own: float32
    return options


def _cannot_run(model: Source | Network, plan: Plan | None) -> str:
    """Why the executor refuses a fused plan that was proved; empty where it does not."""
    from onchip.readers.source import Executable, Source, TfliteExecutable

    if not isinstance(model, Source) or plan is None or not plan.groups:
        return ""
    if isinstance(model.executable, TfliteExecutable):
        return "the plan is proved, but onchip run cannot execute .tflite models in tiles yet"
    if isinstance(model.executable, Executable):
        tiled = {name for group in plan.groups for name in group.operators}
        for op in plan.network.operators:
            matrix = op.geometry is not None and op.geometry.kind == "fully_connected" and op.name in tiled
            shape = model.executable.shape[op.outputs[0]] if matrix else ()
            if len(shape) > 3 or (len(shape) == 3 and shape[0] != 1):
                return (
                    "the plan is proved, but onchip run cannot execute matrices of"
                    f" {' x '.join(map(str, shape))} in tiles yet (operator {op.name})"
                )
    return ""


def compare(
    model: str | Path | Source | Network,
    chip: str | Path | Chip = "generic",
    budget: str | int | None = None,
    *,
    progress: Progress | None = None,
    **options: Any,
) -> Comparison:
    """Plan a network in several ways and set the figures side by side: strategies, and what others do.

    Arguments as in `plan`; `options` are the fields of `ReadOptions` and `CompareOptions` (`strategies`,
    `schemes`, `weights`, `time_limit`, ...). Every row with a plan holds it, certified.

    >>> import onchip
    >>> rows = onchip.compare("zoo:resnet50", budget="MR", schemes="given-belady").rows
    >>> [(row.scheme, row.status, row.traffic_bytes > 0) for row in rows]
    [('exact', 'optimal', False), ('given-belady', 'feasible', True)]

    Raises `Infeasible` when an operator does not fit, `ModelError`, `ChipError` or `UsageError`.
    """
    from onchip import comparison, placement

    model, options = _read_if_needed(model, options)
    asked = _options(comparison.CompareOptions, options)
    network = _network(model)
    on = chip if isinstance(chip, Chip) else load_chip(chip)
    sizing = placement.PlacementOptions(
        weights=asked.weights, time_limit=asked.time_limit, memory_limit=asked.memory_limit
    )
    return comparison.compare(
        network, on, resolve_budget(network, on, budget, sizing, progress), asked, progress
    )


def _read_if_needed(
    model: str | Path | Source | Network, options: dict[str, Any]
) -> tuple[Source | Network, dict[str, Any]]:
    """The model, read if it is a path, and the options that are not the reader's."""
    from onchip.readers import ReadOptions, Source

    read_keys = {f.name for f in fields(ReadOptions)}
    reading = {k: v for k, v in options.items() if k in read_keys}
    if isinstance(model, str | Path):
        model = load(model, **reading)
    elif not isinstance(model, Source | Network):
        raise UsageError(f"expected a path, a Source or a Network, not {type(model).__name__}", item="model")
    elif reading:
        raise UsageError(f"{', '.join(reading)}: the model has been read already", item="options")
    return model, {k: v for k, v in options.items() if k not in read_keys}


def _context(
    planned: PlanProgram, network: Network, on: Chip, placing: Any, progress: Progress | None
) -> dict[str, int]:
    """Budgets to read the plan against: the least of any plan, and the least without traffic."""
    from onchip import placement

    problem = placement.Problem.of(planned.network, on.alignment_bytes, in_place=placing.in_place)
    if placing.in_place and placing.order != "free":  # then what an operator needs depends on the order
        ran = (step.operator for step in planned.program if isinstance(step, Run))
        problem = problem.in_order(planned.network.operator_id[name] for name in ran)
    found = {"mr_bytes": problem.minimum_budget}
    left = CONTEXT_SECONDS
    if placing.time_limit is not None:
        left = min(left, placing.time_limit - planned.result.seconds)
    if left > 0 and not (placing.pin or placing.state):
        limits = placement.Limits(left, placing.memory_limit, _lines(progress))
        zero = placement.zero_traffic(network, on, placing, limits)
        found["mp_bytes"] = zero.at_least
        if zero.budget is not None:
            found["zero_traffic_bytes"] = zero.budget
    return found


def how_read(options: Any) -> dict[str, Any]:
    """What a plan records of the reader's options, so that `run` can read the same network again."""
    return {f.name: v for f in fields(options) if (v := getattr(options, f.name)) not in (None, "", False)}


def resolve_budget(
    network: Network,
    on: Chip,
    budget: str | int | None,
    placing: Any,
    progress: Progress | None = None,
) -> int:
    """The budget in bytes; see `plan`."""
    if budget is None:
        return int(on.require("scratchpad_bytes", "a plan without --budget (a size, MR, MH or MP)"))
    name = budget.strip().upper() if isinstance(budget, str) else ""
    return _sized(_named(network, on, name, placing, progress) if name in ("MR", "MH", "MP") else budget)


def _sized(budget: str | int) -> int:
    """A budget that is a size."""
    if isinstance(budget, str):
        bytes_ = parse_bytes(budget, option="--budget")
    elif type(budget) is bool or not hasattr(budget, "__index__"):
        raise UsageError(f"{budget!r} is no number of bytes", item="--budget")
    else:
        bytes_ = operator.index(budget)
    if not 0 < bytes_ <= MAX_BYTES:
        raise UsageError(f"{bytes_:,} is not from 1 byte to 1 TiB", item="--budget")
    return bytes_


def _named(network: Network, on: Chip, name: str, placing: Any, progress: Progress | None) -> int:
    """The bytes that MR, MH or MP stand for."""
    from onchip import placement

    network = placement.as_planned(network, on, placing)
    if name == "MR" and (placing.order == "free" or not placing.in_place):
        return placement.Problem.of(network, on.alignment_bytes, in_place=placing.in_place).minimum_budget
    limits = placement.Limits(placing.time_limit, placing.memory_limit, _lines(progress))
    named = placement.budgets(network, on, limits, in_place=placing.in_place, order=placing.order)
    return int(getattr(named, name.lower()))


def _counts(progress: Progress | None) -> Callable[[str, int], None] | None:
    """A fuser's progress as lines."""
    return None if progress is None else lambda what, count: progress(f"fusing: {count:,} {what}")


def _lines(progress: Progress | None) -> Callable[[placement.Progress], None] | None:
    """A search's progress as lines."""
    if progress is None:
        return None

    def say(now: placement.Progress) -> None:
        best = "none yet" if now.best is None else f"{now.best:,} B"
        progress(
            f"searching: {now.states:,} states, best {best}, at least {now.bound:,} B, {now.seconds:.0f} s"
        )

    return say


def _options(kind: type[Any], given: dict[str, Any]) -> Any:
    unknown = sorted(set(given) - {f.name for f in fields(kind)})
    if unknown:
        known = ", ".join(f.name for f in fields(kind))
        raise UsageError(f"no such option; known: {known}", item=unknown[0])
    return kind(**given)
