"""A group in a nest, shown: the figures are the checker's, equal nests are one, names are data."""

from __future__ import annotations

import json
import re
from dataclasses import replace

import pytest
from fused_plans import diamond
from nest_shown_plans import layers, products_plan, windows_plan

from onchip.check import layout_of
from onchip.network.axes import axes_of
from onchip.planners.fused_group import TIMES
from onchip.plans import Leaf, Loop, Nest, PinnedWeights, Plan
from onchip.report import data, html, summary, timeline
from onchip.report.bounds import bounds_of
from onchip.report.grid import printed
from onchip.report.nest import ShownLoop, ShownNest, shown_nests
from onchip.report.nest.axis_names import AxisNames
from onchip.report.nest.words import common_start, equal_nests


def shown(plan: Plan) -> ShownNest:
    return next(iter(shown_nests(plan, timeline(plan)).values()))


def test_every_figure_is_the_checkers() -> None:
    plan = products_plan()
    nest, layout = shown(plan), layout_of(plan.network, plan.groups[0])
    assert nest.moved == sum(p.crosses for p in layout.places) == plan.result.dram_bytes
    assert max(leaf.alive for leaf in nest.leaves()) == nest.need == layout.need
    assert nest.scratch == plan.groups[0].scratch_bytes
    assert {(b.offset, b.bytes, b.crosses, b.first, b.last) for b in nest.all_buffers()} == {
        (p.offset, p.bytes, p.crosses, p.first, p.last) for p in layout.places
    }
    named = {nest.names[b.name]: b for b in nest.all_buffers()}
    assert {name: b.role for name, b in named.items()} == {
        "x": "enters", "A": "weights", "h": "inside", "B": "weights", "z": "leaves",
    }  # fmt: skip
    assert (named["x"].turns, named["x"].held, named["x"].times) == (48, 1, 3.0)
    assert (named["h"].held, named["h"].size, named["h"].sides, named["h"].turns) == (8, 24, (4, 2), 3)
    (loop,) = nest.loops()
    assert (loop.word, loop.size, loop.tile, loop.turns, loop.last) == ("hidden features", 6, 2, 3, 2)
    up, down = nest.leaves()
    assert up.slices == (("sum", 4, 1), ("rows", 4, 1))
    assert down.slices == (("features", 4, 1), ("rows", 4, 1))


def test_whole_operands_have_no_home_and_are_named() -> None:
    nest = shown(products_plan(whole=("x", "z")))
    assert [(nest.names[w.name], w.bytes, w.made) for w in nest.whole] == [("x", 16, False), ("z", 16, True)]
    assert {nest.names[b.name] for b in nest.all_buffers()} == {"A", "h", "B"}


def test_ragged_loops_say_their_last_turn_and_inner_ones_what_outer_ones_leave() -> None:
    both = (("up", 0), ("down", 0))
    inner = Loop(both, 2, (Leaf("up"), Leaf("down")))
    nest = shown(products_plan(Nest((Loop(both, 3, (inner,)),))))
    outer, loop = nest.loops()
    assert (outer.size, outer.tile, outer.turns, outer.last, outer.runs) == (4, 3, 2, 1, 2)
    assert (loop.size, loop.tile, loop.turns, loop.last, loop.runs) == (3, 2, 2, 0, 3)


def test_equal_layers_are_one_row_of_the_terminal() -> None:
    plan = layers(5)
    nests = shown_nests(plan, timeline(plan))
    assert len(nests) == 5
    assert list(equal_nests(nests).values()) == [[f"g{i}" for i in range(5)]]
    text = printed(summary(plan))
    assert "loops, outermost first" in text
    assert text.count("hidden features: 6 in 3 turns of 2") == 1
    assert text.count(f"g0 {TIMES}5") == 2  # among the groups, and among the nests


