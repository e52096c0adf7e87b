"""The order of the law of nests as two lists: the transfers of the one channel, and the steps.

Where `onchip.check.nest_times` says when everything starts, here every transfer has the number of steps, and
every step the number of transfers, that have to be over before it starts. With one channel, whose transfers
follow each other, and one unit that computes, these two numbers are all that the rules of starts ask for.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import NamedTuple

from onchip.base.errors import UsageError
from onchip.check import check
from onchip.check.nest_clock import tree_for, work_of
from onchip.check.nest_durations import PICOSECONDS, Durations
from onchip.check.nest_times import NoTimes, last_of
from onchip.check.nest_walk import Body, Moving, Tree, Visit
from onchip.check.nest_windows import Ranges, Windows
from onchip.check.units import streams_of, units_of
from onchip.machines.tile_rates import TileRates
from onchip.plans import Load, Nest, Plan, Run, Store

__all__ = ["MOST", "Done", "Moved", "Order", "OrderWalk", "Ran", "order_of"]

MOST = 200_000
"""The most steps and transfers of a plan that are listed."""


class Done(NamedTuple):
    """So many transfers and so many steps are over."""

    transfers: int = 0
    steps: int = 0

    def and_also(self, other: Done) -> Done:
        """Return what holds when both hold."""
        return Done(max(self.transfers, other.transfers), max(self.steps, other.steps))


NOTHING = Done()


@dataclass(frozen=True, slots=True)
class Moved:
    """A transfer: it waits for `steps` steps, and takes `picoseconds` by the law.

    In group number `group` it is that of a home, by the use (operator, number) that its place is known by;
    with no group it is that of a whole `tensor`. The place holds `region`, in slot number `slot`, and `box`
    crosses, in indices along the buffer's sides, `width` bytes an element, of `sums` that are not complete or
    not. Constants with one buffer lie in DRAM in the order of their fills (`in_fills`).
    """

    stored: bool
    steps: int
    picoseconds: int
    tensor: str
    group: int = -1
    use: tuple[int, int] = (-1, -1)
    region: tuple[range, ...] = ()
    box: tuple[range, ...] = ()
    slot: int = 0
    width: int = 0
    sums: bool = False
    in_fills: bool = False


@dataclass(frozen=True, slots=True)
class Ran:
    """A step of an operator over so many indices of its axes (`extents`): it waits for `transfers` transfers,
    and takes `picoseconds` by the law."""

    operator: str
    transfers: int
    picoseconds: int
    extents: tuple[int, ...] = ()


@dataclass(frozen=True)
class Order:
    """All transfers and all steps of a plan, each in their order.

    `slots` are those of every turn of a home with copies, by its group and a use of it, where there are turns
    in which nothing uses it: else they follow each other. Of a ring with copies they say by how much indices
    are shifted: where its loop begins again, rows go on behind those that may still be read.
    """

    transfers: tuple[Moved, ...]
    steps: tuple[Ran, ...]
    slots: dict[tuple[int, tuple[int, int]], tuple[int, ...]] = field(default_factory=dict)

    def times(self) -> tuple[list[int], list[int]]:
        """Return when every transfer and every step ends, in picoseconds, each as early as it may start."""
        moved, ran = list[int](), list[int]()
        while len(moved) < len(self.transfers) or len(ran) < len(self.steps):
            before = len(moved) + len(ran)
            while len(moved) < len(self.transfers) and self.transfers[len(moved)].steps <= len(ran):
                one = self.transfers[len(moved)]
                moved.append(max(_last(moved, len(moved)), _last(ran, one.steps)) + one.picoseconds)
            while len(ran) < len(self.steps) and self.steps[len(ran)].transfers <= len(moved):
                step = self.steps[len(ran)]
                ran.append(max(_last(ran, len(ran)), _last(moved, step.transfers)) + step.picoseconds)
            assert len(moved) + len(ran) > before, "transfers and steps wait for each other"
        return moved, ran

    @property
    def picoseconds(self) -> int:
        """The end of everything: what the checker gives as the plan's time."""
        moved, ran = self.times()
        return max(_last(moved, len(moved)), _last(ran, len(ran)))


def _last(ends: Sequence[int], count: int) -> int:
    return ends[count - 1] if count else 0


