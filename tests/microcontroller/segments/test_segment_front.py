"""The front of RAM and work, against every plan of small random networks; its points as certified plans."""

from __future__ import annotations

import signal
from collections.abc import Iterable, Iterator
from itertools import pairwise, product

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from onchip.check import check
from onchip.microcontroller.segments import Front, SegmentOptions, Space, front, plan_of
from onchip.microcontroller.segments.blocks import Blocks
from onchip.microcontroller.segments.chain import Chain
from onchip.microcontroller.segments.frontier import chain_of, choose
from onchip.microcontroller.segments.group import StageChoice
from onchip.microcontroller.segments.options import InputMode
from onchip.microcontroller.segments.search import Row, Search, rows_of_groups, simplest
from onchip.network import Network
from onchip.planners.limits import NO_LIMITS, Limits
from ring_networks import chains

HEIGHTS = (1, 2, 3)
SPACE = Space(heights=HEIGHTS, strips=(1, 2))
MODES: tuple[InputMode, ...] = ("held", "once", "again")
WAYS = {"held": (None,), "once": ("rows",), "again": ("rows", "columns")}


def stagings(chain: Chain, first: int, end: int) -> Iterator[tuple[tuple[int, ...], ...]]:
    """Layers [first, end) in their order, cut into stages in every way that hands on one tensor a stage."""
    layers = chain.net.layers
    for cuts in product((False, True), repeat=end - first - 1):
        bounds = [first, *(first + i + 1 for i, cut in enumerate(cuts) if cut), end]
        stages = [tuple(range(a, b)) for a, b in pairwise(bounds)]
        if all(
            reader in stage and not layers[i].adds_up
            for stage in stages
            for i in stage[:-1]
            for reader in (*chain.readers.get(layers[i].makes, (-1,)),)
        ):
            yield tuple(stages)


def every_group(chain: Chain, first: int, end: int, mode: InputMode) -> Iterator[tuple[int, int]]:
    """Bytes and work of every group of these layers, whichever way it runs."""
    net = chain.net
    wide = net.maps[net.layers[end - 1].makes].columns
    ways = WAYS[mode] if first == 0 else (None,)
    for stages in stagings(chain, first, end):
        offered = [HEIGHTS if len(stage) > 1 else (1,) for stage in stages]
        for heights, strips, fetched in product(product(*offered), (1, 2), ways):
            later = any(chain.input in net.layers[i].reads for stage in stages[1:] for i in stage)
            if strips > wide or (fetched == "columns" and later):
                continue
            if fetched == "rows" and mode == "once" and strips > 1:
                continue
            chosen = tuple(StageChoice(s, h) for s, h in zip(stages, heights, strict=True))
            forward_only = mode == "once" and first == 0
            group = chain.group(
                first,
                end,
                chosen,
                strips=strips,
                fetched=fetched,
                forward_only=forward_only,  # type: ignore[arg-type]
            )
            for way in (group.forward, group.reverse):
                if way is not None:
                    one = chain.group(first, end, chosen, strips=strips, fetched=fetched)  # type: ignore[arg-type]
                    alone = type(one)(first, end, chosen, strips, group.fetched, way, None)
                    yield chain.bytes_needed(alone), way.macs


def every_plan(chain: Chain, mode: InputMode) -> list[tuple[int, int]]:
    """Bytes of the largest group and work, of the plans that no other beats."""
    cuts = chain.cuts
    fronts: dict[int, set[tuple[int, int]]] = {cuts[-1]: {(0, 0)}}
    for first in reversed(cuts[:-1]):
        found = {
            (max(size, rest), work + more)
            for end in cuts
            if end > first
            for size, work in set(every_group(chain, first, end, mode))
            for rest, more in fronts[end]
        }
        fronts[first] = {p for p in found if not any(q != p and q[0] <= p[0] and q[1] <= p[1] for q in found)}
    return sorted(fronts[cuts[0]])


