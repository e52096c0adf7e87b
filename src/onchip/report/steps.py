"""The report's timeline: a plan's residencies, the scratchpad's occupancy and the DRAM crossings over time.

A *step* is one `run` (or `join`) and everything since the one before it, so that making room for an operator
belongs to that operator's step. The instructions after the last run are one more step, without an operator.
The timeline comes from the checker's replay, so that only a plan that is proved legal is shown.
"""

from __future__ import annotations

from bisect import bisect_left
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Literal

from onchip.check.replay import Crossed, Event, Ran, Released, Reserved, events_of
from onchip.network import Network
from onchip.plans import Plan

__all__ = ["Crossing", "Residency", "Role", "Step", "Timeline", "Traffic", "timeline"]

Role = Literal["input", "activation", "output", "scratch", "weights"]
Arrival = Literal["load", "reload", "alloc", "move", "scratch", "held"]
Departure = Literal["dead", "spill", "evict", "move", "kept"]


@dataclass(frozen=True, slots=True)
class Traffic:
    """Bytes that cross to and from DRAM, by kind; `compulsory` is split by direction."""

    compulsory_in: int = 0
    compulsory_out: int = 0
    spill: int = 0
    reload: int = 0
    weights: int = 0

    @property
    def compulsory(self) -> int:
        """First loads of graph inputs and first stores of graph outputs."""
        return self.compulsory_in + self.compulsory_out

    @property
    def total(self) -> int:
        """Every byte that crosses."""
        return self.compulsory + self.spill + self.reload + self.weights


@dataclass(frozen=True, slots=True)
class Step:
    """One run with the instructions that made room for it.

    `occupancy_bytes` is the most that was live at any instruction of the step; `streamed` the operands that
    passed through scratch, as (tensor, bytes). `operators` is empty for what follows the last run; a `joined`
    step is a concat in DRAM, which moves nothing. `instruction` is the index of the run in the program.
    """

    index: int
    name: str
    type: str
    operators: tuple[int, ...]
    inputs: tuple[int, ...]
    outputs: tuple[int, ...]
    workspace: int
    occupancy_bytes: int
    traffic: Traffic
    streamed: tuple[tuple[int, int], ...] = ()
    joined: bool = False
    instruction: int = field(default=-1, repr=False)


@dataclass(frozen=True, slots=True)
class Residency:
    """One stay in the scratchpad: bytes [address, address + size) over steps [start, end).

    `tensor` is None for an operator's scratch, whose `operator` is its step's, and for pinned weights; sizes
    are rounded up to the chip's alignment. A `held` range was there before the first step. A tensor that left
    by `spill` was stored first (at a cost); one that left by `evict` already had a copy in DRAM. One that
    leaves by `move` is elsewhere on chip from then on. `memory` is one of several, None for a single
    scratchpad.
    """

    tensor: int | None
    name: str
    role: Role
    address: int
    size: int
    start: int
    end: int
    arrival: Arrival
    departure: Departure
    memory: str | None = None


@dataclass(frozen=True, slots=True)
class Crossing:
    """Bytes of one tensor that cross; `kind` is a field of `Traffic` other than weights."""

    tensor: int
    instruction: int
    step: int
    kind: str
    bytes: int


@dataclass(frozen=True)
class Timeline:
    """A plan's program over time."""

    plan: Plan
    steps: tuple[Step, ...]
    residencies: tuple[Residency, ...]
    peak_step: int
    peak_live: tuple[tuple[str, Role, int], ...]
    """The live ranges at the fullest instruction: (tensor or operator, role, bytes), largest first."""
    crossings: tuple[Crossing, ...]
    """The crossings to and from DRAM except weights, in the program's order."""

    def step_at(self, instruction: int) -> int:
        """Return the step that an instruction belongs to."""
        return bisect_left(self._runs, instruction)

    @cached_property
    def _runs(self) -> list[int]:
        """The instructions at which the steps run operators; the last step may run none."""
        return [step.instruction for step in self.steps if step.operators]

    @cached_property
    def peak_bytes(self) -> int:
        """The most live bytes at any instruction."""
        return self.steps[self.peak_step].occupancy_bytes if self.steps else 0

    @cached_property
    def extent_bytes(self) -> int:
        """One past the highest byte reserved, added up over the memories."""
        return sum(self.extents.values())

    @cached_property
    def extents(self) -> dict[str | None, int]:
        """One past the highest byte reserved in each memory of the chip."""
        names: list[str | None] = [m.name for m in self.plan.chip.memories]
        found = dict.fromkeys(names or [None], 0)
        for r in self.residencies:
            found[r.memory] = max(found.get(r.memory, 0), r.address + r.size)
        return found

    @cached_property
    def traffic(self) -> Traffic:
        """All bytes that cross to and from DRAM."""
        rows = [s.traffic for s in self.steps]
        return Traffic(
            sum(t.compulsory_in for t in rows),
            sum(t.compulsory_out for t in rows),
            sum(t.spill for t in rows),
            sum(t.reload for t in rows),
            sum(t.weights for t in rows),
        )

    def role(self, tensor: int) -> Role:
        """Return a tensor's role in the network; an input that is also an output counts as an output."""
        return role_of(self.plan.network, tensor)

    @cached_property
    def stays(self) -> dict[int, tuple[Residency, ...]]:
        """Each tensor's residencies in order."""
        found: dict[int, list[Residency]] = {}
        for r in self.residencies:
            if r.tensor is not None:
                found.setdefault(r.tensor, []).append(r)
        return {t: tuple(rows) for t, rows in found.items()}


