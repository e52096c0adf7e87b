"""The search for the best nest of a group finds what a walk over every nest of its family finds."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from itertools import permutations, product
from random import Random

import pytest

from nest_groups import NestCase, Walk, group_of, legal, named, random_nest_case
from onchip.check.nest_homes import homes_of
from onchip.check.nest_sizes import Sizes
from onchip.check.nest_tree import paths_of
from onchip.planners.nests import MANY, NestRules, NestSearch, best_nest, group_key, scratch_of, widened
from onchip.plans.nest import Leaf, Loop, Nest, leaves
from oracles.nest_family import arranged, classes_of, nest_of

EXAMPLE = group_of(
    "m=4 d=4 y=4 f=6",
    ["up: h(m,f) = x(m,d) A(d,f)", "down: z(m,y) = h(m,f) B(f,y)"],
)
LEAVING = named(EXAMPLE, "z")


@pytest.mark.parametrize(
    ("room", "crossing"),
    [(6, 272), (8, 224), (10, 176), (12, 176), (16, 128), (28, 112), (32, 80)],
)
def test_the_worked_example(room: int, crossing: int) -> None:
    found = best_nest(EXAMPLE, LEAVING, (), room)
    assert found is not None
    assert found.complete
    assert found.bytes == crossing
    assert found.scratch <= room
    case = NestCase(EXAMPLE, frozenset(LEAVING), frozenset(), 1)
    walk = Walk(case, found.nest)
    assert (walk.bytes, walk.scratch) == (found.bytes, found.scratch)
    assert legal(case, found.nest)


def test_what_does_not_fit_has_no_nest() -> None:
    assert best_nest(EXAMPLE, LEAVING, (), 1) is None
    assert best_nest(EXAMPLE, LEAVING, (), 32, below=80) is None


# -- every nest of the family, without passes ---------------------------------------------------------------


def family(case: NestCase, spine: int) -> Iterator[Nest]:
    """Every nest with at most so many loops of a spine, every tile and every home; leaves without slices."""
    ops, buffers = case.group.operators, case.group.buffers
    classes = classes_of(case.group)
    for loops in range(spine + 1):
        for chosen in permutations(classes, loops):
            for depths in product(range(loops + 1), repeat=len(ops)):
                if max(depths) < loops or any(
                    at not in c or c[at] in op.together
                    for at, op in enumerate(ops)
                    for c in chosen[: depths[at]]
                ):
                    continue
                free = [
                    i
                    for i, b in enumerate(buffers)
                    if i not in case.whole and (b.maker is None or i in case.leaving)
                ]
                uses = {i: [at for at, op in enumerate(ops) for u in op.uses if u.buffer == i] for i in free}
                homes = []
                for i in free:
                    least = min(depths[at] for at in uses[i])
                    read_too = buffers[i].maker is not None and len(uses[i]) > 1
                    homes.append(range(least + 1) if read_too else range(-1, least + 1))
                sizes = [max(ops[at].axes[axis] for at, axis in c.items()) for c in chosen]
                skeleton = arranged(case.group, chosen, depths)
                if skeleton is None:
                    continue
                for home in product(*homes):
                    keep = [
                        tuple(buffers[i].name for i, h in zip(free, home, strict=True) if h == d)
                        for d in range(loops + 1)
                    ]
                    for tiles in product(*(range(1, n) for n in sizes)):
                        yield from sliced(case, nest_of(case.group, skeleton, chosen, tiles, keep))


def sliced(case: NestCase, nest: Nest) -> Iterator[Nest]:
    """The nest with every order of slices of the operators whose sums may be wider than elements: of some
    axes, as a slice along a sum has its price."""
    ways = []
    for _, leaf in leaves(nest.body):
        op = next(op for op in case.group.operators if op.name == leaf.operator)
        free = [a for a in range(len(op.axes)) if a not in op.together and op.axes[a] > 1]
        orders = [(), *(o for n in range(len(free)) for o in permutations(free, n + 1))]
        ways.append(
            [(leaf, tuple((a, 1) for a in o)) for o in (orders if case.costs(op.writes.buffer) else [()])]
        )
    for chosen in product(*ways):
        yield replace(nest, body=_with_slices(nest.body, {leaf.operator: s for leaf, s in chosen}))


def _with_slices(
    body: tuple[Loop | Leaf, ...], slices: dict[str, tuple[tuple[int, int], ...]]
) -> tuple[Loop | Leaf, ...]:
    return tuple(
        replace(item, slices=slices[item.operator])
        if isinstance(item, Leaf)
        else replace(item, body=_with_slices(item.body, slices))
        for item in body
    )


def staircase(case: NestCase, spine: int, most: int) -> dict[int, int] | None:
    """By scratch, the fewest bytes of any nest of the family; None if there are more nests than that."""
    found: dict[int, int] = {}
    for n, nest in enumerate(family(case, spine)):
        if n == most:
            return None
        if not legal(case, nest):
            continue
        walk = Walk(case, nest, any_order=True)
        if not walk.stateless:
            continue
        found[walk.scratch] = min(walk.bytes, found.get(walk.scratch, walk.bytes))
    return found


def agree(case: NestCase, spine: int, stairs: dict[int, int], rules: NestRules) -> None:
    search = NestSearch(
        case.group,
        case.leaving,
        alignment=case.alignment,
        accumulator=case.accumulator,
        rules=rules,
        spine=spine,
        passes=0,
        pairs=False,
        in_place=False,
    )
    for room in sorted({r + d for r in stairs for d in (-1, 0)}):
        least = min((b for need, b in stairs.items() if need <= room), default=None)
        found = search.best(case.whole, room)
        assert (found.bytes if found else None) == least, room
        if found is not None:
            walk = Walk(case, found.nest)
            assert legal(case, found.nest)
            assert walk.stateless
            assert (walk.bytes, walk.scratch) == (found.bytes, found.scratch)
            assert found.scratch <= room


@pytest.mark.parametrize("seed", range(8))
def test_no_nest_of_the_family_is_better(seed: int) -> None:
    """Groups whose family is larger than the test's patience make room for others."""
    rng, stairs = Random(seed), None
    while stairs is None:
        case = random_nest_case(rng, rng.choice((1, 2, 2, 3)), (2, 3))
        spine = rng.choice((1, 2, 2))
        stairs = staircase(case, spine, 600)
    agree(case, spine, stairs, NestRules())


