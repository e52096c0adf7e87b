"""The plan that a question gets: which planners run, and which of their plans is given."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, fields, replace
from typing import Any

from onchip.base.errors import UsageError
from onchip.machines.chip import Chip
from onchip.methods.best import best, in_tiles, whole
from onchip.methods.in_memories import best_in_memories, tiles_in_a_memory
from onchip.methods.options import METHODS, MethodOptions, PaperOptions, planner_of
from onchip.methods.said import Answer, elements_note, unknown_note
from onchip.network import Network
from onchip.planners.budgets import memories_within, resolve_budget
from onchip.planners.joint import JointOptions, refuse
from onchip.planners.limits import Limits, Progress
from onchip.planners.placement import PlacementOptions

__all__ = ["Answer", "Question", "answered"]


@dataclass(frozen=True, slots=True)
class Question:
    """A network, a chip, a budget as the user gave it, and all options."""

    network: Network
    chip: Chip
    budget: str | int | None
    method: MethodOptions
    placing: PlacementOptions
    fusing: JointOptions
    paper: PaperOptions = field(default=PaperOptions())

    @property
    def way(self) -> str:
        """The method: `--fuse` is the method `joint`, `--no-fuse` the method `cosma`."""
        named, fuse = self.method.method, self.fusing.fuse
        if fuse is None:
            return named
        asked = "joint" if fuse else "cosma"
        if named not in ("best", asked, METHODS[asked]):
            flag = "--fuse" if fuse else "--no-fuse"
            raise UsageError(f"is the method {asked}, and --method {named} is asked for", item=flag)
        return asked

    def refuse(self) -> None:
        """Raise `UsageError` for options that do not go together."""
        way = METHODS.get(self.way, self.way)
        for name in self.paper.changed():
            owner = "simple" if name in ("rules", "long_skip") else "optimus"
            if way != METHODS[owner]:
                raise UsageError(f"goes with --method {owner} only", item=_flag(name, self.paper))
        if way not in ("best", "joint"):
            self.fusing.refuse_without_tiles(but=("channel_tile",) if way == "fusion" else ())
        if way == "joint":
            refuse(self.fusing, self.placing)  # before a budget like MH is searched for
        if self.method.level is not None and not self.chip.memories:
            raise UsageError(f"{self.chip.name} has one memory", item="--level")
        if self.method.level is not None and way == "placement":
            raise UsageError("is where tiles are planned; tensors that stay whole lie in all", item="--level")


def answered(asked: Question, progress: Progress | None = None) -> Answer:
    """Return the plan for a question, with what is to be said beside it.

    Raises `Infeasible` naming the operator that fits in no way, `ChipError` for a figure that the chip lacks,
    `UsageError` for options that do not go together.
    """
    asked.refuse()
    found = _in_memories(asked, progress) if asked.chip.memories else _in_one(asked, progress)
    return replace(
        found, notes=(*found.notes, *elements_note(asked.network, asked.chip), *unknown_note(asked.chip))
    )


def _in_one(asked: Question, progress: Progress | None) -> Answer:
    network, on, placing = asked.network, asked.chip, asked.placing
    as_it_takes = asked.budget is None and placing.objective == "peak" and on.scratchpad_bytes is None
    bytes_ = None if as_it_takes else resolve_budget(network, on, asked.budget, placing, progress)
    way = METHODS.get(asked.way, asked.way)
    if way == "placement":
        return whole(network, on, bytes_, placing, progress)
    if way == "best":
        return best(network, on, bytes_, asked.fusing, placing, progress)
    if bytes_ is None:
        raise UsageError(f"is needed with --method {asked.way}", item="--budget")
    if way == "joint":
        return in_tiles(network, on, bytes_, asked.fusing, placing, progress)
    return _by_planner(asked, network, on, bytes_, progress)


def _in_memories(asked: Question, progress: Progress | None) -> Answer:
    network, on, way = asked.network, asked.chip, METHODS.get(asked.way, asked.way)
    within = memories_within(on, asked.budget)
    if way == "placement":
        from onchip.planners.placement.memories import plan_in_memories

        return Answer(
            plan_in_memories(network, on, within, asked.placing, Limits.of(asked.placing, progress))
        )
    if way == "best":
        return best_in_memories(
            network, on, within, asked.method.level, asked.fusing, asked.placing, progress
        )

    def planned(at: Chip, bytes_: int) -> Answer:
        if way == "joint":
            return in_tiles(network, at, bytes_, asked.fusing, asked.placing, progress)
        return _by_planner(asked, network, at, bytes_, progress)

    return tiles_in_a_memory(network, on, within, asked.method.level, planned)


def _by_planner(
    asked: Question, network: Network, on: Chip, bytes_: int, progress: Progress | None
) -> Answer:
    """Return the plan of a paper's method, or of a planner from outside, with its own options."""
    planner = planner_of(asked.way)
    options = planner.options(**_options_for(planner.options, asked))
    return Answer(planner.solve(network, on, bytes_, options, Limits.of(options, progress)))


def _options_for(kind: type[Any], asked: Question) -> Mapping[str, Any]:
    """Return the values of the fields of a planner's options that were given for them."""
    known = {f.name for f in fields(kind)}
    given: dict[str, Any] = {}
    for options in (asked.placing, asked.fusing, asked.paper):
        for f in fields(options):
            value = getattr(options, f.name)
            if value == f.default or f.name == "fuse":
                continue
            if f.name in known:
                given[f.name] = value
            elif f.name not in ("time_limit", "memory_limit", "seed"):
                raise UsageError(f"does not go with --method {asked.way}", item=_flag(f.name, options))
    return given


def _flag(name: str, options: Any) -> str:
    return ("--no-" if getattr(options, name) is False else "--") + name.replace("_", "-")
