"""Several networks scheduled on one SoC, and the schedule's quality: the result of `onchip.corun`."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from onchip.base.files import write_atomically
from onchip.multi_dnn.classes import SINGLE
from onchip.multi_dnn.derived_bound import derived_bound
from onchip.multi_dnn.judged import Judged
from onchip.multi_dnn.objective import Objective
from onchip.multi_dnn.schedule_json import Claim, Rival
from onchip.multi_dnn.timeline import Figure

if TYPE_CHECKING:
    from onchip.multi_dnn.schedule import Schedule
    from onchip.multi_dnn.solve import CorunResult
    from onchip.multi_dnn.timeline import Timeline
    from onchip.multi_dnn.workload import Workload

__all__ = ["Corunned"]

_ENDED = {
    "stopped": "The search was interrupted: this is the best that it had found.",
    "time": "The time for the search was over: this is the best that it had found.",
}
"""The notes on a search that did not end by itself."""


@dataclass(frozen=True)
class Corunned:
    """A schedule of several networks, judged by simulation.

    `objective` is the schedule's (`latency`, `throughput`, `rates`); `cost_ms`, `lower_bound_ms` and
    `baselines` are the objective as a time, so that less is better (for the rates 1000 / rate). `class_`
    names the schedules among which it is the best, `status` is `optimal` where that is proved, else
    `feasible`. No schedule whatever beats `lower_bound_ms` (of a stream's throughput: in the long run; of one
    frame's: no single frame repeated). `solver` and `ended` are who found it and why the search ended.
    """

    judged: Judged
    objective: Objective
    class_: str
    status: str
    cost_ms: float
    lower_bound_ms: float
    baselines: Mapping[str, float]
    seconds: float
    solver: str
    ended: str
    every_baseline: bool = True
    """True if there was time to make all baselines."""

    @property
    def workload(self) -> Workload:
        """The networks with their profiles, the SoC and the contention model."""
        return self.judged.workload

    @property
    def schedule(self) -> Schedule:
        """The unit of every group, and the order on every unit."""
        return self.judged.schedule

    @property
    def timeline(self) -> Timeline:
        """The times of all groups, by the judge."""
        return self.judged.timeline

    @property
    def makespan_ms(self) -> float:
        """The time at which everything has run."""
        return self.timeline.makespan_ms

    @property
    def best_baseline(self) -> tuple[str, float]:
        """The schedule among the baselines that costs least, and its cost in ms."""
        return min(self.baselines.items(), key=lambda row: row[1])

    @property
    def warnings(self) -> tuple[str, ...]:
        """A sentence for each profile that is another SoC's, or was measured while others had the cores."""
        on, found = self.workload.soc.name, []
        for job in self.workload.jobs:
            of = job.profile
            if of.soc != on:
                found.append(f"The profile of {job.name} is of {of.soc or 'no SoC'}, not of {on}.")
            if 2 * of.undisturbed < of.rounds:
                found.append(
                    f"The measurement of {job.name} was disturbed by other processes: {of.undisturbed:,} of"
                    f" {of.rounds:,} rounds were not."
                )
        return tuple(dict.fromkeys(found))

    @property
    def note(self) -> str:
        """A note on a search cut short, profiles that were not measured, and streams that are too short."""
        names = [job.name for job in self.workload.jobs if job.profile.synthetic]
        said = "" if self.status == "optimal" else _ENDED.get(self.ended, "")
        if names:
            said += f" Synthetic profiles, which nobody measured: {', '.join(names)}."
        if self.objective.is_of_one_frame_repeated(self.workload):
            said += (
                " Throughput, class and bound are of one frame repeated; streams may have more: --frames 12."
            )
        if self.lower_bound_ms > self.cost_ms * (1 + 1e-9):
            said += " The bound on throughput holds in the long run; so few frames show more: --frames."
        if not self.every_baseline:
            said += " There was no time for all baselines; more may stand beside it with --time-limit."
        return said.strip()

    def data(self) -> dict[str, Any]:
        """Return the result as JSON data: times in ms."""
        from onchip.multi_dnn.result.corunned_data import judged_data

        others = {
            name: {
                "makespan_ms": line.makespan_ms,
                "latency_ms": list(line.latency_ms),
                "fps": line.fps,
                "sum_of_rates": line.sum_of_rates,
            }
            for name, line in self.judged.others
        }
        return {
            **judged_data(self.judged),
            "objective": self.objective,
            "class": self.class_,
            "status": self.status,
            "cost_ms": self.cost_ms,
            "lower_bound_ms": self.lower_bound_ms,
            "gap": max(0.0, 1 - self.lower_bound_ms / self.cost_ms),
            "baselines": dict(self.baselines),
            "baseline_figures": others,
            "seconds": self.seconds,
            "solver": self.solver,
            "ended": self.ended,
            "note": self.note,
            "warnings": list(self.warnings),
        }

    def to_json(self) -> str:
        """Return the schedule as `onchip.schedule/1`."""
        return self.judged.json()

    def save(self, path: str | Path) -> None:
        """Write the schedule as `onchip.schedule/1`."""
        write_atomically(Path(path), self.to_json())

    def report(self, path: str | Path | None = None) -> str:
        """Return the schedule as one self-contained HTML page; written to `path` when given."""
        from onchip.multi_dnn.report import html

        page = html(self.judged)
        if path is not None:
            write_atomically(Path(path), page)
        return page

    def export(self, to: str, path: str | Path | None = None) -> bytes:
        """Return the schedule in another format: `tensorrt`, `trtexec`, `order`, `json`, `trace`.

        It is written to `path` when given. Raises `UsageError` when the format cannot express the schedule.
        """
        from onchip.multi_dnn.export import export_schedule

        written = export_schedule(self.judged, to)
        if path is not None:
            write_atomically(Path(path), written)
        return written

    def __repr__(self) -> str:
        from onchip.report.grid import one_screen

        return one_screen(str(self))

    def __str__(self) -> str:
        from onchip.multi_dnn.result.corunned_table import table
        from onchip.report.grid import WIDTH, printed

        return printed(table(self.judged, WIDTH, " ".join((*self.warnings, self.note)).strip()))


def corunned_of(made: CorunResult, contention: str) -> Corunned:
    """Return the solver's answer as the user's result."""
    solution, timeline = made.solution, made.solution.timeline
    figure = solution.objective.figure(timeline.workload.frames)
    costs = {b.name: b.cost_ms(solution.objective) for b in made.baselines}
    workload = timeline.workload

    # Rounding apart, only the bound on a stream's throughput, which holds in the long run, can be beaten.
    bound = solution.lower_bound_ms
    beaten = bound > solution.cost_ms * (1 + 1e-9)
    bound = bound if beaten else min(max(bound, _own_bound(workload, figure)), solution.cost_ms)
    text = str(solution.claim)
    if solution.objective.is_of_one_frame_repeated(workload) and " among " in text:
        text += SINGLE
    claim = Claim(
        text,
        figure,
        None if beaten or bound <= 0 else figure.as_ms(bound),
        solution.seconds,
        tuple(Rival(b.name, b.schedule, b.timeline.figure(figure) or 0.0) for b in made.baselines),
        contention,
    )
    others = tuple((b.name, b.timeline) for b in made.baselines)
    return Corunned(
        Judged(solution.schedule, timeline, claim, others=others),
        solution.objective,
        text,
        "optimal" if solution.claim.proved else "feasible",
        solution.cost_ms,
        bound,
        costs,
        solution.seconds,
        solution.solver,
        solution.ended,
        made.every_baseline,
    )


def _own_bound(workload: Workload, figure: Figure) -> float:
    """Return the judge's bound as a time in ms."""
    found = derived_bound(workload, figure) or 0.0
    return figure.as_ms(found)
