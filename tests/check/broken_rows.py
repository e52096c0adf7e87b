"""Ways to break the rules about groups by rows."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from broken_plans import Broken, Site, breaks

from onchip.check.row_lives import lives_of
from onchip.plans import Plan
from row_plans_made import changed, example, number_of, rows_of, with_map


def _plan() -> Plan:
    return example()[1]


@breaks("rows-alone")
def _(s: Site) -> Iterator[Broken]:
    plan = _plan()
    yield Broken(changed(plan, rows_of(plan), subgroups=s.rng.randint(2, 9)), None)


@breaks("rows-maps")
def _(s: Site) -> Iterator[Broken]:
    plan = _plan()
    gather, whole, sums = (number_of(plan, does) for does in ("gather", "whole", "sums"))
    yield Broken(with_map(plan, gather, lambda one: replace(one, reads=(99,))), None)
    yield Broken(with_map(plan, whole, lambda one: replace(one, operators=())), None)
    yield Broken(with_map(plan, sums, lambda one: replace(one, does="rows")), None)


@breaks("rows-steps")
def _(s: Site) -> Iterator[Broken]:
    plan = _plan()
    rows = rows_of(plan)
    steps = rows.steps
    for other in (steps[:-1], (*steps, steps[-1]), (*steps, 99)):
        yield Broken(changed(plan, replace(rows, steps=other)), None)


@breaks("rows-read")
def _(s: Site) -> Iterator[Broken]:
    plan = _plan()
    rows = rows_of(plan)
    yield Broken(changed(plan, replace(rows, steps=rows.steps[::-1])), None)


@breaks("rows-pieces")
def _(s: Site) -> Iterator[Broken]:
    plan = _plan()
    gather, whole = (number_of(plan, does) for does in ("gather", "whole"))
    pieces = rows_of(plan).maps[gather].reads[0]
    yield Broken(with_map(plan, whole, lambda one: replace(one, reads=(pieces,))), None)


@breaks("rows-alive")
def _(s: Site) -> Iterator[Broken]:
    """A row lies where another one does that is made before it and read after it."""
    plan = _plan()
    maps = rows_of(plan).maps
    lives = lives_of(plan.network, plan.groups[0]).lives
    for one in lives:
        for other in lives:
            within = one.made < other.made and other.made < one.last and other.map != one.map
            if within and other.bytes <= one.bytes and maps[other.map].does == "rows":
                step = [life for life in lives if life.map == other.map].index(other)
                at = list(maps[other.map].addresses)
                at[step] = one.address
                moved = tuple(at)
                yield Broken(
                    with_map(plan, other.map, lambda m, moved=moved: replace(m, addresses=moved)),  # type: ignore[misc]
                    None,
                )


@breaks("rows-complete")
def _(s: Site) -> Iterator[Broken]:
    plan = _plan()
    name = plan.network.tensors[plan.network.outputs[0]].name
    last = next(k for k, one in enumerate(rows_of(plan).maps) if one.tensor == name)
    end, size = plan.groups[0].scratch_bytes, len(rows_of(plan).maps[last].addresses) * 64
    apart = with_map(plan, last, lambda one: replace(one, addresses=tuple(range(end, end + size, 64))))
    roomy = replace(apart.groups[0], scratch_bytes=end + size)
    yield Broken(replace(apart, groups=(roomy,), budget=end + size), None)
