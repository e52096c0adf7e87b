"""Weights that come tile by tile under an output that takes its input's place: proof against simulation.

The simulation is written from the definition alone: which bytes of the input every element of the output is
made from, and the order of tiles, slices and steps in which that happens.
"""

from __future__ import annotations

from itertools import product
from math import prod
from pathlib import Path
from random import Random

import pytest

from onchip.base.errors import IllegalPlan
from onchip.check import certify, check
from onchip.network import Geometry, Network, OperatorSpec
from onchip.plans import Alloc, Group, Instruction, Load, PlanChip, Run, Scratch, Store, Tiling, read_plan

REFUTED = Path(__file__).resolve().parents[1] / "refuted"


@pytest.mark.parametrize("name", ["chk_weight_tile_inplace_1", "chk_weight_tile_inplace_4"])
def test_what_no_order_of_single_use_weights_can_run_is_refused(name: str) -> None:
    plan = read_plan(REFUTED / f"{name}.json")
    [op], [group] = plan.network.operators, plan.groups
    assert op.geometry is not None
    assert isinstance(group.tiling, Tiling)
    rows = group.tiling.rows
    lost = loses_a_byte(op.geometry, group.tiling.channels, rows, 1, 0)
    assert lost
    with pytest.raises(IllegalPlan, match="overlap-unsafe: f reads x for a later tile of its weights"):
        check(plan)


def loses_a_byte(g: Geometry, tile: int, rows: int, together: int, by: int) -> bool:
    """Whether x, `by` bytes above y, is read where y was written. Elements of one byte.

    Sub-groups are `together` images and `rows` rows of y each.
    """
    images, height = g.output[0], g.output[1 if g.layout == "NHWC" else 2]
    deep = g.output[3 if g.layout == "NHWC" else 1]
    inputs = g.input[3 if g.layout == "NHWC" else 1] // groups_of(g) if g.kind == "conv" else 1
    gone: set[int] = set()
    for image, row in product(range(0, images, together), range(0, height, rows)):
        part = set(range(image, min(image + together, images))), set(range(row, min(row + rows, height)))
        for k, first in product(range(0, deep, tile), range(0, inputs, tile)):
            for step in steps(g):
                mine = [at for at in step if at[0] in part[0] and at[2] in part[1] and k <= at[1] < k + tile]
                for at in mine:
                    if any(by + byte in gone for byte in read_by(g, at, range(first, first + tile))):
                        return True
                gone |= {place(g.output, g.layout, at) for at in mine}
    return False


def groups_of(g: Geometry) -> int:
    return g.groups if g.kind == "conv" else g.input[3 if g.layout == "NHWC" else 1]


def steps(g: Geometry) -> list[list[tuple[int, int, int, int]]]:
    """(image, channel, row, column) of the elements that each step of the walk makes."""
    if g.layout == "NCHW":
        return [[(n, c, r, q)] for n, c, r, q in product(*map(range, g.output))]
    n, h, w, c = g.output
    return [[(i, k, r, q) for k in range(c)] for i, r, q in product(range(n), range(h), range(w))]


def place(shape: tuple[int, ...], layout: str, at: tuple[int, int, int, int]) -> int:
    n, c, r, q = at
    if layout == "NCHW":
        return ((n * shape[1] + c) * shape[2] + r) * shape[3] + q
    return ((n * shape[1] + r) * shape[2] + q) * shape[3] + c


