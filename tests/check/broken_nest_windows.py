"""Ways to break the rules about windows in nests, for `broken_nests`."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from random import Random

from broken_plans import Broken
from nest_plans import nest_of, nest_plan, plan_of, slid

from onchip.network import Network, OperatorSpec, Reach, Side
from onchip.plans import Leaf, Loop, Nest, Plan


def renested(plan: Plan, nest: Nest) -> Broken:
    (group,) = plan.groups
    return Broken(replace(plan, groups=(replace(group, tiling=nest),)), None)


def relooped(plan: Plan, **changes: object) -> Broken:
    nest = nest_of(plan)
    (loop,) = nest.body
    return renested(plan, replace(nest, body=(replace(loop, **changes),)))  # type: ignore[arg-type]


def parts(plan: Plan) -> tuple[Loop, Leaf, Leaf]:
    (loop,) = nest_of(plan).body
    assert isinstance(loop, Loop)
    up, down = loop.body
    assert isinstance(up, Leaf)
    assert isinstance(down, Leaf)
    return loop, up, down


def bands(rng: Random) -> Plan:
    """A legal plan of two convolutions in bands, with a ring between them or from outside."""
    network = slid((8, 8, 4), ((1, 1, 3), (2, 1, 3)))
    ring = tuple(name for name in ("h1", "x") if rng.random() < 0.5)
    loop = Loop((("c1", 0), ("c2", 0)), rng.randint(1, 4), (Leaf("c1"), Leaf("c2")), ("x",), ring)
    return plan_of(network, Nest((loop,)))


def disagreeing(rng: Random) -> Iterator[Broken]:
    """Loops inside loops along windows, strides and turns that do not agree."""
    plan = bands(rng)
    loop, first, second = parts(plan)
    yield relooped(plan, body=(Loop(loop.over, 1, loop.body),), keep=(), ring=())
    yield relooped(plan, body=(Loop(loop.over[:1], 1, (first,)), second), keep=(), ring=())
    yield relooped(plan, body=(first, Loop(loop.over[1:], 1, (second,))), keep=(), ring=())
    for name, sides in {"stride": Side(8, 0, 1, 1, 3), "per": Side(8, 0, 2, 1, 3, 2)}.items():
        odd = Network.build(  # x by two ways
            name,
            [("x", 8, "input"), ("a", 8, "activation"), ("b", 4, "activation"), ("y", 4, "activation")],
            [
                OperatorSpec("c1", "Conv", ["x"], ["a"], reach=Reach((8,), ((Side(8, 0, 1, 1, 3),),))),
                OperatorSpec("c2", "Conv", ["x"], ["b"], reach=Reach((4,), ((Side(8, 0, 2, 1, 3),),))),
                OperatorSpec("c3", "Add", ["a", "b"], ["y"], reach=Reach((4,), ((sides,), (Side(4, 0),)))),
            ],
            ["y"],
        )
        leaves = tuple(Leaf(op.name) for op in odd.operators)
        legal = plan_of(odd, Nest(leaves))
        yield renested(legal, Nest((Loop((("c1", 0), ("c2", 0), ("c3", 0)), 1, leaves, ("x",)),)))
    apart = Network.build(  # a banded convolution, and a longer axis that nothing links with it
        "apart",
        [("x", 8, "input"), ("a", 8, "activation"), ("y", 9, "activation"), ("z", 9, "input")],
        [
            OperatorSpec("c1", "Conv", ["x"], ["a"], reach=Reach((8,), ((Side(8, 0, 1, 1, 3),),))),
            OperatorSpec("c2", "Relu", ["z"], ["y"], reach=Reach((9,), ((Side(9, 0),),))),
        ],
        ["a", "y"],
    )
    leaves = (Leaf("c1"), Leaf("c2"))
    yield renested(plan_of(apart, Nest(leaves)), Nest((Loop(loop.over, 1, leaves),)))


def unfinished() -> Iterator[Broken]:
    """A window over another side than that which the loop cuts."""
    wide = Network.build(  # c2 reads columns where c1 writes rows
        "wide",
        [("x", 16, "input"), ("a", 16, "activation"), ("y", 4, "activation")],
        [
            OperatorSpec("c1", "Relu", ["x"], ["a"], reach=Reach((4, 4), ((Side(4, 0), Side(4, 1)),))),
            OperatorSpec(
                "c2", "Conv", ["a"], ["y"], reach=Reach((4,), ((Side(4, span=4), Side(4, 0, 1, 1, 3)),))
            ),
        ],
        ["y"],
    )
    leaves = (Leaf("c1"), Leaf("c2"))
    yield renested(plan_of(wide, Nest(leaves)), Nest((Loop((("c1", 0), ("c2", 0)), 2, leaves),)))


def misplaced_rings(rng: Random) -> Iterator[Broken]:
    """Rings that are none."""
    plan = bands(rng)
    for wrong in (("h1", "h1"), ("nobody",), ("h2",)):
        yield relooped(plan, ring=wrong)
    yield relooped(plan, keep=(), ring=("x",))
    yield relooped(plan, keep=("x", "h2"), ring=("h2",))
    yield relooped(nest_plan(rng), ring=("h",))
    x_above = relooped(plan, keep=(), ring=("x",)).plan
    yield renested(x_above, replace(nest_of(x_above), keep=("x",)))
