"""Ways to break the rules about groups in nests, in plans of their own; see `broken_plans`."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from broken_nest_windows import disagreeing, misplaced_rings, parts, relooped, renested, unfinished
from broken_plans import Broken, Site, breaks
from nest_plans import STREAM_AT, nest_of, nest_plan, over_itself, plan_of

from onchip.network import Network, OperatorSpec, Reach, Side
from onchip.plans import Alloc, Leaf, Loop, Nest, Plan


@breaks("nest-alone")
def _(s: Site) -> Iterator[Broken]:
    plan = nest_plan(s.rng)
    (group,) = plan.groups
    for changes in ({"subgroups": 2}, {"refills": (("up", 1),)}, {"resident_weights": ("up",)}):
        yield Broken(replace(plan, groups=(replace(group, **changes),)), None)  # type: ignore[arg-type]


@breaks("nest-leaves")
def _(s: Site) -> Iterator[Broken]:
    plan = nest_plan(s.rng)
    _, up, down = parts(plan)
    yield relooped(plan, body=(down, up))
    yield relooped(plan, body=(up, down, down))
    yield relooped(plan, body=(up, replace(down, operator="nobody")))
    yield renested(plan, Nest((up,)))
    yield renested(plan, Nest(()))


@breaks("nest-axes")
def _(s: Site) -> Iterator[Broken]:
    plan = nest_plan(s.rng)
    loop, up, down = parts(plan)
    yield relooped(plan, over=loop.over[:1])
    yield relooped(plan, over=(*loop.over, ("nobody", 0)))
    yield relooped(plan, over=(("up", 3), ("down", 0)))
    yield relooped(plan, over=(("up", -1), ("down", 0)))
    yield relooped(plan, body=(up, replace(down, slices=((0, 1), (0, 1)))))
    yield relooped(plan, body=(up, replace(down, slices=((7, 1),))))
    again = Loop((("up", loop.over[0][1]), ("down", 1)), 1, loop.body)  # cut before in one of both
    yield relooped(plan, body=(again,))
    yield relooped(plan, body=(*loop.body, Loop((), 1, ())))
    apart = Network.build(
        "apart",
        [("x", 4, "input"), ("y", 4, "activation"), ("v", 6, "input"), ("w", 6, "activation")],
        [
            OperatorSpec("f", "Relu", ["x"], ["y"], reach=Reach((4,), ((Side(4, 0),),))),
            OperatorSpec("e", "Relu", ["v"], ["w"], reach=Reach((6,), ((Side(6, 0),),))),
        ],
        ["y", "w"],
    )
    leaves = (Leaf("f"), Leaf("e"))
    yield renested(plan_of(apart, Nest(leaves)), Nest((Loop((("f", 0), ("e", 0)), 1, leaves),)))
    rows = Reach((4, 6), ((Side(4, 0), Side(6, span=6)),))
    norm = Network.build(
        "norm",
        [("x", 24, "input"), ("y", 24, "activation")],
        [OperatorSpec("f", "LayerNormalization", ["x"], ["y"], reach=rows)],
        ["y"],
    )
    plan = plan_of(norm, Nest((Loop((("f", 0),), 1, (Leaf("f"),)),)))
    yield relooped(plan, over=(("f", 1),))
    yield relooped(plan, body=(Leaf("f", ((1, 2),)),))


@breaks("nest-tiles")
def _(s: Site) -> Iterator[Broken]:
    plan = nest_plan(s.rng)
    _, up, down = parts(plan)
    for wrong in (0, -1):
        yield relooped(plan, tile=wrong)
        yield relooped(plan, body=(up, replace(down, slices=((0, wrong),))))


@breaks("nest-finished")
def _(s: Site) -> Iterator[Broken]:
    plan = nest_plan(s.rng)
    yield relooped(plan, over=(("up", 2), ("down", 1)), keep=())  # a sum of up
    yield relooped(plan, over=(("up", 0), ("down", 1)), keep=())  # which leaves h whole in down
    yield from unfinished()


@breaks("nest-windows")
def _(s: Site) -> Iterator[Broken]:
    yield from disagreeing(s.rng)


@breaks("nest-keep")
def _(s: Site) -> Iterator[Broken]:
    plan = nest_plan(s.rng)
    nest = nest_of(plan)
    for wrong in (("h",), ("nobody",), ("x", "x")):
        yield renested(plan, replace(nest, keep=wrong))
    yield renested(
        relooped(plan, keep=("A",)).plan, replace(nest_of(relooped(plan, keep=("A",)).plan), keep=("A",))
    )
    _, up, down = parts(plan)
    alone = Loop((("up", 2),), 1, (up,), ("B",))
    yield relooped(plan, body=(alone, down), keep=())
    yield renested(
        plan_of(plan.network, nest_of(plan_of(plan.network, Nest((up, down)))), ["x"]),
        Nest((up, down), ("x",)),
    )
    yield from misplaced_rings(s.rng)


@breaks("nest-over")
def _(s: Site) -> Iterator[Broken]:
    plan = nest_plan(s.rng)
    _, up, down = parts(plan)
    for wrong in ("x", "h", "z", "nobody"):
        yield relooped(plan, body=(up, replace(down, over=wrong)))


@breaks("nest-under")
def _(s: Site) -> Iterator[Broken]:
    """A stream over itself that is read too late, along another side, by a product, from beside."""
    size = s.rng.randint(2, 5)
    plan = over_itself(size, size)
    norm, product, again, add = nest_of(plan).body
    assert isinstance(add, Leaf)
    late = Loop((("product", 1), ("add", 1)), s.rng.randint(1, size), (product, add))
    askew = Loop((("again", 1), ("add", 0)), s.rng.randint(1, size - 1), (again, add))
    for body in (
        (norm, product, add, again),
        (norm, late, again),
        (norm, product, again, replace(add, over="h")),
        (norm, product, askew),
    ):
        broken = renested(plan, Nest(body)).plan
        yield Broken(broken, _laid_over(broken))
    index = _laid_over(plan)
    beside = replace(plan.program[index], address=40 + STREAM_AT, by=-40)
    yield Broken(replace(plan, program=(*plan.program[:index], beside, *plan.program[index + 1 :])), index)


def _laid_over(plan: Plan) -> int:
    return next(n for n, step in enumerate(plan.program) if isinstance(step, Alloc) and step.over)


@breaks("nest-carried")
def _(s: Site) -> Iterator[Broken]:
    """The keys of an attention in parts, while its rows are private."""
    keys = (Side(4, 2), Side(3, span=3))
    reach = Reach((5, 2), ((Side(5, 0), Side(3, span=3)), keys, (Side(4, 2), Side(2, 1))), (), (4,), 2, (1,))
    attention = Network.build(
        "attention",
        [("q", 15, "input"), ("k", 12, "input"), ("v", 8, "input"), ("y", 10, "activation")],
        [OperatorSpec("a", "Attention", ["q", "k", "v"], ["y"], reach=reach)],
        ["y"],
    )
    rows, tile = Leaf("a", ((0, s.rng.randint(1, 5)),)), s.rng.randint(1, 3)
    loop = Loop((("a", 2),), tile, (rows,))
    yield renested(plan_of(attention, Nest((loop,), keep=("y",))), Nest((loop,)))
