"""The profile of a network on this machine: groups in sequence, on each engine and from one to the other."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import permutations
from typing import Any

import numpy as np

from onchip.corun.contention import NO_CONTENTION
from onchip.corun.grouping import MOST_GROUPS, LayerGroup, layer_groups
from onchip.corun.measure import Span, measured_profile
from onchip.corun.profile import Group, Profile
from onchip.corun.schedule import Schedule, Step
from onchip.corun.soc import SoC
from onchip.corun.workload import Job, Workload
from onchip.network import Network
from onchip.readers.source import Source
from onchip.run.local.pieces import Cut, cut
from onchip.run.local.runtime import PATIENCE, Runtime

__all__ = ["ROUNDS", "measure"]

ROUNDS = 30
"""How often every sequence runs; the shortest time of each group counts."""


def measure(
    source: Source,
    soc: SoC,
    *,
    most: int = MOST_GROUPS,
    rounds: int = ROUNDS,
    seed: int = 0,
    patience: float = PATIENCE,
    progress: Callable[[str], None] | None = None,
) -> Profile:
    """Measure the network, in at most `most` groups, on the units of `soc`: engines of this machine.

    Every unit in turn runs all the groups that it supports, one after the other on real tensors, and has the
    machine for itself; then groups alternate between each two units, which shows what changing costs.
    Weights and inputs that the model lacks are drawn from `seed`. `progress` is told what runs next. Raises
    `ProfileError` where some group runs on no unit, and what cutting the network and running the pieces
    raise (`UsageError`, `ModelError`, `MissingExtra`, `WorkerLost`).
    """
    network = source.network
    groups = layer_groups(network, soc.units, most=most)
    supports = [[u for u, unit in enumerate(soc.units) if group.runs_on(unit)] for group in groups]
    workload = Workload(soc, (Job(network.name, _nominal(network, soc, groups)),), NO_CONTENTION)
    pieces = cut(source, [group.operators for group in groups], seed)
    alone: dict[str, list[list[Span]]] = {}
    changing: list[tuple[list[int], list[list[Span]]]] = []
    with Runtime(soc.unit_names, patience=patience) as runtime:
        sequences = _Sequences(runtime, workload, pieces, [pieces.draw_inputs(seed)], rounds)
        for unit, name in enumerate(soc.unit_names):
            if any(unit in able for able in supports):
                if progress is not None:
                    progress(f"{network.name} on {name}")
                alone[name] = sequences.run([unit if unit in able else able[0] for able in supports])
        for first, second in permutations(range(len(soc.units)), 2):
            turns = [(first, second)[n % 2] for n in range(len(groups))]
            units = [turn if turn in able else able[0] for turn, able in zip(turns, supports, strict=True)]
            if len({*units}) > 1:
                if progress is not None:
                    progress(f"{network.name} from {soc.unit_names[first]} to {soc.unit_names[second]}")
                changing.append((units, sequences.run(units)))
        told = "; ".join(("measured on this machine, group after group", *runtime.notes))
    return measured_profile(network, groups, soc, alone, changing, source=told)


def _nominal(network: Network, soc: SoC, groups: Sequence[LayerGroup]) -> Profile:
    """A profile that says which unit can run what, to have something to schedule by."""
    none = (0.0,) * len(soc.units)
    rows = tuple(
        Group(group.name, tuple(1.0 if group.runs_on(u) else None for u in soc.units), none, none, none)
        for group in groups
    )
    return Profile(network.name, soc.name, soc.unit_names, rows)


class _Sequences:
    """Runs the groups one after the other, each on the unit it is told."""

    def __init__(
        self,
        runtime: Runtime,
        workload: Workload,
        pieces: Cut,
        inputs: list[dict[str, np.ndarray[Any, Any]]],
        rounds: int,
    ) -> None:
        self._runtime, self._workload, self._pieces = runtime, workload, pieces
        self._inputs, self._rounds = inputs, rounds

    def run(self, units: Sequence[int]) -> list[list[Span]]:
        """For every round, when each group ran, in ms; `units` has the unit of each."""
        steps = [Step(0, 0, group) for group in range(len(units))]
        order = tuple(
            tuple(step for step, at in zip(steps, units, strict=True) if at == unit)
            for unit in range(len(self._workload.soc.units))
        )
        schedule = Schedule(((tuple(units),),), order)
        execution = self._runtime.run(
            self._workload, schedule, [self._pieces], {self._pieces: self._inputs}, rounds=self._rounds
        )
        found = []
        for number in range(len(execution.rounds)):
            times = execution.times(number)
            found.append([(times[step][0] / 1e6, times[step][1] / 1e6) for step in steps])
        return found
