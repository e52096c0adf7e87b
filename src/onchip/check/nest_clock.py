"""The times of a program whose groups run as nests, on a chip that states rates of tiles.

Groups run one after the other, each by the law of `nest_times`; `load` and `store` copy whole tensors between
them on the first channel that goes that way. What the law does not say gets no times: `NoTimes` says why.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping

from onchip.check.nest_durations import PICOSECONDS, Durations, Work, prove_array
from onchip.check.nest_layouts import tiles_of_buffers
from onchip.check.nest_times import NestTimes, NoTimes, Timeline, Totals
from onchip.check.nest_walk import Moving, Tree, tree_of
from onchip.check.nests import Layout, leaving_of
from onchip.check.released import Released
from onchip.check.rules import broken
from onchip.check.units import Unit, streams_of, units_of
from onchip.machines.tile_rates import TileRates
from onchip.network import Network
from onchip.network.axes import GroupAxes
from onchip.network.vector_work import vector_operations
from onchip.plans import Alloc, Free, Group, Instruction, Join, Load, Nest, Plan, Run, Scratch, Store, Timed

__all__ = [
    "NestClock",
    "channels_on",
    "nest_clock_of",
    "nest_times_of",
    "prove_on_chip",
    "tree_for",
    "work_of",
    "work_of_axes",
]


def work_of(network: Network, layout: Layout) -> list[Work]:
    """Return the work of a group's operators. Raises `NoTimes` for products that no axes give."""
    return work_of_axes(network, layout.axes)


def work_of_axes(network: Network, axes: GroupAxes) -> list[Work]:
    """Return the same of operators with their axes."""
    found = []
    for cut in axes.operators:
        indices = 1
        for size in cut.axes:
            indices *= size
        products, rest = divmod(network.operators[cut.operator].work, indices)
        if rest:
            raise NoTimes(f"has {cut.name}, whose products are not so many for every index of its axes")
        found.append(Work(products, vector_operations(network, cut.operator)))
    return found


def tree_for(network: Network, group: Group, layout: Layout) -> Tree:
    """Return the tree of a group that runs as a nest."""
    assert isinstance(group.tiling, Nest)
    return tree_of(
        group.tiling, layout, leaving_of(network, {network.operator_id[n] for n in group.operators})
    )


def channels_on(tiles: TileRates) -> Callable[[Moving], tuple[int, int]]:
    """Return what says through which channels a buffer comes and goes on a chip with these rates."""

    def channels(one: Moving) -> tuple[int, int]:
        load, store = one.home.load, one.home.store
        return (
            tiles.first("loads") if load is None else load,
            tiles.first("stores") if store is None else store,
        )

    return channels


def prove_on_chip(group: str, tree: Tree, layout: Layout, tiles: TileRates | None) -> None:
    """Refuse channels and sides of the array that a chip does not have. Raises `Broken`."""
    channels = () if tiles is None else tiles.channels
    for home in layout.homes:
        name = layout.axes.buffers[home.buffer].name
        for way, number in (("loads", home.load), ("stores", home.store)):
            if number is not None and not (0 <= number < len(channels) and getattr(channels[number], way)):
                broken(
                    "nest-channels", f"{name} in group {group} {way} through channel {number}, which does not"
                )
    for visit in tree.leaves:
        if tiles is not None:
            prove_array(group, visit, layout, tiles)
        elif visit.array:
            name = layout.axes.operators[visit.path.at].name
            broken("nest-array", f"{name} in group {group} lies on an array, and the chip states none")


def nest_times_of(
    plan: Plan, *, walk_all: bool = False, timeline: Timeline | None = None
) -> tuple[Timed, ...]:
    """Return the start and end of every load, store and run of a legal plan whose chip has rates of tiles.

    Raises `NoTimes` where the law does not give them.
    """
    return nest_clock_of(plan, walk_all=walk_all, timeline=timeline).times()


def nest_clock_of(plan: Plan, *, walk_all: bool = False, timeline: Timeline | None = None) -> NestClock:
    """Return the clock of a legal plan whose chip has rates of tiles, not yet walked."""
    units = units_of(
        plan.network,
        plan.groups,
        alignment=plan.chip.alignment_bytes,
        weights_resident=plan.options.get("weights") == "resident",
        streamed=streams_of(plan.program),
        accumulator=plan.chip.accumulator_bytes,
    )
    return NestClock(plan, units, walk_all=walk_all, timeline=timeline)


