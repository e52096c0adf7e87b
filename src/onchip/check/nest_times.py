"""The time of nests, one after the other: when every tile moves and every step runs (docs/nest-times.md).

Every channel serves its transfers in an order that depends on no duration. For steps s = 0, 1, ..: stores of
shared buffers last used in step s - 1; fetches for step s, those of buffers that own slots first; stores of
buffers that own slots, last used in step s - 1. Everything then starts as soon as what it waits for has
ended.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from math import prod

from onchip.check.nest_durations import Durations
from onchip.check.nest_walk import Body, Moving, Tree, Visit
from onchip.machines.tile_rates import TileRates

__all__ = ["MOST_STEPS", "Fold", "NestTimes", "NoTimes", "Timeline", "Totals", "last_of"]

MOST_STEPS = 1_000_000
"""The most steps of a plan that are walked; those that are skipped as periods do not count."""


class NoTimes(Exception):  # an answer, not an error
    """The law gives a plan no times: the reason, in words that follow the plan's or the group's name."""


@dataclass(frozen=True, slots=True)
class Fold:
    """Turns of a loop that repeat the one before: `count` of them from `start` on, each `period` later."""

    group: int
    start: int
    count: int
    period: int


@dataclass
class Totals:
    """Everything of a group together: steps, picoseconds of steps and of their products alone, and by channel
    those of transfers.

    `end` is when the last of it has ended, late stores included.
    """

    steps: int = 0
    stepping: int = 0
    work: int = 0
    busy: list[int] = field(default_factory=list)
    fetched: int = 0
    stored: int = 0
    transfers: int = 0
    start: int | None = None
    end: int = 0


@dataclass
class Timeline:
    """The times of steps and transfers that were walked, and the folds, in picoseconds, if somebody asks.

    A step is (group, leaf's operator, start, end), a transfer (group, buffer, stored, channel, start, end,
    bytes).
    """

    steps: list[tuple[int, str, int, int]] = field(default_factory=list)
    transfers: list[tuple[int, str, bool, int, int, int, int]] = field(default_factory=list)
    folds: list[Fold] = field(default_factory=list)


@dataclass(eq=False)
class _State:
    """A moving buffer as the walk sees it.

    `slots` are the times at which each of its slots was given back, in the order of use; `stored` is the end
    of its last store. `fresh` says that no step of this turn has used it yet, `last` which step is the last
    one: the leaf, and the turns of the loops below the home.
    """

    one: Moving
    load: int
    store: int
    slots: deque[int]
    fills: int = 0
    stores: int = 0
    stored: int = 0
    bytes: int = 0
    fresh: bool = False
    last: tuple[Visit, tuple[tuple[Body, int], ...]] | None = None

    @property
    def owned(self) -> bool:
        return self.one.home.copies > 1


@dataclass(frozen=True, slots=True)
class _Store:
    """A store that waits for its place in the order of its channel.

    It may begin at `ready`, the end of the step numbered `step` that used its fill last. The fetches of
    `late` further steps stand before it.
    """

    state: _State
    duration: int
    bytes: int
    ready: int
    step: int
    late: int


_Snapshot = tuple[list[int], list[int], tuple[object, ...], list[int]]
"""Entries that move, numbers that say which of them did, what has to be the same, and what adds up."""


class NestTimes:
    """The clock of a chip with `tiles`, on which nests run one after the other: call `run` for each.

    With `walk_all` no period is skipped. `timeline` notes what happens, if there is one.
    """

    def __init__(self, tiles: TileRates, *, walk_all: bool = False, timeline: Timeline | None = None) -> None:
        self.tiles, self.walk_all, self.timeline = tiles, walk_all, timeline
        self.channels = [0] * len(tiles.channels)
        self.served = [0] * len(tiles.channels)
        self.end = self.gate = 0
        self.shared_end: int | None = None  # of the last step's stores of shared buffers
        self.shared: list[_Store] = []
        self.owned: list[_Store] = []
        self.before: list[int] = [
            0,
            0,
        ]  # the end of everything up to the group before the last, and to the last
        self.groups = -1
        self.walked = 0
        self.totals: list[Totals] = []

    # -- groups --------------------------------------------------------------------------------------------

    def run(
        self,
        tree: Tree,
        durations: Durations,
        channels: Callable[[Moving], tuple[int, int]],
        *,
        beside: bool = False,
    ) -> Totals:
        """Run a group; `channels` says through which ones a buffer comes and goes. Return its totals so far:
        those of a group are complete when the one after it has run, or `finish` was called.
        """
        if beside:
            self.gate = self.before[0]
        else:
            self.flush()
            self.gate = self.before[1] = self.everything()
        self.durations, self.beside = durations, beside
        self.groups += 1
        self.totals.append(Totals(busy=[0] * len(self.channels)))
        self.known: dict[object, tuple[int, int]] = {}
        self.crossing: dict[object, int] = {}
        self.state = {one: _State(one, *channels(one), deque([0] * one.home.copies)) for one in tree.moving}
        self.body(tree.root)
        self.owned = [replace(store, late=0) for store in self.owned]
        self.before = [self.before[1], max(self.before[1], self.everything())]
        totals = self.totals[-1]
        totals.end = max(totals.end, self.end)
        return totals

    def states(self) -> list[int]:
        """Return the bytes of every moving buffer of the last group, in the law's order, its late stores
        included.
        """
        late = dict.fromkeys(self.state, 0)
        for store in (*self.shared, *self.owned):
            late[store.state.one] += store.bytes
        return [state.bytes + late[one] for one, state in self.state.items()]

    def finish(self) -> int:
        """Make the last stores, and return the end of everything."""
        self.flush()
        return self.everything()

    def copy(self, channel: int, ready: int, duration: int) -> tuple[int, int]:
        """Make a copy of a whole tensor between groups, behind all of their stores; return start and end."""
        self.flush()
        start = max(self.channels[channel], ready)
        self.channels[channel] = start + duration
        self.before = [self.everything()] * 2
        return start, start + duration

    def flush(self) -> None:
        """Make the stores that stand behind the last step."""
        self.store_shared()
        self.store_owned(every=True)

    def everything(self) -> int:
        return max(self.end, *self.channels)

    # -- walking -------------------------------------------------------------------------------------------

    def body(self, body: Body) -> None:
        """Walk one turn of a body."""
        for one in body.moving:
            state = self.state[one]
            state.fresh = True
            state.last = last_of(body, one.users)
        for item in body.items:
            if isinstance(item, Visit):
                self.visit(item)
            else:
                self.loop(item)

    def loop(self, body: Body) -> None:
        """Walk the turns of a loop, and skip those that repeat the one before.

        An inner turn is one function of what it begins with. If all that it reads and writes moved by the
        same between two of them, it goes on so up to the last turn, which may be smaller and ends what outer
        loops began.
        """
        body.begin()
        steady = body.windows is None and body.count > 3 and not (self.walk_all or self.slides(body))
        moving = [self.state[one] for one in _below(body)] if steady else []
        index = 0
        before: _Snapshot | None = None
        while index < body.count:
            body.go(index)
            self.body(body)
            if steady and index < body.count - 2:
                now = self.snapshot(moving)
                by = _moved(before, now) if before is not None and index else None
                if before is not None and by is not None:
                    self.skip(moving, before, now, body.count - 2 - index, by)
                    index, steady = body.count - 2, False
                before = now
            index += 1

    def slides(self, body: Body) -> bool:
        """Return whether windows slide along a loop over what lies outside: they end at its borders, so that
        turns read more or fewer bytes.
        """
        if self.tiles.scratchpad_bytes_per_second is None or body.turns is None:
            return False
        for visit in body.leaves:
            axis = body.turns.over[visit.path.at]
            cut = self.durations.layout.axes.operators[visit.path.at]
            if any(window is not None and window.axis == axis for use in cut.uses for window in use.slides):
                return True
        return False

    def visit(self, visit: Visit) -> None:
        """Walk one step: what stands before it in the channels, and then itself."""
        ranges = visit.ranges()
        if ranges is None:
            return
        self.walked += 1
        if self.walked > MOST_STEPS:
            raise NoTimes(f"takes more than {MOST_STEPS:,} steps that do not repeat")
        first = [self.state[one] for one in visit.uses if self.state[one].fresh]
        self.store_shared()
        for state in first:
            if state.owned and not state.slots:
                self.give_back(state)
        ready = max(self.end, self.gate, self.shared_end or 0)
        for state in sorted(first, key=lambda state: not state.owned):
            state.fresh = False
            ready = max(ready, self.begin(state))
        self.store_owned()
        goes_on = any(body.begun for body in visit.sums)
        key = visit.number, goes_on, tuple([(r.start, r.stop) for r in ranges])
        if key not in self.known:
            self.known[key] = self.durations.step(visit, ranges, goes_on=goes_on)
        length, busy = self.known[key]
        start, self.end, self.shared_end = ready, ready + length, None
        totals = self.totals[-1]
        totals.start = start if totals.start is None else totals.start
        totals.steps += 1
        totals.stepping += length
        totals.work += busy
        if self.timeline is not None:
            name = self.durations.layout.axes.operators[visit.path.at].name
            self.timeline.steps.append((self.groups, name, start, self.end))
        for one in visit.uses:
            state = self.state[one]
            if (
                state.last is not None
                and state.last[0] is visit
                and all(
                    body.index == (body.count - 1 if index < 0 else index) for body, index in state.last[1]
                )
            ):
                self.ended(state)

    def begin(self, state: _State) -> int:
        """Fetch a fill that the next step uses first, if it comes; return when it is there."""
        one = state.one
        state.fills += 1
        given_back = state.slots.popleft() if state.owned else 0
        lengths = one.lengths()
        elements = prod(lengths)
        if not (one.comes and elements):
            return given_back
        wait = given_back if state.owned else max(self.end, self.shared_end or 0)
        if one.stored:
            wait = max(wait, state.stored)
        width = one.width if one.stored else one.element
        duration = self.transfer(state, lengths, width, state.load)
        return self.serve(state, state.load, max(wait, self.gate), duration, elements * width, stored=False)

    def ended(self, state: _State) -> None:
        """End a fill after the step that used it last: it waits to be stored, or gives its slot back."""
        one = state.one
        lengths = one.lengths()
        elements = prod(lengths) if one.stored else 0
        if not elements:
            if state.owned:
                state.slots.append(self.end)
            return
        width = one.element if one.complete else one.width
        duration = self.transfer(state, lengths, width, state.store)
        store = _Store(state, duration, elements * width, self.end, self.walked, one.home.late)
        (self.owned if state.owned else self.shared).append(store)

    def transfer(self, state: _State, lengths: Sequence[int], width: int, channel: int) -> int:
        key = state.one, tuple(lengths), width, channel
        if key not in self.crossing:
            self.crossing[key] = self.durations.transfer(
                state.one, lengths, width, self.tiles.channels[channel]
            )
        return self.crossing[key]

    # -- channels ------------------------------------------------------------------------------------------

    def store_shared(self) -> None:
        """Make the stores of shared buffers that the last step used last."""
        waiting, self.shared = self.shared, []
        for store in waiting:
            self.shared_end = max(self.shared_end or 0, self.store(store))

    def store_owned(self, *, every: bool = False) -> None:
        """Make the stores of buffers with slots whose place has come; late ones let one step more pass."""
        waiting, self.owned = self.owned, []
        for store in waiting:
            if store.late and not every:
                self.owned.append(replace(store, late=store.late - 1))
            else:
                store.state.slots.append(self.store(store))

    def give_back(self, state: _State) -> None:
        """Make the late store of a buffer without a free slot that has waited longest."""
        store = next((one for one in self.owned if one.state is state), None)
        if store is not None:
            self.owned.remove(store)
            state.slots.append(self.store(store))

    def store(self, store: _Store) -> int:
        return self.serve(
            store.state, store.state.store, store.ready, store.duration, store.bytes, stored=True
        )

    def serve(
        self, state: _State, channel: int, ready: int, duration: int, moved: int, *, stored: bool
    ) -> int:
        """Make a transfer as soon as its channel is free; return its end."""
        start = max(self.channels[channel], ready)
        end = self.channels[channel] = start + duration
        self.served[channel] += 1
        state.bytes += moved
        group = self.groups if self.state.get(state.one) is state else self.groups - 1
        totals = self.totals[group]
        totals.busy[channel] += duration
        totals.transfers += 1
        totals.end = max(totals.end, end)
        totals.start = start if totals.start is None else totals.start
        if stored:
            state.stores += 1
            state.stored = end
            totals.stored += moved
            if group < self.groups:  # a late store of the group before
                self.before[1] = max(self.before[1], end)
        else:
            totals.fetched += moved
        if self.timeline is not None:
            self.timeline.transfers.append((group, state.one.name, stored, channel, start, end, moved))
        return end

    # -- periods -------------------------------------------------------------------------------------------

    def snapshot(self, moving: Sequence[_State]) -> _Snapshot:
        """Return all that an inner turn of a loop may read or write."""
        entries = [self.end, *self.channels]
        uses = [self.walked, *self.served]
        same: list[object] = [self.shared_end is None]
        if self.shared_end is not None:
            entries.append(self.shared_end)
            uses.append(self.walked)
        for state in moving:
            if state.owned:
                entries += state.slots
                uses += [state.fills] * len(state.slots)
            entries.append(state.stored)
            uses.append(state.stores)
        for waiting in (self.shared, self.owned):
            same.append(tuple([(store.state, store.duration, store.bytes, store.late) for store in waiting]))
            entries += [store.ready for store in waiting]
            uses += [store.step for store in waiting]
        totals = self.totals[-1]
        counts = [totals.steps, totals.stepping, totals.work, totals.fetched, totals.stored]
        counts += [totals.transfers, *totals.busy, *self.served]
        for state in moving:
            counts += [state.fills, state.stores, state.bytes]
        return entries, uses, tuple(same), counts

    def skip(self, moving: Sequence[_State], before: _Snapshot, now: _Snapshot, turns: int, by: int) -> None:
        """Go `turns` turns on, each of which ends `by` later than the one before."""
        if self.timeline is not None:
            self.timeline.folds.append(Fold(self.groups, self.end - by, turns + 1, by))
        far = turns * by
        moves = iter([new != old for old, new in zip(before[0], now[0], strict=True)])
        ahead = [far if moves_ else 0 for moves_ in moves]
        at = iter(ahead)
        self.end += next(at)
        self.channels = [time + next(at) for time in self.channels]
        if self.shared_end is not None:
            self.shared_end += next(at)
        for state in moving:
            if state.owned:
                state.slots = deque([time + next(at) for time in state.slots])
            state.stored += next(at)
        self.shared = [replace(store, ready=store.ready + next(at)) for store in self.shared]
        self.owned = [replace(store, ready=store.ready + next(at)) for store in self.owned]
        counts = iter([turns * (new - old) for old, new in zip(before[3], now[3], strict=True)])
        totals = self.totals[-1]
        totals.steps += next(counts)
        totals.stepping += next(counts)
        totals.work += next(counts)
        totals.fetched += next(counts)
        totals.stored += next(counts)
        totals.transfers += next(counts)
        totals.busy = [n + next(counts) for n in totals.busy]
        self.served = [n + next(counts) for n in self.served]
        for state in moving:
            state.fills += next(counts)
            state.stores += next(counts)
            state.bytes += next(counts)
        totals.end = max(
            totals.end, self.end, *(t for t, n in zip(self.channels, ahead[1:], strict=False) if n), 0
        )


def _moved(before: _Snapshot, now: _Snapshot) -> int | None:
    """Return by how much everything that a turn used has moved; None if not all of it by the same."""
    if before[2] != now[2] or len(before[0]) != len(now[0]):
        return None
    by = now[0][0] - before[0][0]
    for old, new, used, uses in zip(before[0], now[0], before[1], now[1], strict=True):
        if new - old != (by if uses != used else 0):
            return None
    return by


def _below(body: Body) -> list[Moving]:
    """Return all that moves inside a loop."""
    found = list(body.moving)
    for item in body.items:
        if isinstance(item, Body):
            found += _below(item)
    return found


def last_of(body: Body, users: set[int]) -> tuple[Visit, tuple[tuple[Body, int], ...]] | None:
    """Return the last step of this turn of a body that some leaves, by number, make; None if there is none.

    It is given as the leaf and the turns of the loops below, -1 for the last one. Along windows an operator
    may make nothing in a turn.
    """
    for item in reversed(body.items):
        if isinstance(item, Visit):
            if item.number in users and all(
                around.windows is None or around.made(item.path.at) for around in item.around
            ):
                return item, ()
        elif any(visit.number in users for visit in item.leaves):
            turns = (-1,) if item.windows is None else range(item.windows.turns - 1, -1, -1)
            for index in turns:
                if index >= 0:
                    item.index = index
                if found := last_of(item, users):
                    return found[0], ((item, index), *found[1])
    return None