def role_of(network: Network, tensor: int) -> Role:
    """Return a tensor's role in the network."""
    if network.output_roots >> tensor & 1:
        return "output"
    return "input" if network.input_roots >> tensor & 1 else "activation"


def timeline(plan: Plan) -> Timeline:
    """Return the plan's program over time. Raises `IllegalPlan` for a program that is not legal."""
    line = _Line(plan)
    for event in events_of(plan):
        line.follow(event)
    return line.finish()


_RANK = {"input": 0, "activation": 0, "output": 0, "scratch": 1, "weights": 2}


class _Line:
    def __init__(self, plan: Plan) -> None:
        self.plan, self.net = plan, plan.network
        self.open: dict[Key, Residency] = {}
        self.fetched: set[int | None] = set()  # tensors that came from DRAM
        self.closed: list[Residency] = []
        self.steps: list[Step] = []
        self.crossings: list[Crossing] = []
        self.live = 0
        self.peak = (-1, 0)
        self.peak_live: tuple[tuple[str, Role, int], ...] = ()
        self.begin_step()

    def begin_step(self) -> None:
        self.occupancy = 0
        self.rises = False
        self.bytes = dict.fromkeys(("compulsory_in", "compulsory_out", "spill", "reload", "weights"), 0)

    def follow(self, event: Event) -> None:
        match event:
            case Reserved():
                self.reserve(event)
            case Released():
                self.release(event)
            case Crossed():
                self.cross(event)
            case Ran():
                self.run(event)

    def reserve(self, event: Reserved) -> None:
        if event.cause == "scratch" and not event.bytes:
            return
        for part in event.parts:
            # Several ranges become one here: the operands' stays end where this one begins.
            self.close(part, event.step, "dead")
        if event.cause == "move":
            self.close(_key(event), event.step, "move")
        if event.cause in ("load", "reload"):
            self.fetched.add(event.tensor)
        arrival: Arrival = "held" if event.cause == "weights" else event.cause
        role: Role = "weights" if event.cause == "weights" else "scratch"
        if event.tensor is not None:
            role = role_of(self.net, event.tensor)
        place = event.address, event.bytes, event.step
        self.open[_key(event)] = Residency(
            event.tensor, event.name, role, *place, 0, arrival, "kept", event.memory
        )
        self.rises = True
        self.mark(event.live)

    def mark(self, live: int) -> None:
        self.live = live
        self.occupancy = max(self.occupancy, live)
        if live > self.peak[0]:
            self.peak = (live, len(self.steps))
            rows = sorted(self.open.values(), key=lambda r: (-r.size, r.name, _RANK[r.role]))
            self.peak_live = tuple((r.name, r.role, r.size) for r in rows)

    def release(self, event: Released) -> None:
        self.live = event.live
        departure: Departure = "dead"
        if event.needed:
            departure = "evict" if event.range.tensor in self.fetched else "spill"
        if event.cause != "move":  # the stay that a move ends was closed when the next one began
            self.close(_key(event.range), event.step, departure)

    def close(self, key: Key, step: int, departure: Departure) -> None:
        """End a stay, unless it has become a part of another one."""
        if key in self.open:
            self.closed.append(replace(self.open.pop(key), end=step, departure=departure))

    def cross(self, event: Crossed) -> None:
        first, more = ("compulsory_in", "reload") if event.inward else ("compulsory_out", "spill")
        for kind, n in ((first, event.compulsory), (more, event.bytes - event.compulsory)):
            self.bytes[kind] += n
            if n:
                self.crossings.append(Crossing(event.tensor, event.index, event.step, kind, n))

    def run(self, event: Ran) -> None:
        unit = event.unit
        self.mark(event.live)
        self.bytes["weights"] += 0 if event.joined else unit.weights
        count, first = len(unit.operators), self.net.operators[unit.operators[0]]
        self.steps.append(
            Step(
                len(self.steps),
                unit.name,
                first.type if event.group is None else f"group of {count}",
                unit.operators,
                unit.reads,
                unit.writes,
                unit.workspace,
                self.occupancy,
                Traffic(**self.bytes),
                event.streamed,
                event.joined,
                event.index,
            )
        )
        self.begin_step()

    def finish(self) -> Timeline:
        end = len(self.steps)
        if self.rises or any(self.bytes.values()):
            most = max(self.occupancy, self.live)
            self.steps.append(Step(end, "", "", (), (), (), 0, most, Traffic(**self.bytes)))
        end = len(self.steps)
        rows = [*self.closed, *(replace(stay, end=end) for stay in self.open.values())]
        rows.sort(key=lambda r: (r.start, r.address, r.name))
        return Timeline(
            self.plan,
            tuple(self.steps),
            tuple(rows),
            self.peak[1],
            self.peak_live,
            tuple(self.crossings),
        )


Key = int | tuple[str, str]


def _key(range_: Reserved) -> Key:
    """Return the key of a stay: a tensor's id, or its cause and name for an operator's range."""
    return (range_.cause, range_.name) if range_.tensor is None else range_.tensor
