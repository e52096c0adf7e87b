"""The pieces of which groups are made: blocks of stages from one cut of the network to a later one.

A cut is a place where one tensor alone goes on. What lies between two neighbouring cuts is a module. A block
begins at a cut; its module is cut into stages in any topological order, and the last stage may go on over
whole modules behind it. As a stage hands on one tensor only, every cut of a group into stages is a row of
such blocks, and of no others.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import product

from onchip.network import bits
from onchip.segments.chain import Chain
from onchip.segments.drive import Maker, bands_of, turns
from onchip.segments.group import StageChoice
from onchip.segments.layers import Layer, Layers, Range
from onchip.segments.sweep import RowSweep, columns_of, rows_of, swept

__all__ = ["MOST_ORDERS", "Block", "BlockRows", "Blocks"]

MOST_ORDERS = 24
"""Orders of a module's layers that are looked at: all of them up to four layers side by side."""

NEVER = 1 << 60


@dataclass(frozen=True, slots=True)
class Block:
    """Layers [first, end), both at cuts, in stages that no cut lies between."""

    first: int
    end: int
    stages: tuple[tuple[int, ...], ...]


@dataclass(frozen=True, slots=True)
class BlockRows:
    """A block with its heights of bands, along the rows.

    `rings` are the rows at once of what its stages hand on inside, `made` how many rows of every layer are
    made, `tallest` the most rows that one band of each stage takes of every tensor. When u rows of its
    output are made, `taken[u]` rows of what goes into it are needed and those before `unread[u]` never more.
    `bands` says how many of each stage are swept.
    """

    rings: tuple[tuple[int, int], ...]
    made: tuple[tuple[int, int], ...]
    taken: tuple[int, ...]
    unread: tuple[int, ...]
    bands: tuple[int, ...]


