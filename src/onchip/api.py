"""The commands in Python: load, chip, plan, fuse, branches, corun, mcu, compare, sweep."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import fields, replace
from math import inf
from pathlib import Path
from typing import TYPE_CHECKING, Any

from onchip.asked import as_the_chip, cannot_run, network_of, options_of, read_if_needed, recorded, taken
from onchip.at_run_time import refuse_no_list, workload
from onchip.base.errors import Infeasible, UsageError
from onchip.base.options import takes
from onchip.by_length.options import LengthOptions, SessionOptions
from onchip.comparison.options import CompareOptions
from onchip.machines.chip import Chip, load_chip
from onchip.methods.options import MethodOptions, PaperOptions
from onchip.multi_dnn.options import CorunOptions, SolveOptions
from onchip.network import Network
from onchip.on_microcontrollers import mcu, mcu_fit, mcu_several
from onchip.planners.branches.options import BranchOptions
from onchip.planners.budgets import own_budget, resolve_budget
from onchip.planners.fusion.options import FusionOptions
from onchip.planners.joint.options import JointOptions
from onchip.planners.limits import Limits, Progress
from onchip.planners.placement.options import PlacementOptions
from onchip.plans import Plan as PlanProgram
from onchip.plans import read_plan
from onchip.readers.source import ReadOptions
from onchip.results.planned import Plan
from onchip.sweeps.options import SweepOptions

if TYPE_CHECKING:
    from onchip.by_length.session import Session
    from onchip.by_length.table import Lengths
    from onchip.comparison.comparison import Comparison
    from onchip.machines.soc import SoC
    from onchip.multi_dnn.profile import Profile
    from onchip.multi_dnn.result.corunned import Corunned
    from onchip.readers import Source
    from onchip.results.branched import Branched
    from onchip.results.fused import Fused
    from onchip.sweeps.spec import Spec
    from onchip.sweeps.swept import Swept

__all__ = [
    "Plan",
    "branches",
    "chip",
    "compare",
    "corun",
    "fuse",
    "lengths",
    "load",
    "mcu",
    "mcu_fit",
    "mcu_several",
    "plan",
    "read",
    "sweep",
]


@takes(ReadOptions)
def load(model: str | Path, **options: Any) -> Source:
    """Read a network: `zoo:NAME`, an `.onnx` or `.tflite` file, or a network as `.json`.

    `options` are the fields of `ReadOptions` (granularity, dtype, dims, ...). The result has the `network`
    that planners see. Raises `ModelError` naming the file, the node and the reason.
    """
    from onchip.readers import load as read_model

    return read_model(model, options_of(ReadOptions, options))


def chip(name_or_path: str | Path = "generic") -> Chip:
    """Return a built-in chip by name, or one from a TOML file by path."""
    return load_chip(name_or_path)


def read(path: str | Path) -> Plan:
    """Read a plan file, JSON or text."""
    return Plan.of(read_plan(path))


@takes(MethodOptions, ReadOptions, PlacementOptions, JointOptions, PaperOptions)
def plan(
    model: str | Path | Source | Network,
    chip: str | Path | Chip = "generic",
    budget: str | int | None = None,
    *,
    progress: Progress | None = None,
    **options: Any,
) -> Plan:
    """Give the best plan of a network that a chip can run: the one that moves the fewest bytes.

    Operators run fused, in tiles, where that moves less than keeping tensors whole; `fuse` and `method` ask
    for one of both, or for a paper's method. `budget` is bytes, a size like "512KiB", or "MR" (the least in
    which every operator runs whole), "MP" (the least peak of any order: without spills and reloads no plan
    needs less) or "MH" (halfway between them); without it, the chip's own scratchpad, or for the objective
    `peak` what it takes. Of a chip with several memories it is "sram=256KiB,psram=8MiB", and those not named
    are as large as the chip says; tiles are then planned for one of them, `level`, and whole operators over
    all. `options` are the fields of `ReadOptions` (when `model` is to be read), `MethodOptions`,
    `PlacementOptions`, `JointOptions` and `PaperOptions`. What is to be said beside the plan, and is not in
    its file, stands in its `notes`.

    >>> import onchip
    >>> made = onchip.plan("zoo:squeezenet1_0", budget="64KiB")
    >>> made.result.status, made.check() == made.result
    ('optimal', True)

    Raises `Infeasible` naming the operator that does not fit, `ModelError`, `ChipError` or `UsageError`.
    """
    from onchip.methods import Question, answered

    model, options = read_if_needed(model, options)
    kinds = (MethodOptions, PlacementOptions, JointOptions, PaperOptions)
    method, placing, fusing, paper = (taken(kind, options) for kind in kinds)
    if options:
        known = ", ".join(f.name for kind in kinds for f in fields(kind))
        raise UsageError(f"no such option; known: {known}", item=min(options))
    on = chip if isinstance(chip, Chip) else load_chip(chip)
    asked = Question(
        network_of(model),
        on,
        budget,
        MethodOptions(**method),
        PlacementOptions(**placing),
        JointOptions(**fusing),
        PaperOptions(**paper),
    )
    found = answered(asked, progress)
    return recorded(found.plan, model, **found.context).noting(found.notes)


@takes(LengthOptions, ReadOptions, PlacementOptions, JointOptions)
def lengths(
    model: str | Path,
    chip: str | Path | Chip = "generic",
    budget: str | int | None = None,
    *,
    progress: Progress | None = None,
    **options: Any,
) -> Lengths:
    """Plan a network for every length of an open dimension, and find where the best plan changes.

    `model` is a file with a dimension that `length` names, as "past=1..2048"; `budget` is bytes or a size.
    One plan serves a row of lengths: the same instructions at the same addresses. That it is the best at each
    is proved from the ends of the row, or checked at every length; every row says which. With `fuse=True`
    operators may run fused, and every length is checked. `save` writes the table for a runtime, and the
    plans.

    Raises `Infeasible` where the first length has no plan, `ModelError`, `ChipError` or `UsageError`.
    """
    return _lengths(model, chip, budget, progress, options)[0]


@takes(SessionOptions, LengthOptions, ReadOptions, PlacementOptions, JointOptions)
def session(
    prompt: str | Path,
    step: str | Path,
    chip: str | Path | Chip = "generic",
    budget: str | int | None = None,
    *,
    progress: Progress | None = None,
    **options: Any,
) -> Session:
    """Plan a prompt and the steps behind it into one arena, with the caches on chip at one place.

    `prompt` makes the caches that `state` names, `step` appends to them; both are files. `length` names the
    step's open dimension and its lengths, the first of which is what the prompt leaves; `prompt_dims` are
    the prompt's dimensions; with `fuse=True` its operators may run fused, in tiles. The other options hold
    for both. The steps are planned as by `lengths`. `check` proves that the plans follow each other, `run`
    executes them in turn, `save` writes them.

    Raises `Infeasible` naming the caches that do not fit, `ModelError`, `ChipError` or `UsageError`.
    """
    from onchip.by_length import Session, plan_prompt

    if not isinstance(prompt, str | Path):
        raise UsageError("expected the path of a prompt", item="prompt")
    rest = dict(options)
    asked = SessionOptions(**taken(SessionOptions, rest))
    fusing = JointOptions(**taken(JointOptions, rest))
    if not fusing.fuse:
        fusing.refuse_without_tiles()
    table, source_at = _lengths(step, chip, budget, progress, rest)
    on = chip if isinstance(chip, Chip) else load_chip(chip)
    reading = taken(ReadOptions, rest)
    source = load(prompt, **{**reading, "dims": asked.prompt_dims, "cache": ""})
    taken(LengthOptions, rest)
    placing = options_of(PlacementOptions, rest)
    bytes_ = own_budget(on, budget, "a session")

    def planner(how: PlacementOptions) -> PlanProgram:
        from onchip.planners import joint, placement

        limits = Limits.of(how, progress)
        if not fusing.fuse:
            return placement.plan(source.network, on, bytes_, how, limits)
        joint.refuse(fusing, how)
        return joint.plan_begun(source.network, on, bytes_, fusing, how, limits)

    made = plan_prompt(source.network, asked, table, placing, planner)
    both = Session(recorded(made, source), table, lambda n: source if n is None else source_at(n))
    both.check()
    return both


def _lengths(
    model: str | Path,
    chip: str | Path | Chip,
    budget: str | int | None,
    progress: Progress | None,
    options: dict[str, Any],
) -> tuple[Lengths, Callable[[int], Source]]:
    """Return the plans of all lengths, and what reads the model of one."""
    from onchip.by_length import plan_lengths

    if not isinstance(model, str | Path):
        raise UsageError("is read at many lengths: expected a path", item="model")
    rest = dict(options)
    reading, asked = taken(ReadOptions, rest), LengthOptions(**taken(LengthOptions, rest))
    fusing = JointOptions(**taken(JointOptions, rest))
    placing = options_of(PlacementOptions, rest)
    on = chip if isinstance(chip, Chip) else load_chip(chip)
    if on.memories:
        raise UsageError(f"is for a chip with one memory, and {on.name} has several", item="lengths")
    bytes_ = own_budget(on, budget, "lengths")
    name = asked.lengths()[0]
    dims = str(reading.pop("dims", "") or "")
    known: dict[int, Source] = {}

    def source_at(length: int) -> Source:
        if length not in known:
            known.clear()
            known[length] = load(model, **reading, dims=",".join(filter(None, (dims, f"{name}={length}"))))
        return known[length]

    made = plan_lengths(
        lambda length: source_at(length).network,
        on,
        bytes_,
        asked,
        placing,
        Limits.of(placing, progress),
        fusing if fusing.fuse else None,
    )

    def record(plan: PlanProgram, length: int) -> Plan:
        own = {key: value for key, value in plan.options.items() if key != "dims"}  # of another length
        return recorded(replace(plan, options=own), source_at(length))

    return made.recorded(record), source_at


@takes(ReadOptions, FusionOptions)
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
    from onchip.planners.fusion.fuse import fuse as fuse_network
    from onchip.results.fused import fused_of

    on = chip if isinstance(chip, Chip) else load_chip(chip)
    model, options = read_if_needed(model, as_the_chip(model, on, options))
    fusing = options_of(FusionOptions, options)
    bytes_ = own_budget(on, budget, "fusion")
    made = fuse_network(network_of(model), on, bytes_, fusing, Limits.of(fusing, progress))
    plan = None if made.plan is None else recorded(made.plan, model)
    return fused_of(made, on.name, plan, cannot_run(model, plan))


@takes(ReadOptions, BranchOptions)
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
    from onchip.planners.branches.plan import plan_branches
    from onchip.results.branched import branched_of

    on = chip if isinstance(chip, Chip) else load_chip(chip)
    model, options = read_if_needed(model, as_the_chip(model, on, options))
    branching = options_of(BranchOptions, options)
    network = network_of(model)
    bytes_ = own_budget(on, budget, "branches")
    made = plan_branches(network, on, bytes_, branching, Limits.of(branching, progress))

    def again(within: int) -> PlanProgram | None:
        try:
            return plan_branches(network, on, within, branching).plan
        except Infeasible:
            return None

    return branched_of(made, on, recorded(made.plan, model), again)


@takes(ReadOptions, CorunOptions, SolveOptions)
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
    from onchip.machines.soc import SoC
    from onchip.machines.soc_file import load_soc
    from onchip.multi_dnn.objective import Objective
    from onchip.multi_dnn.result.corunned import corunned_of
    from onchip.multi_dnn.solve import solve

    refuse_no_list(models)
    aim = Objective.parse(objective)
    kinds = {kind: {f.name for f in fields(kind)} for kind in (ReadOptions, CorunOptions, SolveOptions)}
    unknown = sorted(set(options).difference(*kinds.values()))
    if unknown:
        known = ", ".join(name for names in kinds.values() for name in sorted(names))
        raise UsageError(f"no such option; known: {known}", item=unknown[0])
    solving = taken(SolveOptions, options)
    on = soc if isinstance(soc, SoC) else load_soc(soc)
    asked = workload(models, on, contention, progress=progress, **options)
    if progress is not None:
        progress("searching schedules")
    how_hard = SolveOptions(**solving)
    if how_hard.time_limit is not None and not 0 <= how_hard.time_limit < inf:
        raise UsageError(f"{how_hard.time_limit} is no number of seconds", item="--time-limit")
    for name in ("tries", "nodes", "switches", "seed"):
        value = getattr(how_hard, name)
        if value is not None and value < 0:
            raise UsageError(f"{value} is below 0", item=f"--{name}")
    made = solve(asked, aim, how_hard)
    return corunned_of(made, on.default_contention if contention is None else contention)


@takes(ReadOptions, CompareOptions)
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
    >>> {row.scheme: row.status for row in rows if not row.traffic_bytes}
    {'joint': 'optimal', 'branches': 'optimal', 'exact': 'optimal'}

    Raises `Infeasible` when an operator does not fit, `ModelError`, `ChipError` or `UsageError`.
    """
    from onchip.comparison import comparison

    model, options = read_if_needed(model, options)
    asked = options_of(CompareOptions, options)
    network = network_of(model)
    on = chip if isinstance(chip, Chip) else load_chip(chip)
    sizing = PlacementOptions(
        weights=asked.weights, time_limit=asked.time_limit, memory_limit=asked.memory_limit
    )
    return comparison.compare(
        network, on, resolve_budget(network, on, budget, sizing, progress), asked, progress
    )


