"""Ways to break the rules about groups that run by rows, in plans of their own; see `broken_plans`."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from random import Random

from broken_plans import Broken, Site, breaks

from onchip.check import certify
from onchip.machines.chip import Chip
from onchip.network import Geometry, Network, OperatorSpec
from onchip.plans import Group, Plan, RowMap, Rows, Run, Scratch

ROOM = 4096


def by_rows(rng: Random, *, whole: bool = False) -> tuple[Plan, Group, Rows]:
    """Two convolutions by rows, every row at an address of its own; the second reads all rows if `whole`."""
    side, narrow, wide = rng.randint(2, 5), rng.randint(1, 3), rng.randint(1, 4)
    few, many = (1, side, side, narrow), (1, side, side, wide)
    ins, outs = side * narrow, side * wide
    network = Network.build(
        "pair",
        [
            ("x", side * ins, "input"),
            ("a", side * outs, "activation"),
            ("y", side * ins, "activation"),
        ],
        [
            OperatorSpec("c", "Conv", ["x"], ["a"], 0, 0, Geometry("conv", few, many, (1, 1), layout="NHWC")),
            OperatorSpec("d", "Conv", ["a"], ["y"], 0, 0, Geometry("conv", many, few, (1, 1), layout="NHWC")),
        ],
        ["y"],
        shapes={"x": few, "a": many, "y": few},
    )
    behind = side * ins
    last = behind + side * outs
    maps = (
        RowMap("x", tuple(range(0, behind, ins)), does="fetch"),
        RowMap("a", tuple(range(behind, last, outs)), ("c",), (0,)),
        RowMap("y", (last,), ("d",), (1,), "whole")
        if whole
        else RowMap("y", tuple(range(last, last + behind, ins)), ("d",), (1,)),
    )
    rows = Rows(maps, (0,) * side + (1,) * side + (2,) * (1 if whole else side))
    group = Group("g", ("c", "d"), ROOM, tiling=rows)
    run = Run("g", (("x", side * ins), ("y", side * ins)))
    plan = certify(
        network,
        Chip("c", 1),
        ROOM,
        [Scratch("g", 0), run],
        status="feasible",
        lower_bound_bytes=0,
        seconds=0,
        groups=[group],
    )
    return plan, group, rows


def regrouped(plan: Plan, group: Group, rows: Rows) -> Broken:
    return Broken(replace(plan, groups=(replace(group, tiling=rows),)), None)


def moved(rows: Rows, number: int, **changes: object) -> Rows:
    """The rows, with one map changed."""
    maps = [replace(one, **changes) if k == number else one for k, one in enumerate(rows.maps)]  # type: ignore[arg-type]
    return replace(rows, maps=tuple(maps))


@breaks("rows-alone")
def _(s: Site) -> Iterator[Broken]:
    plan, group, rows = by_rows(s.rng)
    yield regrouped(plan, replace(group, subgroups=2), rows)
    scratch, run = plan.program
    assert isinstance(run, Run)
    yield Broken(replace(plan, program=(scratch, replace(run, streaming=run.streaming[1:]))), None)


@breaks("rows-maps")
def _(s: Site) -> Iterator[Broken]:
    plan, group, rows = by_rows(s.rng)
    yield regrouped(plan, group, moved(rows, 1, addresses=rows.maps[1].addresses[1:]))
    yield regrouped(plan, group, moved(rows, 1, operators=()))
    yield regrouped(plan, group, moved(rows, 1, operators=("nobody",)))
    yield regrouped(plan, group, moved(rows, 2, reads=(0,)))
    yield regrouped(plan, group, moved(rows, 2, reads=(2,)))
    yield regrouped(plan, group, moved(rows, 0, does="gather"))


@breaks("rows-steps")
def _(s: Site) -> Iterator[Broken]:
    plan, group, rows = by_rows(s.rng)
    for steps in (rows.steps[:-1], (*rows.steps, rows.steps[-1]), (*rows.steps, len(rows.maps))):
        yield regrouped(plan, group, replace(rows, steps=steps))


@breaks("rows-read")
def _(s: Site) -> Iterator[Broken]:
    plan, group, rows = by_rows(s.rng)
    yield regrouped(plan, group, replace(rows, steps=rows.steps[::-1]))


@breaks("rows-alive")
def _(s: Site) -> Iterator[Broken]:
    plan, group, rows = by_rows(s.rng)
    fetched, made, last = (one.addresses for one in rows.maps)
    yield regrouped(plan, group, moved(rows, 0, addresses=fetched[:1] * len(fetched)))
    yield regrouped(plan, group, moved(rows, 2, addresses=(made[0], *last[1:])))


@breaks("rows-pieces")
def _(s: Site) -> Iterator[Broken]:
    plan, group, rows = by_rows(s.rng, whole=True)
    yield regrouped(plan, group, moved(rows, 1, addresses=rows.maps[1].addresses[::-1]))


@breaks("rows-complete")
def _(s: Site) -> Iterator[Broken]:
    plan, group, rows = by_rows(s.rng)
    yield regrouped(plan, group, moved(rows, 2, addresses=rows.maps[2].addresses[::-1]))
    steps = tuple(k for k in rows.steps if k != 2)
    yield regrouped(plan, group, replace(rows, maps=rows.maps[:2], steps=steps))
