"""A network's time by cause: work on each unit, slowdown by others, transitions, and waits."""

from __future__ import annotations

from dataclasses import dataclass

from onchip.base.figures import figure
from onchip.multi_dnn.timeline import Timeline

__all__ = ["Losses", "losses"]


@dataclass(frozen=True, slots=True)
class Losses:
    """One network's times over all its runs, in ms: the record of JSON, of the table and of the page.

    `latency` is that of the slowest run, `on_unit` wall time at each unit, `contention` the part of it due to
    others, `transitions` the time of handing over between units, `waits` the time its groups stood ready for
    a unit that ran others.
    """

    latency: float = figure(key="latency_ms", heading="latency", page="latency", place=99)
    contention: float = figure(
        key="contention_ms", heading="contention", page="contention", gives_way=2, place=1
    )
    transitions: float = figure(
        key="transition_ms", heading="transitions", page="transitions", gives_way=3, place=2
    )
    waits: float = figure(key="wait_ms", heading="waits", page="waits", gives_way=1, place=3)
    on_unit: tuple[float, ...] = ()


def losses(line: Timeline) -> tuple[Losses, ...]:
    """Return the losses of every network of a timeline."""
    jobs, units = line.workload.jobs, line.workload.soc.units
    on_unit = [[0.0] * len(units) for _ in jobs]
    lost, moved, waited = ([0.0] * len(jobs) for _ in range(3))
    for s in line.segments:
        j = s.step.job
        on_unit[j][s.unit] += s.end - s.start
        lost[j] += sum((p.end - p.start) * (1 - 1 / p.slowdown) for p in s.pieces)
        moved[j] += s.transition_ms
        waited[j] += s.start - s.ready
    return tuple(
        Losses(line.latency_ms[j], lost[j], moved[j], waited[j], tuple(on_unit[j])) for j in range(len(jobs))
    )
