"""Blocks, the parts of a group: stages from one cut of the network to a later one.

A cut is a place where exactly one tensor is live. A module is the layers between two neighbouring cuts. A
block begins at a cut; its module is cut into stages in any topological order, and the last stage may extend
over whole modules behind it. As a stage hands on exactly one tensor, every way to cut a group into stages is
a sequence of such blocks.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import accumulate, product

from onchip.microcontroller.segments.bound import least_pixels
from onchip.microcontroller.segments.chain import Chain
from onchip.microcontroller.segments.drive import Maker, bands_of, turns
from onchip.microcontroller.segments.group import StageChoice
from onchip.microcontroller.segments.layers import Layer, Layers
from onchip.microcontroller.segments.overlap import Reading, readings
from onchip.microcontroller.segments.sweep import RowSweep, most_at_once, rows_of, swept
from onchip.network import bits
from onchip.network.windows import Range

__all__ = ["MOST_ORDERS", "Block", "BlockRows", "Blocks", "Staged"]

MOST_ORDERS = 24
"""The most orders of a module's layers to try: enough for every order of four parallel layers."""

NEVER = 1 << 60


@dataclass(frozen=True, slots=True)
class Block:
    """Layers [first, end), both at cuts, in stages with no cut between them."""

    first: int
    end: int
    stages: tuple[tuple[int, ...], ...]


@dataclass(frozen=True, slots=True)
class BlockRows:
    """A block with its heights of bands, along the rows.

    `rings` are the most rows held at once of each tensor between its stages, `made` the rows made of every
    layer, `tallest` the most rows of every tensor that one band of each stage takes. Making u rows of the
    output needs `taken[u]` rows of the input. A layer of the block takes row y of the input for the last time
    while row u = `late[layer][y]` of the output is made (0 for never). `bands` counts the bands swept in each
    stage. When row y of the input is first asked for, no row before `asked[y]` is needed any more.
    """

    rings: tuple[tuple[int, int], ...]
    made: tuple[tuple[int, int], ...]
    taken: tuple[int, ...]
    late: tuple[tuple[int, ...], ...]
    bands: tuple[int, ...]
    asked: tuple[int, ...]


class Staged:
    """A block with a height of bands for each stage, along the rows; it caches results."""

    def __init__(self, blocks: Blocks, stages: tuple[StageChoice, ...], entering: int) -> None:
        self.stages, self.entering = stages, entering
        self._blocks = blocks
        self._rows: dict[int, BlockRows] = {}
        self._at_once: dict[tuple[int, int], int] = {}

    def rows(self, upto: int) -> BlockRows:
        """Return the figures for making the first `upto` rows of the block's output."""
        if upto not in self._rows:
            self._rows[upto] = self._run(upto)
        return self._rows[upto]

    def entering_rows(self, upto: int, height: int) -> int:
        """Return the most rows held at once of the block's input if it is made in bands of this height.

        The rows asked for, and their times, do not depend on the bands in which they arrive.
        """
        if (upto, height) not in self._at_once:
            asked, size = self.rows(upto).asked, self._blocks.net.maps[self.entering].rows
            self._at_once[upto, height] = max(
                (min(at + height, size) - min(at, asked[at]) for at in range(0, len(asked), height)),
                default=0,
            )
        return self._at_once[upto, height]

    def _makers(self, upto: int) -> list[Maker]:
        makers = [self._blocks.sweep(stage.layers, stage.rows).maker for stage in self.stages]
        last = makers[-1]
        # None for no row: where windows lie outside of a map, a block may never ask for its input.
        bands = next((i for i, band in enumerate(last.bands, 1) if band[1] >= upto), len(last.bands))
        bands = bands if upto else 0
        needs = tuple(need[:bands] for need in last.needs)
        return [*makers[:-1], Maker(last.makes, last.bands[:bands], last.reads, needs)]

    def _run(self, upto: int) -> BlockRows:
        makers, entering = self._makers(upto), self.entering
        last = len(makers)
        source = Maker(entering, bands_of((0, self._blocks.net.maps[entering].rows), 1))
        rings = {maker.makes: 0 for maker in makers}
        done = [0] * (last + 1)
        lowest = [_lowest(maker, entering) for maker in makers]
        taken, asked, need = [0], list[int](), 0
        readers = [self._blocks.readings(stage.layers, entering) for stage in self.stages]
        late = [[0] * self._blocks.net.maps[entering].rows for found in readers for _ in found]
        number = list(accumulate((len(found) for found in readers), initial=0))
        for turn in turns([source, *makers]):
            n = turn.maker
            if n == 0:
                asked.append(min(low[k] for k, low in zip(done[1:], lowest, strict=True)))
                continue
            maker = makers[n - 1]
            rings[maker.makes] = max(rings[maker.makes], turn.live)
            done[n] += 1
            for t, needs in zip(maker.reads, maker.needs, strict=True):
                if t == entering:
                    need = max(need, needs[turn.band][1])
            now = len(taken)
            takes = self._blocks.sweep(self.stages[n - 1].layers, self.stages[n - 1].rows).taken[turn.band]
            for k, one in enumerate(readers[n - 1], start=number[n - 1]):
                first, end = one.rows(takes, entering)
                late[k][first:end] = [now] * (end - first)
            if n == last:
                rows = maker.bands[turn.band]
                taken += [need] * (rows[1] - rows[0])
        made: list[tuple[int, int]] = []
        for stage, times in zip(self.stages, done[1:], strict=True):
            sweep = self._blocks.sweep(stage.layers, stage.rows)
            layers = self._blocks.layers(stage.layers)
            body = swept(layers)
            for i, layer in zip(stage.layers, layers, strict=True):
                if layer.adds_up:
                    made.append((i, int(times > 0)))
                elif layer in body:
                    ranges = (need.get(layer.makes, (0, 0)) for need in sweep.taken[:times])
                    made.append((i, sum(high - low for low, high in ranges)))
        rings.pop(makers[-1].makes)
        return BlockRows(
            tuple(rings.items()),
            tuple(made),
            tuple(taken),
            tuple(map(tuple, late)),
            tuple(done[1:]),
            tuple(asked),
        )


