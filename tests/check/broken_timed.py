"""Ways to break the rules about copies, channels, sides of the array, and groups beside each other."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from broken_plans import Broken, Site, breaks

from onchip.plans import Leaf, Loop, Nest, Plan, Run, Scratch, TensorLayout, Ways
from timed_plans import EXAMPLE, SPILLED, WORDED, chained, example, timed_plan


def _plan(nest: Nest) -> Plan:
    return timed_plan(WORDED.network, [nest], [["up", "down"]])


def _with(plan: Plan, nest: Nest) -> Broken:
    return Broken(replace(plan, groups=(replace(plan.groups[0], tiling=nest),)), None)


def _loop(nest: Nest, **changes: object) -> Nest:
    (loop,) = nest.body
    assert isinstance(loop, Loop)
    return replace(nest, body=(replace(loop, **changes),))  # type: ignore[arg-type]


@breaks("nest-copies")
def _(s: Site) -> Iterator[Broken]:
    nest = example(EXAMPLE)
    plan = _plan(nest)
    for copies in ((("x", 2),), (("h", 2),), (("A", 0),), (("A", 65),), (("nobody", 2),)):
        yield _with(plan, _loop(nest, ways=Ways(copies)))
    yield _with(plan, replace(nest, ways=Ways((), (("A", 0),))))
    spilled = example(SPILLED)
    (loop,) = spilled.body
    assert isinstance(loop, Loop)
    up, inner = loop.body
    assert isinstance(inner, Loop)
    # z in one piece in every turn of f, and in one turn of y: the next fill is the same box
    held = replace(loop, keep=("A", "z"), ways=Ways((("z", 2),)), body=(up, replace(inner, keep=("B",))))
    yield _with(_plan(spilled), replace(spilled, body=(held,)))
    once = replace(inner, tile=4, ways=Ways((("z", s.rng.randint(2, 4)),)))
    yield _with(_plan(spilled), replace(spilled, body=(replace(loop, body=(up, once)),)))


@breaks("nest-late")
def _(s: Site) -> Iterator[Broken]:
    nest = example(EXAMPLE)
    plan = _plan(nest)
    steps = s.rng.randint(1, 9)
    yield _with(plan, _loop(nest, ways=Ways((("A", 2),), late=(("A", steps),))))  # is never stored
    yield _with(plan, replace(nest, ways=Ways(late=(("z", steps),))))  # has one copy
    yield _with(plan, replace(nest, ways=Ways((("z", 2),), late=(("z", s.rng.choice((-1, 0, 65))),))))
    spilled = example(SPILLED)
    (loop,) = spilled.body
    assert isinstance(loop, Loop)
    up, inner = loop.body
    assert isinstance(inner, Loop)
    sums = replace(inner, ways=Ways((("z", 2),), late=(("z", steps),)))
    yield _with(_plan(spilled), replace(spilled, body=(replace(loop, body=(up, sums)),)))


@breaks("nest-array")
def _(s: Site) -> Iterator[Broken]:
    nest = example(EXAMPLE)
    plan = _plan(nest)
    (loop,) = nest.body
    assert isinstance(loop, Loop)
    up, down = loop.body
    assert isinstance(up, Leaf)
    sides: tuple[tuple[tuple[int, ...], ...], ...] = (
        ((0,), (1,), ()), ((0,), (0,)), ((2,), (1,)), ((3,), ()), ((-1,), ()),
    )  # fmt: skip
    for array in sides:
        yield _with(plan, _loop(nest, body=(replace(up, array=array), down)))
    yield Broken(replace(plan, chip=replace(plan.chip, tiles=None)), None)
    three = chained()
    (add,) = three.groups[2].tiling.body  # type: ignore[union-attr]
    assert isinstance(add, Loop)
    (leaf,) = add.body
    assert isinstance(leaf, Leaf)
    laid = Nest((replace(add, body=(replace(leaf, array=((0,), (1,))),)),))
    yield Broken(replace(three, groups=(*three.groups[:2], replace(three.groups[2], tiling=laid))), None)


@breaks("nest-channels")
def _(s: Site) -> Iterator[Broken]:
    nest = example(EXAMPLE)
    plan = _plan(nest)
    yield _with(plan, _loop(nest, ways=Ways((), (("A", s.rng.randint(1, 9)),))))
    yield _with(plan, _loop(nest, ways=Ways((), (("A", -1),))))
    tiles = plan.chip.tiles
    assert tiles is not None
    (both,) = tiles.channels
    apart = replace(tiles, channels=(replace(both, stores=False), replace(both, loads=False)))
    found = replace(plan, chip=replace(plan.chip, tiles=apart))
    yield _with(found, _loop(nest, ways=Ways((), (("A", 1),))))
    yield _with(found, replace(nest, ways=Ways((), (), (("z", 0),))))


@breaks("layout")
def _(s: Site) -> Iterator[Broken]:
    plan = chained()  # a of 6 x 4, between g0 and g2, in boxes of a row
    for name, sides, tile in (
        ("a", (6, 4), (4, 2)), ("a", (6, 4), (1, 5)), ("a", (6, 4), (0, 4)), ("a", (6, 4), (6,)),
        ("a", (6, 5), (1, 5)), ("a", (4, 6), (1, 2)), ("x", (6, 4), (1, 2)), ("c", (6, 4), (1, 2)),
        ("nobody", (6, 4), (1, 2)),
    ):  # fmt: skip
        yield Broken(replace(plan, layouts=(TensorLayout(name, sides, tile),)), None)
    twice = TensorLayout("a", (6, 4), (1, 2))
    yield Broken(replace(plan, layouts=(twice, twice)), None)


@breaks("nest-beside")
def _(s: Site) -> Iterator[Broken]:
    plan = chained()
    runs = [n for n, step in enumerate(plan.program) if isinstance(step, Run)]
    first, second, third = plan.groups
    assert isinstance(first.tiling, Nest)
    assert isinstance(third.tiling, Nest)
    alone = replace(first, tiling=replace(first.tiling, beside=True))
    yield Broken(replace(plan, groups=(alone, second, third)), runs[0])
    program = list(plan.program)
    late = next(n for n, step in enumerate(program) if step == Scratch("g1", program[n].address))  # type: ignore[union-attr]
    program.insert(runs[0], program.pop(late))
    yield Broken(replace(plan, program=tuple(program)), runs[0] + 1)
    reads = replace(third, tiling=replace(third.tiling, beside=True))
    moved = list(plan.program)
    scratch = next(n for n, step in enumerate(moved) if isinstance(step, Scratch) and step.operator == "g2")
    moved.insert(runs[1], moved.pop(scratch))
    yield Broken(replace(plan, groups=(first, second, reads), program=tuple(moved)), runs[2])
