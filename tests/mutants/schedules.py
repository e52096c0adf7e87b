"""Schedules and profiles as raw JSON, judged from docs/corun.md without `onchip.corun`.

A schedule's stated times are held to the laws that have one solution only: every group starts as early as its
turn, its network and its frame allow, and does exactly its work at the speeds of the stretches between.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping
from itertools import pairwise
from typing import Any

from mutants.walks import Foul

__all__ = ["confirm_profile", "confirm_schedule"]

Step = tuple[str, int, int]
"""Network, run, position of the group."""

CLOSE = 3e-6


def require(truth: object, what: str) -> None:
    if not truth:
        raise Foul(what)


def same(what: str, stated: float, found: float, scale: float = 0.0) -> None:
    require(
        math.isclose(stated, found, rel_tol=CLOSE, abs_tol=1e-9 * scale), f"{what} is {found}, not {stated}"
    )


def confirm_profile(doc: Mapping[str, Any], *, inside: bool = False) -> None:
    """Raises `Foul` for what is no profile: units once, groups once, times and bandwidths that can be."""
    require(doc.get("format") == "onchip.profile/1", "another format")
    units = doc["units"]
    require(units and len(set(units)) == len(units), "units")
    require(doc["network"].strip() and doc["groups"], "no network, no groups")
    names = [g["name"] for g in doc["groups"]]
    require(len(set(names)) == len(names) and all(n.strip() for n in names), "groups named twice")
    require(0 <= doc.get("undisturbed", 0) <= doc.get("rounds", 0), "more undisturbed rounds than rounds")
    for g in doc["groups"]:
        for key in ("ms", "gb_per_second", "out_ms", "in_ms"):
            row = g.get(key, {})
            require(set(row) <= set(units), f"{key} of a unit that there is not")
            for value in row.values():
                if value is None:
                    require(key == "ms", f"no {key}")
                    continue
                require(type(value) in (int, float) and math.isfinite(value), f"{key} is {value}")
                require(0 <= value <= 1e9, f"{key} is {value}")
                require(key != "ms" or value >= 1e-9, "takes no time")
        require(set(g["ms"]) == set(units), "no time of a unit")
        require(any(v is not None for v in g["ms"].values()), "runs nowhere")
    require(inside or True, "")


class Work:
    """What is to run, from the document."""

    def __init__(self, doc: Mapping[str, Any]) -> None:
        self.units = [u["name"] for u in doc["soc"]["units"]]
        require(self.units and len(set(self.units)) == len(self.units), "units named twice")
        self.watts = {u["name"]: (u.get("busy_watts"), u.get("idle_watts")) for u in doc["soc"]["units"]}
        for pair in self.watts.values():
            require(all(w is None or (math.isfinite(w) and w >= 0) for w in pair), "no power")
        self.epsilon = doc.get("epsilon_ms", 0.0)
        self.frames, self.pipelined = doc.get("frames", 1), doc.get("pipelined", True)
        self.in_flight = doc.get("in_flight", 0)
        require(self.frames >= 1 and self.in_flight >= 0 and 0 <= self.epsilon < math.inf, "no frames")
        self.nets = {n["name"]: n for n in doc["networks"]}
        require(len(self.nets) == len(doc["networks"]) > 0, "networks named twice")
        self.profile = {}
        for name, net in self.nets.items():
            require(net["profile"] in doc["profiles"], "no profile")
            self.profile[name] = doc["profiles"][net["profile"]]
            require(list(self.profile[name]["units"]) == self.units, "a profile of other units")
            require(
                net.get("iterations", 1) >= 1 and set(net.get("after", ())) <= set(self.nets), "after nobody"
            )
        for profile in doc["profiles"].values():
            confirm_profile(profile, inside=True)
        for name in self.nets:
            require(name not in self.before(name), f"{name} waits for itself")
        contention = doc["contention"]
        self.rows = contention.get("units", {}) if contention["model"] == "three-regions" else None
        self.peak = contention.get("peak_gb_per_second", 1.0)
        require(contention["model"] in ("none", "three-regions"), "no model")
        require(set(contention.get("units", {})) <= set(self.units), "constants of a unit that there is not")
        if self.rows is not None:
            require(set(self.rows) == set(self.units) and self.peak > 0, "no constants")

    def before(self, name: str) -> set[str]:
        found, waiting = set[str](), [name]
        while waiting:
            for other in self.nets[waiting.pop()].get("after", ()):
                if other not in found:
                    found.add(other)
                    waiting.append(other)
        return found

    def groups(self, name: str) -> list[Any]:
        return list(self.profile[name]["groups"])

    def runs(self, name: str) -> int:
        return int(self.nets[name].get("iterations", 1)) * self.frames

    def steps(self) -> Iterator[Step]:
        for name in self.nets:
            for run in range(self.runs(name)):
                yield from ((name, run, g) for g in range(len(self.groups(name))))

    def position(self, name: str, group: str) -> int:
        names = [g["name"] for g in self.groups(name)]
        require(group in names, f"no group {group}")
        return names.index(group)

    def gb(self, name: str, unit: str, g: int) -> float:
        """Stated, or the same bytes in the unit's own time as on the first unit that states them."""
        group = self.groups(name)[g]
        own, counted = group["ms"][unit], group.get("gb_per_second", {})
        if own is None and unit not in counted:
            return 0.0
        if unit in counted:
            return float(counted[unit])
        for other in self.units:
            if other in counted and group["ms"][other] is not None:
                return float(counted[other]) * float(group["ms"][other]) / float(own)
        return 0.0

    def slowdown(self, unit: str, x: float, y: float) -> float:
        """PCCS' three regions."""
        if self.rows is None or y <= 0:
            return 1.0
        c = self.rows[unit]
        lost = c["mrmc"] * y / self.peak
        beyond = min(y, c["cbp"])
        if x >= c["intensive_bw"]:
            lost += c["rate"] * beyond
        elif x >= c["normal_bw"]:
            lost += c["rate"] * max(0.0, x + beyond - max(c["tbwdc"], x))
        return 100.0 / max(1.0, 100.0 - lost)

    def moving(self, step: Step, unit: str, after: str) -> float:
        name, _, g = step
        if unit == after:
            return 0.0
        groups = self.groups(name)
        return float(groups[g].get("out_ms", {}).get(unit, 0.0)) + float(
            groups[g + 1].get("in_ms", {}).get(after, 0.0)
        )


