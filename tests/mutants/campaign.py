"""Mutants of one kind: made, shown to the checker, and what it accepts to the referee."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from random import Random
from typing import Any

from workloads import random_schedule, random_workload

from mutants.change import changed
from mutants.kinds import KINDS, Made
from mutants.referee import Referee
from mutants.schedules import confirm_profile, confirm_schedule, require
from onchip.base.errors import IllegalPlan, IllegalSchedule, InputError, OnchipError
from onchip.check import certify, check
from onchip.multi_dnn.check import check_stated
from onchip.multi_dnn.derived_bound import derived_bound
from onchip.multi_dnn.profile_file import profile_from_json, profile_json
from onchip.multi_dnn.schedule_file import schedule_from_json
from onchip.multi_dnn.schedule_json import Claim, Rival, document_digest, schedule_json
from onchip.multi_dnn.simulate import simulate
from onchip.plans import Plan, from_json, to_json

__all__ = ["ALL", "Tally", "tally"]

FIGURES = ("claim", "result", "timing")


@dataclass
class Tally:
    """How many were made, read as a file at all, accepted, confirmed; and what differed, with its seed."""

    kind: str
    mutants: int = 0
    read: int = 0
    accepted: int = 0
    confirmed: int = 0
    differences: list[tuple[int, str, Any]] = field(default_factory=list)


ALL = (*KINDS, "schedules", "profiles")


def tally(kind: str, count: int, seed: int) -> Tally:
    """The tally of `count` mutants; each has a seed of its own, from `seed` on."""
    found = Tally(kind)
    for own in range(seed, seed + count):
        if kind == "schedules":
            one_schedule(found, own)
        elif kind == "profiles":
            one_profile(found, own)
        else:
            one(found, kind, own)
    return found


def one(found: Tally, kind: str, seed: int) -> None:
    """One mutant of a plan."""
    rng = Random(seed)
    found.mutants += 1
    made, mutant = mutants_of(kind, rng)
    if mutant is None:
        return
    found.read += 1
    accepted = judged(mutant)
    if accepted is None:
        return
    found.accepted += 1
    _confirm(found, seed, lambda: Referee(accepted, made.facts_of).confirm(), accepted)


def mutants_of(kind: str, rng: Random) -> tuple[Made, Plan | None]:
    """A legal plan and a mutant of it, None where that cannot be read."""
    how = KINDS[kind]
    made = how.make(rng)
    document = json.loads(to_json(made.plan))
    while (other := changed(rng, document, dict(how.weights))) == document:
        pass
    try:
        mutant = from_json(json.dumps(other))
    except InputError:
        return made, None
    return made, mutant


def judged(mutant: Plan) -> Plan | None:
    """The mutant if the checker accepts it, with the checker's figures where it has others."""
    try:
        check(mutant)
    except IllegalPlan as refusal:
        if refusal.rule not in FIGURES:
            return None
    else:
        return mutant
    try:
        return certify(
            mutant.network, mutant.chip, mutant.budget, mutant.program, status="feasible",
            lower_bound_bytes=0, seconds=0, groups=mutant.groups, pins=mutant.pins, state=mutant.state,
            sections=mutant.sections,
            options={**mutant.options, "objective": "traffic"},
        )  # fmt: skip
    except IllegalPlan:
        return None


# -- schedules and profiles --------------------------------------------------------------------------------


SCHEDULE = {
    "networks": 6.0, "order": 5.0, "idle": 4.0, "result": 5.0, "profiles": 4.0, "contention": 2.0, "soc": 1.0,
    "frames": 0.5, "pipelined": 0.5, "in_flight": 0.5, "epsilon_ms": 0.5,
}  # fmt: skip