def stairs(points: Iterable[tuple[int, int]]) -> list[tuple[int, int]]:
    """Those that none beats, from the fewest bytes on."""
    best: list[tuple[int, int]] = []
    for size, work in sorted(points):
        if not best or work < best[-1][1]:
            best.append((size, work))
    return best


def searched(chain: Chain, mode: InputMode, cap: int = 1 << 30) -> list[tuple[int, int]]:
    groups = Search(chain, mode).groups(SPACE, cap)
    return stairs((row.bytes, row.work) for row in rows_of_groups(chain, groups))


NETWORKS = chains(operators=4, side=6, channels=3, steps=True)


@pytest.mark.thorough
@settings(max_examples=40)
@given(NETWORKS, st.sampled_from(MODES))
def test_no_plan_beats_the_front(network: Network, mode: InputMode) -> None:
    chain = chain_of(network)
    assert searched(chain, mode) == every_plan(chain, mode)


@pytest.mark.thorough
@settings(max_examples=20)
@given(NETWORKS, st.sampled_from(MODES))
def test_no_point_of_the_front_beats_the_fewest_bytes_with_less_work(
    network: Network, mode: InputMode
) -> None:
    options = SegmentOptions(mode, objective="least")
    least = choose(chain_of(network), 1 << 40, options, NO_LIMITS)
    for point in front(network, options, Space(instructions=True)).points:
        assert point.ram_bytes > least.bytes or point.choice.work >= least.work


@pytest.mark.slow
@settings(max_examples=5)
@given(chains(operators=5, side=7, channels=3, steps=True), st.sampled_from(MODES))
def test_no_plan_beats_the_front_nor_the_bounded_search(network: Network, mode: InputMode) -> None:
    chain = chain_of(network)
    best = every_plan(chain, mode)
    assert searched(chain, mode) == best
    bounded_is_the_same(chain, mode, best)