def may_begin(work: Work, step: Step, unit: Mapping[Step, str], ends: Mapping[Step, float]) -> float | None:
    """From when on the network and its frame allow a step; None if what it waits for has not ended."""
    name, run, g = step
    if g:
        before = (name, run, g - 1)
        return None if before not in ends else ends[before] + work.moving(before, unit[before], unit[step])

    def end_of(other: str, r: int) -> float | None:
        return 0.0 if r < 0 else ends.get((other, r, len(work.groups(other)) - 1))

    waits = [end_of(name, run - 1)]
    per = int(work.nets[name].get("iterations", 1))
    frame, iteration = divmod(run, per)
    if not iteration:
        for other in work.nets[name].get("after", ()):
            waits.append(end_of(other, (frame + 1) * int(work.nets[other].get("iterations", 1)) - 1))
        most = work.in_flight if work.pipelined else 1
        if most and frame >= most:
            for other in work.nets:
                waits.append(
                    end_of(other, (frame + 1 - most) * int(work.nets[other].get("iterations", 1)) - 1)
                )
    return None if any(w is None for w in waits) else max(w for w in waits if w is not None)


def run_out(
    work: Work, order: Mapping[str, list[Step]], unit: Mapping[Step, str], idle: Mapping[Step, float]
) -> tuple[dict[Step, float], dict[Step, float]] | None:
    """Starts and ends of every step, from event to event; None where the orders wait for each other."""
    head = dict.fromkeys(order, 0)
    starts: dict[Step, float] = {}
    ends: dict[Step, float] = {}
    left: dict[Step, float] = {}
    could: dict[Step, float] = {}
    closing: dict[Step, bool] = {}
    now, total = 0.0, len(unit)
    while len(ends) < total:
        grown = True
        later: list[float] = []
        while grown:
            grown, later = False, []
            for u, mine in order.items():
                busy = [s for s in left if unit[s] == u]
                if head[u] == len(mine) or len(busy) > 1 or any(not closing[s] for s in busy):
                    continue
                step = mine[head[u]]
                since = may_begin(work, step, unit, ends)
                if since is None or since > now:
                    later += [] if since is None else [since]
                    continue
                could.setdefault(step, now)
                if could[step] + idle.get(step, 0.0) > now:
                    later.append(could[step] + idle.get(step, 0.0))
                    continue
                name, _, g = step
                left[step] = float(work.groups(name)[g]["ms"][u])
                closing[step] = left[step] <= work.epsilon
                starts[step] = now
                head[u] += 1
                grown = True
        asked = {s: work.gb(s[0], unit[s], s[2]) for s in left}
        speed = {
            s: 1 / work.slowdown(unit[s], asked[s], sum(gb for o, gb in asked.items() if o != s))
            for s in left
        }
        until = [now + max(left[s], 0.0) / speed[s] for s in left]
        if work.epsilon:
            until += [now + max(left[s] - work.epsilon, 0.0) / speed[s] for s in left if not closing[s]]
        moments = [*until, *later]
        if not moments:
            return None
        after = min(moments)
        for s in [*left]:
            done, near = now + max(left[s], 0.0) / speed[s], now + max(left[s] - work.epsilon, 0.0) / speed[s]
            left[s] -= (after - now) * speed[s]
            if done <= after:
                ends[s] = after
                del left[s]
            elif work.epsilon and near <= after:
                closing[s] = True
        now = after
    return starts, ends


