"""A group's output over an input that ends: what is proved loses no byte in any order of the cell machine."""

from __future__ import annotations

from collections import Counter
from random import Random

import pytest
from cell_machine import Lack, Overlay
from hypothesis import given, settings
from hypothesis import strategies as st
from tiled_plans import Tiled, drawn_group, plan_of, random_choice, random_whole, weight_tile

from onchip.base.errors import IllegalPlan
from onchip.check import certify, check
from onchip.machines.chip import Chip
from onchip.network import Geometry, Network, OperatorSpec
from onchip.plans import Alloc, Blocks, Group, Instruction, Load, Plan, Run, Scratch, Store, Tiling


def layout(tiled: Tiled) -> str:
    return next(
        op.geometry.layout
        for op in tiled.drawn.network.operators
        if op.geometry is not None and len(op.geometry.output) == 4
    )


def verdict(tiled: Tiled, over: tuple[str, str, int]) -> str:
    try:
        check(plan_of(tiled, 1, over=over))
    except IllegalPlan as refusal:
        return refusal.rule
    return "proved"


def judged(rng: Random) -> str | None:
    """What the checker said, None where nothing could be laid over anything."""
    drawn, members, tiling, _ = random_choice(rng, opaque=0)
    network = drawn.network
    whole = random_whole(rng, drawn, members, tiling)
    try:
        tiled = drawn_group(drawn, members, tiling, 1, (), whole)
    except Lack:
        return None
    machine, ids = tiled.machine, {network.operator_id[name] for name in members}
    assert machine is not None
    size = {t.name: t.bytes for t in network.tensors}
    elsewhere = {network.tensors[t].name for op in network.operators if op.id not in ids for t in op.inputs}
    dying = [x for x in machine.external if x in machine.whole and x not in elsewhere]
    kept = [y for y in machine.escaping if y in machine.whole]
    if not dying or not kept:
        return None
    x, y = rng.choice(dying), rng.choice(kept)
    row = {t: drawn.shapes[t][2] * drawn.element[t] for t in (x, y)}
    by = rng.choice((0, 0, size[y] - size[x], size[y] - size[x], rng.randint(-size[x], size[y])))
    by += rng.choice((0, 0, 1, 2)) * rng.choice((row[x], row[y], row[x] * drawn.shapes[x][0], 1))
    found = verdict(tiled, (y, x, by))
    maker = machine.maker[y]
    tile = (
        tiling.channels if weight_tile(drawn, machine, maker.name, tiling.channels) < maker.weights else None
    )
    overlay = Overlay(drawn, y, x, by, layout(tiled) == "NHWC", tile=tile)
    if found == "proved":
        for _ in range(3):
            assert not any(machine.overlaid(overlay, rng))
        if not -size[x] < by < size[y]:
            return "apart"
        if tile is not None:
            return "proved by tiles"
    elif found == "overlap-unsafe":
        overlay.coarse = True
        assert all(machine.overlaid(overlay, rng))
    else:
        assert found == "overlap-unproved"
    return found


@pytest.mark.thorough
@given(st.randoms(use_true_random=True))
@settings(max_examples=300)
def test_what_is_proved_of_a_tiled_group_loses_no_byte(rng: Random) -> None:
    judged(rng)


@pytest.mark.thorough
def test_all_verdicts_occur() -> None:
    rng = Random(1)
    found = Counter(judged(rng) for _ in range(800))
    assert min(found[v] for v in ("proved", "proved by tiles", "overlap-unsafe", "overlap-unproved")) > 3, (
        found
    )


@pytest.mark.campaign
def test_thousands_of_overlaps_lose_no_byte() -> None:
    rng = Random(2)
    for _ in range(2000):
        judged(rng)


# -- by hand -------------------------------------------------------------------------------------------------