@takes(SweepOptions)
def sweep(
    spec: str | Path | Mapping[str, Any] | Spec,
    folder: str | Path | None = None,
    *,
    progress: Progress | None = None,
    **options: Any,
) -> Swept:
    """Plan many points, networks x chips x planners x buffer sizes, and find the gain of a larger buffer.

    `spec` is a TOML file, or the table that one holds (docs/sweep.md); `folder` keeps the journal, the table
    (CSV, and Parquet with pyarrow) and the page; without it, the file's name with `.sweep`. What `folder` has
    an answer for is not computed again. `options` are the fields of `SweepOptions`. After Ctrl-C or the time
    limit the result has the points so far, and the same call goes on.

    >>> import onchip, tempfile
    >>> asked = {"networks": "zoo:squeezenet1_0", "planners": "fuse", "chips": "optimus",
    ...          "budgets": [{"from": "32KiB", "to": "512KiB", "factor": 2}]}
    >>> made = onchip.sweep(asked, tempfile.mkdtemp(), jobs=1)
    >>> len(made.rows), made.complete, made.curves[0].knee.budget
    (5, True, 262144)

    Raises `UsageError` naming the spec and its key, `InputError` for a folder that cannot be used or is in
    use, `WorkerLost` when the Dask cluster is gone.
    """
    from onchip.sweeps.run import sweep as work_off
    from onchip.sweeps.spec import Spec, parse_spec, read_spec
    from onchip.sweeps.swept import Swept

    how = options_of(SweepOptions, options)
    if isinstance(spec, str | Path):
        asked = read_spec(spec)
        into = Path(spec).with_suffix(".sweep") if folder is None else Path(folder)
    else:
        asked = spec if isinstance(spec, Spec) else parse_spec(spec, "sweep")
        if folder is None:
            raise UsageError("is needed where the spec is no file", item="folder")
        into = Path(folder)
    files: list[tuple[Path, ...]] = []
    made = work_off(asked, into, how, progress, lambda now: files.append(Swept(now, into).save()))
    return Swept(made, into, files[-1])
