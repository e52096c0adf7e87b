"""Schedules in real processes: every group on its unit in its order, tensors in shared memory."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from types import TracebackType
from typing import Any, Self

import numpy as np

from onchip.base.errors import UsageError
from onchip.multi_dnn.local.cores import pick_cores
from onchip.multi_dnn.local.engines import ENGINES, engine_of
from onchip.multi_dnn.local.memory import BumpAllocator, Place
from onchip.multi_dnn.local.pieces import Cut
from onchip.multi_dnn.local.processes import STATES, UnitProcesses
from onchip.multi_dnn.local.wiring import Wired, wire
from onchip.multi_dnn.local.worker import Program, RunStep
from onchip.multi_dnn.profile import Profile
from onchip.multi_dnn.schedule import Schedule, Step
from onchip.multi_dnn.simulate import simulate
from onchip.multi_dnn.timeline import Piece as Stretch
from onchip.multi_dnn.timeline import Segment as Stay
from onchip.multi_dnn.timeline import Timeline
from onchip.multi_dnn.workload import Workload

__all__ = ["PATIENCE", "Execution", "Installed", "Observer", "Round", "Runtime"]

Array = np.ndarray[Any, Any]

PATIENCE = 120.0
"""Seconds without any progress of any unit after which one is taken to hang."""

MAX_BYTES = 4 << 30
"""The most shared memory for the tensors of one round."""

_POISON = 0xA5

Observer = Callable[[int, int, int, Mapping[str, Array]], None]
"""Called with job, run, number of its input set and its outputs, while those exist."""


@dataclass(frozen=True, eq=False)
class Round:
    """One execution of all frames: for each unit [steps, 2], start and end in ns since the common start.

    `preempted` is how often the kernel gave a unit's core to another process meanwhile: the machine was not
    free, and the times mean less for the schedule.
    """

    times: tuple[Array, ...]
    preempted: tuple[int, ...]

    @property
    def makespan_ms(self) -> float:
        """The time from the common start until the last step ended."""
        return max(float(rows[:, 1].max()) for rows in self.times if len(rows)) / 1e6


@dataclass(frozen=True, eq=False)
class Execution:
    """The result of running a schedule: the times of every step of every round."""

    workload: Workload
    schedule: Schedule
    rounds: tuple[Round, ...]

    def times(self, number: int) -> dict[Step, tuple[int, int]]:
        """Return start and end of every step of a round, in ns."""
        return {
            step: (int(start), int(end))
            for order, rows in zip(self.schedule.order, self.rounds[number].times, strict=True)
            for step, (start, end) in zip(order, rows, strict=True)
        }

    def timeline(self, number: int) -> Timeline:
        """Return a round in the simulator's form; `ready` and transitions are those of the clock."""
        times, jobs = self.times(number), self.workload.jobs
        stays = []
        for step, (start, end) in times.items():
            unit = self.schedule.units[step.job][step.run][step.group]
            ready = times[step._replace(group=step.group - 1)][1] if step.group else start
            gap = 0
            after = step._replace(group=step.group + 1)
            if after in times and self.schedule.units[step.job][step.run][after.group] != unit:
                gap = times[after][0] - end
            begin, stop = start / 1e6, end / 1e6
            piece = (Stretch(begin, stop, 1.0),)
            stays.append(Stay(step, unit, min(ready / 1e6, begin), begin, stop, gap / 1e6, piece))
        stays.sort(key=lambda s: (s.start, s.step))
        ends = tuple(
            tuple(
                times[Step(j, r, len(job.profile.groups) - 1)][1] / 1e6 for r in range(self.workload.runs(j))
            )
            for j, job in enumerate(jobs)
        )
        return Timeline(self.workload, tuple(stays), ends)

    def makespans_ms(self) -> tuple[float, ...]:
        """Return the makespan of every round."""
        return tuple(one.makespan_ms for one in self.rounds)

    @property
    def undisturbed(self) -> int:
        """The number of rounds in which no unit lost its core to another process."""
        return sum(not any(one.preempted) for one in self.rounds)

    @property
    def best(self) -> int:
        """The round with the least makespan."""
        spans = self.makespans_ms()
        return spans.index(min(spans))