@pytest.mark.thorough
@pytest.mark.parametrize(
    "seed", [100, 101, *(pytest.param(s, marks=pytest.mark.campaign) for s in range(102, 106))]
)
def test_no_nest_of_larger_families_is_better(seed: int) -> None:
    rng, stairs = Random(seed), None
    while stairs is None:
        case = random_nest_case(rng, rng.choice((2, 2, 3)))
        spine = rng.choice((1, 2, 3))
        stairs = staircase(case, spine, 3_000)
    agree(case, spine, stairs, NestRules())


@pytest.mark.thorough
def test_sums_that_take_all_of_the_room_leave_none_for_operands() -> None:
    """4 x 2 sums of 4 bytes take 32 bytes: b comes three times, not four, only with 3 bytes more."""
    group = group_of("m=4 y=6 f=24", ["p: c(m,y) = b(m,f) W(f,y)"])
    case = NestCase(group, frozenset(named(group, "c")), frozenset(), 1, 4)
    stairs = staircase(case, 1, 20_000)
    assert stairs is not None
    agree(case, 1, stairs, NestRules())
    three_times = 24 + 3 * 96 + 144
    assert min(need for need, moved in stairs.items() if moved <= three_times) == 35


RULES = ("tiles", "inner", "outer", "exchange", "slices", "bounds")


@pytest.mark.parametrize("rule", RULES)
def test_a_rule_changes_no_bytes(rule: str) -> None:
    without = replace(NestRules(), **{rule: False})
    for seed in range(8):
        rng = Random(f"{rule}{seed}")
        case = random_nest_case(rng, rng.choice((1, 2, 3)), (2, 3))
        quick = NestSearch(
            case.group, case.leaving, alignment=case.alignment, accumulator=case.accumulator, spine=2
        )
        plain = NestSearch(
            case.group,
            case.leaving,
            alignment=case.alignment,
            accumulator=case.accumulator,
            spine=2,
            rules=without,
        )
        for room in (3, 5, 8, 12, 17, 30, 60):
            one, other = quick.best(case.whole, room), plain.best(case.whole, room)
            assert (one and one.bytes) == (other and other.bytes), (seed, room)


