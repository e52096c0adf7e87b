"""The front of bytes, time and scratch of one random group by force, and the planner's beside it.

Groups in which tensors link two axes of one operator are left out. The compiled price counts, as
`oracles.compiled_trial` holds it against the checker's; that of every nest of the front, and of some others,
is derived by the checker, too.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from fractions import Fraction
from itertools import product
from random import Random

from nest_networks import network_of
from onchip import _core
from onchip.check.nest_clock import tree_for, work_of
from onchip.check.nest_durations import Durations
from onchip.check.nest_times import NestTimes, NoTimes
from onchip.check.nests import nested
from onchip.check.rules import Broken
from onchip.machines.tile_rates import TileRates
from onchip.network import Network
from onchip.network.axes import GroupAxes
from onchip.planners.joint.timed.bound import least_picoseconds
from onchip.planners.joint.timed.compiled import Compiled, FrontRules
from oracles.band_cases import banded_network
from oracles.nest_cases import group_of, groups_network, random_whole
from oracles.nest_clock_trial import random_tiles
from oracles.nest_fronts import Forced, Placed, TooMany, linked
from oracles.nest_trial import operands_of, writes_uncut

__all__ = ["front_trial"]

LOOPS = {1: 3, 2: 2, 3: 2, 4: 1}
"""The most loops of a tree, by the number of operators."""

MOST_PLANS = 6_000
"""Groups with more plans are left out."""

JUDGED = 3
"""How many plans of a group the checker prices beside those of the front."""

Triple = tuple[int, int, int]


# -- prices ------------------------------------------------------------------------------------------------


class Pricer:
    """Builds nests for the core, and prices them."""

    def __init__(self, forced: Forced, compiled: Compiled, tiles: TileRates, *, channels: bool) -> None:
        self.forced, self.core = forced, compiled.core
        self.leaf = [
            _core.TimedItem(loop_class=-1, tile=0, operation=o, under=-1, keep=[], ring=[], body=[])
            for o in range(len(forced.axes.operators))
        ]
        self.kind = [self._kind(compiled, some) for some in forced.linked]
        ways = [(-1, -1)]
        if channels and len(tiles.channels) > 1:
            loads = [n for n, channel in enumerate(tiles.channels) if channel.loads]
            stores = [n for n, channel in enumerate(tiles.channels) if channel.stores]
            ways = list(product(loads, stores))
        self.kept = {
            b: [
                _core.TimedKept(buffer=b, copies=number, load=load, store=store, late=0)
                for number in range(1, forced.copies + 1)
                for load, store in ways
                if forced.axes.buffers[b].maker is not None or store == ways[0][1]
            ]
            for b in forced.moves
        }

    @staticmethod
    def _kind(compiled: Compiled, some: Sequence[tuple[int, int]]) -> int:
        """Return the core's number of linked axes; -1 where it has none, as nothing can be cut along them."""
        for n, axis in enumerate(compiled.classes):
            if all(axis[o] == a for o, a in some):
                return n
        return -1

    def items(self, placed: Placed) -> Iterator[_core.TimedItem]:
        """Yield a tree with homes in all copies, through all channels."""
        if any(body.axes >= 0 and self.kind[body.axes] < 0 for body in placed.bodies):
            return
        at = [n for n, keep in enumerate(placed.keep) for _ in keep]
        names = [b for keep in placed.keep for b in keep]
        for chosen in product(*(self.kept[b] for b in names)):
            keeps: list[list[_core.TimedKept]] = [[] for _ in placed.bodies]
            for n, kept in zip(at, chosen, strict=True):
                keeps[n].append(kept)
            made, _ = self.made(placed, keeps, 0)
            yield made

    def made(
        self, placed: Placed, keeps: Sequence[Sequence[_core.TimedKept]], n: int
    ) -> tuple[_core.TimedItem, int]:
        """Return a body for the core, and the number of the next one behind it."""
        body, behind = placed.bodies[n], n + 1
        items = []
        for item in body.items:
            if isinstance(item, int):
                items.append(self.leaf[item])
            else:
                inner, behind = self.made(placed, keeps, behind)
                items.append(inner)
        made = _core.TimedItem(
            loop_class=-1 if n == 0 else self.kind[body.axes],
            tile=body.tile,
            operation=-1,
            under=-1,
            keep=keeps[n],
            ring=placed.ring[n],
            body=items,
        )
        return made, behind


