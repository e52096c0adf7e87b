"""One random nest: what the checker derives of it, against the machine that runs it by elements."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from dataclasses import replace
from random import Random

from onchip.check.nest_overlap import prove_nest_overlap
from onchip.check.nest_tree import Path
from onchip.check.nests import Nested, Place, nested
from onchip.check.rules import Broken
from onchip.network import Network
from onchip.network.axes import ALL, GroupAxes, axes_of
from onchip.plans import Leaf, Loop, Nest
from oracles.band_cases import banded_nest, banded_network
from oracles.nest_cases import group_of, groups_network, random_nest, random_whole
from oracles.nests import Failed, Ran, run_nest, unfused

__all__ = ["operands_of", "trial", "writes_uncut"]


def trial(seed: int) -> Counter[str]:
    """Try one nest; return what it was. Raises `AssertionError` where law and machine differ.

    A nest is legal exactly if the machine succeeds, but for rules that are stricter on purpose: a buffer must
    not be kept twice, and an output does not replace an operand that may be needed again.
    """
    random = Random(seed)
    banded = random.random() < 0.3
    network = banded_network(random) if banded else groups_network(random, windows=random.random() < 0.7)
    axes, operands, leaving = operands_of(network)
    ids = [cut.operator for cut in axes.operators]
    read = {u.buffer for cut in axes.operators for u in cut.reads}
    makers = [n for n, b in enumerate(axes.buffers) if b.maker is not None]
    if writes_uncut(axes):
        return Counter(["an output is not cut along its operator's axes"])
    whole = random_whole(random, sorted(operands))
    pairs = may_lie_over(network, axes, leaving)
    if pairs and random.random() < 0.6:
        whole |= {*random.choice(pairs)}
    outside = {
        b.name: b.maker is not None
        for b in axes.buffers
        if b.tensor not in whole and (b.maker is None or b.tensor in leaving)
    }
    nest = (banded_nest if banded else random_nest)(random, axes, outside)
    alignment, accumulator = random.choice((1, 1, 4)), random.choice((None, 1, 2, 3, 4, 4, 8))
    law, rule = None, ""
    try:
        law = nested(network, group_of(network, nest), ids, operands - whole, alignment, accumulator)
    except Broken as refusal:
        rule = refusal.rule
    if law is None:
        # two chains that leave as many indices, an operand needed again, turns of windows that differ
        strict = ("nest-over", "nest-axes", "nest-windows", "nest-keep")
        assert rule in ("nest-finished", "nest-leaves", "nest-carried", *strict), (seed, rule)
        assert rule != "nest-keep" or "ring=('" in repr(nest), seed
        if rule in strict or fails(axes, nest, leaving, whole):
            return Counter([rule])
        slid = [u.buffer for cut in axes.operators for u in cut.reads if any(u.slides)]
        assert slid, (seed, rule, nest)
        return Counter([f"{rule}, but windows need less than all"])
    offsets = {use: place.offset for place in law.layout.places for use in place.uses}
    offsets |= {(p.uses[0][0], -2 if p.carried else -1): p.offset for p in law.layout.accumulators}
    wide = {p.buffer for p in law.layout.places if p.width > axes.buffers[p.buffer].element}
    try:
        ran = run_nest(axes, nest, leaving, whole, alignment, offsets, accumulator, wide)
    except Failed as failure:
        raise AssertionError((seed, failure, nest)) from failure
    want = unfused(axes)
    assert ran.values == {n: want[n] for n in makers if axes.buffers[n].tensor in leaving}, (seed, nest)
    assert {t: ran.crossed.get(t, 0) for t in operands - whole} == law.crossing, (seed, ran, law, nest)
    assert ran.crossed.keys() <= law.crossing.keys(), (seed, ran, law, nest)
    assert (ran.weights, ran.peak) == (law.weights, law.layout.need), (seed, ran, law, nest)
    assert ran.terms == law.layout.macs, (seed, ran.terms, law.layout.macs, nest)
    same_turns(law, ran)
    assert law.layout.need == sum(part.bytes for part in law.parts) <= law.layout.extent, (seed, law)
    found = [f"legal, of {len(ids)} operators"]
    found += ["in place of what others read"] * any(map(others_read(axes), law.layout.paths))
    found += ["in place"] * ("over='" in repr(nest)) + ["whole operands"] * bool(whole)
    late = any(late_under_sums(law, place) for place in law.layout.places)
    found += ["a late constant under loops over its sum"] * late
    found += ["read and leaves"] * any(n in read and axes.buffers[n].tensor in leaving for n in makers)
    found += ["partial sums come back"] * any(
        law.crossing.get(axes.buffers[n].tensor or -1, 0) > axes.buffers[n].bytes for n in makers
    )
    windows = law.layout.windows
    found += [f"windows along {len(windows)} loops"] * bool(windows)
    found += ["windows between operators"] * any(len(w.made) > 1 for w in windows)
    found += ["a ring"] * any(place.ring is not None for place in law.layout.places)
    found += ["rows made again"] * (law.layout.macs > sum(op.macs for op in network.operators))
    beside = {place.buffer for place in law.layout.accumulators if not place.carried}
    found += ["a buffer as wide as its sums"] * bool(wide)
    found += ["accumulators beside a buffer"] * bool(beside)
    found += ["accumulators beside a whole output"] * any(axes.buffers[n].tensor in whole for n in beside)
    found += ["accumulators beside an operand in whose place an output lies"] * any(
        f"over='{axes.buffers[n].name}'" in repr(nest) for n in beside
    )
    found += ["sums carry a state"] * any(place.carried for place in law.layout.accumulators)
    wider = [n for n in makers if accumulator and accumulator > axes.buffers[n].element]
    found += ["wide partial sums come back"] * any(
        law.crossing.get(axes.buffers[n].tensor or -1, 0) > axes.buffers[n].bytes for n in wider
    )
    found += ["packed beyond the worst moment"] * (law.layout.extent > law.layout.need)
    for x, t in pairs:
        if x in whole and t in whole:
            found.append(written_over(network, axes, nest, leaving, whole, law, (x, t), seed))
    return Counter(found)


def others_read(axes: GroupAxes) -> Callable[[Path], bool]:
    """Return a test: whether a leaf writes in the place of an operand that others read, too."""

    def test(path: Path) -> bool:
        uses = [use for cut in axes.operators for use in cut.reads]
        return sum(axes.buffers[use.buffer].name == path.over for use in uses) > 1

    return test


def late_under_sums(law: Nested, place: Place) -> bool:
    """Whether a late constant would come more than once if it came for every turn of a sum."""
    (at, n), *_ = place.uses
    cut = law.layout.axes.operators[at]
    path = next(path for path in law.layout.paths if path.at == at)
    return cut.uses[n].late and any(turn.over[at] in cut.sums for turn in path.turns[: place.deep])


def may_lie_over(network: Network, axes: GroupAxes, leaving: set[int]) -> list[tuple[int, int]]:
    """The inputs and outputs of as many bytes."""
    inputs = {b.tensor for b in axes.buffers if b.tensor is not None and b.maker is None}
    size = [t.bytes for t in network.tensors]
    return [(x, y) for x in sorted(inputs) for y in sorted(leaving) if size[x] == size[y]]


def written_over(
    network: Network,
    axes: GroupAxes,
    nest: Nest,
    leaving: set[int],
    whole: frozenset[int],
    law: Nested,
    pair: tuple[int, int],
    seed: int,
) -> str:
    """Let an output lie over an input: what is proved the machine can do, and nearly all else it cannot."""
    x, t = pair
    try:
        prove_nest_overlap(network, "g", law.layout, t, x, 0)
    except Broken as refusal:
        proved, rule = False, refusal.rule
    else:
        proved, rule = True, "nest-under"
    assert rule == "nest-under", (seed, rule)
    failure = None
    try:
        ran = run_nest(axes, nest, leaving, whole, over={x: t})
    except Failed as lost:
        failure = lost
    if failure is not None:
        assert not proved, (seed, failure, pair, nest)
        return "an output may not lie over an input"
    want = unfused(axes)
    for n in ran.values:
        assert ran.values[n] == want[n], (seed, pair, nest)
    return "an output over an input" if proved else "an output could lie over an input, and may not"


def same_turns(law: Nested, ran: Ran) -> None:
    """What the checker says of every turn is what the machine did."""
    assert {windows.where for windows in law.layout.windows} == ran.bands.keys()
    number = {place.uses[0]: n for n, place in enumerate(law.layout.places)}
    for windows in law.layout.windows:
        turns, places = ran.bands[windows.where]
        assert windows.turns == len(turns)
        for j, band in enumerate(turns):
            assert {at: list(ranges[j]) for at, ranges in windows.made.items()} == lists(band.made)
            for mine, theirs in ((windows.there, band.there), (windows.moved, band.fetched)):
                named = {number[places[n]]: one for n, one in theirs.items()}
                assert {n: list(ranges[j]) for n, ranges in mine.items()} == lists(named)


def lists(ranges: dict[int, range]) -> dict[int, list[int]]:
    return {key: list(one) for key, one in ranges.items()}


def operands_of(network: Network) -> tuple[GroupAxes, set[int], set[int]]:
    """The axes of all operators of a network as one group, its operands, and those of them that leave."""
    axes = axes_of(network, network.order)
    assert not isinstance(axes, str), axes
    read = {u.buffer for cut in axes.operators for u in cut.reads}
    leaving = {
        b.tensor
        for n, b in enumerate(axes.buffers)
        if b.maker is not None and b.tensor is not None
        if n not in read or network.output_roots >> b.tensor & 1
    }
    return (
        axes,
        {b.tensor for b in axes.buffers if b.tensor is not None and b.maker is None} | leaving,
        leaving,
    )


def fails(axes: GroupAxes, nest: Nest, leaving: set[int], whole: frozenset[int]) -> bool:
    """Whether the machine stops, each output in a place of its own."""
    try:
        ran = run_nest(axes, in_place_nowhere(nest), leaving, whole)
    except Failed:
        return True
    return ran.once  # a loop of one turn cuts nothing


def in_place_nowhere(nest: Nest) -> Nest:
    """The same nest, each output in a place of its own."""

    def without(item: Loop | Leaf) -> Loop | Leaf:
        if isinstance(item, Leaf):
            return replace(item, over=None)
        return replace(item, body=tuple(map(without, item.body)))

    return replace(nest, body=tuple(map(without, nest.body)))


def writes_uncut(axes: GroupAxes) -> bool:
    """Whether an operator writes sides that none of its axes goes along, which the machine does not know."""
    return any(
        ALL in cut.writes.axes and axes.buffers[cut.writes.buffer].elements > 1 for cut in axes.operators
    )
