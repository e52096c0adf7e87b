"""Verbs for systems that plan while they run, and for the energy of a fusion.

`prepare_fusion` answers a new buffer size in milliseconds. `workload` makes the argument of a
`DynamicScheduler` when the set of networks changes. `fusion_energy` prices the groups of a fusion on an
accelerator.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from onchip.asked import as_the_chip, cannot_run, network_of, options_of, read_if_needed, recorded, taken
from onchip.base.errors import UsageError
from onchip.base.options import takes
from onchip.machines.chip import Chip, load_chip
from onchip.multi_dnn.options import CorunOptions
from onchip.planners.budgets import own_budget, sized
from onchip.planners.fusion.options import FusionOptions
from onchip.planners.limits import Progress
from onchip.readers.source import ReadOptions

if TYPE_CHECKING:
    from onchip.machines.soc import SoC
    from onchip.multi_dnn.profile import Profile
    from onchip.multi_dnn.workload import Workload
    from onchip.network import Network
    from onchip.planners.fusion.energy import GroupEnergy
    from onchip.readers import Source
    from onchip.results.fused import Fused

__all__ = ["Prepared", "fusion_energy", "prepare_fusion", "refuse_no_list", "workload"]


class Prepared:
    """A network that can be fused again for every buffer size; `prepare_fusion` makes it."""

    def __init__(
        self,
        model: str | Path | Source | Network,
        chip: Chip,
        most: str | int | None,
        options: dict[str, Any],
    ) -> None:
        from onchip.planners.fusion.fuse import PreparedFusion

        self._model, options = read_if_needed(model, as_the_chip(model, chip, options))
        fusing = options_of(FusionOptions, options)
        self._chip = chip
        self._prepared = PreparedFusion(
            network_of(self._model), chip, own_budget(chip, most, "fusion"), fusing
        )

    @property
    def most(self) -> int:
        """The largest permitted budget in bytes."""
        return self._prepared.problem.budget

    def fuse(self, budget: str | int) -> Fused:
        """Return the groups for a budget in bytes or a size like "512KiB", with their plan.

        The result is never `optimal`: only groups within the rules of the on-line variant are searched.
        Baselines are not computed. Raises `Infeasible` naming the operator that fits in no way, `UsageError`
        beyond `most`.
        """
        from onchip.results.fused import fused_of

        made = self._prepared.fuse(sized(budget))
        plan = None if made.plan is None else recorded(made.plan, self._model)
        return fused_of(made, self._chip.name, plan, cannot_run(self._model, plan))


@takes(ReadOptions, FusionOptions)
def prepare_fusion(
    model: str | Path | Source | Network,
    chip: str | Path | Chip = "generic",
    most: str | int | None = None,
    **options: Any,
) -> Prepared:
    """Prepare a network for a chip, so that each buffer size is then fused for in milliseconds.

    `most` is the largest budget that will be asked for: bytes or a size like "512KiB"; without it the chip's
    own scratchpad. `options` are the fields of `ReadOptions` and `FusionOptions`; `search` is always
    `online`. Source: Optimus (Cai, Wang, Zhang), section 6, Algorithm 3.

    >>> import onchip
    >>> prepared = onchip.prepare_fusion("zoo:squeezenet1_0", "optimus")
    >>> large, small = prepared.fuse("128KiB"), prepared.fuse("64KiB")
    >>> large.plan.check().dram_bytes == large.dram_bytes < small.dram_bytes
    True

    Raises `ModelError`, `ChipError`, `UsageError`, or `Infeasible` naming the operator that fits in no way.
    """
    on = chip if isinstance(chip, Chip) else load_chip(chip)
    return Prepared(model, on, most, options)


@takes(ReadOptions, FusionOptions)
def fusion_energy(
    model: str | Path | Source | Network,
    chip: str | Path | Chip = "optimus",
    budget: str | int | None = None,
    **options: Any,
) -> tuple[GroupEnergy, ...]:
    """Fuse a network, and price each group in energy and time on the chip's array, in running order.

    Energies are in multiply-accumulates, times in seconds; see docs/fusion-energy.md. They are a model, and
    no figures of the plan. Arguments as in `fuse`. Source: Optimus, section 7.1, after Eyeriss.

    >>> import onchip
    >>> groups = onchip.fusion_energy("zoo:squeezenet1_0")
    >>> all(group.energy > group.dram > 0 for group in groups)
    True

    Raises what `fuse` raises, and `ChipError` where the chip states no array or no prices.
    """
    from onchip.planners.fusion.energy import group_energy
    from onchip.planners.fusion.fuse import fuse

    on = chip if isinstance(chip, Chip) else load_chip(chip)
    model, options = read_if_needed(model, as_the_chip(model, on, options))
    fusing = options_of(FusionOptions, options)
    made = fuse(network_of(model), on, own_budget(on, budget, "fusion"), fusing, beside=False)
    return tuple(group_energy(made.problem, group, on) for group in made.groups)


@takes(ReadOptions, CorunOptions)
def workload(
    models: Sequence[str | Path | Source | Network | Profile],
    soc: str | Path | SoC = "xavier-agx",
    contention: str | None = None,
    *,
    progress: Progress | None = None,
    **options: Any,
) -> Workload:
    """Return several networks on one SoC as a problem, the argument of `DynamicScheduler.change`.

    Arguments as in `corun`, whose options of `ReadOptions` and `CorunOptions` are taken.

    >>> import onchip
    >>> both = onchip.workload(["zoo:googlenet", "zoo:googlenet"])
    >>> with onchip.DynamicScheduler() as scheduler:
    ...     first = scheduler.change(both)
    ...     _ = scheduler.settle()
    ...     scheduler.frame().cost_ms() < first.cost_ms()
    True

    Raises `ProfileError`, `ChipError`, `ModelError` or `UsageError`.
    """
    from onchip.machines.soc import SoC
    from onchip.machines.soc_file import load_soc
    from onchip.multi_dnn.request import workload_of
    from onchip.multi_dnn.result.profiles import Profiles

    refuse_no_list(models)
    reading = taken(ReadOptions, options)
    how = options_of(CorunOptions, {**options, "contention": contention})
    on = soc if isinstance(soc, SoC) else load_soc(soc)
    named = [str(model) for model in models if isinstance(model, str | Path)]
    source = Profiles.asked(on, named, how.profile, how.most_groups, reading)
    profiles = [source.of(model, progress) for model in models]
    source.refuse_unknown()
    return workload_of(profiles, on, how)


def refuse_no_list(models: object) -> None:
    """Raise `UsageError` where one model was given in place of a list, or none."""
    if isinstance(models, str | Path) or not models:
        raise UsageError("expected a list of networks", item="models")
