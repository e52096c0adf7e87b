"""Modules as a network of their own, and what a plan moves over them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import pytest
from two_modules import CHIP, ON_CHIP, network, plan, runs

from onchip.planners import placement
from onchip.planners.modules.region import Region, regions
from onchip.planners.placement import PlacementOptions
from onchip.plans import Join, Load, Plan, Run, Store


def region(made: Plan, workspace: Callable[[int], int] = lambda v: 10 * v) -> Region:
    (found,) = regions(made, workspace)
    return found


def test_the_concat_is_dissolved() -> None:
    found = region(ON_CHIP)
    net = found.network
    assert found.modules == ("first", "second")
    assert [op.name for op in net.operators] == ["c1", "c2", "c3", "c4", "add"]
    assert {t.name for t in net.tensors if t.kind == "input"} == {"a"}
    assert [net.tensors[t].name for t in net.outputs] == ["y"]
    names = {op.name: {net.tensors[t].name for t in op.inputs} for op in net.operators}
    assert names["c4"] == {"p", "r"}
    assert names["add"] == {"p", "r", "u"}
    assert all(net.tensors[t].bytes == network().tensors[network().tensor_id[net.tensors[t].name]].bytes
               for t in range(len(net.tensors)))  # fmt: skip
    ids = network().operator_id
    assert [op.workspace for op in net.operators] == [10 * ids[op.name] for op in net.operators]


def test_the_concat_that_copies_is_a_layer() -> None:
    names = [op.name for op in region(ON_CHIP).copied.operators]
    assert names == ["c1", "c2", "c3", "cat", "c4", "add"]


def test_a_sum_is_written_over_what_dies() -> None:
    """u and both parts of m, of 96 bytes each, and the sum in the place of u: not 3 times 96."""
    found = placement.zero_traffic(
        region(ON_CHIP, lambda v: 0).network, CHIP, PlacementOptions(in_place=True)
    )
    assert found.budget == 2 * 96


def test_the_last_output_is_held_in_its_own_place() -> None:
    held = region(ON_CHIP, lambda v: 0).held
    assert len(held.operators) == 6
    assert placement.zero_traffic(held, CHIP, PlacementOptions(in_place=True)).budget == 2 * 96


def test_modules_that_stand_alone_are_regions_of_their_own() -> None:
    found = regions(ON_CHIP, lambda v: 0, lambda net: any(op.name == "c4" for op in net.operators))
    assert [r.modules for r in found] == [("first",), ("second",)]
    first = found[0].network
    assert {first.tensors[t].name for t in first.outputs} == {"p", "r"}


def test_a_plan_without_modules_has_no_region() -> None:
    assert regions(replace(ON_CHIP, sections=()), lambda v: 0) == ()
    assert regions(replace(ON_CHIP, sections=ON_CHIP.sections[:1]), lambda v: 0) == ()


MOVES = [
    (ON_CHIP, 0, 0),
    # The input comes once for nothing; the second time counts.
    (plan(Load("a", 0), *runs("c1", "c2", "c3", "cat", "c4", "add"), split=5), 0, 0),
    (
        plan(Load("a", 0), Run("c1"), Run("c2", (("a", 64),)), *runs("c3", "cat", "c4", "add"), split=5),
        64,
        64,
    ),
    # What lies between the modules counts: parts out, the whole in.
    (
        plan(
            Run("c1", (("p", 32),)),
            Run("c2"),
            Run("c3"),
            Store("r"),
            Join("cat"),
            Load("m", 0),
            *runs("c4", "add"),
            split=5,
        ),
        192,
        192,
    ),
    # The last output leaves once for nothing, wherever it lies; strictly only from a place on chip.
    (plan(*runs("c1", "c2", "c3", "cat", "c4", "add"), Store("y"), split=4), 0, 0),
    (plan(*runs("c1", "c2", "c3", "cat", "c4"), Run("add", (("y", 96),)), split=4), 0, 96),
]


@pytest.mark.parametrize(("made", "moved", "strict"), MOVES)
def test_what_a_plan_moves(made: Plan, moved: int, strict: int) -> None:
    found = region(made)
    assert (found.traffic_bytes, found.strict_bytes) == (moved, strict)


def test_the_parts_of_a_leaving_concat_leave_once_for_nothing() -> None:
    """The first module alone, its output stored in parts: what the region has to write anyway."""
    parts = plan(
        Run("c1", (("p", 32),)), *runs("c2", "c3"), Store("r"), Join("cat"), *runs("c4", "add"), split=5
    )
    first, _ = regions(parts, lambda v: 0, lambda net: True)
    assert (first.traffic_bytes, first.strict_bytes) == (0, 96)