@pytest.mark.parametrize("seed", range(8))
def test_looks_where_least_may_cross_find_as_few_bytes(seed: int) -> None:
    rng = Random(f"looks{seed}")
    case = random_nest_case(rng, rng.choice((1, 2, 3)), (2, 3))
    plain, best_first = (
        NestSearch(
            case.group,
            case.leaving,
            alignment=case.alignment,
            accumulator=case.accumulator,
            spine=2,
            in_order=looks,
        )
        for looks in (None, 0)
    )
    for room in (3, 5, 8, 12, 17, 30, 60):
        one, other = plain.best(case.whole, room), best_first.best(case.whole, room)
        assert (one and one.bytes) == (other and other.bytes), (seed, room)


@pytest.mark.parametrize("seed", range(10))
def test_more_room_never_costs_bytes(seed: int) -> None:
    rng = Random(f"room{seed}")
    case = random_nest_case(rng, rng.choice((3, 4, 5)), (2, 3, 4, 6))
    search = NestSearch(case.group, case.leaving, alignment=case.alignment, accumulator=case.accumulator)
    before = None
    for room in range(2, 160, 6):
        found = search.best(case.whole, room)
        if found is None:
            assert before is None
            continue
        assert found.complete
        assert legal(case, found.nest)
        walk = Walk(case, found.nest)
        assert (walk.bytes, walk.scratch) == (found.bytes, found.scratch)
        assert found.scratch <= room
        assert before is None or found.bytes <= before
        given = (case.group, case.leaving, case.whole, found.nest)
        assert scratch_of(*given, case.alignment, case.accumulator) == walk.scratch
        wide = widened(*given, room, alignment=case.alignment, accumulator=case.accumulator)
        walk = Walk(case, wide)
        assert walk.bytes == found.bytes
        assert found.scratch <= walk.scratch <= room
        before = found.bytes


@pytest.mark.parametrize("lines", [["a: y(m,n) = x(m,n) b(n) c(n) d(n) e(m)"], [
    "a: h(m,n) = x(m,n) b(n) c(n) d(n)", "p: y(m,k) = h(m,n) w(n,k) f(k) g(k)"
]])  # fmt: skip
def test_buffers_that_are_alike_are_tried_in_one_order(lines: list[str]) -> None:
    group = group_of("m=6 n=5 k=4", lines)
    leaving = named(group, "y")
    for room in range(3, 60, 3):
        one = best_nest(group, leaving, (), room, spine=2)
        other = best_nest(group, leaving, (), room, spine=2, rules=NestRules(bounds=False))
        assert (one and one.bytes) == (other and other.bytes), room


def test_names_do_not_change_the_key() -> None:
    lines = ["up: h(m,f) = x(m,d) A(d,f)", "down: z(m,y) = h(m,f) B(f,y)"]
    other = [line.replace("x(", "in(").replace("up", "first") for line in lines]
    sizes = "m=4 d=4 y=4 f=6"
    one, two = group_of(sizes, lines), group_of(sizes, other)
    assert group_key(one, [3]) == group_key(two, [3])
    assert group_key(one, [3]) != group_key(one, [3], [0])
    assert group_key(one, [3]) != group_key(group_of("m=4 d=4 y=4 f=7", lines), [3])


@pytest.mark.thorough
def test_the_judge_derives_the_same() -> None:
    """The checker's paths, homes and layout say the same bytes and the same worst moment."""
    for seed in range(60):
        rng = Random(f"judge{seed}")
        case = random_nest_case(rng, rng.choice((2, 3, 4, 5)), (2, 3, 4, 6))
        group, leaving = case.group, case.leaving
        for room in (8, 20, 50, 100):
            found = best_nest(group, leaving, case.whole, room, alignment=case.alignment)
            if found is None:
                continue
            for nest in (
                found.nest,
                widened(group, leaving, case.whole, found.nest, room, alignment=case.alignment),
            ):
                homes = homes_of("g", nest, group, paths_of("g", nest, group), leaving, case.whole)
                total = 0
                for i, home in enumerate(homes):
                    moved, once = Sizes(group, homes, {}).moved(i)
                    if group.buffers[home.buffer].maker is None:
                        total += moved
                    elif home.buffer in leaving:
                        total += 2 * moved - once
                assert total == found.bytes
            other = best_nest(group, leaving, case.whole, room, alignment=case.alignment, in_place=False)
            assert other is None or found.bytes <= other.bytes