def read_by(g: Geometry, at: tuple[int, int, int, int], slice_: range) -> list[int]:
    """The bytes of x that an element of y is made from, in a slice of the channels that it sums over."""
    n, k, row, column = at
    channels, *plane = (g.input[i] for i in ((3, 1, 2) if g.layout == "NHWC" else (1, 2, 3)))
    deep = g.output[3 if g.layout == "NHWC" else 1]
    groups = groups_of(g)
    own = k // (deep // groups)  # its group
    some = [own * (channels // groups) + c for c in slice_ if c < channels // groups]
    found = []
    for c, i, j in product(some if g.kind == "conv" else [own], range(g.kernel[0]), range(g.kernel[1])):
        r = row * g.stride[0] - g.padding[0] + i * g.dilation[0]
        q = column * g.stride[1] - g.padding[1] + j * g.dilation[1]
        if 0 <= r < plane[0] and 0 <= q < plane[1]:
            found.append(place(g.input, g.layout, (n, c, r, q)))
    return found


def drawn(rng: Random) -> Geometry:
    kind = rng.choice(("conv", "conv", "depthwise"))
    groups, images = rng.randint(1, 2), rng.choice((1, 1, 2))
    kernel = (rng.choice((1, 1, 2, 3)), rng.choice((1, 2)))
    stride, dilation = (rng.choice((1, 1, 2)), 1), (rng.choice((1, 2)), 1)
    padding = tuple(rng.choice((0, 0, 1)) for _ in range(4))
    size = (rng.randint(1, 4), rng.randint(1, 2))
    out = [
        (size[i] + padding[i] + padding[i + 2] - (kernel[i] - 1) * dilation[i] - 1) // stride[i] + 1
        for i in (0, 1)
    ]
    if min(out) < 1:
        return drawn(rng)
    ins, outs = groups * rng.randint(1, 3), groups * rng.randint(1, 3)
    if kind == "depthwise":
        ins, outs = rng.choice(((2, 2), (3, 3), (2, 4)))
        groups = ins
    layout = rng.choice(("NHWC", "NCHW"))
    shapes = ((images, *size, ins), (images, *out, outs))
    if layout == "NCHW":
        shapes = ((images, ins, *size), (images, outs, *out))
    return Geometry(kind, *shapes, kernel, stride, padding, dilation, groups, layout)  # type: ignore[arg-type]


def network_of(g: Geometry) -> Network:
    deep = g.output[3 if g.layout == "NHWC" else 1]
    inputs = g.input[3 if g.layout == "NHWC" else 1] // groups_of(g)
    weights = prod(g.kernel) * inputs * deep
    return Network.build(
        "n",
        [("x", prod(g.input), "input"), ("y", prod(g.output), "activation")],
        [OperatorSpec("f", "Conv", ["x"], ["y"], weights, 0, g)],
        ["y"],
    )


def refusal(
    g: Geometry, tile: int, rows: int, together: int, by: int, *, kept: bool = False, apart: bool = False
) -> str | None:
    network = network_of(g)
    height, y = g.output[1 if g.layout == "NHWC" else 2], prod(g.output)
    bands = 1 if height == 1 else -(-height // rows)
    count = bands * -(-g.output[0] // together)
    refills = () if kept else (("f", count),)
    group = Group(
        "g", ("f",), 1 << 10, count, refills, ("f",) if kept else (), Tiling(rows, (), tile, together)
    )
    base = y + abs(by)
    program: list[Instruction] = [
        Load("x", base), Alloc("y", base - by, "x", by), Scratch("g", 1 << 12), Run("g"), Store("y"),
    ]  # fmt: skip
    chip = PlanChip("c", 1, weight_scratchpad_bytes=1 << 20 if apart else None)
    try:
        certify(
            network, chip, 1 << 14, program, status="feasible", lower_bound_bytes=0, seconds=0, groups=[group]
        )
    except IllegalPlan as refused:
        return refused.rule
    return None


def judged(rng: Random) -> bool:
    """Whether a random overlap is legal."""
    g = drawn(rng)
    height, deep = g.output[1 if g.layout == "NHWC" else 2], g.output[3 if g.layout == "NHWC" else 1]
    inputs = g.input[3 if g.layout == "NHWC" else 1] // groups_of(g)
    tile, rows, together = rng.randint(1, 3), rng.randint(1, height), rng.randint(1, g.output[0])
    if tile >= max(deep, inputs):
        tile = 1
    x, y = prod(g.input), prod(g.output)
    by = rng.choice((0, y - x, rng.randint(-x - 1, y + 1)))
    lost = loses_a_byte(g, tile, rows, together, by)
    found = refusal(g, tile, rows, together, by)
    if tile >= deep and tile >= inputs:  # one tile: what the walk says, wherever it is known
        assert not lost or found is not None
    else:
        assert found == ("overlap-unsafe" if lost else None), (g, tile, rows, together, by)
    return not lost and -x < by < y


@pytest.mark.parametrize("seed", range(4))
def test_the_proof_is_exact_whatever_the_tile(seed: int) -> None:
    rng = Random(seed)
    assert sum(judged(rng) for _ in range(100)) > 5


@pytest.mark.campaign
def test_the_proof_is_exact_thousands_of_times() -> None:
    rng = Random(9)
    for _ in range(5000):
        judged(rng)


POINT = Geometry("conv", (1, 4, 4, 4), (1, 4, 4, 4), (1, 1), (1, 1), (0, 0, 0, 0), (1, 1), 1, "NHWC")
PLANES = Geometry("depthwise", (1, 4, 4, 4), (1, 4, 4, 4), (1, 1), (1, 1), (0, 0, 0, 0), (1, 1), 4, "NHWC")


@pytest.mark.parametrize("rows", [1, 4])
def test_all_weights_at_once_may_work_in_place(rows: int) -> None:
    for tile in (1, 2, 3):
        assert refusal(POINT, tile, rows, 1, 0) == "overlap-unsafe"
    assert refusal(POINT, 4, rows, 1, 0) is None
    assert refusal(POINT, 1, rows, 1, 0, kept=True) is None
    assert refusal(POINT, 1, rows, 1, 0, apart=True) is None


@pytest.mark.parametrize("tile", [1, 2, 3])
def test_channels_that_are_made_from_themselves_may_be_written_in_any_tile(tile: int) -> None:
    assert refusal(PLANES, tile, 2, 1, 0) is None
    assert refusal(PLANES, tile, 4, 1, 1) == "overlap-unsafe"  # the channel before, in the next tile


def test_slices_of_the_input_are_added_up_where_the_first_one_writes() -> None:
    # Four channels into one: the first slice writes the sum's byte, and the last must still be there.
    g = Geometry("conv", (1, 1, 4, 4), (1, 1, 4, 1), (1, 1), (1, 1), (0, 0, 0, 0), (1, 1), 1, "NHWC")
    assert [refusal(g, tile, 1, 1, 0) for tile in (1, 2, 4)] == ["overlap-unsafe", "overlap-unsafe", None]
    assert refusal(g, 2, 1, 1, 1) == "overlap-unsafe"  # the last pixel's sum, where the second slice begins
    assert refusal(g, 2, 1, 1, 2) is None