def some_schedule(rng: Random) -> dict[str, Any]:
    """A judged schedule, now and then a solver's, with rivals and waits."""
    while True:
        workload = random_workload(rng)
        if rng.random() < 0.3:
            powered = tuple(
                replace(u, busy_watts=rng.uniform(1, 9), idle_watts=rng.uniform(0, 1))
                for u in workload.soc.units
            )
            workload = replace(workload, soc=replace(workload.soc, units=powered))
        objective = rng.choice(("makespan_ms", "latency_ms", "fps", "sum_of_rates"))
        epsilon = rng.choice((0.0, 0.0, 0.0, 0.1))
        schedule = random_schedule(rng, workload, idle=rng.random() < 0.5)
        line = simulate(workload, schedule, epsilon_ms=epsilon)
        rivals = []
        for n in range(rng.randint(0, 2)):
            other = random_schedule(rng, workload)
            value = simulate(workload, other, epsilon_ms=epsilon).figure(objective)
            assert value is not None
            rivals.append(Rival(f"rival {n}", other, value))
        own = line.figure(objective)
        bound = derived_bound(workload, objective, epsilon)
        words = rng.choice(
            ("best found", "", "optimal among schedules of any mapping and order, without inserted idle time")
        )
        claim = Claim(words, objective, rng.choice((None, bound, own)), 0.5, tuple(rivals), "random")
        text = schedule_json(schedule, line, epsilon_ms=epsilon, claim=claim)
        try:
            check_stated(schedule_from_json(text.encode(), "made"))
        except IllegalSchedule:
            continue
        found: dict[str, Any] = json.loads(text)
        return found


def one_schedule(found: Tally, seed: int) -> None:
    """One mutant of a schedule."""
    rng = Random(seed)
    found.mutants += 1
    document = some_schedule(rng)
    while (other := changed(rng, document, SCHEDULE)) == document:
        pass
    if isinstance(other.get("result"), dict) and rng.random() < 0.9:
        # The digest is no signature: who edits a file can make it anew.
        other["result"]["claim_sha256"] = document_digest(other)
    content = json.dumps(other).encode()
    try:
        stated = schedule_from_json(content, "mutant")
    except OnchipError:
        return
    found.read += 1
    try:
        check_stated(stated)
    except IllegalSchedule:
        # Another schedule may be legal with its own figures.
        try:
            line = simulate(stated.workload, stated.schedule, epsilon_ms=stated.epsilon_ms)
            claim = Claim("best found", stated.claim.objective)
            content = schedule_json(stated.schedule, line, epsilon_ms=stated.epsilon_ms, claim=claim).encode()
            check_stated(schedule_from_json(content, "mutant"))
        except OnchipError:
            return
    found.accepted += 1
    _confirm(found, seed, lambda: confirm_schedule(json.loads(content)), json.loads(content))


def one_profile(found: Tally, seed: int) -> None:
    """One mutant of a profile."""
    rng = Random(seed)
    found.mutants += 1
    document = json.loads(profile_json(rng.choice(random_workload(rng).jobs).profile))
    weights = {"groups": 8.0, "units": 2.0, "network": 0.5, "format": 0.2, "rounds": 1.0, "synthetic": 0.2}
    while (other := changed(rng, document, weights)) == document:
        pass
    try:
        read = profile_from_json(json.dumps(other).encode(), "mutant")
    except OnchipError:
        return
    found.read += 1
    found.accepted += 1

    def confirm() -> None:
        confirm_profile(other)
        for group, said in zip(read.groups, other["groups"], strict=True):
            require(group.ms == tuple(said["ms"][u] for u in other["units"]), "other times")
            for key in ("gb_per_second", "out_ms", "in_ms"):
                given = said.get(key, {})
                row = dict(zip(read.units, getattr(group, key), strict=True))
                require(all(row[u] == v for u, v in given.items()), f"other {key}")
                require(all(0 <= v <= 1e9 for v in row.values()), f"{key} beyond belief")
        require(tuple(other["units"]) == read.units, "other units")

    _confirm(found, seed, confirm, other)


def _confirm(found: Tally, seed: int, judge: Callable[[], None], what: Any) -> None:
    try:
        judge()
    except Exception as problem:
        found.differences.append((seed, f"{type(problem).__name__}: {problem}", what))
    else:
        found.confirmed += 1
