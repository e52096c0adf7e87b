"""Outputs of nests over whole inputs that die: what is proved, and what is refused in words."""

from __future__ import annotations

from dataclasses import replace

import pytest
from nest_plans import over_itself, plan_of, slid

from onchip.base.errors import IllegalPlan
from onchip.check import check
from onchip.check.nest_overlap import prove_nest_overlap
from onchip.check.nests import Layout, nested
from onchip.check.rules import Broken
from onchip.network import Network, OperatorSpec, Reach, Side
from onchip.plans import Group, Leaf, Loop, Nest, from_json, from_text, to_json, to_text

NORM, PRODUCT, AGAIN, ADD = (Leaf(name) for name in ("norm", "product", "again", "add"))


def rows(tile: int, *body: Leaf | Loop) -> Loop:
    names = ("norm", "product", "again", "add")
    return Loop(tuple((name, 0) for name in names), tile, body)


def features(tile: int, *body: Leaf) -> Loop:
    return Loop(tuple((leaf.operator, 1) for leaf in body), tile, body)


@pytest.mark.parametrize(
    "body",
    [
        (NORM, PRODUCT, AGAIN, ADD),
        (rows(2, NORM, PRODUCT, AGAIN, ADD),),
        (rows(3, NORM, AGAIN, PRODUCT, ADD),),
        (rows(2, NORM, features(1, PRODUCT, AGAIN, ADD)),),
        (NORM, features(2, AGAIN, PRODUCT, ADD)),
        (AGAIN, NORM, features(2, PRODUCT, ADD)),
    ],
)
def test_a_stream_lies_over_itself(body: tuple[Leaf | Loop, ...]) -> None:
    plan = over_itself(6, 4, Nest(body))
    result = check(plan)
    assert result.peak_bytes == 1000 + 24
    assert from_text(to_text(plan)) == plan
    assert from_json(to_json(plan)) == plan


@pytest.mark.parametrize(
    ("body", "said"),
    [
        (
            (NORM, PRODUCT, ADD, AGAIN),
            "again of group g reads x where add has written over it: it runs later",
        ),
        ((rows(2, NORM, PRODUCT, ADD, AGAIN),), "it runs later"),
        ((NORM, features(2, PRODUCT, ADD), AGAIN), "it runs later"),
        (
            (NORM, PRODUCT, AGAIN, replace(ADD, over="h")),
            "norm|again|add of group g reads x where product has written over it",
        ),
    ],
)
def test_what_is_read_too_late_is_refused(body: tuple[Leaf | Loop, ...], said: str) -> None:
    with pytest.raises(IllegalPlan, match=said) as refusal:
        over_itself(6, 4, Nest(body))
    assert refusal.value.rule == "nest-under"


def test_rows_are_not_columns() -> None:
    """A square stream, of which one reads columns while the other writes rows."""
    askew = Loop((("again", 1), ("add", 0)), 2, (AGAIN, ADD))
    with pytest.raises(IllegalPlan, match="a later turn of a loop around both reads it again"):
        over_itself(4, 4, Nest((NORM, PRODUCT, askew)))


def test_a_stream_that_crosses_lies_over_nothing() -> None:
    plan = over_itself(6, 4)
    text = to_text(plan).replace("  run g streaming u:24", "  run g streaming x:24 u:24")
    with pytest.raises(IllegalPlan, match="group g streams x") as refusal:
        check(from_text(text))
    assert refusal.value.rule == "overlap-unproved"


# -- windows -----------------------------------------------------------------------------------------------


def slid_over(first: Side, second: Side, tile: int, ring: tuple[str, ...]) -> tuple[Network, Layout]:
    """Two windows of one axis and the sum of what they make with x, in bands."""
    network = Network.build(
        "shortcut",
        [("x", 12, "input"), *((t, 12, "activation") for t in ("a", "b", "y"))],
        [
            OperatorSpec("c", "Conv", ["x"], ["a"], reach=Reach((12,), ((first,),))),
            OperatorSpec("d", "Conv", ["a"], ["b"], reach=Reach((12,), ((second,),))),
            OperatorSpec("s", "Add", ["b", "x"], ["y"], reach=Reach((12,), ((Side(12, 0),), (Side(12, 0),)))),
        ],
        ["y"],
    )
    loop = Loop((("c", 0), ("d", 0), ("s", 0)), tile, (Leaf("c"), Leaf("d"), Leaf("s")), ring=ring)
    group = Group("g", ("c", "d", "s"), 0, tiling=Nest((loop,)))
    return network, nested(network, group, [0, 1, 2], set(), 1).layout


@pytest.mark.parametrize("tile", [1, 2, 5])
def test_windows_that_run_ahead_read_what_is_still_there(tile: int) -> None:
    """Turn by turn: with rings `c` reads no row again that `s` wrote over; without, it does."""
    ahead, near = Side(12, 0, 1, 1, 3), Side(12, 0, 1, 1, 3)
    network, layout = slid_over(ahead, near, tile, ("a",))
    y, x = network.tensor_id["y"], network.tensor_id["x"]
    prove_nest_overlap(network, "g", layout, y, x, 0)
    network, layout = slid_over(ahead, near, tile, ())
    with pytest.raises(Broken, match="a later turn"):
        prove_nest_overlap(network, "g", layout, y, x, 0)


def test_windows_that_look_back_do_not() -> None:
    network, layout = slid_over(Side(12, 0, 1, 3, 3), Side(12, 0, 1, 1, 3), 1, ("a",))
    with pytest.raises(Broken, match="c of group g reads x where s has written over it"):
        prove_nest_overlap(network, "g", layout, network.tensor_id["y"], network.tensor_id["x"], 0)


def test_one_window_lies_over_nothing() -> None:
    """An operator reads its window while it writes: nothing says in which order."""
    network = slid((8, 8), ((1, 1, 3),))
    plan = plan_of(network, Nest((Leaf("c1"),)), whole=("x", "h1"))
    text = to_text(plan)
    start = text.index("alloc h1 @") + len("alloc h1 @")
    at = text[text.index("load x @") + len("load x @") :].split("\n")[0]
    text = text[:start] + f"{at} over x by 0" + text[text.index("\n", start) :]
    with pytest.raises(IllegalPlan, match="not element by element") as refusal:
        check(from_text(text))
    assert refusal.value.rule == "nest-under"