def point_then_windows(layout: str, rows: int = 8) -> Network:
    """A 1x1 convolution to two channels, then 3x3 depthwise windows, then a 1x1 convolution back to one."""

    def shape(c: int) -> tuple[int, ...]:
        return (1, c, rows, 4) if layout == "NCHW" else (1, rows, 4, c)

    def conv(kind: str, c: int, k: int, side: int, groups: int = 1) -> Geometry:
        return Geometry(  # type: ignore[arg-type]
            kind, shape(c), shape(k), (side, side), (1, 1), (side // 2,) * 4, (1, 1), groups, layout
        )

    return Network.build(
        "block",
        [("x", rows * 4, "input"), ("a", rows * 8, "activation"), ("b", rows * 8, "activation"),
         ("y", rows * 4, "activation")],
        [
            OperatorSpec("e", "Conv", ["x"], ["a"], 2, 0, conv("conv", 1, 2, 1)),
            OperatorSpec("d", "Conv", ["a"], ["b"], 0, 0, conv("depthwise", 2, 2, 3, 2)),
            OperatorSpec("p", "Conv", ["b"], ["y"], 0, 0, conv("conv", 2, 1, 1)),
        ],
        ["y"],
    )  # fmt: skip


def in_place(network: Network, group: Group, by: int) -> Plan:
    program: list[Instruction] = [Load("x", 64), Alloc("y", 64 - by, "x", by), Scratch("g", 256), Run("g")]
    return certify(
        network, Chip("c", 1), 4096, [*program, Store("y")],
        status="feasible", lower_bound_bytes=0, seconds=0, groups=[group],
    )  # fmt: skip


@pytest.mark.parametrize("layout", ["NCHW", "NHWC"])
def test_a_block_in_bands_takes_the_place_of_its_input(layout: str) -> None:
    # Of a three rows are held for one of y, and a row of x is read once: y follows one row behind.
    network = point_then_windows(layout)
    scratch = 3 * 8 + 8 + 2
    group = Group("g", ("e", "d", "p"), scratch, 8, (("e", 8),), (), Tiling(1, (), 2))
    plan = in_place(network, group, 0)
    assert check(plan) == plan.result
    assert plan.result.dram_bytes == 2 * 32 + 8 * 2
    for by in (-3, -4):  # a row of y comes where x is read for the next one, and for that after the next
        assert in_place(network, group, by)
    with pytest.raises(IllegalPlan, match="overlap-unsafe: e of group g reads x too late"):
        in_place(network, group, -5)


def test_slices_are_added_up_where_nothing_is_still_read() -> None:
    # The first slice of b adds to all of a new row of y, and the second one is still to be made from x.
    network = point_then_windows("NCHW", 8)
    group = Group("g", ("e", "d", "p"), 1 << 8, 8, (("e", 8),), (), Tiling(1, ("a", "b"), 1))
    in_place(network, group, 8)
    with pytest.raises(IllegalPlan, match="overlap-unproved: e of group g reads x in the sub-group"):
        in_place(network, group, 4)
    with pytest.raises(IllegalPlan, match="overlap-unsafe"):  # the row before is made again for each band
        in_place(network, group, 0)


def test_a_group_without_tiling_writes_over_what_earlier_operators_read() -> None:
    network = point_then_windows("NCHW")
    for by in (-32, -3, 0, 5):
        in_place(network, Group("g", ("e", "d", "p"), 128), by)
    beside = Network.build(
        "beside",
        [("x", 8, "input"), ("a", 8, "activation"), ("y", 8, "activation")],
        [
            OperatorSpec("f", "Relu", ["x"], ["a"], 0, 0, Geometry("elementwise", (1, 8), (1, 8))),
            OperatorSpec("g", "Relu", ["x"], ["y"], 0, 0, Geometry("elementwise", (1, 8), (1, 8))),
        ],
        ["a", "y"],
    )  # fmt: skip
    program: list[Instruction] = [Load("x", 8), Alloc("a", 16), Alloc("y", 8, "x", 0), Run("both")]
    with pytest.raises(IllegalPlan, match="overlap-unproved: f of group both may run when y is made"):
        certify(
            beside, Chip("c", 1), 64, [*program, Store("a"), Store("y")],
            status="feasible", lower_bound_bytes=0, seconds=0, groups=[Group("both", ("f", "g"), 0)],
        )  # fmt: skip


def test_a_group_in_blocks_writes_over_nothing_it_reads() -> None:
    network = point_then_windows("NCHW")
    alone = Network.build(
        "alone", [("x", 32, "input"), ("y", 64, "activation")],
        [OperatorSpec("e", "Conv", ["x"], ["y"], 2, 0, network.operators[0].geometry)], ["y"],
    )  # fmt: skip
    group = Group("g", ("e",), 64, 1, (), (), Blocks(8, 4, 2, 1))
    with pytest.raises(IllegalPlan, match="overlap-unproved: group g runs in blocks"):
        in_place(alone, group, 32)
