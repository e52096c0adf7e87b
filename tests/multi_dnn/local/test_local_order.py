"""The wiring between units keeps every order, with the fewest assumptions: as messages between clocks."""

from __future__ import annotations

from dataclasses import replace
from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from multi_dnn.workloads import random_schedule, random_workload
from onchip.multi_dnn.local.order import violations
from onchip.multi_dnn.local.wiring import Wired, wire
from onchip.multi_dnn.schedule import Schedule, Step
from onchip.multi_dnn.workload import Workload

Times = dict[Step, tuple[int, int]]


def play(rng: Random, wired: tuple[tuple[Wired, ...], ...]) -> Times:
    """Units with random speeds that know nothing of each other but the messages; all of them must finish."""
    clock, at = [0] * len(wired), [0] * len(wired)
    arrived: dict[tuple[int, int], list[int]] = {}
    times: Times = {}
    while any(n < len(steps) for n, steps in zip(at, wired, strict=True)):
        free = [
            u
            for u, steps in enumerate(wired)
            if at[u] < len(steps)
            and all(len(arrived.get((source, u), ())) >= count for source, count in steps[at[u]].waits)
        ]
        assert free, "the units wait for each other"
        unit = rng.choice(free)
        step, waits, tells, idle_ns = wired[unit][at[unit]]
        heard = [arrived[source, unit][count - 1] for source, count in waits]
        start = max([clock[unit], *heard]) + idle_ns
        end = clock[unit] = start + rng.choice((0, rng.randrange(1, 10**6), 10**8))
        times[step] = (start, end)
        for target in tells:
            arrived.setdefault((unit, target), []).append(end)
        at[unit] += 1
    return times


def case(seed: int) -> tuple[Random, Workload, Schedule]:
    rng = Random(seed)
    workload = replace(random_workload(rng), frames=rng.randint(1, 4), in_flight=rng.choice((0, 0, 1, 2, 3)))
    return rng, workload, random_schedule(rng, workload, idle=True)


@given(st.integers(0, 10**9))
def test_whatever_the_speeds_nothing_is_out_of_order(seed: int) -> None:
    rng, workload, schedule = case(seed)
    wired = wire(workload, schedule)
    for _ in range(3):
        times = play(rng, wired)
        assert set(times) == {step for order in schedule.order for step in order}
        assert violations(workload, schedule, times) == []


@given(st.integers(0, 10**9))
def test_no_wait_is_for_nothing(seed: int) -> None:
    """Without any one wait some speeds break the order, unless another wait implies it."""
    rng, workload, schedule = case(seed)
    wired = [list(steps) for steps in wire(workload, schedule)]
    places = [(u, n) for u, steps in enumerate(wired) for n, step in enumerate(steps) if step.waits]
    if not places:
        return
    unit, number = rng.choice(places)
    step = wired[unit][number]
    source, _ = step.waits[0]
    last = max(s for s in range(len(wired[source])) if unit in wired[source][s].tells)
    wired[unit] = [w._replace(waits=tuple(x for x in w.waits if x[0] != source)) for w in wired[unit]]
    # Nobody listens to `source` any more: let it take for ever over what it tells last.
    times = play(rng, tuple(map(tuple, wired)))
    told = wired[source][last].step
    late = 10**15
    slow = {s: (a, b) if s != told else (a, late) for s, (a, b) in times.items()}
    assert violations(workload, schedule, slow) != []


def test_times_out_of_order_are_found() -> None:
    """Each step moved before any that it must follow is named."""
    for seed in range(30):
        rng, workload, schedule = case(seed)
        times = play(rng, wire(workload, schedule))
        end = max(stop for _, stop in times.values()) + 1
        first = {order[0] for order in schedule.order if order}
        for step in times:
            if step not in first:
                moved = {**times, step: (-1, -1)}
                before = {s: t if s == step else (t[0] + end, t[1] + end) for s, t in moved.items()}
                found = violations(workload, schedule, before)
                name = workload.jobs[step.job].name
                assert any(line.startswith(f"{name}, run {step.run}, ") for line in found)


def test_the_times_of_another_schedule_are_no_proof() -> None:
    rng, workload, schedule = case(3)
    times = play(rng, wire(workload, schedule))
    times.popitem()
    with pytest.raises(KeyError):
        violations(workload, schedule, times)
