"""The networks that run at once: their profiles, their numbers of runs, and their dependencies."""

from __future__ import annotations

from dataclasses import dataclass, field

from onchip.base.errors import ProfileError
from onchip.machines.contention import ContentionModel
from onchip.machines.soc import SoC
from onchip.multi_dnn.profile import Profile

__all__ = ["Job", "Workload"]

MAX_STEPS = 5_000_000


@dataclass(frozen=True, slots=True)
class Job:
    """One network of a workload; two copies of a network are two jobs.

    It runs `iterations` times a frame, in sequence, each whole (Table 8's balancing). Its first
    run of a frame waits for the last runs, in that frame, of the jobs named in `after` (scenarios 3 and 4).
    """

    name: str
    profile: Profile
    iterations: int = 1
    after: tuple[str, ...] = ()


@dataclass(frozen=True)
class Workload:
    """Jobs on one SoC under one contention model, for `frames` frames.

    With `pipelined`, a job begins its next frame as soon as it has finished the last one (a stream of frames;
    a serial pair then works on two frames at once). Without, no job begins a frame before all have finished
    the one before. With `in_flight`, a job begins a frame only when all have finished the one that many
    before, so that a fast job does not run away from the others (0: no limit).

    Runs of a job are numbered consecutively: run r is iteration r % iterations of frame r // iterations. Jobs
    are referred to by their position in `jobs`, units by that in `soc.units`.

    Raises `ProfileError` naming the job for names given twice or unknown, units that are not the SoC's, jobs
    that wait for each other in a circle, and counts below 1.
    """

    soc: SoC
    jobs: tuple[Job, ...]
    model: ContentionModel
    frames: int = 1
    pipelined: bool = True
    in_flight: int = 0
    waits_for: tuple[tuple[int, ...], ...] = field(init=False, compare=False)
    """For each job, the jobs that it is `after`."""

    def __post_init__(self) -> None:
        names = [job.name for job in self.jobs]
        where = "workload"
        if not names:
            raise ProfileError("has no networks", where=where)
        if self.frames < 1:
            raise ProfileError("must be at least 1", where=where, item="frames")
        if self.in_flight < 0:
            raise ProfileError("must not be negative", where=where, item="in_flight")
        for n, job in enumerate(self.jobs):
            item = f"network {job.name}"
            if job.name in names[:n]:
                raise ProfileError("is given twice", where=where, item=item)
            if job.iterations < 1:
                raise ProfileError("must run at least once a frame", where=where, item=item)
            if job.profile.units != self.soc.unit_names:
                raise ProfileError(
                    f"its profile is for units {', '.join(job.profile.units)}; SoC {self.soc.name} has"
                    f" {', '.join(self.soc.unit_names)}",
                    where=where,
                    item=item,
                )
            for other in job.after:
                if other not in names:
                    raise ProfileError(f"is after an unknown network {other!r}", where=where, item=item)
        steps = sum(self.runs(n) * len(job.profile.groups) for n, job in enumerate(self.jobs))
        if steps > MAX_STEPS:
            raise ProfileError(f"has {steps:,} groups to run, more than {MAX_STEPS:,}", where=where)
        waits = tuple(tuple(names.index(other) for other in job.after) for job in self.jobs)
        object.__setattr__(self, "waits_for", waits)
        ready: set[int] = set()
        while len(ready) < len(names):
            more = {n for n in range(len(names)) if n not in ready and ready.issuperset(waits[n])}
            if not more:
                stuck = next(n for n in range(len(names)) if n not in ready)
                raise ProfileError(
                    "waits, directly or not, for itself", where=where, item=f"network {names[stuck]}"
                )
            ready |= more

    @property
    def frames_at_once(self) -> int:
        """The most frames that may be begun and not finished; 0 is no bound."""
        return self.in_flight if self.pipelined else 1

    def runs(self, job: int) -> int:
        """Return how often the job runs in all frames."""
        return self.jobs[job].iterations * self.frames