def obey(work: Work, unit: Mapping[Step, str], order: Mapping[str, list[Step]], idle: Mapping[Step, float],
         start: Mapping[Step, float], end: Mapping[Step, float]) -> None:  # fmt: skip
    """The stated times keep the laws (without a tolerated overlap)."""
    scale = max(end.values())
    cuts = sorted({*start.values(), *end.values()})
    for s in unit:
        name, _, g = s
        need, done = float(work.groups(name)[g]["ms"][unit[s]]), 0.0
        x = work.gb(name, unit[s], g)
        for a, b in pairwise(cuts):
            middle = (a + b) / 2
            if b - a > 1e-12 * scale and start[s] < middle < end[s]:
                y = sum(work.gb(o[0], unit[o], o[2]) for o in unit if o != s and start[o] < middle < end[o])
                done += (b - a) / work.slowdown(unit[s], x, y)
        # Two events closer than rounding may stand in either order: they shift no more than that.
        require(math.isclose(done, need, rel_tol=1e-4, abs_tol=1e-6 * scale), f"{s} does {done} of {need}")
    for mine in order.values():
        free = 0.0
        for s in mine:
            since = may_begin(work, s, unit, end)
            assert since is not None
            same(f"start of {s}", start[s], max(free, since) + idle.get(s, 0.0), scale)
            free = end[s]


def confirm_schedule(doc: Mapping[str, Any]) -> None:
    """Raises `Foul` unless a schedule is legal and every figure in its file its own."""
    require(doc.get("format") == "onchip.schedule/1", "another format")
    work = Work(doc)
    unit: dict[Step, str] = {}
    start: dict[Step, float] = {}
    end: dict[Step, float] = {}
    moved: dict[Step, float] = {}
    for net in doc["networks"]:
        for row in net["segments"]:
            step = net["name"], row["run"], work.position(net["name"], row["group"])
            require(step not in unit and 0 <= row["run"] < work.runs(net["name"]), "a step twice, or none")
            require(row["unit"] in work.units, "no such unit")
            require(work.groups(net["name"])[step[2]]["ms"][row["unit"]] is not None, "does not run there")
            unit[step], start[step], end[step] = row["unit"], row["start_ms"], row["end_ms"]
            moved[step] = row.get("transition_ms", 0.0)
    require(set(unit) == set(work.steps()), "something does not run")
    require(set(doc["order"]) <= set(work.units), "the order of a unit that there is not")
    order = {u: [(n, r, work.position(n, g)) for n, r, g in doc["order"].get(u, ())] for u in work.units}
    listed = [s for mine in order.values() for s in mine]
    require(sorted(listed) == sorted(unit), "not every step is ordered once")
    require(all(unit[s] == u for u, mine in order.items() for s in mine), "ordered on another unit")
    idle: dict[Step, float] = {}
    for n, r, g, ms in doc.get("idle", ()):
        step = n, r, work.position(n, g)
        require(step in unit and step not in idle and 0 <= ms <= 1e9, "no wait, or two")
        idle[step] = ms
    for s in unit:
        name, run, g = s
        after = (name, run, g + 1)
        due = work.moving(s, unit[s], unit[after]) if after in unit else 0.0
        same(f"transition of {s}", moved[s], due, 1.0)
    found = run_out(work, order, unit, idle)
    require(found is not None, "the units wait for each other")
    assert found is not None
    scale = max(found[1].values())
    for s in unit:
        same(f"start of {s}", start[s], found[0][s], scale)
        same(f"end of {s}", end[s], found[1][s], scale)
    if not work.epsilon:
        obey(work, unit, order, idle, *found)
    result = doc["result"]
    mine = figures(work, unit, *found)
    for name, net in work.nets.items():
        same(f"latency of {name}", net["latency_ms"], latency(work, name, found[1]))
    for key in ("makespan_ms", "fps", "sum_of_rates"):
        same(key, result[key], mine[key] or 0.0)
    if result.get("millijoules") is not None:
        require(mine["millijoules"] is not None, "energy of what states no power")
        same("millijoules", result["millijoules"], mine["millijoules"] or 0.0)
    claims(work, doc, mine)


