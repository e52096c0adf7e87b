"""Nests in time, step by step, on a machine that shares no code with the law: slots, queues, elements.

A nest runs element by element (`oracles.nests`), and what each buffer receives, holds and sends is noted with
its elements. Then channels and the compute unit are queues: the head of a queue starts once all that it waits
for has ended. Where each fill lies is a slot, and two fills in one, a step before its operands, or more bytes
in use than the scratch are errors.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import cache
from itertools import product
from typing import Any

from onchip.machines.tile_rates import TileRates
from onchip.network.axes import GroupAxes
from onchip.plans import Leaf, Loop, Nest
from oracles.nest_bands import seen
from oracles.nests import Box, Index, Machine, Now

__all__ = ["Clocked", "OperatorWork", "SimGroup", "simulate", "trace_of"]

PS = 10**12


@dataclass(frozen=True)
class OperatorWork:
    """What an operator takes: products for every index, vector operations for every element of its output."""

    products: int
    vector: int


@dataclass(eq=False)
class Fill:
    """One filling of a buffer: the elements that came and went, and the steps that used it."""

    box: int
    came: list[Index] = field(default_factory=list)
    sent: list[Index] = field(default_factory=list)
    came_wide: bool = False
    sent_wide: bool = False
    steps: list[int] = field(default_factory=list)
    count: int = 0
    ring: bool = False


@dataclass
class Trace:
    """All fills, in the order in which they begin, and all steps: (operator, ranges, whether it goes on)."""

    fills: list[Fill] = field(default_factory=list)
    steps: list[tuple[int, list[range], bool]] = field(default_factory=list)


class _Tracing(Machine):
    """The machine, noting what it does."""

    def __init__(self, *args: Any) -> None:
        super().__init__(*args)
        self.trace = Trace()
        self.current: dict[int, Fill] = {}

    def number(self, box: Box) -> int:
        return self.boxes.index(box)

    def take(self, box: Box, now: Now) -> None:
        super().take(box, now)
        fill = self.current[self.number(box)] = Fill(self.number(box), list(box.elements))
        made = self.axes.buffers[box.buffer].maker is not None
        fill.came_wide, fill.count = made, 1
        for part in box.ranges:
            fill.count *= len(part)
        self.trace.fills.append(fill)

    def turn(self, n: int, new: range, side: int, now: Now, first: bool) -> None:
        before = {} if first else dict(self.boxes[n].elements)
        super().turn(n, new, side, now, first)
        box = self.boxes[n]
        came = [i for i in box.elements if i not in before]
        if self.axes.buffers[box.buffer].maker is not None:
            came = []
        self.current[n] = Fill(n, came, count=box.count, ring=True)
        self.trace.fills.append(self.current[n])

    def give_back(self, box: Box) -> None:
        there = dict(self.dram.get(box.buffer, {}))
        fill = self.current[self.number(box)]
        if box.buffer in self.out:
            made = {i: e for i, e in box.elements.items() if e.buffer == box.buffer}
            fill.sent = [i for i in made if not (box.redone and i in there)]
            fill.sent_wide = any(made[i].terms < self.terms(box.buffer) for i in fill.sent)
        super().give_back(box)

    def store(self, box: Box, new: range, side: int) -> None:
        there = dict(self.dram.get(box.buffer, {}))
        super().store(box, new, side)
        made = [i for i, e in box.elements.items() if e.buffer == box.buffer and i[side] in new]
        self.current[self.number(box)].sent = [i for i in made if not (box.redone and i in there)]

    def make(self, at: int, now: Now) -> None:
        cut = self.axes.operators[at]
        along = [now.of(self.axes, at, axis)[0] for axis in range(len(cut.axes))]
        if all(along):
            n = len(cut.uses) - 1
            buffer = cut.writes.buffer
            into = self.lying[buffer] if buffer in self.whole else self.box[at, n].elements
            goes_on = any(
                into[place].buffer == buffer and into[place].terms
                for place in _places(cut.writes.axes, along)
                if place in into
            )
            step = len(self.trace.steps)
            self.trace.steps.append((at, along, goes_on))
            for k in range(len(cut.uses)):
                box = self.box.get((at, k))
                if box is not None:
                    steps = self.current[self.number(box)].steps
                    if steps[-1:] != [step]:
                        steps.append(step)
        super().make(at, now)


def _places(axes: Sequence[int], along: Sequence[range]) -> list[Index]:
    found: list[Index] = [()]
    for axis in axes:
        found = [(*place, i) for place in found for i in (along[axis] if axis >= 0 else (0,))]
    return found


@dataclass
class SimGroup:
    """A group for the simulation: what it did, and how its boxes come and go."""

    trace: Trace
    axes: GroupAxes
    buffers: list[int]
    order: list[tuple[Any, ...]]
    copies: list[int]
    loads: list[int]
    stores: list[int]
    late: list[int]
    moving: list[bool]
    single: list[bool]
    array: dict[int, tuple[tuple[int, ...], ...]]
    work: Sequence[OperatorWork]
    accumulator: int | None
    beside: bool
    scratch: int
    tiles: dict[int, tuple[int, ...]] = field(default_factory=dict)
    """Of buffers that lie in DRAM in tiles, the tile."""


def trace_of(
    axes: GroupAxes,
    nest: Nest,
    leaving: set[int],
    whole: set[int],
    alignment: int,
    accumulator: int | None,
    wide: set[int],
    work: Sequence[OperatorWork],
    *,
    first: Callable[[str], int],
    scratch: int,
) -> SimGroup:
    """Run a nest and note what it did. `first` is the first channel that `loads`, or that `stores`."""
    machine = _Tracing(axes, nest, leaving, whole, alignment, None, accumulator, wide, {})
    machine.run()
    keeps: dict[tuple[int, ...], Nest | Loop] = {}
    arrays: dict[int, tuple[tuple[int, ...], ...]] = {}

    def find(node: Nest | Loop, where: tuple[int, ...]) -> None:
        keeps[where] = node
        for n, item in enumerate(node.body):
            if isinstance(item, Leaf):
                arrays[machine.at[item.operator]] = item.array
            else:
                find(item, (*where, n))

    find(nest, ())
    order, copies, loads, stores, late, moving = [], [], [], [], [], []
    for n, box in enumerate(machine.boxes):
        name = axes.buffers[box.buffer].name
        node = keeps.get(box.home)
        at_body = box.home if node is not None else box.home[:-1] if not box.deep else None
        key = (at_body, 0) if at_body is not None else (box.home, box.deep)
        listed = (
            node is not None
            and name in node.keep
            and (axes.buffers[box.buffer].maker is None or box.buffer in machine.out)
        )
        order.append((*key, node.keep.index(name) if node is not None and listed else 99, n))
        ways = node.ways if node is not None and listed else None
        copies.append(dict(ways.copies).get(name, 1) if ways else 1)
        loads.append(dict(ways.loads).get(name, first("loads")) if ways else first("loads"))
        stores.append(dict(ways.stores).get(name, first("stores")) if ways else first("stores"))
        late.append(dict(ways.late).get(name, 0) if ways else 0)
        moving.append(axes.buffers[box.buffer].maker is None or box.buffer in machine.out)
    buffers = [box.buffer for box in machine.boxes]
    single = [axes.buffers[b].tensor is None and buffers.count(b) == 1 for b in buffers]
    return SimGroup(
        machine.trace, axes, buffers, order, copies, loads, stores, late, moving, single, arrays, work,
        accumulator, nest.beside, scratch,
    )  # fmt: skip


# -- queues ------------------------------------------------------------------------------------------------


@dataclass(eq=False)
class Event:
    """Something that takes time, in the order of its queue, after all that it waits for."""

    duration: int
    waits: list[Event] = field(default_factory=list)
    start: int = -1
    end: int = -1


@dataclass(eq=False)
class _Waiting:
    """A fill with a slot that is to be stored, the step that used it last, and how many passed since."""

    group: int
    fill: Fill
    last: Event
    passed: int = 0


@dataclass
class Clocked:
    """What a simulation came to."""

    end: int
    bytes: list[int]
    steps: list[int]
    work: list[int]
    transfers: list[int]
    in_use: int
    room: int


def simulate(groups: Sequence[SimGroup], tiles: TileRates, alignment: int) -> Clocked:
    """Run groups one after the other. Raises `AssertionError` where something is where it must not be."""
    queues: list[list[Event]] = [[] for _ in tiles.channels]
    compute: list[Event] = []
    all_gates: list[Event] = []
    of_group: list[list[Event]] = [[] for _ in groups]
    held: list[list[Event]] = [[] for _ in groups]
    moved, works, counts = [0] * len(groups), [0] * len(groups), [0] * len(groups)
    late_shared: list[tuple[int, Fill]] = []
    late_owned: list[_Waiting] = []
    released: dict[Fill, Event] = {}
    stored: dict[tuple[int, int], list[Event]] = defaultdict(list)
    needs: list[tuple[Event, Event]] = []

    def element(g: int, fill: Fill, wide: bool) -> int:
        plain = groups[g].axes.buffers[groups[g].buffers[fill.box]].element
        return max(plain, groups[g].accumulator or 0) if wide else plain

    def transfer(g: int, fill: Fill, elements: Sequence[Index], wide: bool, channel: int) -> Event:
        group, rates = groups[g], tiles.channels[channel]
        buffer = group.axes.buffers[group.buffers[fill.box]]
        size = element(g, fill, wide)
        tile = group.tiles.get(group.buffers[fill.box])
        places = None if tile is None else _places_in_tiles(buffer.sides, tile)
        flat = sorted(_flat(buffer.whole, i) if places is None else places[i] for i in elements)
        if group.single[fill.box]:
            runs = [len(flat)]
        else:
            runs = [0]
            for n, at in enumerate(flat):
                if n and at != flat[n - 1] + 1:
                    runs.append(0)
                runs[-1] += 1
        assert places is not None or len(set(runs)) == 1, runs
        crossing = sum(-(-run * size // rates.burst_bytes) * rates.burst_bytes for run in runs)
        event = Event(
            rates.transfer_picoseconds
            + len(runs) * rates.piece_picoseconds
            + -(-crossing * PS // rates.bytes_per_second)
        )
        queues[channel].append(event)
        of_group[g].append(event)
        moved[g] += len(flat) * size
        counts[g] += 1
        return event

    def store(late: list[tuple[int, Fill]], last: Event) -> list[Event]:
        found = []
        for g, fill in sorted(late, key=lambda one: groups[one[0]].order[one[1].box]):
            event = transfer(g, fill, fill.sent, fill.sent_wide, groups[g].stores[fill.box])
            event.waits = [last]
            stored[g, fill.box].append(event)
            released[fill] = event
            found.append(event)
        late.clear()
        return found

    def store_owned(due: Callable[[_Waiting], bool]) -> None:
        for one in [one for one in late_owned if due(one)]:
            late_owned.remove(one)
            store([(one.group, one.fill)], one.last)

    for g, group in enumerate(groups):
        gate = Event(0)
        shared: list[Event] = []
        if not group.beside and compute:
            shared = store(late_shared, compute[-1])
            store_owned(lambda _: True)
        up_to = g - 1 if group.beside else g
        gate.waits = [event for some in of_group[: max(up_to, 0)] for event in some]
        gates = [gate]
        all_gates.append(gate)
        by_first: dict[int, list[Fill]] = defaultdict(list)
        by_last: dict[int, list[Fill]] = defaultdict(list)
        numbers: dict[int, int] = defaultdict(int)
        owner: dict[tuple[int, int], Fill] = {}
        for fill in group.trace.fills:
            if fill.steps:
                by_first[fill.steps[0]].append(fill)
                by_last[fill.steps[-1]].append(fill)
        begins: dict[Fill, Event] = {}
        for s, (at, ranges, goes_on) in enumerate(group.trace.steps):
            last = compute[-1] if compute else None
            if last is not None and not (s == 0 and not group.beside):
                shared = store(late_shared, last)
            step = Event(_duration(group, at, ranges, goes_on, tiles))
            works[g] += _busy(group, at, ranges, tiles)
            step.waits = [*gates, *shared]
            for fill in sorted(by_first[s], key=lambda fill: group.order[fill.box]):
                old = owner.get((fill.box, numbers[fill.box] % group.copies[fill.box]))
                if group.copies[fill.box] > 1 and old is not None and old not in released:
                    store_owned(lambda one, old=old: one.fill is old)
            fresh = sorted(by_first[s], key=lambda fill: (group.copies[fill.box] < 2, group.order[fill.box]))
            for fill in fresh:
                copies, before = group.copies[fill.box], []
                if not group.moving[fill.box]:
                    begins[fill] = step
                    continue
                if copies > 1:
                    slot = numbers[fill.box] % copies
                    numbers[fill.box] += 1
                    if (old := owner.get((fill.box, slot))) is not None:
                        before = [released[old]]
                    owner[fill.box, slot] = fill
                if fill.came:
                    event = transfer(g, fill, fill.came, fill.came_wide, group.loads[fill.box])
                    event.waits = [*gates, *before]
                    if copies < 2:
                        event.waits += [*([last] if last is not None else []), *shared]
                    if fill.came_wide:
                        event.waits += stored[g, fill.box]
                    step.waits.append(event)
                    needs.append((event, step))
                    begins[fill] = event
                else:
                    step.waits += before
                    begins[fill] = step
            if last is not None and not (s == 0 and not group.beside):
                store_owned(lambda one, g=g: one.group < g or one.passed == groups[g].late[one.fill.box])
                for one in late_owned:
                    one.passed += 1
            shared = []
            compute.append(step)
            of_group[g].append(step)
            for fill in sorted(by_last[s], key=lambda fill: group.order[fill.box]):
                if group.moving[fill.box] and fill.sent:
                    if group.copies[fill.box] > 1:
                        late_owned.append(_Waiting(g, fill, step))
                    else:
                        late_shared.append((g, fill))
                else:
                    released[fill] = step
        group.trace.fills = [fill for fill in group.trace.fills if fill.steps]
        held[g] = [begins[fill] for fill in group.trace.fills]
    if compute:
        store(late_shared, compute[-1])
        store_owned(lambda _: True)
    _run([all_gates, *queues, compute])
    for event, step in needs:
        assert event.end <= step.start
    in_use, room = _in_use(groups, held, released, of_group, alignment)
    for g, group in enumerate(groups):
        taken: dict[tuple[int, int], int] = {}
        count: dict[int, int] = defaultdict(int)
        for n, fill in enumerate(group.trace.fills):
            if group.moving[fill.box] and group.copies[fill.box] > 1:
                slot = count[fill.box] % group.copies[fill.box]
                count[fill.box] += 1
                assert held[g][n].start >= taken.get((fill.box, slot), 0), "two fills in a slot"
                taken[fill.box, slot] = released[fill].end
    ends = [event.end for queue in (*queues, compute) for event in queue]
    steps = [len(group.trace.steps) for group in groups]
    return Clocked(max(ends, default=0), moved, steps, works, counts, in_use, room)


@cache
def _places_in_tiles(sides: tuple[int, ...], tile: tuple[int, ...]) -> dict[Index, int]:
    """Where every element lies: tiles row-major, and the elements of each."""

    def where(i: Index) -> tuple[Index, Index]:
        along = [divmod(n, size) for n, size in zip(i, tile, strict=True)]
        return tuple(n for n, _ in along), tuple(n for _, n in along)

    return {i: n for n, i in enumerate(sorted(product(*map(range, sides)), key=where))}


def _run(queues: Sequence[list[Event]]) -> None:
    """Let the head of every queue start as soon as what it waits for has ended."""
    heads, free = [0] * len(queues), [0] * len(queues)
    while any(head < len(queue) for head, queue in zip(heads, queues, strict=True)):
        before = list(heads)
        for n, queue in enumerate(queues):
            while heads[n] < len(queue):
                event = queue[heads[n]]
                if any(one.end < 0 for one in event.waits):
                    break
                event.start = max([free[n], *(one.end for one in event.waits)])
                event.end = free[n] = event.start + event.duration
                heads[n] += 1
        assert heads != before, "every queue waits for another"


def _in_use(
    groups: Sequence[SimGroup],
    held: Sequence[Sequence[Event]],
    released: dict[Fill, Event],
    of_group: Sequence[Sequence[Event]],
    alignment: int,
) -> tuple[int, int]:
    """Return the most bytes in use and the scratch at that time. Every fill takes its bytes from the moment
    in which it begins to come, or is first used, to that in which it is given back.
    """
    changes: dict[int, list[int]] = defaultdict(lambda: [0, 0])
    for g, group in enumerate(groups):
        if not of_group[g]:
            continue
        changes[min(event.start for event in of_group[g])][1] += group.scratch
        changes[max(event.end for event in of_group[g])][1] -= group.scratch
        for first, fill in zip(held[g], group.trace.fills, strict=True):
            buffer = group.axes.buffers[group.buffers[fill.box]]
            new = fill.ring and group.copies[fill.box] > 1  # the rows before are there, too
            count = len(fill.came) if new else fill.count
            size = -(-count * buffer.element // alignment) * alignment
            changes[first.start][0] += size
            changes[released[fill].end][0] -= size
    used = room = 0
    worst = (0, 0)
    for moment in sorted(changes):
        used += changes[moment][0]
        room += changes[moment][1]
        assert used <= room, (moment, used, room)
        worst = max(worst, (used, room))
    return worst


def _flat(whole: Sequence[int], index: Index) -> int:
    at = 0
    for size, i in zip(whole, index, strict=True):
        at = at * size + i
    return at


def _busy(group: SimGroup, at: int, ranges: Sequence[range], tiles: TileRates) -> int:
    cycles = tiles.step_cycles
    if group.work[at].products:
        rows, blocks = group.work[at].products, 1
        sides, outputs = group.array.get(at, ()), group.axes.operators[at].outputs
        for axis, indices in enumerate(ranges):
            if not any(axis in side for side in sides):
                rows *= len(indices)
                blocks *= len(indices) if axis < outputs else 1
        for number, side in enumerate(sides):
            filled, lanes = 1, tiles.sides[number].size
            for axis in side:
                filled *= len(ranges[axis])
            passes = 0
            while filled > 0:
                filled -= lanes
                passes += 1
            rows *= passes
            blocks *= passes if all(axis < outputs for axis in side) else 1
        cycles += rows + blocks * tiles.block_cycles
    return -(-cycles * PS // tiles.clock_hertz)


def _duration(group: SimGroup, at: int, ranges: Sequence[range], goes_on: bool, tiles: TileRates) -> int:
    cut = group.axes.operators[at]
    made = 1
    for axis in range(cut.outputs):
        made *= len(ranges[axis])
    longest = _busy(group, at, ranges, tiles)
    if tiles.vector_operations_per_second is not None:
        longest = max(longest, -(-made * group.work[at].vector * PS // tiles.vector_operations_per_second))
    if tiles.scratchpad_bytes_per_second is not None:
        total = 0
        for use in (*cut.reads, *cut.constants):
            buffer = group.axes.buffers[use.buffer]
            count = 1
            for side, size in enumerate(buffer.sides):
                window = use.slides[side] if use.slides else None
                if use.axes[side] >= 0:
                    count *= len(ranges[use.axes[side]])
                elif window is None:
                    count *= size
                else:  # a box has no holes, and ends with its tensor
                    every = [i for index in ranges[window.axis] for i in seen(use, side, index)]
                    count *= sum(min(every) <= i <= max(every) for i in range(size))
            total += count * buffer.element
        width = group.axes.buffers[cut.writes.buffer].element
        if len(cut.axes) > cut.outputs:
            width = max(width, group.accumulator or 0)
        total += made * width * (2 if goes_on else 1)
        longest = max(longest, -(-total * PS // tiles.scratchpad_bytes_per_second))
    return longest