def bounded_is_the_same(chain: Chain, mode: InputMode, best: list[tuple[int, int]]) -> None:
    """Every switch: by bytes, without dominance, by what a quick look found, by any part of the front."""
    least, middle = best[0][0], best[len(best) // 2][0]
    for cap in (least, middle):
        assert searched(chain, mode, cap) == [point for point in best if point[0] <= cap]
    groups = Search(chain, mode).groups(SPACE, 1 << 30, every=True)
    assert stairs((row.bytes, row.work) for row in rows_of_groups(chain, groups)) == best
    search = Search(chain, mode)
    found = search.groups(SPACE, 1 << 30, beam=2)
    looked = [(row.bytes, row.work) for row in rows_of_groups(chain, found)]
    assert all(any(b <= x and w <= y for b, w in best) for x, y in looked)
    search.groups(SPACE, 1 << 30, known=looked, into=found)
    assert stairs((row.bytes, row.work) for row in rows_of_groups(chain, found)) == best
    for known in (best[:1], best[-1:], [(least, 0)], [(0, best[-1][1])]):
        groups = Search(chain, mode).groups(SPACE, 1 << 30, known=known)
        rows = {(row.bytes, row.work) for row in rows_of_groups(chain, groups)}
        assert rows >= {p for p in best if not any(b <= p[0] and w <= p[1] for b, w in known)}


@pytest.mark.thorough
@settings(max_examples=20)
@given(NETWORKS, st.sampled_from(MODES))
def test_bounds_lose_no_plan_that_they_do_not_beat(network: Network, mode: InputMode) -> None:
    chain = chain_of(network)
    bounded_is_the_same(chain, mode, searched(chain, mode))


@settings(max_examples=25)
@given(NETWORKS, st.sampled_from(MODES))
def test_the_simplest_row_costs_no_more_and_joins_the_fewest_layers(
    network: Network, mode: InputMode
) -> None:
    chain = chain_of(network)
    groups = Search(chain, mode).groups(SPACE, 1 << 30)
    rows: dict[int, list[Row]] = {chain.cuts[-1]: [Row(0, 0, 0, None, None)]}
    for first in reversed(chain.cuts[:-1]):
        rows[first] = [
            Row(max(g.bytes, r.bytes), g.work + r.work, g.slower + r.slower, g, r)
            for end, rests in rows.items()
            for g in groups.get((first, end), ())
            for r in rests
        ]
    for row in rows_of_groups(chain, groups):
        found = simplest(chain, groups, row)
        as_good = [
            r for r in rows[0] if r.bytes <= row.bytes and (r.work, r.slower) <= (row.work, row.slower)
        ]
        assert found in as_good
        assert joined(found) == min(map(joined, as_good))


def joined(row: Row) -> int:
    return sum(group.end - group.first for group in row.groups() if not group.alone)


@pytest.mark.thorough
@settings(max_examples=25)
@given(chains(operators=4, side=5, channels=3, steps=True), st.sampled_from(MODES))
def test_every_point_is_a_plan_that_the_checker_proves(network: Network, mode: InputMode) -> None:
    found = front(network, SegmentOptions(mode), SPACE)
    assert found.complete
    assert found.points
    for point in found.points:
        made = plan_of(found.chain, point.choice, point.ram_bytes, SegmentOptions(mode))
        assert check(made) == made.result
        assert made.result.extent_bytes <= point.ram_bytes
        assert made.result.macs in (None, point.macs)
    assert _falls(found)


def _falls(found: Front) -> bool:
    return all(a.ram_bytes > b.ram_bytes and a.macs < b.macs for a, b in pairwise(found.points))


def test_a_search_that_runs_out_of_time_still_has_plans() -> None:
    network = chains_of_one()
    found = front(network, SegmentOptions("again", time_limit=0.0))
    assert not found.complete
    assert found.points[0].macs == found.macs


@pytest.mark.thorough
def test_ctrl_c_keeps_what_was_found() -> None:
    """Pressed in the middle of the search: the points are plans, and the front does not say it is whole."""
    said = 0

    def press(text: str) -> None:
        nonlocal said
        said += 1
        if said == 20:
            signal.raise_signal(signal.SIGINT)

    with pytest.raises(KeyboardInterrupt):
        signal.raise_signal(signal.SIGINT)
    found = front(chains_of_one(), SegmentOptions("again"), limits=Limits(progress=press))
    assert said == 20
    assert not found.complete
    for point in found.points:
        made = plan_of(found.chain, point.choice, point.ram_bytes, SegmentOptions("again"))
        assert made.result.macs == point.macs


@pytest.mark.thorough
def test_too_many_labels_are_some_of_them(monkeypatch: pytest.MonkeyPatch) -> None:
    """The memory is bounded: then the search is not said to be whole, and what it gives are plans."""
    monkeypatch.setattr("onchip.microcontroller.segments.fold.MOST_LABELS", 40)
    found = front(chains_of_one(), SegmentOptions("again"), SPACE)
    assert not found.complete
    assert _falls(found)


def chains_of_one() -> Network:
    from onchip.microcontroller.int8.read import model_of
    from onchip.microcontroller.made import made_model
    from onchip.microcontroller.network import network_of

    return network_of(model_of(made_model("made:kws"), name="kws", where="kws"))


def test_orders_of_branches_are_all_tried() -> None:
    """A shortcut may run before or after the branch beside it: resnet's has three places."""
    from onchip.microcontroller.int8.read import model_of
    from onchip.microcontroller.made import made_model
    from onchip.microcontroller.network import network_of

    chain = chain_of(network_of(model_of(made_model("made:resnet8"), name="resnet", where="resnet")))
    blocks = Blocks(chain, chain.net)
    orders = {sum(stages, ()) for _, stages in blocks.beginning_at(4)}
    assert len(orders) == 3
    assert blocks.all_orders
