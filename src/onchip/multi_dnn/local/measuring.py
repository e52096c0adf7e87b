"""The profile of a network on this machine: groups in sequence, on each engine and from one to the other."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import replace
from itertools import permutations
from math import inf

from onchip.base import guard
from onchip.machines.contention import NO_CONTENTION
from onchip.machines.soc import SoC
from onchip.multi_dnn.grouping import MOST_GROUPS, LayerGroup, layer_groups
from onchip.multi_dnn.local.pieces import cut
from onchip.multi_dnn.local.runtime import PATIENCE, Runtime
from onchip.multi_dnn.measure import Round, measured_profile
from onchip.multi_dnn.profile import Group, Profile
from onchip.multi_dnn.schedule import Schedule, Step
from onchip.multi_dnn.workload import Job, Workload
from onchip.network import Network
from onchip.readers.source import Source

__all__ = ["ROUNDS", "Measuring", "measure"]

ROUNDS = 30
"""The number of runs of every sequence; the shortest time of each group counts."""

SEARCHING = 0.25
"""Seconds of a command's time limit reserved for the work after measuring."""

TURN = 5
"""Rounds of a sequence before the next one's turn: a machine's speed varies over seconds."""


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

    Every unit in turn runs all the groups that it supports, in sequence on real tensors, with the machine to
    itself; then groups alternate between each two units, which shows the cost of changing. The sequences take
    turns, `rounds` times in all, or as often as the command's time limit allows, at least once. Weights and
    inputs that the model lacks are drawn from `seed`. `progress` is told what runs next. Raises
    `ProfileError` where some group runs on no unit, and the errors of cutting the network and running the
    pieces (`UsageError`, `ModelError`, `MissingExtra`, `WorkerLost`).
    """
    with Runtime(soc.unit_names, patience=patience) as runtime:
        measuring = Measuring(source, soc, runtime, most=most, seed=seed)
        done, turn, began = 0, TURN if guard.room() == inf else 1, time.monotonic()
        while done < rounds and (not done or guard.room() > 2 * (time.monotonic() - began) + SEARCHING):
            began = time.monotonic()
            measuring.measure(min(turn, rounds - done), progress if not done else None)
            done, turn = done + turn, min(TURN, 2 * turn)
        return measuring.profile()


class Measuring:
    """A network's profile under construction: the owner of a runtime can continue measuring while it pays."""

    def __init__(
        self, source: Source, soc: SoC, runtime: Runtime, *, most: int = MOST_GROUPS, seed: int = 0
    ) -> None:
        """Cut the network; raises as `measure` does."""
        self.network, self.soc, self._runtime = source.network, soc, runtime
        self._groups = layer_groups(self.network, soc.units, most=most)
        self.cut = cut(source, [group.operators for group in self._groups], seed)
        nominal = _nominal(self.network, soc, self._groups)
        self._workload = Workload(soc, (Job(self.network.name, nominal),), NO_CONTENTION)
        self._inputs = [self.cut.draw_inputs(seed)]
        supports = [[u for u, unit in enumerate(soc.units) if group.runs_on(unit)] for group in self._groups]
        self._alone: dict[str, tuple[list[int], list[Round]]] = {}
        for unit, name in enumerate(soc.unit_names):
            if any(unit in able for able in supports):
                self._alone[name] = ([unit if unit in able else able[0] for able in supports], [])
        self._rounds = self._undisturbed = 0
        self._changing: dict[tuple[str, str], tuple[list[int], list[Round]]] = {}
        for first, second in permutations(range(len(soc.units)), 2):
            turns = [(first, second)[n % 2] for n in range(len(supports))]
            units = [turn if turn in able else able[0] for turn, able in zip(turns, supports, strict=True)]
            if len({*units}) > 1:
                self._changing[soc.unit_names[first], soc.unit_names[second]] = (units, [])

    def measure(self, rounds: int, progress: Callable[[str], None] | None = None) -> None:
        """Run every sequence that often; `progress` is told which. Raises as `Runtime.run` does."""
        say = progress or (lambda _: None)
        for name, (units, found) in self._alone.items():
            say(f"{self.network.name} on {name}")
            found += self._run(units, rounds)
        for (first, second), (units, found) in self._changing.items():
            say(f"{self.network.name} from {first} to {second}")
            found += self._run(units, rounds)

    def alone(self, unit: str) -> Sequence[Round]:
        """Return the rounds so far in which one unit, by name, ran all that it supports."""
        return self._alone.get(unit, ((), ()))[1]

    def profile(self) -> Profile:
        """Return the profile from all rounds so far."""
        made = measured_profile(
            self.network,
            self._groups,
            self.soc,
            {name: rounds for name, (_, rounds) in self._alone.items()},
            tuple(self._changing.values()),
            source="; ".join(("measured on this machine, group after group", *self._runtime.notes)),
        )
        return replace(made, rounds=self._rounds, undisturbed=self._undisturbed)

    def _run(self, units: Sequence[int], rounds: int) -> list[Round]:
        """Return when each group ran, in ms, in every round; `units` has the unit of each."""
        steps = [Step(0, 0, group) for group in range(len(units))]
        order = tuple(
            tuple(step for step, at in zip(steps, units, strict=True) if at == unit)
            for unit in range(len(self.soc.units))
        )
        execution = self._runtime.run(
            self._workload,
            Schedule(((tuple(units),),), order),
            [self.cut],
            {self.cut: self._inputs},
            rounds=rounds,
        )
        if len(execution.rounds) < rounds:
            raise KeyboardInterrupt  # the processes have ended; fewer rounds would be another profile
        self._rounds += len(execution.rounds)
        self._undisturbed += execution.undisturbed
        found: list[Round] = []
        for number in range(len(execution.rounds)):
            times = execution.times(number)
            found.append([(times[step][0] / 1e6, times[step][1] / 1e6) for step in steps])
        return found


def _nominal(network: Network, soc: SoC, groups: Sequence[LayerGroup]) -> Profile:
    """Return a profile that states which unit can run what, as an input of scheduling."""
    none = (0.0,) * len(soc.units)
    rows = tuple(
        Group(group.name, tuple(1.0 if group.runs_on(u) else None for u in soc.units), none, none, none)
        for group in groups
    )
    return Profile(network.name, soc.name, soc.unit_names, rows)