class Blocks:
    """The blocks of a network that runs forward or mirrored (`net`), with their costs; it caches results."""

    def __init__(self, chain: Chain, net: Layers) -> None:
        self.chain = chain
        self.net = net
        self.all_orders = True
        self._before: dict[bool, list[int]] = {}
        self._sweeps: dict[tuple[tuple[int, ...], int], RowSweep] = {}
        self._staged: dict[tuple[tuple[tuple[int, ...], ...], tuple[int, ...], bool, bool], list[Staged]] = {}
        self._bytes: dict[tuple[tuple[int, ...], int, tuple[Range, ...], int | None, int], int] = {}
        self._twice: dict[tuple[tuple[int, ...], int], bool] = {}
        self._cuts: dict[int, list[tuple[int, tuple[tuple[int, ...], ...]]]] = {}
        self._columns: dict[tuple[tuple[int, ...], tuple[Range, ...], int | None], dict[int, int]] = {}

    # -- the blocks that exist ---------------------------------------------------------------------------

    def beginning_at(self, first: int) -> list[tuple[int, tuple[tuple[int, ...], ...]]]:
        """Return every way to cut the module that begins here: the layer behind it, and its stages."""
        if first not in self._cuts:
            self._cuts[first] = list(self._ways(first))
        return self._cuts[first]

    def _ways(self, first: int) -> Iterator[tuple[int, tuple[tuple[int, ...], ...]]]:
        end = next(c for c in self.chain.cuts if c > first)
        seen = set()
        for order in self._orders(first, end):
            for joined in product((False, True), repeat=end - first - 1):
                stages = [[order[0]]]
                for layer, join in zip(order[1:], joined, strict=True):
                    if join:
                        stages[-1].append(layer)
                    else:
                        stages.append([layer])
                found = tuple(map(tuple, stages))
                if found not in seen and all(self._hands_on_one(stage) for stage in found):
                    seen.add(found)
                    yield end, found

    def _orders(self, first: int, end: int) -> list[tuple[int, ...]]:
        """Return the topological orders of layers [first, end), the network's own first."""
        made = {self.net.layers[i].makes: i for i in range(first, end)}
        behind = {i: {made[t] for t in self.net.layers[i].reads if t in made} for i in range(first, end)}
        found: list[tuple[int, ...]] = []

        def extend(order: tuple[int, ...]) -> None:
            if len(found) >= MOST_ORDERS:
                self.all_orders = False
                return
            if len(order) == end - first:
                found.append(order)
                return
            for i in range(first, end):
                if i not in order and behind[i] <= set(order):
                    extend((*order, i))

        extend(())
        return found

    def _hands_on_one(self, stage: tuple[int, ...]) -> bool:
        """Return whether the stage hands on only its last tensor, and no pool before its end adds up."""
        kept = set(bits(self.net.network.output_roots))
        for i in stage[:-1]:
            layer = self.net.layers[i]
            readers = self.chain.readers.get(layer.makes, ())
            if layer.adds_up or layer.makes in kept or any(reader not in stage for reader in readers):
                return False
        return True

    def work_before(self, instructions: bool) -> list[int]:
        """Return the least work of all layers before each place: what the output needs, once."""
        if instructions not in self._before:
            least = least_pixels(self.net)
            works = []
            for layer in self.net.layers:
                each = max(layer.macs, self.net.maps[layer.makes].pixel) if instructions else layer.macs
                works.append(least.get(layer.makes, 0) * each)
            self._before[instructions] = [0, *accumulate(works)]
        return self._before[instructions]

    # -- the cost of blocks ------------------------------------------------------------------------------

    def layers(self, stage: tuple[int, ...]) -> list[Layer]:
        """Return the layers of a stage."""
        return [self.net.layers[i] for i in stage]

    def readings(self, stage: tuple[int, ...], resident: int) -> list[Reading]:
        """Return the readings of a tensor by a stage's layers, along the rows, over all columns."""
        layers = self.layers(stage)
        return readings(self.net, layers, (0, self.net.maps[swept(layers)[-1].makes].columns), resident)

    def sweep(self, stage: tuple[int, ...], height: int) -> RowSweep:
        """Return the sweep of a stage along the rows."""
        if (stage, height) not in self._sweeps:
            self._sweeps[stage, height] = rows_of(self.net, self.layers(stage), height)
        return self._sweeps[stage, height]

    def staged(
        self,
        first: int,
        stages: tuple[tuple[int, ...], ...],
        offered: tuple[int, ...],
        anew: bool,
        over: bool,
    ) -> list[Staged]:
        """Return the block of these stages, which begins at cut `first`, in every choice of heights to try.

        Bands that make rows twice are tried only if `anew`; `over` says that the group's output may overlap
        its input.
        """
        key = stages, offered, anew, over
        if key not in self._staged:
            entering = self.chain.entering(first)
            tall = [self.heights(stage, offered, anew=anew, over=over) for stage in stages]
            self._staged[key] = [
                Staged(self, tuple(StageChoice(s, h) for s, h in zip(stages, heights, strict=True)), entering)
                for heights in product(*tall)
            ]
        return self._staged[key]

    def column_bytes(
        self, stage: tuple[int, ...], height: int, across: tuple[Range, ...], fetched: int | None, bands: int
    ) -> int:
        """Return the bytes of the stage's column rings; `across` are its output's columns in every strip."""
        key = stage, height, across, fetched, bands
        if key not in self._bytes:
            tallest = self.sweep(stage, height).tallest(bands)
            kept = self._columns_at_once(stage, across, fetched)
            self._bytes[key] = sum(tallest.get(t, 0) * n * self.net.maps[t].pixel for t, n in kept.items())
        return self._bytes[key]

    def _columns_at_once(
        self, stage: tuple[int, ...], across: tuple[Range, ...], fetched: int | None
    ) -> dict[int, int]:
        key = stage, across, fetched
        if key not in self._columns:
            most: dict[int, int] = {}
            for lines in across:
                found = most_at_once(self.layers(stage), lines, () if fetched is None else (fetched,))
                for t, n in found.items():
                    most[t] = max(most.get(t, 0), n)
            self._columns[key] = most
        return self._columns[key]

    def heights(
        self, stage: tuple[int, ...], offered: tuple[int, ...], *, anew: bool, over: bool
    ) -> tuple[int, ...]:
        """Return the heights of bands to try; unless `anew`, only those that make no row twice.

        Where single rows make none twice, higher bands save no work and no bytes of rings; but they may let
        the output lie further `over` the input.
        """
        if len(stage) == 1:
            return (1,)
        if not over and not self._makes_twice(stage, 1):
            return (1,)
        rows = self.net.maps[swept(self.layers(stage))[-1].makes].rows
        found = dict.fromkeys(min(h, rows) for h in offered)
        return tuple(h for h in found if anew or not self._makes_twice(stage, h))

    def _makes_twice(self, stage: tuple[int, ...], height: int) -> bool:
        """Return whether the stage, in bands of this height, makes a row of an inner tensor twice."""
        if (stage, height) not in self._twice:
            self._twice[stage, height] = False
            sweep = self.sweep(stage, height)
            for layer in swept(self.layers(stage)):
                ranges = [need.get(layer.makes, (0, 0)) for need in sweep.taken]
                if sum(b - a for a, b in ranges) > len({y for a, b in ranges for y in range(a, b)}):
                    self._twice[stage, height] = True
                    break
        return self._twice[stage, height]


def _lowest(maker: Maker, tensor: int) -> list[int]:
    """Return, by bands done, the first row of the tensor that a later band reads."""
    low = [NEVER] * (len(maker.bands) + 1)
    for t, needs in zip(maker.reads, maker.needs, strict=True):
        if t == tensor:
            for band in range(len(needs) - 1, -1, -1):
                first, end = needs[band]
                low[band] = min(low[band + 1], first) if first < end else low[band + 1]
    return low