def test_the_terminal_says_what_stays_and_what_crosses_how_often() -> None:
    text = printed(summary(products_plan()))
    for line in (
        "hidden features: 6 in 3 turns of 2, around 2",
        "h 8 B of 24 B",
        f"x 16 B {TIMES}3 = 48 B",
        f"z 16 B {TIMES}5 = 80 B",
        "once: 2 weights, 48 B",
    ):
        assert line in text


def test_the_report_as_data_has_the_tree_with_the_models_names() -> None:
    plan = products_plan()
    found = json.loads(json.dumps(data(plan)))
    (nest,) = found["nests"]
    (loop,) = nest["body"]
    assert (loop["over"], loop["tile"], loop["turns"]) == ({"up": 1, "down": 2}, 2, 3)
    assert [item["run"] for item in loop["body"]] == ["up", "down"]
    assert [b["name"] for b in loop["buffers"]] == ["h"]
    everything = [*nest["buffers"], *loop["buffers"], *(b for leaf in loop["body"] for b in leaf["buffers"])]
    assert sum(b["crossing_bytes"] for b in everything) == found["dram_bytes"] == 176


def test_three_figures_place_a_plan() -> None:
    plan = products_plan()
    found = bounds_of(plan)
    assert (found.every, found.space, found.plan) == (32 + 48, None, 176)
    text = printed(summary(plan))
    assert "least of its space: not known" in text
    assert re.search(r"\b80 +80 B +inputs as far as read", text)
    assert "Every schedule moves" in html(plan)
    pinned = replace(plan, pins=(PinnedWeights("up", 100),))
    assert bounds_of(pinned).every == 32 + 24
    best = replace(plan, result=replace(plan.result, dram_lower_bound_bytes=100))
    assert bounds_of(best).space == 100


def test_axes_of_maps_go_by_their_sides() -> None:
    network = diamond()
    axes = axes_of(network, [0, 1])
    assert not isinstance(axes, str)
    names = AxisNames(network, axes)
    assert [names.of(0, axis) for axis in range(5)] == ["", "channels", "rows", "columns", "input channels"]
    assert names.loop([(0, 3), (1, 3)]) == "columns"
    assert names.loop([(0, 1), (1, 1)]) == "channels"


@pytest.mark.parametrize("width", [60, 80, 140])
def test_the_terminal_lists_nests_within_its_width(width: int) -> None:
    lines = printed(summary(layers(3)), width).splitlines()
    assert max(map(len, lines)) <= width
    assert any("hidden" in line for line in lines)


@pytest.mark.parametrize(
    ("names", "start"),
    [
        (["a.b.c", "a.b.d"], "a.b."),
        (["a/b/c", "a/b/d"], "a/b/"),
        (["a.b", "a.b.c"], "a."),
        (["ab", "ac"], ""),
        (["a.b"], ""),
        ([], ""),
    ],
)
def test_names_lose_what_all_begin_with(names: list[str], start: str) -> None:
    assert common_start(names) == start


def test_loops_of_every_kind_are_walked_in_order() -> None:
    nest = shown(products_plan())
    assert [(isinstance(item, ShownLoop), deep) for item, deep in nest.walk()] == [
        (True, 0), (False, 1), (False, 1),
    ]  # fmt: skip


def test_loops_over_windows_say_so_and_what_is_a_ring_or_made_again() -> None:
    nest = shown(windows_plan(("h",)))
    (loop,) = nest.loops()
    assert (loop.slides, loop.size, loop.tile, loop.turns) == (True, 4, 1, 4)
    ring = next(b for b in nest.all_buffers() if nest.names[b.name] == "h")
    assert (ring.ring, ring.held, ring.size) == (True, 3, 8)
    assert [leaf.again for leaf in nest.leaves()] == [(), ()]
    assert "a ring" in printed(summary(windows_plan(("h",))))
    redone = shown(windows_plan())
    assert [leaf.again for leaf in redone.leaves()] == [((11, 8),), ()]
