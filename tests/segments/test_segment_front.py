"""The front of RAM and work, against every plan of small random networks; its points as certified plans."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise, product

from hypothesis import given, settings
from hypothesis import strategies as st

from onchip.check import check
from onchip.network import Network
from onchip.segments import Front, SegmentOptions, Space, front, plan_of
from onchip.segments.blocks import Blocks
from onchip.segments.chain import Chain
from onchip.segments.front import chain_of
from onchip.segments.group import StageChoice
from onchip.segments.options import InputMode
from onchip.segments.search import Search, rows_of_groups
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


@settings(max_examples=40)
@given(chains(operators=4, side=6, channels=3, steps=True), st.sampled_from(MODES))
def test_no_plan_beats_the_front(network: Network, mode: InputMode) -> None:
    chain = chain_of(network)
    groups = Search(chain, mode).groups(SPACE, 1 << 30)
    found = {(row.bytes, row.work) for row in rows_of_groups(chain, groups)}
    best: list[tuple[int, int]] = []
    for size, work in sorted(found):
        if not best or work < best[-1][1]:
            best.append((size, work))
    assert best == every_plan(chain, mode)


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


@settings(max_examples=25)
@given(chains(operators=4, side=6, channels=3), st.sampled_from(MODES))
def test_the_cap_loses_nothing_below_it(network: Network, mode: InputMode) -> None:
    """Pruning by bytes is a switch: with it off the same rows are found."""
    chain = chain_of(network)
    everything = rows_of_groups(chain, Search(chain, mode).groups(SPACE, 1 << 30))
    cap = everything[len(everything) // 2].bytes
    capped = rows_of_groups(chain, Search(chain, mode).groups(SPACE, cap))
    assert {(r.bytes, r.work) for r in capped} >= {(r.bytes, r.work) for r in everything if r.bytes <= cap}


def test_a_search_that_runs_out_of_time_still_has_plans() -> None:
    network = chains_of_one()
    found = front(network, SegmentOptions("again", time_limit=0.0))
    assert not found.complete
    assert found.points[0].macs == found.macs


def chains_of_one() -> Network:
    from onchip.mcu.made import made_model
    from onchip.mcu.network import network_of
    from onchip.mcu.read import model_of

    return network_of(model_of(made_model("made:kws"), name="kws", where="kws"))


def test_orders_of_branches_are_all_tried() -> None:
    """A shortcut may run before or after the branch beside it: resnet's has three places."""
    from onchip.mcu.made import made_model
    from onchip.mcu.network import network_of
    from onchip.mcu.read import model_of

    chain = chain_of(network_of(model_of(made_model("made:resnet8"), name="resnet", where="resnet")))
    blocks = Blocks(chain, chain.net)
    orders = {sum(stages, ()) for _, stages in blocks.beginning_at(4)}
    assert len(orders) == 3
    assert blocks.all_orders