def pareto(known: dict[Triple, _core.TimedItem], triple: Triple, item: _core.TimedItem) -> None:
    """Note a plan unless another one is as good in every figure."""
    if any(all(a <= b for a, b in zip(other, triple, strict=True)) for other in known):
        return
    for other in [one for one in known if all(a <= b for a, b in zip(triple, one, strict=True))]:
        del known[other]
    known[triple] = item


# -- trials ------------------------------------------------------------------------------------------------


def random_group(random: Random) -> Network:
    """A group of one to four operators, few of them with many axes."""
    kind = random.choice(("any", "any", "words", "words", "windows", "banded"))
    if kind == "words":
        return worded_network(random)
    if kind == "banded":
        return banded_network(random)
    return groups_network(random, most=random.choice((1, 1, 2, 3, 4)), windows=kind == "windows")


def worded_network(random: Random) -> Network:
    """Products, with a bias or without, sums of two, and norms, one after the other or side by side."""
    words = " ".join(f"{letter}={random.choice((2, 2, 3, 4))}" for letter in "mfdye")
    lines = [
        random.choice(("a MatMul: h(m,f) = x(m,d) A(d,f)", "a MatMul+bias: h(m,f) = x(m,d) A(d,f) c(f)")),
        random.choice(
            (
                "b MatMul: z(m,y) = h(m,f) B(f,y)",
                "b MatMul: z(m,f) = w(m,e) B(e,f)",
                "b Relu: z(m,f) = h(m,f)",
            )
        ),
    ]
    outputs = ["z"]
    if "h(" not in lines[1].partition("=")[2]:
        lines.append("c Add: u(m,f) = h(m,f) z(m,f)")
        outputs = ["u"]
    elif random.random() < 0.3:
        outputs = ["h", "z"]
    if random.random() < 0.3:
        lines, outputs = lines[:1], ["h"]
    inputs = [name for name in ("x", "w") if any(f" {name}(" in line for line in lines)]
    return network_of(words, lines, inputs, outputs, random.choice((1, 2))).network


