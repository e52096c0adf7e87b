"""The interpreter with a listener: a legal program, told event by event.

`replay` runs the same interpreter as `check`, so that all that is shown or exported of a plan is what was
proved of it. Within an instruction the events come in the order in which they happen: ranges reserved, bytes
that cross to or from DRAM, runs, ranges released.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Literal

from onchip.check.interpreter import Figures, Machine, interpret
from onchip.check.ledger import Ledger
from onchip.check.memories import Space
from onchip.check.units import Unit
from onchip.plans import Group, Instruction, Plan

__all__ = ["Crossed", "Event", "Ran", "Released", "Reserved", "events_of", "replay", "replay_and_keep"]


Cause = Literal["weights", "held", "load", "reload", "alloc", "move", "scratch"]
End = Literal["free", "move", "overwritten", "ran"]


@dataclass(frozen=True, slots=True)
class Happened:
    """The moment of an event, and the bytes that are then taken on chip.

    `index` is that of the instruction, -1 before the first one; `step` the number of runs and joins done so
    far; `section` the place of the section among the plan's, None outside any. `live` are the bytes taken on
    chip, rounded up to the alignment.
    """

    index: int
    step: int
    section: int | None
    live: int


@dataclass(frozen=True, slots=True)
class Reserved(Happened):
    """`bytes` at `address` of `memory` now belong to a tensor, an operator's scratch or pinned weights.

    `name` is that of the tensor or operator; `tensor` is the id of a tensor, None otherwise. `used` are its
    bytes, `bytes` the same rounded up to the alignment. A range with cause `held` or `weights` exists before
    the first instruction. `over` is the tensor that shares bytes with it until its operator has run, and lies
    `by` bytes above it; `parts` are a concat's operands that lie in its bytes.
    """

    name: str
    tensor: int | None
    cause: Cause
    memory: str | None
    address: int
    used: int
    bytes: int
    over: int | None = None
    by: int = 0
    parts: tuple[int, ...] = ()


@dataclass(frozen=True, slots=True)
class Released(Happened):
    """A `range` is given back: freed, left by a move to the range `to`, or overwritten by a run.

    With cause `ran` it is a scratch whose operator has run. `needed`: an operator has still to read the freed
    tensor.
    """

    range: Reserved
    cause: End
    to: Reserved | None = None
    needed: bool = False


@dataclass(frozen=True, slots=True)
class Crossed(Happened):
    """`bytes` of a tensor come from DRAM (`inward`) or go there; `compulsory` of them are compulsory.

    `first`: the first whole passage of a graph input or of an output. `range` is the range of a load or
    store; None if the tensor passes through a scratch.
    """

    tensor: int
    inward: bool
    bytes: int
    compulsory: int
    first: bool
    range: Reserved | None

    @property
    def kind(self) -> Literal["compulsory", "reload", "spill"]:
        """The kind of the passage; a compulsory one may have more bytes than the compulsory ones."""
        return "compulsory" if self.first else "reload" if self.inward else "spill"


@dataclass(frozen=True, slots=True)
class Ran(Happened):
    """A unit (an operator, or a `group` used like one) has run, or was `joined` in DRAM.

    `streamed` are the operands that passed through its scratch, as (tensor, bytes).
    """

    unit: Unit
    group: Group | None = None
    streamed: tuple[tuple[int, int], ...] = ()
    joined: bool = False


Event = Reserved | Released | Crossed | Ran


def replay(plan: Plan, listener: Callable[[Event], None]) -> Figures:
    """Prove a plan's program legal and tell `listener` its events; return the figures of `interpret`.

    Raises `IllegalPlan` where the program breaks a rule, after it has told all earlier events.
    """
    return interpret(plan, lambda plan: _Told(plan, listener))


def events_of(plan: Plan) -> tuple[Event, ...]:
    """Return all events of a plan's program, kept with the plan and its copies. Raises `IllegalPlan`."""
    known = plan.kept.get("events")
    if not isinstance(known, _Known) or any(
        a is not b for a, b in zip(known.about, _about(plan), strict=True)
    ):
        replay_and_keep(plan)
        return events_of(plan)
    return known.events


def replay_and_keep(plan: Plan) -> Figures:
    """Prove a plan's program legal, keep its events for `events_of`, and return the figures of `interpret`.

    Every copy of the plan with the same program shares the events, whatever its result and options.
    """
    found: list[Event] = []
    figures = replay(plan, found.append)
    plan.kept["events"] = _Known(_about(plan), tuple(found))
    return figures


@dataclass(frozen=True, slots=True)
class _Known:
    """The events of a program, and the parts of its plan that decide them."""

    about: tuple[object, ...]
    events: tuple[Event, ...]


def _about(plan: Plan) -> tuple[object, ...]:
    """Return all parts of a plan that the interpreter reads."""
    resident = plan.options.get("weights") == "resident"
    parts = (
        plan.network,
        plan.chip,
        plan.budget,
        plan.program,
        plan.groups,
        plan.pins,
        plan.state,
        plan.caches,
        plan.layouts,
    )
    return (*parts, plan.sections, resident)


@dataclass
class _Book(Ledger):
    """A ledger that remembers which tensors' passages were compulsory."""

    first: dict[int, bool] = field(default_factory=dict)

    def bring_in(self, tensor: int, size: int, crossing: int, *, parts: bool = False) -> bool:
        self.first[tensor] = super().bring_in(tensor, size, crossing, parts=parts)
        return self.first[tensor]

    def send_out(self, tensor: int, size: int, crossing: int) -> bool:
        self.first[tensor] = super().send_out(tensor, size, crossing)
        return self.first[tensor]