def order_of(plan: Plan) -> Order:
    """Return the order of a legal plan. Raises `UsageError` for one without times, with two channels,
    or with tensors in tiles.
    """
    where = plan.network.name
    if plan.layouts:
        reason = "lies in DRAM in tiles, and in the program row by row: plan with --no-dram-tiles"
        raise UsageError(reason, where=where, item=f"tensor {plan.layouts[0].tensor}")
    tiles = plan.chip.tiles
    if tiles is None or check(plan).latency_picoseconds is None:
        raise UsageError("has no times of nests: there is no order of its transfers", where=where)
    if len(tiles.channels) > 1:
        raise UsageError("is for a chip with several channels: one thread serves one", where=where)
    units = units_of(
        plan.network, plan.groups, alignment=plan.chip.alignment_bytes,
        weights_resident=plan.options.get("weights") == "resident", streamed=streams_of(plan.program),
        accumulator=plan.chip.accumulator_bytes,
    )  # fmt: skip
    groups = {group.name: group for group in plan.groups}
    sizes = {t.name: t.bytes for t in plan.network.tensors}
    walk = OrderWalk(tiles)
    try:
        for step in plan.program:
            if isinstance(step, Load | Store):
                walk.whole(step.tensor, sizes[step.tensor], stored=isinstance(step, Store))
            elif isinstance(step, Run):
                nest, group = units[step.operator].nest, groups[step.operator]
                assert nest is not None
                assert isinstance(group.tiling, Nest)
                durations = Durations(nest, tiles, work_of(plan.network, nest), plan.chip.accumulator_bytes)
                walk.run(tree_for(plan.network, group, nest), durations, beside=group.tiling.beside)
    except NoTimes as reason:
        raise UsageError(str(reason), where=where) from None
    return walk.order()


@dataclass(eq=False)
class _State:
    """A buffer that moves. `slots` say what is over when each was given back, in the order of use."""

    one: Moving
    use: tuple[int, int]
    in_fills: bool
    slots: deque[Done]
    fills: int = 0
    fresh: bool = False
    slot: int = 0
    turns: list[int] = field(default_factory=list)
    """The slot of every turn of its home: that of the next fill where nothing in the turn uses it."""
    last: tuple[Visit, tuple[tuple[Body, int], ...]] | None = None

    shift: int = 0
    end: int = 0
    """Of a ring: what an index is shifted by to get its row, and one past the last index that is there."""

    @property
    def ring(self) -> bool:
        return self.owned and self.one.home.ring is not None

    @property
    def side(self) -> int:
        """The side along which it is a ring."""
        return next(n for n, body in enumerate(self.one.cuts) if body is not None and body.windows is not None
                    and body.turns is self.one.home.ring)  # fmt: skip

    @property
    def owned(self) -> bool:
        return self.one.home.copies > 1


@dataclass(frozen=True, slots=True)
class _Late:
    """A store that waits for its place in the channel's order."""

    state: _State
    moved: Moved
    late: int = 0
    """The fetches of so many more steps stand before it."""