class Runtime:
    """A process for each unit, each on a core of its own, that serves any number of schedules.

    `units` are names of engines. A context manager: leaving it ends every process. After `WorkerLost` or
    Ctrl-C no process runs any more, and `run` raises an error. Raises `UsageError` where processes cannot be
    pinned.
    """

    def __init__(self, units: Sequence[str], *, patience: float = PATIENCE) -> None:
        found = [engine_of(unit) for unit in units]
        self.units = tuple(units)
        self.engines = tuple(engine for engine, _ in found)
        self.cores = pick_cores(len(units))
        self.notes = tuple(note for _, note in found if note)
        self._crew = UnitProcesses(units, self.cores, patience)
        self._loaded: dict[tuple[int, Cut, int], int] = {}
        self._counts = [0] * len(units)
        self._installed: Installed | None = None

    def __enter__(self) -> Self:
        self._crew.__enter__()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        problem: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._crew.close()

    @property
    def pids(self) -> tuple[int, ...]:
        """The processes, by unit; none when they have ended."""
        return self._crew.pids

    def describe(self) -> list[str]:
        """Return each unit, a line: its engine and its core."""
        return [
            f"{unit}: {ENGINES[engine]}, core {core}"
            for unit, engine, core in zip(self.units, self.engines, self.cores, strict=True)
        ]

    def run(
        self,
        workload: Workload,
        schedule: Schedule,
        cuts: Sequence[Cut],
        inputs: Mapping[Cut, Sequence[Mapping[str, Array]]],
        *,
        rounds: int = 1,
        seen: Observer | None = None,
    ) -> Execution:
        """Run a schedule `rounds` times, each from a common start; after Ctrl-C, the rounds up to then.

        `cuts[job]` is the network of each job, cut into the groups of its profile; `inputs` are its input
        sets. Run r of round n takes set (r + n) modulo their number, so that leftovers of another run are
        wrong. Results are overwritten with noise before every round; `seen` is called for every run after
        one. Raises `IllegalSchedule` as the simulator does, `UsageError` for cuts that are not the workload's
        and more memory than 4 GiB, `ModelError` for a piece that its engine refuses, `WorkerLost` for a
        process that died or hung.
        """
        if rounds < 1:
            raise UsageError("must be at least 1", item="rounds")
        done: list[Round] = []
        installed = self.install(workload, schedule, cuts, inputs)
        try:
            for number in range(rounds):
                done.append(installed.round(number, seen))
        except KeyboardInterrupt:
            if not done:
                raise
        return Execution(workload, schedule, tuple(done))

    def install(
        self,
        workload: Workload,
        schedule: Schedule,
        cuts: Sequence[Cut],
        inputs: Mapping[Cut, Sequence[Mapping[str, Array]]],
    ) -> Installed:
        """Install a schedule on the units, in place of the one before; arguments are as for `run`.

        Pieces that are new to a unit are loaded first, which takes its engine a while (see `load`).
        """
        if not self.pids:
            raise UsageError("its processes have ended", item="local")
        simulate(workload, schedule)
        self._accept(workload, cuts, inputs)
        with self._or_end():
            self._load([[(cuts[step.job], step.group) for step in order] for order in schedule.order])
            layout = _Layout(workload, cuts, inputs)
            wired = wire(workload, schedule)
            times = layout.times(schedule)
            self._crew.memory.resize(layout.book.end)
            self._crew.labels = lambda unit, number: _label(workload, schedule, unit, number)
            self._crew.take([self._program(layout, u, wired[u], times[u], cuts) for u in range(len(wired))])
            self._installed = Installed(self, layout, tuple(times))
            return self._installed

    def load(self, cut: Cut, profile: Profile) -> None:
        """Have every unit load all pieces that the profile says it supports, so that no later schedule of
        the network has to wait for its engine."""
        if not self.pids:
            raise UsageError("its processes have ended", item="local")
        with self._or_end():
            groups = range(len(cut.pieces))
            self._load(
                [[(cut, g) for g in groups if profile.groups[g].runs_on(u)] for u in range(len(self.units))]
            )

    @contextmanager
    def _or_end(self) -> Iterator[None]:
        """End every process after an error: their states are then unknown."""
        try:
            yield
        except BaseException:
            self._crew.close()
            raise

    def _accept(
        self,
        workload: Workload,
        cuts: Sequence[Cut],
        inputs: Mapping[Cut, Sequence[Mapping[str, Array]]],
    ) -> None:
        if workload.soc.unit_names != self.units:
            raise UsageError(
                f"is for units {', '.join(workload.soc.unit_names)}; running are {', '.join(self.units)}",
                where="schedule",
            )
        if len(cuts) != len(workload.jobs):
            raise UsageError(f"{len(cuts)} networks for {len(workload.jobs)} jobs", where="schedule")
        for job, cut in zip(workload.jobs, cuts, strict=True):
            if len(job.profile.groups) != len(cut.groups):
                raise UsageError(
                    f"is cut into {len(cut.groups)} groups, its profile has {len(job.profile.groups)}",
                    where=f"network {job.name}",
                )
            if not inputs.get(cut):
                raise UsageError("has no inputs", where=f"network {job.name}")

    def _load(self, needed: Sequence[Sequence[tuple[Cut, int]]]) -> None:
        """Have every unit load the pieces that it needs and lacks; the units load in parallel."""
        wanted = [
            [piece for piece in dict.fromkeys(pieces) if (unit, *piece) not in self._loaded]
            for unit, pieces in enumerate(needed)
        ]
        for turn in range(max(map(len, wanted))):
            now = {unit: pieces[turn] for unit, pieces in enumerate(wanted) if turn < len(pieces)}
            models = {}
            for unit, (cut, group) in now.items():
                what = f"network {cut.network.name}, group {group} on {self.units[unit]}"
                models[unit] = (self.engines[unit], cut.model(cut.pieces[group], what), what)
            self._crew.load(models)
            for unit, piece in now.items():
                self._loaded[unit, *piece] = self._counts[unit]
                self._counts[unit] += 1

    def _program(
        self, layout: _Layout, unit: int, wired: Sequence[Wired], times: Place, cuts: Sequence[Cut]
    ) -> Program:
        bindings: dict[tuple[int, tuple[Place, ...], tuple[Place, ...]], int] = {}
        steps = []
        for step, waits, tells, idle_ns in wired:
            piece = self._loaded[unit, cuts[step.job], step.group]
            binding = (piece, *layout.of(step))
            number = bindings.setdefault(binding, len(bindings))
            bells = tuple((self._crew.bells[source, unit], count) for source, count in waits)
            rings = tuple(self._crew.bells[unit, target] for target in tells)
            steps.append(RunStep(number, bells, rings, idle_ns))
        return Program(layout.book.end, unit, times, list(bindings), steps)

    def _round(self, installed: Installed, number: int, seen: Observer | None) -> Round:
        if not self.pids:
            raise UsageError("its processes have ended", item="local")
        if installed is not self._installed:
            raise UsageError("another schedule has taken its place", item="local")
        layout, crew = installed.layout, self._crew
        with self._or_end():
            layout.prepare(crew, number)
            start = crew.go()
            made = Round(tuple(crew.memory.array(place) - start for place in installed.times), crew.preempted)
            if seen is not None:
                layout.show(crew, number, seen)
            return made