def test_a_norm_lies_in_the_place_of_its_row() -> None:
    group = group_of(
        "m=8 d=8", ["a: r(m,d) = x(m,d) y(m,d)", "n: s(m,d) = r(m,*d) | d", "b: z(m,d) = s(m,d)"]
    )
    leaving = named(group, "z")
    with_room = best_nest(group, leaving, (), 10)
    assert with_room is not None
    assert with_room.bytes == 3 * 64
    assert [leaf.over for _, leaf in leaves(with_room.nest.body)] == [None, "r", "s"]
    assert best_nest(group, leaving, (), 10, in_place=False) is None
    whole = best_nest(group, (), named(group, "x y z"), 0)
    assert whole is not None
    assert whole.bytes == 0


def test_wide_tiles_fill_the_room() -> None:
    group = group_of("m=64 d=64 y=64", ["p: z(m,y) = x(m,d) A(d,y)"])
    found = best_nest(group, named(group, "z"), (), 1024)
    assert found is not None
    wide = widened(group, named(group, "z"), (), found.nest, 1024)
    assert 900 < scratch_of(group, named(group, "z"), (), wide) <= 1024


def test_what_many_operators_share_is_held_at_each() -> None:
    """Twelve operators in a row, all of which read one vector."""
    lines = [f"o{n}: t{n + 1}(m,d) = t{n}(m,d) v(d)" for n in range(12)]
    group = group_of("m=6 d=4", lines)
    leaving = named(group, "t12")
    case = NestCase(group, frozenset(leaving), frozenset(), 1)
    for room in (6, 14, 80):
        found = best_nest(group, leaving, (), room, passes=0, spine=1)
        assert found is not None
        walk = Walk(case, found.nest)
        assert legal(case, found.nest)
        assert (walk.bytes, walk.scratch) == (found.bytes, found.scratch)
        assert found.scratch <= room


def test_columns_of_two_products_are_cut_together() -> None:
    """No tensor links them, but both products read the same rows: a loop over both brings these once."""
    group = group_of("m=16 d=16 a=16 b=16", ["k: k(m,a) = x(m,d) A(d,a)", "v: v(m,b) = x(m,d) B(d,b)"])
    leaving = named(group, "k v")
    alone = best_nest(group, leaving, (), 64, pairs=False)
    paired = best_nest(group, leaving, (), 64)
    assert alone is not None
    assert paired is not None
    assert paired.bytes < alone.bytes
    case = NestCase(group, frozenset(leaving), frozenset(), 1)
    walk = Walk(case, paired.nest)
    assert (walk.bytes, walk.scratch) == (paired.bytes, paired.scratch)
    assert legal(case, paired.nest)


@pytest.mark.thorough
@pytest.mark.parametrize("seed", range(200, 212))
def test_more_passes_are_never_worse_and_long_ones_among_them(seed: int) -> None:
    rng = Random(seed)
    case = random_nest_case(rng, 4)
    for room in (8, 20, 50, 120):
        least: int | None = None
        for passes, long_passes in ((0, False), (1, True), (1, False), (MANY, False)):
            search = NestSearch(
                case.group, case.leaving, alignment=case.alignment, passes=passes, long_passes=long_passes,
                accumulator=case.accumulator,
            )  # fmt: skip
            found = search.best(case.whole, room)
            assert least is None or (found is not None and found.bytes <= least)
            least = found and found.bytes
            if found is not None:
                walk = Walk(case, found.nest)
                assert legal(case, found.nest)
                assert (walk.bytes, walk.scratch) == (found.bytes, found.scratch)