class _Told(Machine):
    """A machine that tells of every instruction after it has proved it."""

    def __init__(self, plan: Plan, listener: Callable[[Event], None]) -> None:
        super().__init__(plan)
        self.listener, self.sections, self.round_up = listener, plan.sections, plan.chip.round_up
        self.firsts = [section.first for section in plan.sections]
        self.groups = {group.name: group for group in plan.groups}
        self.ledger = self.book = _Book(self.ledger.inputs, self.ledger.outputs, self.ledger.copies)
        self.handed_over = {last for _, last, _ in self.pinned.state}
        self.ranges: dict[int, Reserved] = {}  # of every tensor that is resident or reserved
        self.room: dict[str, Reserved] = {}  # every scratch, until its run
        self.index, self.steps, self.live = -1, 0, 0
        self.section: int | None = None
        for op, address in {} if self.weights_apart else self.pinned.weights.items():
            operator = self.network.operators[op]
            used = operator.weight_bytes
            self.live += self.round_up(used)
            place = None, address, used, self.round_up(used)
            self.listener(Reserved(*self.now(), operator.name, None, "weights", *place))
        for first, _, _ in self.pinned.state:
            self.live += self.owned[first][0][1] - self.owned[first][0][0]
            self.reserved(first, "held")
        for cache in self.caches.all:
            self.live += self.round_up(cache.bytes)
            if cache.first is not None:
                self.reserved(cache.first, "held")

    def step(self, instruction: Instruction) -> None:
        self.index += 1
        at = bisect_right(self.firsts, self.index) - 1
        self.section = at if at >= 0 and self.index < self.sections[at].end else None
        super().step(instruction)

    # -- instructions --------------------------------------------------------------------------------------

    def load(self, t: int, at: Space, address: int) -> None:
        super().load(t, at, address)
        self.live = self.total()
        self.reserved(t, "load" if self.book.first[t] else "reload")
        self.crossed(t, True, self.size(t), self.ranges[t])

    def alloc(self, t: int, at: Space, address: int) -> None:
        super().alloc(t, at, address)
        self.live = self.total()
        self.reserved(t, "alloc")

    def alloc_over(self, t: int, at: Space, address: int, x: int, by: int) -> None:
        super().alloc_over(t, at, address, x, by)
        self.live = self.total()
        self.reserved(t, "alloc", over=x, by=by)

    def alloc_of(self, t: int, at: Space, address: int, operands: list[int]) -> None:
        super().alloc_of(t, at, address, operands)
        self.live = self.total()
        self.reserved(t, "alloc", parts=tuple(operands))

    def move(self, t: int, at: Space, address: int) -> None:
        left, own = self.ranges.get(t), self.own(t)
        super().move(t, at, address)
        assert left is not None
        self.live = self.total() + own  # the tensor lies in both while it is copied
        self.reserved(t, "move")
        self.released(left, own, "move", to=self.ranges[t])

    def reserve_scratch(self, unit: Unit, at: Space, address: int) -> None:
        super().reserve_scratch(unit, at, address)
        self.live = self.total()
        place = at.name, address, unit.workspace, self.round_up(unit.workspace)
        self.room[unit.name] = Reserved(*self.now(), unit.name, None, "scratch", *place)
        self.listener(self.room[unit.name])

    def run(self, unit: Unit, streaming: dict[int, int]) -> None:
        ended = [(x, self.own(x)) for x in unit.reads if self.over.get(x) in unit.writes]
        super().run(unit, streaming)
        for t, n in streaming.items():
            self.crossed(t, t in unit.reads, n, None)
        self.listener(Ran(*self.now(), unit, self.groups.get(unit.name), tuple(streaming.items())))
        self.steps += 1
        for x, own in ended:
            self.released(self.ranges.pop(x), own, "overwritten")
        self.leave_room(unit)

    def store(self, t: int) -> None:
        super().store(t)
        self.crossed(t, False, self.size(t), self.ranges[t])

    def free(self, t: int) -> None:
        needed, own = self.to_read[t] > (t in self.handed_over), self.own(t)
        super().free(t)
        self.released(self.ranges.pop(t), own, "free", needed=needed)

    def join(self, unit: Unit) -> None:
        super().join(unit)
        self.listener(Ran(*self.now(), unit, joined=True))
        self.steps += 1
        self.leave_room(unit)

    # -- telling -------------------------------------------------------------------------------------------

    def now(self) -> tuple[int, int, int | None, int]:
        return self.index, self.steps, self.section, self.live

    def total(self) -> int:
        """Return the bytes taken in all memories."""
        return sum(space.ranges.total for space in self.spaces.values())

    def own(self, t: int) -> int:
        """Return the bytes of a tensor's range that it alone owns, none without a range."""
        return sum(end - start for start, end in self.owned.get(t, ()))

    def reserved(
        self, t: int, cause: Cause, *, over: int | None = None, by: int = 0, parts: tuple[int, ...] = ()
    ) -> None:
        at, address = self.home[t], self.address[t]
        room = self.round_up(self.caches.by_tensor[t].bytes if t in self.settled else self.size(t))
        place = at.name, address, self.size(t), room
        self.ranges[t] = Reserved(*self.now(), self.name(t), t, cause, *place, over, by, parts)
        self.listener(self.ranges[t])

    def released(
        self, left: Reserved, own: int, cause: End, *, to: Reserved | None = None, needed: bool = False
    ) -> None:
        self.live -= own
        self.listener(Released(*self.now(), left, cause, to, needed))

    def leave_room(self, unit: Unit) -> None:
        room = self.room.pop(unit.name, None)
        if room is not None:
            self.released(room, room.bytes, "ran")

    def crossed(self, t: int, inward: bool, n: int, at: Reserved | None) -> None:
        first = self.book.first[t]
        self.listener(Crossed(*self.now(), t, inward, n, min(n, self.size(t)) if first else 0, first, at))