@dataclass(frozen=True, eq=False)
class Installed:
    """A schedule installed on the units of a runtime, until it gets another one."""

    runtime: Runtime
    layout: _Layout
    times: tuple[Place, ...]

    def round(self, number: int, seen: Observer | None = None) -> Round:
        """Run it once; `number` chooses the input sets, and `seen` is called, as in `Runtime.run`."""
        return self.runtime._round(self, number, seen)


class _Layout:
    """The places of the tensors of a round.

    Input sets have a place each, tensors between groups one per job (its runs follow each other), and
    outputs one per run, so that all of them can be compared afterwards.
    """

    def __init__(
        self,
        workload: Workload,
        cuts: Sequence[Cut],
        inputs: Mapping[Cut, Sequence[Mapping[str, Array]]],
    ) -> None:
        self.workload, self.cuts, self.inputs = workload, cuts, inputs
        self.book = BumpAllocator(STATES)
        self.given = {
            cut: [self._places(cut, cut.inputs) for _ in inputs[cut]] for cut in dict.fromkeys(cuts)
        }
        begin = self.book.end
        self.inner = []
        self.made = []
        for j, cut in enumerate(cuts):
            crossing = {name for piece in cut.pieces for name in piece.outputs}.difference(cut.outputs)
            self.inner.append(self._places(cut, sorted(crossing)))
            self.made.append([self._places(cut, cut.outputs) for _ in range(workload.runs(j))])
        self.results = Place(begin, "|u1", (self.book.end - begin,))
        if self.book.end > MAX_BYTES:
            raise UsageError(
                f"the tensors of one round take {self.book.end:,} bytes, more than {MAX_BYTES:,}; fewer"
                " frames a round take less",
                where="schedule",
            )

    def _places(self, cut: Cut, names: Sequence[str]) -> dict[str, Place]:
        return {name: self.book.place(cut.dtype[name], cut.signature[name][1]) for name in names}

    def times(self, schedule: Schedule) -> list[Place]:
        """Return room for the times of each unit."""
        return [self.book.place(np.int64, (len(order), 2)) for order in schedule.order]

    def of(self, step: Step) -> tuple[tuple[Place, ...], tuple[Place, ...]]:
        """Return the places of a step's inputs and outputs."""
        cut = self.cuts[step.job]
        sets, made = self.given[cut], self.made[step.job][step.run]
        places = {**self.inner[step.job], **made, **sets[step.run % len(sets)]}
        piece = cut.pieces[step.group]
        return tuple(places[name] for name in piece.inputs), tuple(places[name] for name in piece.outputs)

    def prepare(self, crew: UnitProcesses, number: int) -> None:
        """Write the inputs of a round, and noise where results will be."""
        for cut, sets in self.given.items():
            for n, places in enumerate(sets):
                values = self.inputs[cut][(n + number) % len(sets)]
                for name, place in places.items():
                    crew.memory.array(place)[...] = values[name]
        crew.memory.array(self.results)[:] = _POISON

    def show(self, crew: UnitProcesses, number: int, seen: Observer) -> None:
        """Hand every run's outputs to `seen`."""
        for job, run in self._runs():
            chosen = (run + number) % len(self.given[self.cuts[job]])
            seen(job, run, chosen, {n: crew.memory.array(p) for n, p in self.made[job][run].items()})

    def _runs(self) -> Iterator[tuple[int, int]]:
        for job in range(len(self.cuts)):
            for run in range(self.workload.runs(job)):
                yield job, run


def _label(workload: Workload, schedule: Schedule, unit: int, number: int) -> str:
    """Return the name of a unit's step, for errors."""
    order = schedule.order[unit]
    if number >= len(order):
        return "the end of its order"
    job, run, group = order[number]
    name = workload.jobs[job].name
    return f"network {name}, run {run}, group {workload.jobs[job].profile.groups[group].name}"