def latency(work: Work, name: str, ends: Mapping[Step, float]) -> float:
    """The longest time from a frame's being taken in to its end."""

    def done(other: str, frame: int) -> float:
        return ends[
            other, (frame + 1) * int(work.nets[other].get("iterations", 1)) - 1, len(work.groups(other)) - 1
        ]

    first = {n for n in (name, *work.before(name)) if not work.nets[n].get("after")}
    worst = 0.0
    for frame in range(work.frames):
        taken = 0.0
        if frame:
            some = first if work.pipelined else set(work.nets)
            pick: Callable[..., float] = min if work.pipelined else max
            taken = pick(done(n, frame - 1) for n in some)
        worst = max(worst, done(name, frame) - taken)
    return worst


def figures(
    work: Work, unit: Mapping[Step, str], start: Mapping[Step, float], end: Mapping[Step, float]
) -> dict[str, float | None]:
    makespan = max(end.values())
    latencies = [latency(work, name, end) for name in work.nets]
    done = []
    for frame in range(work.frames):
        done.append(max(
            end[n, (frame + 1) * int(net.get("iterations", 1)) - 1, len(work.groups(n)) - 1]
            for n, net in work.nets.items()
        ))  # fmt: skip
    half = len(done) // 2
    fps = 1000.0 * (len(done) - half) / (done[-1] - (done[half - 1] if half else 0.0))
    energy: float | None = 0.0
    for u, (busy, idle) in work.watts.items():
        at_work = sum(end[s] - start[s] for s in unit if unit[s] == u)
        if busy is None or idle is None or energy is None:
            energy = None
        else:
            energy += busy * at_work + idle * max(makespan - at_work, 0.0)
    return {
        "makespan_ms": makespan, "latency_ms": max(latencies), "fps": fps,
        "sum_of_rates": sum(1000.0 / ms for ms in latencies), "millijoules": energy,
    }  # fmt: skip


def claims(work: Work, doc: Mapping[str, Any], mine: Mapping[str, float | None]) -> None:
    """Nothing in the file beats its bound, or its class."""
    result = doc["result"]
    objective = result.get("objective", "makespan_ms")
    require(objective in mine, "no objective")
    rate = objective in ("fps", "sum_of_rates")

    def better(one: float, other: float) -> bool:
        return (one - other if rate else other - one) > CLOSE * max(abs(one), abs(other))

    values = [mine[objective]]
    rivals: dict[str, dict[Step, str]] = {}
    for name, rival in result.get("baselines", {}).items():
        unit: dict[Step, str] = {}
        order: dict[str, list[Step]] = {u: [] for u in work.units}
        for u, rows in rival["order"].items():
            require(u in order, "a baseline on no unit")
            for n, r, first, last in rows:
                for g in range(work.position(n, first), work.position(n, last) + 1):
                    require(
                        (n, r, g) not in unit and work.groups(n)[g]["ms"][u] is not None, "a baseline's step"
                    )
                    unit[n, r, g] = u
                    order[u].append((n, r, g))
        require(set(unit) == set(work.steps()), "a baseline leaves something out")
        found = run_out(work, order, unit, {})
        require(found is not None, "a baseline waits forever")
        assert found is not None
        value = figures(work, unit, *found)[objective]
        require(value is not None, "a baseline without a figure")
        same(f"baseline {name}", rival["value"], value or 0.0)
        values.append(value)
        rivals[name] = unit
        used = {n: {u for s, u in unit.items() if s[0] == n} for n in work.nets}
        if name.endswith(" alone") and name[:-6] in work.units:
            require(all(of == {name[:-6]} for of in used.values()), "not alone")
        if name == "whole networks":
            require(all(len(of) == 1 for of in used.values()), "not whole")
    for key in ("bound", "derived_bound"):
        bound = result.get(key)
        if bound is not None:
            require(math.isfinite(bound), "no bound")
            require(all(v is not None and not better(v, bound) for v in values), f"{key} is beaten")
    seconds = result.get("seconds")
    require(seconds is None or (math.isfinite(seconds) and seconds >= 0), "no seconds")
    stated = result.get("class", "")
    if stated.startswith("optimal"):
        require(not work.epsilon and mine[objective] is not None, "optimal of nothing")
        idle = any(row[3] > 0 for row in doc.get("idle", ()))
        require(not idle, "optimal with waits on purpose, of a class without")
        if stated == "optimal among schedules of any mapping and order, without inserted idle time":
            require(not any(better(v or 0.0, values[0] or 0.0) for v in values), "optimal, and beaten")
