"""The compiled time of a group's nests, and the compiled search for fast ones.

`_core.TimedProblem` derives what a nest costs, and walks it by the law, in some 20 microseconds. It shares no
code with the checker, which judges what is found.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction

from onchip import _core
from onchip.check.nest_clock import work_of_axes
from onchip.check.nest_times import NoTimes
from onchip.machines.tile_rates import TileRates
from onchip.network import Network, mask
from onchip.network.axes import GroupAxes, axes_of
from onchip.planners.joint.timed.lying import ROWS, Lying
from onchip.planners.limits import NO_LIMITS, Limits
from onchip.planners.nests.search import buffers_of, operators_of
from onchip.plans import Leaf, Loop, Nest, Ways
from onchip.plans.nest import COUNTED

__all__ = ["Compiled", "FrontRules", "Fronted", "NestTime", "compiled_for"]


NOTHING = Fraction(0)

UNLIMITED = 2**60
"""More bytes than any scratchpad has."""


@dataclass(frozen=True, slots=True)
class NestTime:
    """A nest of a group that runs alone: its picoseconds, the bytes that cross, its scratch.

    `work` are the picoseconds of its products, `busy` those of the transfers of each channel.
    """

    nest: Nest
    time: int
    bytes: int
    scratch: int
    work: int
    busy: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class FrontRules:
    """Rules that leave nests out of the search for a front; the front is the same without any.

    `floors`: nests that take no less than a known one in every figure. `idle`: loops that only add
    steps of one operator. `second`: on one channel a second copy makes no nest slower; `more`: from two
    copies on one more does not.
    """

    floors: bool = True
    idle: bool = True
    second: bool = True
    more: bool = True


@dataclass(frozen=True, slots=True)
class Fronted:
    """Nests of which none is as good as another one in bytes, time and scratch; fewest bytes first.

    `complete` if no nest of the space is missing. `nests` and `prices` were looked at.
    """

    found: tuple[NestTime, ...]
    complete: bool
    nests: int
    prices: int


class Compiled:
    """A group on a chip, ready to be priced and searched.

    `leaving` are the buffers (indices of `axes.buffers`) that leave the group, `whole` those that lie on chip
    whole while it runs. With `paired` a loop may go along axes that no tensor links. `lying` says how tensors
    lie in DRAM. Raises `ValueError` for more than 64 operators, buffers or axes, and for tensors that lie in
    tiles of other sides, and `NoTimes` for products that no axes give.
    """

    def __init__(
        self,
        network: Network,
        axes: GroupAxes,
        tiles: TileRates,
        leaving: Collection[int],
        whole: Collection[int],
        *,
        alignment: int = 1,
        accumulator: int | None = None,
        paired: bool = True,
        lying: Lying = ROWS,
    ) -> None:
        self.axes = axes
        work = work_of_axes(network, axes)
        self.core = _core.TimedProblem(
            operators=operators_of(axes),
            buffers=buffers_of(axes, leaving, accumulator),
            stored=[
                _core.TimedStored(
                    whole=b.whole,
                    constant=b.tensor is None,
                    on_chip=n in whole,
                    tile=lying.tile(b),
                    in_fills=lying.one_piece(b),
                )
                for n, b in enumerate(axes.buffers)
            ],
            work=[_core.TimedWork(products=w.products, vector=w.vector) for w in work],
            rates=_rates(tiles),
            alignment=alignment,
            paired=paired,
        )
        self.classes = self.core.classes
        self.at = {cut.name: n for n, cut in enumerate(axes.operators)}
        self.buffer = {b.name: n for n, b in enumerate(axes.buffers)}

    def price(self, nest: Nest, *, every_turn: bool = False) -> NestTime | None:
        """Return the figures of a nest on the best sides of the array, which is in `nest`; None if it is not
        legal, or the law gives it no times."""
        item = self.item(nest)
        if item is None:
            return None
        found = self.core.price(nest=item, every_turn=every_turn)
        return None if found is None else self._found(item, found.times, found.scratch)

    def search(
        self,
        starts: Iterable[Nest],
        room: int,
        effort: int,
        seed: int = 0,
        price: Fraction = NOTHING,
        limits: Limits = NO_LIMITS,
    ) -> list[NestTime]:
        """Return the fastest nests found in `room` bytes, each in less scratch than those before it.

        With a `price`, in picoseconds for each byte that crosses, those of the least time and price together.

        It begins with the nests `starts`, and some of its own. Its `effort` are steps walked and nests looked
        at, so that the answer does not depend on the machine.
        """
        items = [item for nest in starts if (item := self.item(nest)) is not None]
        answer = self.core.search(
            starts=items,
            room=room,
            effort=effort,
            seed=seed,
            price=price.numerator,
            of_bytes=price.denominator,
            limits=limits.core(lambda _: limits.stopped()),
        )
        return [self._found(found.nest, found.times, found.scratch) for found in answer.front]

    def front(
        self,
        loops: int,
        *,
        copies: int = 2,
        channels: bool = False,
        room: int | None = None,
        most: int = 10_000_000,
        rules: FrontRules | None = None,
        limits: Limits = NO_LIMITS,
    ) -> Fronted:
        """Return the front of all nests of at most so many `loops`, with up to `copies` of every buffer.

        They are those of every order of the operators, tile, home and ring, every buffer kept by a body
        unless another leaf there takes it, too, in the order of the buffers, on the best sides of the array;
        with `channels` through every channel. It ends after `most` nests and prices.
        """
        rules = rules or FrontRules()
        answer = self.core.fronts(
            loops=loops,
            copies=copies,
            channels=channels,
            room=UNLIMITED if room is None else room,
            most=most,
            rules=_core.TimedRules(
                floors=rules.floors, idle=rules.idle, second=rules.second, more=rules.more
            ),
            limits=limits.core(lambda _: limits.stopped()),
        )
        found = sorted(
            (self._found(one.nest, one.times, one.scratch) for one in answer.found),
            key=lambda one: (one.bytes, one.time, one.scratch),
        )
        return Fronted(tuple(found), answer.complete, answer.nests, answer.prices)

    # -- nests as the core knows them ----------------------------------------------------------------------

    def item(self, nest: Nest) -> _core.TimedItem | None:
        """Return a nest for the core, its slices as loops; None where a loop goes along no class of axes."""
        try:
            body = [self._item(one) for one in nest.body]
        except KeyError:
            return None
        return self._made(keep=self._keep(nest.keep, nest.ways), body=body)

    def _item(self, one: Loop | Leaf) -> _core.TimedItem:
        if isinstance(one, Leaf):
            under = -1 if one.over is None else self.buffer[one.over]
            item = self._made(operation=self.at[one.operator], under=under)
            for axis, tile in reversed(one.slices):
                item = self._made(self._class([(one.operator, axis)]), tile, body=[item])
            return item
        return self._made(
            self._class(one.over),
            one.tile,
            keep=self._keep(one.keep, one.ways),
            ring=[self.buffer[name] for name in one.ring],
            body=[self._item(inner) for inner in one.body],
        )

    def _class(self, over: Sequence[tuple[str, int]]) -> int:
        name, axis = over[0]
        for n, along in enumerate(self.classes):
            if along[self.at[name]] == axis and all(along[self.at[o]] == a for o, a in over):
                return n
        raise KeyError(name)

    def _keep(self, keep: Sequence[str], ways: Ways) -> list[_core.TimedKept]:
        copies, loads, stores, late = (dict(getattr(ways, key)) for key in COUNTED)
        return [
            _core.TimedKept(
                buffer=self.buffer[name],
                copies=copies.get(name, 1),
                load=loads.get(name, -1),
                store=stores.get(name, -1),
                late=late.get(name, 0),
            )
            for name in keep
        ]

    def _made(
        self,
        loop_class: int = -1,
        tile: int = 0,
        *,
        operation: int = -1,
        under: int = -1,
        keep: Sequence[_core.TimedKept] = (),
        ring: Sequence[int] = (),
        body: Sequence[_core.TimedItem] = (),
    ) -> _core.TimedItem:
        return _core.TimedItem(
            loop_class=loop_class,
            tile=tile,
            operation=operation,
            under=under,
            keep=keep,
            ring=ring,
            body=body,
        )

    def _found(self, item: _core.TimedItem, times: _core.TimedTimes, scratch: int) -> NestTime:
        nest = self.nest_of(item)
        return NestTime(nest, times.time, times.bytes, scratch, times.work, tuple(times.busy))

    def nest_of(self, item: _core.TimedItem) -> Nest:
        """Return a nest of the core, on the best sides of the array if it is legal."""
        priced = self.core.price(nest=item)
        arrays: list[tuple[tuple[int, ...], ...]] = [()] * len(self.at)
        if priced is not None:
            arrays = [tuple(tuple(side) for side in array) for array in priced.arrays]
        keep, ways = self._kept(item)
        return Nest(tuple(self._node(inner, arrays) for inner in item.body), keep, ways)

    def _node(self, item: _core.TimedItem, arrays: Sequence[tuple[tuple[int, ...], ...]]) -> Loop | Leaf:
        if item.operation >= 0:
            array = arrays[item.operation]
            over = None if item.under < 0 else self.axes.buffers[item.under].name
            return Leaf(self.axes.operators[item.operation].name, (), over, array if any(array) else ())
        along = self.classes[item.loop_class]
        over_ = tuple((self.axes.operators[at].name, along[at]) for at in _leaves(item))
        keep, ways = self._kept(item)
        ring = tuple(self.axes.buffers[b].name for b in item.ring)
        return Loop(over_, item.tile, tuple(self._node(i, arrays) for i in item.body), keep, ring, ways)

    def _kept(self, item: _core.TimedItem) -> tuple[tuple[str, ...], Ways]:
        kept_as = [(self.axes.buffers[kept.buffer].name, kept) for kept in item.keep]
        ways = Ways(
            tuple([(name, kept.copies) for name, kept in kept_as if kept.copies > 1]),
            tuple([(name, kept.load) for name, kept in kept_as if kept.load >= 0]),
            tuple([(name, kept.store) for name, kept in kept_as if kept.store >= 0]),
            tuple([(name, kept.late) for name, kept in kept_as if kept.late]),
        )
        return tuple([name for name, _ in kept_as]), ways


def compiled_for(
    network: Network,
    operators: tuple[int, ...],
    streamed: Collection[int],
    tiles: TileRates,
    *,
    alignment: int = 1,
    accumulator: int | None = None,
    lying: Lying = ROWS,
) -> Compiled | None:
    """Return a group of operators that streams some tensors (roots); None where the core takes none."""
    axes = axes_of(network, operators)
    if isinstance(axes, str):
        return None
    members = mask(operators)
    leaving = [
        n
        for n, b in enumerate(axes.buffers)
        if b.maker is not None
        and b.tensor is not None
        and (
            network.readers[b.tensor] & ~members
            or network.output_roots >> b.tensor & 1
            or not network.readers[b.tensor]
        )
    ]
    whole = [
        n
        for n, b in enumerate(axes.buffers)
        if b.tensor is not None and (b.maker is None or n in leaving) and b.tensor not in streamed
    ]
    try:
        return Compiled(
            network,
            axes,
            tiles,
            leaving,
            whole,
            alignment=alignment,
            accumulator=accumulator,
            lying=lying,
        )
    except (NoTimes, ValueError):  # no times, or more operators, buffers or axes than the core takes
        return None


def _rates(tiles: TileRates) -> _core.TimedRates:
    return _core.TimedRates(
        clock=tiles.clock_hertz,
        step_cycles=tiles.step_cycles,
        block_cycles=tiles.block_cycles,
        own_operands=tiles.own_operands,
        channels=[
            _core.TimedChannel(
                bytes_per_second=c.bytes_per_second,
                transfer=c.transfer_picoseconds,
                piece=c.piece_picoseconds,
                burst=c.burst_bytes,
                loads=c.loads,
                stores=c.stores,
            )
            for c in tiles.channels
        ],
        sides=[_core.TimedSide(sums=side.kind == "sum", size=side.size) for side in tiles.sides],
        vector=tiles.vector_operations_per_second,
        scratchpad=tiles.scratchpad_bytes_per_second,
    )


def _leaves(item: _core.TimedItem) -> Iterator[int]:
    if item.operation >= 0:
        yield item.operation
    for inner in item.body:
        yield from _leaves(inner)