class Blocks:
    """The blocks of a network that runs forward or mirrored (`net`), and what they cost; results are kept."""

    def __init__(self, chain: Chain, net: Layers) -> None:
        self.chain = chain
        self.net = net
        self.all_orders = True
        self._sweeps: dict[tuple[tuple[int, ...], int], RowSweep] = {}
        self._rows: dict[tuple[tuple[StageChoice, ...], int], BlockRows] = {}
        self._entering: dict[tuple[tuple[StageChoice, ...], int, int], int] = {}
        self._bytes: dict[tuple[tuple[int, ...], int, tuple[Range, ...], int | None, int], int] = {}
        self._heights: dict[tuple[int, ...], bool] = {}
        self._cuts: dict[int, list[tuple[int, tuple[tuple[int, ...], ...]]]] = {}
        self._columns: dict[tuple[tuple[int, ...], tuple[Range, ...], int | None], dict[int, int]] = {}

    # -- which there are ---------------------------------------------------------------------------------

    def beginning_at(self, first: int) -> list[tuple[int, tuple[tuple[int, ...], ...]]]:
        """Every way to cut the module that begins at this layer: the layer behind it, and its stages."""
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
        """The topological orders of layers [first, end), the network's own first."""
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
        """Whether nobody outside reads what the stage makes before its end, and no pool adds up before it."""
        kept = set(bits(self.net.network.output_roots))
        for i in stage[:-1]:
            layer = self.net.layers[i]
            readers = self.chain.readers.get(layer.makes, ())
            if layer.adds_up or layer.makes in kept or any(reader not in stage for reader in readers):
                return False
        return True

    # -- what they cost ----------------------------------------------------------------------------------

    def layers(self, stage: tuple[int, ...]) -> list[Layer]:
        """The layers of a stage."""
        return [self.net.layers[i] for i in stage]

    def sweep(self, stage: tuple[int, ...], height: int) -> RowSweep:
        """A stage along the rows."""
        if (stage, height) not in self._sweeps:
            self._sweeps[stage, height] = rows_of(self.net, self.layers(stage), height)
        return self._sweeps[stage, height]

    def _makers(self, stages: tuple[StageChoice, ...], upto: int) -> list[Maker]:
        makers = [self.sweep(stage.layers, stage.rows).maker for stage in stages]
        last = makers[-1]
        bands = next((i + 1 for i, band in enumerate(last.bands) if band[1] >= upto), len(last.bands))
        needs = tuple(need[:bands] for need in last.needs)
        return [*makers[:-1], Maker(last.makes, last.bands[:bands], last.reads, needs)]

    def rows(self, stages: tuple[StageChoice, ...], entering: int, upto: int) -> BlockRows:
        """The block along the rows, until the first `upto` rows of its output are made."""
        if (stages, upto) not in self._rows:
            self._rows[stages, upto] = self._all_rows(stages, entering, upto)
        return self._rows[stages, upto]

    def _all_rows(self, stages: tuple[StageChoice, ...], entering: int, upto: int) -> BlockRows:
        makers = self._makers(stages, upto)
        rings = {maker.makes: 0 for maker in makers}
        done = [0] * len(makers)
        lowest = [_lowest(maker, entering) for maker in makers]
        taken, unread, need = [0], [0], 0
        for turn in turns(makers):
            maker = makers[turn.maker]
            rings[maker.makes] = max(rings[maker.makes], turn.live)
            done[turn.maker] += 1
            for t, needs in zip(maker.reads, maker.needs, strict=True):
                if t == entering:
                    need = max(need, needs[turn.band][1])
            if turn.maker == len(makers) - 1:
                here = min((low[n] for n, low in zip(done, lowest, strict=True)), default=NEVER)
                rows = maker.bands[turn.band]
                taken += [need] * (rows[1] - rows[0])
                unread += [here] * (rows[1] - rows[0])
        made: list[tuple[int, int]] = []
        for stage, times in zip(stages, done, strict=True):
            sweep = self.sweep(stage.layers, stage.rows)
            body = swept(self.layers(stage.layers))
            for i, layer in zip(stage.layers, self.layers(stage.layers), strict=True):
                if layer.adds_up:
                    made.append((i, 1))
                elif layer in body:
                    ranges = (need.get(layer.makes, (0, 0)) for need in sweep.taken[:times])
                    made.append((i, sum(high - low for low, high in ranges)))
        rings.pop(makers[-1].makes)
        return BlockRows(tuple(rings.items()), tuple(made), tuple(taken), tuple(unread), tuple(done))

    def entering_rows(self, stages: tuple[StageChoice, ...], entering: int, upto: int, height: int) -> int:
        """Rows at once of the tensor that goes into the block, if it is made in bands of this height."""
        key = stages, upto, height
        if key not in self._entering:
            bands = bands_of((0, self.net.maps[entering].rows), height)
            makers = self._makers(stages, upto)
            if len(makers) == 1:
                self._entering[key] = _most_at_once(makers[0], entering, bands)
            else:
                found = turns([Maker(entering, bands), *makers])
                self._entering[key] = max((turn.live for turn in found if turn.maker == 0), default=0)
        return self._entering[key]

    def column_bytes(
        self, stage: tuple[int, ...], height: int, across: tuple[Range, ...], fetched: int | None, bands: int
    ) -> int:
        """Bytes of the stage's column rings; `across` are its output's columns in every strip."""
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
                found = columns_of(self.layers(stage), lines, () if fetched is None else (fetched,))
                for t, n in found.at_once.items():
                    most[t] = max(most.get(t, 0), n)
            self._columns[key] = most
        return self._columns[key]

    def heights(self, stage: tuple[int, ...], offered: tuple[int, ...]) -> tuple[int, ...]:
        """Heights of bands worth a look: more than a row saves nothing where no row is made twice."""
        if stage not in self._heights:
            self._heights[stage] = len(stage) > 1 and self._makes_twice(stage)
        if not self._heights[stage]:
            return (1,)
        rows = self.net.maps[swept(self.layers(stage))[-1].makes].rows
        return tuple(dict.fromkeys(min(h, rows) for h in offered))

    def _makes_twice(self, stage: tuple[int, ...]) -> bool:
        """Whether the stage makes a row of an inner tensor twice when it goes row by row."""
        sweep = self.sweep(stage, 1)
        for layer in swept(self.layers(stage)):
            ranges = [need.get(layer.makes, (0, 0)) for need in sweep.taken]
            if sum(b - a for a, b in ranges) > len({y for a, b in ranges for y in range(a, b)}):
                return True
        return False


def _lowest(maker: Maker, tensor: int) -> list[int]:
    """By bands done, the first row of the tensor that a band still to come reads."""
    low = [NEVER] * (len(maker.bands) + 1)
    for t, needs in zip(maker.reads, maker.needs, strict=True):
        if t == tensor:
            for band in range(len(needs) - 1, -1, -1):
                first, end = needs[band]
                low[band] = min(low[band + 1], first) if first < end else low[band + 1]
    return low


def _most_at_once(reader: Maker, tensor: int, bands: tuple[Range, ...]) -> int:
    """Rows at once of a tensor that is made in these bands for one reader, as `turns` finds them."""
    (needs,) = (n for t, n in zip(reader.reads, reader.needs, strict=True) if t == tensor)
    low = _lowest(reader, tensor)
    made = most = 0
    for i, (first, end) in enumerate(needs):
        while first < end and (made == 0 or bands[made - 1][1] < end):
            most = max(most, bands[made][1] - min(bands[made][0], low[i]))
            made += 1
    return most
