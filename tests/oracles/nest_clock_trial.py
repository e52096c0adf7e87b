"""One random plan of nests: its time by the law, with and without periods, against the simulation."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from dataclasses import replace
from random import Random

from nest_networks import network_of
from onchip.check.nest_clock import prove_on_chip
from onchip.check.nest_durations import Durations, Work
from onchip.check.nest_layouts import disagreement, tiles_of_buffers
from onchip.check.nest_times import NestTimes
from onchip.check.nest_walk import Moving, Tree, tree_of
from onchip.check.nests import Layout, nested
from onchip.check.rules import Broken
from onchip.machines.tile_rates import ArraySide, Channel, TileRates
from onchip.network import Network
from onchip.network.axes import GroupAxes
from onchip.plans import Leaf, Loop, Nest, TensorLayout, Ways
from oracles.band_cases import banded_nest, banded_network
from oracles.nest_cases import along, group_of, groups_network, random_nest, random_whole
from oracles.nest_clock import Clocked, OperatorWork, SimGroup, simulate, trace_of
from oracles.nest_trial import operands_of, writes_uncut

__all__ = ["random_plan", "random_tiles", "randomly_late", "time_trial", "timed"]

Part = tuple[Tree, Layout, list[Work], int | None, bool, dict[int, tuple[int, ...]]]


def random_tiles(random: Random) -> TileRates:
    """Rates of a chip: channels up to 10,000 times apart, sides that do not fill, now and then no limits."""
    base = random.choice((10**9, 3 * 10**9, 7 * 10**8))
    channels = []
    for n in range(random.choice((1, 1, 2, 3))):
        loads, stores = random.choice(((True, True), (True, True), (True, False), (False, True)))
        channels.append(
            Channel(
                max(1, base // random.choice((1, 1, 2, 3, 100, 10_000))),
                random.choice((0, 500, 2_000, 50_000)),
                random.choice((0, 0, 700, 3_000)),
                random.choice((1, 4, 64)),
                loads or n == 0,
                stores or n == 0,
            )
        )
    sides = [
        ArraySide(random.choice(("out", "sum")), random.choice((1, 2, 3, 4)))
        for _ in range(random.randint(0, 3))
    ]
    return TileRates(
        random.choice((10**9, 123_456_789, 10**12)),
        tuple(channels),
        random.choice((0, 0, 1, 5, 100, 3_000, 100_000)),
        tuple(sides),
        random.choice((None, 10**9, 10**7)),
        random.choice((None, 10**9, 10**8)),
        # Drawn apart from all others, of which seeds that are known keep theirs.
        block_cycles=Random(f"{channels} {sides}").choice((0, 0, 1, 7, 400)),
        own_operands=Random(f"{sides} {channels}").random() < 0.2,
    )


def random_ways(random: Random, nest: Nest, tiles: TileRates) -> Nest:
    """The nest with copies, up to 4, and channels for what it keeps, and some as slices as loops."""
    loads = [n for n, channel in enumerate(tiles.channels) if channel.loads]
    stores = [n for n, channel in enumerate(tiles.channels) if channel.stores]
    many, least = random.choice((0.3, 0.6, 1.0)), random.choice((1, 2))

    def ways(keep: tuple[str, ...]) -> Ways:
        found: list[list[tuple[str, int]]] = [[], [], []]
        for name in keep:
            if random.random() < many:
                found[0].append((name, random.randint(least, 4)))
            if random.random() < 0.4:
                found[1].append((name, random.choice(loads)))
            if random.random() < 0.4:
                found[2].append((name, random.choice(stores)))
        return Ways(*map(tuple, found))

    def item(one: Loop | Leaf) -> Loop | Leaf:
        if isinstance(one, Leaf):
            return one
        keep = tuple(random.sample(one.keep, len(one.keep)))
        return replace(one, body=tuple(map(item, one.body)), keep=keep, ways=ways(keep))

    keep = tuple(random.sample(nest.keep, len(nest.keep)))
    return replace(nest, body=tuple(map(item, nest.body)), keep=keep, ways=ways(keep))


def without_copies(nest: Nest) -> Nest:
    return _changed(nest, lambda ways: replace(ways, copies=(), late=()))


def randomly_late(nest: Nest, axes: GroupAxes, leaving: set[int]) -> Nest:
    """The nest with late stores of some outputs in copies. The nest itself is the seed, so that plans are
    what they were before there were late stores.
    """
    may = {b.name for b in axes.buffers if b.maker is not None and b.tensor in leaving}
    random = Random(repr(nest))
    chance = random.choice((0.0, 0.5, 1.0))

    def ways(given: Ways) -> Ways:
        some = [name for name, copies in given.copies if name in may and copies > 1]
        late = [(name, random.choice((1, 1, 2, 3, 9))) for name in some if random.random() < chance]
        return replace(given, late=tuple(late))

    return _changed(nest, ways)


def without_late(nest: Nest) -> Nest:
    return _changed(nest, lambda ways: replace(ways, late=()))


def _changed(nest: Nest, change: Callable[[Ways], Ways]) -> Nest:
    def item(one: Loop | Leaf) -> Loop | Leaf:
        if isinstance(one, Leaf):
            return one
        return replace(one, body=tuple(map(item, one.body)), ways=change(one.ways))

    return replace(nest, body=tuple(map(item, nest.body)), ways=change(nest.ways))


def laid(random: Random, nest: Nest, axes: GroupAxes, tiles: TileRates, work: list[OperatorWork]) -> Nest:
    """The nest with axes on the sides of the array, so that no operand varies along two for outputs."""
    at = {cut.name: n for n, cut in enumerate(axes.operators)}

    def sides(name: str) -> tuple[tuple[int, ...], ...]:
        cut = axes.operators[at[name]]
        if not work[at[name]].products or random.random() < 0.1:
            return ()
        free = list(range(len(cut.axes)))
        found: list[tuple[int, ...]] = []
        taken: list[set[int]] = []
        for side in tiles.sides:
            fit = [a for a in free if (a in cut.sums) == (side.kind == "sum")]
            some = [a for a in fit if random.random() < 0.6]
            uses = {n for n, use in enumerate((*cut.reads, *cut.constants)) if set(along(use)) & set(some)}
            if side.kind == "out" and any(uses & before for before in taken):
                some = []
            elif side.kind == "out":
                taken.append(uses)
            free = [a for a in free if a not in some]
            found.append(tuple(some))
        return tuple(found)

    def item(one: Loop | Leaf) -> Loop | Leaf:
        if isinstance(one, Leaf):
            return replace(one, array=sides(one.operator))
        return replace(one, body=tuple(map(item, one.body)))

    return replace(nest, body=tuple(map(item, nest.body)))


def long_network(random: Random) -> Network:
    """One product, or two after each other, with one long axis: loops have many turns, and repeat."""
    sizes = [random.randint(1, 4) for _ in range(4)]
    sizes[random.randrange(4)] = random.randint(9, 24)
    lines = ["one MatMul: h(m,f) = x(m,d) A(d,f)", "two MatMul: z(m,y) = h(m,f) B(f,y)"]
    count = random.choice((1, 1, 2))
    words = " ".join(f"{letter}={size}" for letter, size in zip("mfdy", sizes, strict=True))
    return network_of(words, lines[:count], ["x"], ["h", "z"][count - 1 : count]).network


def looped(random: Random, axes: GroupAxes, outside: dict[str, bool]) -> Nest:
    """One operator in loops along its axes in any order, some of them twice, with what each body keeps."""
    [cut] = axes.operators
    order = [axis for axis in range(len(cut.axes)) if random.random() < 0.85]
    order += [axis for axis in order if cut.axes[axis] > 4 and random.random() < 0.3]
    random.shuffle(order)
    left, body = list(outside), (Leaf(cut.name),)
    keeps = [tuple(name for name in left if random.random() < 0.3)]
    tiles, now = [], list(cut.axes)
    for axis in order:
        taken = {name for keep in keeps for name in keep}
        keeps.append(tuple(name for name in left if name not in taken and random.random() < 0.5))
        now[axis] = random.choice((1, 1, 2, max(1, now[axis] // 2)))
        tiles.append(now[axis])
    if random.random() < 0.5:  # nothing is private: what has copies is not held up by what has none
        taken = {name for keep in keeps for name in keep}
        keeps[-1] += tuple(name for name in left if name not in taken)
    item: tuple[Loop | Leaf, ...] = body
    for axis, tile, keep in reversed([*zip(order, tiles, keeps[1:], strict=True)]):
        item = (Loop(((cut.name, axis),), tile, item, keep),)
    return Nest(item, keeps[0])


def random_part(random: Random, tiles: TileRates, *, beside: bool) -> tuple[Part, SimGroup] | None:
    """A group: what the law takes, and what the simulation does. None if it is not legal."""
    kind = random.choice(("banded", "any", "any", "long", "long"))
    if kind == "long":
        network = long_network(random)
    elif kind == "banded":
        network = banded_network(random)
    else:
        network = groups_network(random, most=3, windows=random.random() < 0.6)
    axes, operands, leaving = operands_of(network)
    if writes_uncut(axes):
        return None
    whole = random_whole(random, sorted(operands))
    outside = {
        b.name: b.maker is not None
        for b in axes.buffers
        if b.tensor not in whole and (b.maker is None or b.tensor in leaving)
    }
    work = [
        OperatorWork(random.choice((0, 1, 1, 9)) if len(cut.axes) > cut.outputs else 0, random.randint(0, 5))
        for cut in axes.operators
    ]
    if kind == "long" and len(axes.operators) == 1:
        nest = looped(random, axes, outside)
    else:
        nest = (banded_nest if kind == "banded" else random_nest)(random, axes, outside)
    nest = laid(random, random_ways(random, nest, tiles), axes, tiles, work)
    nest = randomly_late(nest, axes, leaving)
    nest = replace(nest, beside=beside)
    alignment, accumulator = 1, random.choice((None, None, 2, 4))
    ids = [cut.operator for cut in axes.operators]
    law = None
    for tried in (nest, without_late(nest), without_copies(nest)):
        try:
            law = nested(network, group_of(network, tried), ids, operands - whole, alignment, accumulator)
        except Broken as refusal:
            if refusal.rule in ("nest-copies", "nest-late"):
                continue
        nest = tried
        break
    if law is None:
        return None
    layout = law.layout
    wide = {p.buffer for p in layout.places if p.width > axes.buffers[p.buffer].element}
    tree = tree_of(nest, layout, leaving)
    prove_on_chip("g", tree, layout, tiles)
    sim = trace_of(
        axes, nest, leaving, whole, alignment, accumulator, wide, work, first=tiles.first, scratch=layout.need
    )  # type: ignore[arg-type]
    layouts = random_layouts(random, layout)
    sim.tiles = tiles_of_buffers(layout, layouts)
    made = [Work(w.products, w.vector) for w in work]
    return (tree, layout, made, accumulator, beside, sim.tiles), sim


def random_layouts(random: Random, layout: Layout, *, agreed: bool = True) -> dict[int, TensorLayout]:
    """Tiles in which some tensors (roots) lie in DRAM, on which the nest agrees."""
    found: dict[int, TensorLayout] = {}
    chance = random.choice((0.0, 0.5, 1.0))
    for n, buffer in enumerate(layout.axes.buffers):
        parts = sum(b.tensor == buffer.tensor for b in layout.axes.buffers)
        if buffer.tensor is None or parts > 1 or buffer.sides != buffer.whole or random.random() >= chance:
            continue
        for _ in range(6):
            near = [random.choice(_near(layout, n, side)) for side in range(len(buffer.sides))]
            tile = tuple(min(size, whole) for size, whole in zip(near, buffer.sides, strict=True))
            one = TensorLayout(buffer.name, buffer.sides, tile)
            if not agreed or disagreement(layout, {buffer.tensor: one}) is None:
                found[buffer.tensor] = one
                break
    return found


def _near(layout: Layout, number: int, side: int) -> list[int]:
    """Sizes that a nest may agree on: those of its loops, and some others."""
    found = [1, 2, 3, layout.axes.buffers[number].sides[side]]
    for home in layout.homes:
        if home.buffer == number:
            uses = [(at, layout.axes.operators[at].uses[k]) for at, k in home.uses]
            found += [turn.tile * k for turn in home.above if turn.cuts(uses, side) for k in (1, 1, 2)]
    return found


def random_plan(random: Random, most: int = 6) -> tuple[TileRates, list[Part], list[SimGroup]]:
    """Groups one after the other, most of them beside the one before."""
    tiles = random_tiles(random)
    parts, sims = [], []
    side_by_side = random.choice((0.0, 0.5, 0.9))
    for _ in range(random.randint(1, most)):
        found = random_part(random, tiles, beside=bool(parts) and random.random() < side_by_side)
        if found is not None:
            parts.append(found[0])
            sims.append(found[1])
    return tiles, parts, sims


def timed(tiles: TileRates, parts: list[Part], *, walk_all: bool) -> tuple[Clocked, bool, int]:
    """What the law says, in the words of the simulation; whether bytes are those of the law of nests."""
    times = NestTimes(tiles, walk_all=walk_all)
    same = True

    def channels(one: Moving) -> tuple[int, int]:
        home = one.home
        load = tiles.first("loads") if home.load is None else home.load
        return load, tiles.first("stores") if home.store is None else home.store

    for tree, layout, work, accumulator, beside, in_tiles in parts:
        times.run(tree, Durations(layout, tiles, work, accumulator, in_tiles), channels, beside=beside)
        crosses = [layout.places[one.number].crosses for one in tree.moving]
        same &= crosses == times.states()
    end = times.finish()
    found = times.totals
    clocked = Clocked(
        end,
        [t.fetched + t.stored for t in found],
        [t.steps for t in found],
        [t.work for t in found],
        [t.transfers for t in found],
        0,
        0,
    )
    return clocked, same, times.walked


def time_trial(seed: int, most: int = 6, change: Callable[[Clocked], None] | None = None) -> Counter[str]:
    """Try one plan; return what it was. Raises `AssertionError` where law and simulation differ."""
    random = Random(seed)
    tiles, parts, sims = random_plan(random, most)
    if not parts:
        return Counter(["no legal group"])
    law, same, walked = timed(tiles, parts, walk_all=False)
    slow, _, every = timed(tiles, parts, walk_all=True)
    assert law == slow, (seed, law, slow)
    ran = simulate(sims, tiles, 1)
    in_use, room = ran.in_use, ran.room
    ran.in_use = ran.room = 0
    assert law == ran, (seed, law, ran)
    found = [f"{len(parts)} groups", f"{len(tiles.channels)} channels"]
    found += ["a buffer that nothing uses in some turn"] * (not same)
    found += ["skips periods"] * (walked < every)
    found += ["beside"] * any(part[4] for part in parts)
    found += ["as many bytes in use as the scratch"] * (in_use == room)
    found += ["tensors in tiles"] * any(part[5] for part in parts)
    places = [place for part in parts for place in part[1].places]
    found += ["copies"] * any(place.copies > 1 for place in places)
    homes = [one.home for part in parts for one in part[0].moving]
    found += ["late stores"] * any(home.late for home in homes)
    found += ["a ring"] * any(place.ring is not None for place in places)
    found += ["a ring of copies"] * any(place.ring is not None and place.copies > 1 for place in places)
    homes = [one for part in parts for one in part[0].moving]
    found += ["spilled sums"] * any(any(b.count > 1 for b in one.sums) for one in homes if one.stored)
    found += ["spilled sums in copies"] * any(
        one.home.copies > 1 and any(b.count > 1 for b in one.sums) for one in homes if one.stored
    )
    return Counter(found)