def front_trial(seed: int, most: int = MOST_PLANS) -> Counter[str]:
    """Compare the front of one group; return what it was. Raises `AssertionError` where the two differ."""
    random = Random(seed)
    network = random_group(random)
    if len(network.operators) not in LOOPS:
        return Counter(["left out: too many operators"])
    tiles = random_tiles(random)
    while len(tiles.channels) > 2:
        tiles = random_tiles(random)
    axes, operands, leaving = operands_of(network)
    if writes_uncut(axes):
        return Counter(["left out: an output that is not cut"])
    if any(len({o for o, _ in some}) < len(some) for some in linked(axes)):
        return Counter(["left out: two axes of an operator are linked"])
    whole = random_whole(random, sorted(operands))
    moving, few = len(axes.buffers) - len(whole), random.choice((2, 3, 3, 4))
    if moving > few:  # few buffers have fewer homes and copies
        rest = sorted(operands - whole)
        whole |= frozenset(random.sample(rest, min(len(rest), moving - few)))
    alignment, accumulator = random.choice((1, 4)), random.choice((None, None, 2, 4))
    copies, channels = random.choice((2, 2, 2, 3)), random.random() < 0.5
    loops = LOOPS[len(network.operators)]
    loads = sum(channel.loads for channel in tiles.channels)
    stores = sum(channel.stores for channel in tiles.channels)
    forced = Forced(axes, leaving, whole, loops, copies, most, (loads, stores) if channels else (1, 1))
    try:
        every = list(forced.placed())
    except TooMany:
        return Counter(["left out: too many plans"])
    compiled = Compiled(
        network,
        axes,
        tiles,
        [n for n, b in enumerate(axes.buffers) if b.maker is not None and b.tensor in leaving],
        [
            n
            for n, b in enumerate(axes.buffers)
            if b.tensor in whole and (b.maker is None or b.tensor in leaving)
        ],
        alignment=alignment,
        accumulator=accumulator,
        paired=False,
    )
    spent = random.randint(0, 5_000), Fraction(random.randint(1, 400), random.choice((1, 2, 5)))
    pricer = Pricer(forced, compiled, tiles, channels=channels)
    front: dict[Triple, _core.TimedItem] = {}
    plans: list[tuple[_core.TimedItem, Triple | None]] = []
    energy: Fraction | None = None
    both: Fraction | None = None
    for placed in every:
        for item in pricer.items(placed):
            found = pricer.core.price(nest=item)
            triple = None if found is None else (found.times.bytes, found.times.time, found.scratch)
            plans.append((item, triple))
            if triple is None:
                continue
            pareto(front, triple, item)
            joules = spent[0] + spent[1] * triple[0]
            energy = joules if energy is None else min(energy, joules)
            both = joules * triple[1] if both is None else min(both, joules * triple[1])
    if not plans:
        return Counter(["left out: no plan"])
    bound = least_picoseconds(network, tiles, 0)
    assert all(time >= bound for _, time, _ in front), (seed, "a plan takes less than the bound")
    judge = Judge(network, axes, tiles, operands - whole, alignment, accumulator, compiled)
    for item, triple in (*random.sample(plans, min(JUDGED, len(plans))), *((i, t) for t, i in front.items())):
        assert judge(item) == triple, (seed, "the checker has another price")
    counts: Counter[str] = Counter()
    off = random.choice(("floors", "idle", "second", "more", "all"))
    none = dict.fromkeys(("floors", "idle", "second", "more"), False)
    for name, rules in (("on", FrontRules()), (off, FrontRules(**(none if off == "all" else {off: False})))):
        ours = compiled.front(loops, copies=copies, channels=channels, rules=rules)
        assert ours.complete
        triples = [(one.bytes, one.time, one.scratch) for one in ours.found]
        assert len(set(triples)) == len(triples), seed
        assert set(triples) == set(front), (seed, name, sorted(set(triples) ^ set(front)))
        counts[f"prices, rules {'all on' if name == 'on' else name + ' off'}"] += ours.prices
        if name == "on":
            counts["nests listed by the planner"] += ours.nests
            if triples:
                joules_ = [spent[0] + spent[1] * b for b, _, _ in triples]
                assert energy == min(joules_), seed
                assert both == min(j * t for j, (_, t, _) in zip(joules_, triples, strict=True)), seed
    counts[f"groups with {off} off"] += 1
    counts["groups"] += 1
    counts[f"groups of {len(network.operators)}"] += 1
    counts["groups with windows"] += any(forced.slides)
    counts["groups on two channels"] += len(tiles.channels) == 2
    counts["groups with three copies"] += copies == 3
    counts["nests by force"] += len(every)
    counts["plans by force"] += len(plans)
    counts["plans of fronts"] += len(front)
    counts["groups without a legal plan"] += not front
    return counts


class Judge:
    """Prices a plan by the checker's law alone."""

    def __init__(
        self,
        network: Network,
        axes: GroupAxes,
        tiles: TileRates,
        streamed: set[int],
        alignment: int,
        accumulator: int | None,
        compiled: Compiled,
    ) -> None:
        self.network, self.axes, self.tiles, self.streamed = network, axes, tiles, streamed
        self.alignment, self.accumulator, self.compiled = alignment, accumulator, compiled
        self.ids = [cut.operator for cut in axes.operators]

    def __call__(self, item: _core.TimedItem) -> Triple | None:
        """Return bytes, time and scratch; None if the checker refuses the nest or gives it no times."""
        nest = self.compiled.nest_of(item)
        try:
            law = nested(
                self.network,
                group_of(self.network, nest),
                self.ids,
                self.streamed,
                self.alignment,
                self.accumulator,
            )
        except Broken:
            return None
        tree = tree_for(self.network, group_of(self.network, nest), law.layout)
        clock = NestTimes(self.tiles, walk_all=True)
        work = work_of(self.network, law.layout)
        first = self.tiles.first("loads"), self.tiles.first("stores")

        def channels(one: object) -> tuple[int, int]:
            home = one.home  # type: ignore[attr-defined]
            return (
                first[0] if home.load is None else home.load,
                first[1] if home.store is None else home.store,
            )

        try:
            clock.run(tree, Durations(law.layout, self.tiles, work, self.accumulator), channels)
        except NoTimes:
            return None
        if any(
            state != law.layout.places[one.number].crosses
            for one, state in zip(tree.moving, clock.states(), strict=True)
        ):
            return None
        return sum(law.crossing.values()) + law.weights, clock.finish(), law.layout.extent