class NestClock:
    """The walk over a legal plan's program. Raises `NoTimes` where the law does not give its times."""

    def __init__(
        self,
        plan: Plan,
        units: Mapping[str, Unit],
        *,
        walk_all: bool = False,
        timeline: Timeline | None = None,
    ) -> None:
        assert plan.chip.tiles is not None
        if plan.chip.memories or plan.chip.weight_scratchpad_bytes is not None:
            raise NoTimes("is for a chip with several memories")
        if plan.pins or plan.state or plan.caches:
            raise NoTimes("has pins, states or caches")
        self.plan, self.units, self.tiles = plan, units, plan.chip.tiles
        self.groups = {group.name: group for group in plan.groups}
        self.layouts = {plan.network.tensor_id[one.tensor]: one for one in plan.layouts}
        self.bytes = {t.name: t.bytes for t in plan.network.tensors}
        self.nests = NestTimes(self.tiles, walk_all=walk_all, timeline=timeline)
        self.names: list[str] = []
        self.given_back = Released()
        self.range: dict[str, tuple[int, int]] = {}
        self.there: dict[str, int] = {}
        self.used: dict[str, int] = {}
        self.copied: dict[str, int] = {}
        self.reserved: dict[str, int] = {}
        self.scratch: dict[str, tuple[int, int, Totals]] = {}
        self.found: list[Timed | tuple[int, Totals]] = []

    def times(self) -> tuple[Timed, ...]:
        """Return the start and end of every load, store and run."""
        for index, instruction in enumerate(self.plan.program):
            self.follow(index, instruction)
        self.nests.finish()
        return tuple([
            one if isinstance(one, Timed) else Timed(one[0], one[1].start or 0, one[1].end)
            for one in self.found
        ])  # fmt: skip

    def totals(self) -> dict[int, Totals]:
        """Return what every run did, by its instruction, once `times` was called."""
        return {one[0]: one[1] for one in self.found if not isinstance(one, Timed)}

    def follow(self, index: int, instruction: Instruction) -> None:
        nests = self.nests
        match instruction:
            case Load(name, address):
                nests.flush()
                for low, high, totals in self.scratch.values():
                    self.given_back.set(low, high, totals.end)
                self.scratch = {}
                self.occupy(name, address)
                ready = max(self.there[name], self.copied.get(name, 0))
                start, end = nests.copy(self.tiles.first("loads"), ready, self.crossing(name, "loads"))
                self.there[name] = self.used[name] = end
                self.found.append(Timed(index, start, end))
            case Store(name):
                channel = self.tiles.first("stores")
                start, end = nests.copy(channel, self.there[name], self.crossing(name, "stores"))
                self.copied[name] = end
                self.used[name] = max(self.used[name], end)
                self.found.append(Timed(index, start, end))
            case Alloc(name, address):
                self.occupy(name, address)
            case Run(name, streaming):
                self.run(index, name, [t for t, _ in streaming])
            case Free(name):
                low, high = self.range.pop(name)
                self.given_back.set(low, high, self.used[name])
            case Join():
                raise NoTimes("joins a concat in DRAM")
            case Scratch(
                name, address
            ):  # a group waits for all before it, and needs not look when it is free
                self.reserved[name] = address
            case _:
                raise NoTimes("moves between memories")

    def occupy(self, name: str, address: int) -> None:
        end = address + self.plan.chip.round_up(self.bytes[name])
        self.range[name] = address, end
        self.there[name] = self.used[name] = self.given_back.latest(address, end)

    def crossing(self, name: str, way: str) -> int:
        """Return the picoseconds of a whole tensor's copy: one piece."""
        channel = self.tiles.channels[self.tiles.first("loads" if way == "loads" else "stores")]
        moved = -(-self.bytes[name] // channel.burst_bytes) * channel.burst_bytes
        through = -(-moved * PICOSECONDS // channel.bytes_per_second)
        return channel.transfer_picoseconds + channel.piece_picoseconds + through

    def run(self, index: int, name: str, streaming: Collection[str]) -> None:
        unit, group = self.units[name], self.groups.get(name)
        if unit.nest is None or group is None or not isinstance(group.tiling, Nest):
            raise NoTimes(f"runs {name}, which is no nest")
        tree = tree_for(self.plan.network, group, unit.nest)
        try:
            work = work_of(self.plan.network, unit.nest)
            in_tiles = tiles_of_buffers(unit.nest, self.layouts)
            durations = Durations(unit.nest, self.tiles, work, self.plan.chip.accumulator_bytes, in_tiles)
            totals = self.nests.run(tree, durations, channels_on(self.tiles), beside=group.tiling.beside)
        except NoTimes as reason:
            raise NoTimes(f"runs group {name}, which {reason}") from None
        self.names.append(name)
        for one, state in zip(tree.moving, self.nests.states(), strict=True):
            crosses = unit.nest.places[one.number].crosses
            if state != crosses:
                raise NoTimes(f"runs group {name}, in a turn of which nothing uses {one.name}, which crosses")
        self.found.append((index, totals))
        if name in self.reserved:
            low = self.reserved.pop(name)
            self.scratch[name] = low, low + self.plan.chip.round_up(unit.workspace), totals
        ids, names = (*unit.reads, *unit.writes), self.plan.network.tensors
        for t in (names[i].name for i in ids):
            if t in self.range:
                self.used[t] = max(self.used[t], self.nests.end)
        for t in (names[i].name for i in unit.writes):
            if t in streaming:
                self.copied[t] = 0  # the group after it waits, or does not read it
            else:
                self.there[t] = self.nests.end