@dataclass
class OrderWalk:
    """The walk over groups that run as nests, one after the other, on a chip with one channel.

    Every rule stands as in docs/nest-times.md. Raises `NoTimes` for what it does not say.
    """

    tiles: TileRates
    transfers: list[Moved] = field(default_factory=list)
    steps: list[Ran] = field(default_factory=list)
    gate: Done = NOTHING
    before: tuple[Done, Done] = (NOTHING, NOTHING)
    """The end of everything up to the group before the last, and up to the last."""
    shared: list[_Late] = field(default_factory=list)
    owned: list[_Late] = field(default_factory=list)
    stored: int = 0
    """The transfers that are over with the last step's stores of shared buffers."""
    group: int = -1
    state: dict[Moving, _State] = field(default_factory=dict)
    slots: dict[tuple[int, tuple[int, int]], tuple[int, ...]] = field(default_factory=dict)

    @property
    def everything(self) -> Done:
        return Done(len(self.transfers), len(self.steps))

    def order(self) -> Order:
        """Make the last stores, and return the order."""
        self.flush()
        self.note()
        return Order(tuple(self.transfers), tuple(self.steps), self.slots)

    def note(self) -> None:
        """Note the slots of the last group's turns, where they do not just follow each other, and rings."""
        for state in self.state.values():
            if state.ring or (state.owned and state.fills != len(state.turns)):
                self.slots[self.group, state.use] = tuple(state.turns)

    # -- program -------------------------------------------------------------------------------------------

    def whole(self, name: str, size: int, *, stored: bool) -> None:
        """Copy a whole tensor of so many bytes, behind all stores and steps before it."""
        self.flush()
        [channel] = self.tiles.channels
        moved = -(-size // channel.burst_bytes) * channel.burst_bytes
        through = -(-moved * PICOSECONDS // channel.bytes_per_second)
        time = channel.transfer_picoseconds + channel.piece_picoseconds + through
        self.add(Moved(stored, len(self.steps), time, name))
        self.before = (self.everything, self.everything)

    def run(self, tree: Tree, durations: Durations, *, beside: bool) -> None:
        """Run a group."""
        if beside:
            self.gate = self.before[0]
        else:
            self.flush()
            self.gate = self.everything
            self.before = (self.before[0], self.gate)
        self.note()
        self.group += 1
        self.durations = durations
        self.state = {}
        for one in tree.moving:
            in_fills = durations.in_fills[one.home.buffer]
            at = durations.layout.homes[one.number].uses[0]
            self.state[one] = _State(one, at, in_fills, deque([Done()] * one.home.copies))
        self.body(tree.root)
        self.owned = [replace(store, late=0) for store in self.owned]
        self.before = (self.before[1], self.before[1].and_also(self.everything))

    def flush(self) -> None:
        self.store_shared()
        self.store_owned(every=True)

    def add(self, moved: Moved) -> None:
        self.transfers.append(moved)
        if len(self.transfers) + len(self.steps) > MOST:
            raise NoTimes(f"has more than {MOST:,} steps and transfers")

    # -- a group -------------------------------------------------------------------------------------------

    def body(self, body: Body) -> None:
        """Walk one turn of a body."""
        for one in body.moving:
            state = self.state[one]
            if state.ring:
                region = region_of(one)[state.side]
                state.shift += state.end - region.start if body.index == 0 else 0
                state.end = region.stop
                state.turns.append(state.shift)
            else:
                state.turns.append(state.fills % one.home.copies)
            state.fresh = True
            state.last = last_of(body, one.users)
        for item in body.items:
            if isinstance(item, Visit):
                self.visit(item)
                continue
            item.begin()
            for index in range(item.count):
                item.go(index)
                self.body(item)

    def visit(self, visit: Visit) -> None:
        """Walk one step: lines (a), (b) and (c), and then itself."""
        ranges = visit.ranges()
        if ranges is None:
            return
        first = [self.state[one] for one in visit.uses if self.state[one].fresh]
        self.store_shared()
        for state in first:
            if state.owned and not state.slots:
                self.give_back(state)
        needed = max(self.gate.transfers, self.stored)
        for state in sorted(first, key=lambda state: not state.owned):
            state.fresh = False
            needed = max(needed, self.begin(state))
        self.store_owned()
        goes_on = any(body.begun for body in visit.sums)
        time, _ = self.durations.step(visit, ranges, goes_on=goes_on)
        name = self.durations.layout.axes.operators[visit.path.at].name
        self.steps.append(Ran(name, needed, time, tuple(map(len, ranges))))
        self.stored = 0
        for one in visit.uses:
            state = self.state[one]
            if state.last is not None and state.last[0] is visit and _is_last(state.last[1]):
                self.ended(state)

    def begin(self, state: _State) -> int:
        """Fetch a fill, if it comes; return how many transfers are over when its place may be used."""
        one = state.one
        state.slot = state.turns[-1]
        state.fills += 1
        free = state.slots.popleft() if state.owned else Done()
        box = box_of(one)
        if not (one.comes and all(box)):
            return free.transfers
        waits = max(free.steps if state.owned else len(self.steps), self.gate.steps)
        self.add(self.moved(state, box, waits, stored=False))
        return len(self.transfers)

    def ended(self, state: _State) -> None:
        """End a fill: it waits to be stored, or gives its slot back."""
        one = state.one
        box = box_of(one)
        if not (one.stored and all(box)):
            if state.owned:
                state.slots.append(Done(0, len(self.steps)))
            return
        moved = self.moved(state, box, len(self.steps), stored=True)
        (self.owned if state.owned else self.shared).append(_Late(state, moved, one.home.late))

    def moved(self, state: _State, box: tuple[range, ...], steps: int, *, stored: bool) -> Moved:
        sums = not state.one.complete if stored else state.one.stored
        width = state.one.width if sums else state.one.element
        time = self.durations.transfer(state.one, [len(r) for r in box], width, self.tiles.channels[0])
        return Moved(
            stored, steps, time, state.one.name, self.group, state.use, region_of(state.one), box,
            state.slot, width, sums, state.in_fills,
        )  # fmt: skip

    def store_shared(self) -> None:
        waiting, self.shared = self.shared, []
        for late in waiting:
            self.late(late)
            self.stored = len(self.transfers)

    def late(self, late: _Late) -> None:
        self.add(late.moved)
        if late.moved.group < self.group:  # the next but one group's gate
            self.before = (self.before[0], self.before[1].and_also(Done(len(self.transfers), 0)))

    def store_owned(self, *, every: bool = False) -> None:
        waiting, self.owned = self.owned, []
        for store in waiting:
            if store.late and not every:
                self.owned.append(replace(store, late=store.late - 1))
            else:
                self.store(store)

    def give_back(self, state: _State) -> None:
        """Make the late store of a buffer without a free slot that has waited longest."""
        store = next((one for one in self.owned if one.state is state), None)
        if store is not None:
            self.owned.remove(store)
            self.store(store)

    def store(self, store: _Late) -> None:
        self.late(store)
        store.state.slots.append(Done(len(self.transfers), 0))


def box_of(one: Moving) -> tuple[range, ...]:
    """Return the indices along each side that are new in the turn of a buffer's home."""
    return _indices(one, lambda windows: windows.moved)


def region_of(one: Moving) -> tuple[range, ...]:
    """Return the indices along each side that a buffer holds in the turn of its home."""
    return _indices(one, lambda windows: windows.there)


def _indices(one: Moving, of: Callable[[Windows], Mapping[int, Ranges]]) -> tuple[range, ...]:
    return tuple([
        range(whole) if body is None
        else range(body.low, body.high) if body.windows is None
        else of(body.windows)[one.number][body.index]
        for body, whole in zip(one.cuts, one.sides, strict=True)
    ])  # fmt: skip


def _is_last(turns: Sequence[tuple[Body, int]]) -> bool:
    return all(body.index == (body.count - 1 if index < 0 else index) for body, index in turns)
