"""Which tensors may be streamed by channel: one small network for every reason."""

from __future__ import annotations

from dataclasses import replace

import pytest
from cell_machine import Lack
from tiled_plans import drawn_group, plan_of

from map_networks import MapNetwork
from onchip.base.errors import IllegalPlan
from onchip.network import Geometry, Network, OperatorSpec
from onchip.plans import Tiling

Shape = tuple[int, int, int]


def drawn(inputs: dict[str, Shape], lines: list[str], outputs: str, images: int = 1) -> MapNetwork:
    """A network in few words: `conv a -> b`, `stride a -> b` (1x1 by 4), `sum a b -> c`, `join a b -> c`."""
    shapes, specs = dict(inputs), []
    for i, line in enumerate(lines):
        kind, *reads, _, made = line.split()
        c, h, w = shapes[reads[0]]
        if kind == "join":
            c = sum(shapes[t][0] for t in reads)
        if kind == "stride":
            h = (h - 1) // 4 + 1
        full, shape = (images, *shapes[reads[0]]), (images, c, h, w)
        geometry = {
            "conv": Geometry("conv", full, shape, (3, 1), (1, 1), (1, 0, 1, 0), (1, 1)),
            "stride": Geometry("conv", full, shape, (1, 1), (4, 1), (0, 0, 0, 0), (1, 1)),
            "pool": Geometry("pool", full, shape, (3, 1), (1, 1), (1, 0, 1, 0), (1, 1)),
            "sum": Geometry("elementwise", shape, shape),
            "join": Geometry("concat", full, shape),
            "soft": Geometry("rowwise", shape, shape),
        }[kind]
        shapes[made] = c, h, w
        specs.append(OperatorSpec(f"{kind}{i}", kind, reads, [made], 0, 0, geometry))
    sizes = {name: images * c * h * w for name, (c, h, w) in shapes.items()}
    network = Network.build(
        "small",
        [(name, size, "input" if name in inputs else "activation") for name, size in sizes.items()],
        specs,
        outputs.split(),
    )
    return MapNetwork(network, images, shapes, dict.fromkeys(shapes, 1))


def judged(net: MapNetwork, streamed: str, rows: int = 1, channels: int = 1) -> str | None:
    """The rule that refuses the whole network as one group; the cell machine must agree."""
    members = tuple(op.name for op in net.network.operators)
    tiling = Tiling(rows, tuple(streamed.split()), channels, 1)
    try:
        plan_of(drawn_group(net, members, tiling, 1), 1)
    except Lack:
        held = drawn_group(net, members, Tiling(rows, (), channels, 1), 1)
        group = replace(held.group, tiling=tiling)
        with pytest.raises(IllegalPlan) as refusal:
            plan_of(replace(held, group=group), 1)
        return refusal.value.rule
    return None


X: dict[str, Shape] = {"x": (2, 6, 2)}


@pytest.mark.parametrize(
    ("lines", "streamed", "rule"),
    [
        # A sum over channels has one side streamed, not both.
        (["conv x -> y"], "x", None),
        (["conv x -> y"], "y", None),
        (["conv x -> y"], "x y", "tiling-passes"),
        (["pool x -> y"], "x y", None),
        # All channels of a row at once.
        (["soft x -> y"], "x", "tiling-passes"),
        (["soft x -> y"], "y", None),
        # A pass needs whole what is made from it.
        (["conv x -> h", "sum x h -> y"], "x y", "tiling-passes"),
        (["conv x -> h", "sum x h -> y"], "x", None),  # x waits in the place of y
        (["conv x -> h", "sum x h -> y"], "h", None),
        (["conv x -> h", "conv h -> b", "sum x b -> y"], "x b", None),
        (["conv x -> h", "conv h -> b", "sum x b -> y"], "x b y", "tiling-passes"),
        (["conv x -> h", "pool x -> b", "sum b h -> y"], "x b", None),
        (["conv x -> h", "pool x -> b", "sum b h -> y"], "x b y", "tiling-passes"),
        # Of three operands only one can wait.
        (["conv x -> h", "sum x h g -> y"], "x", None),
        (["conv x -> h", "conv h -> b", "sum x b g -> y"], "x b", "tiling-passes"),
        (["conv x -> h", "sum x -> b", "sum x b h -> y"], "x b", "tiling-passes"),
        (["sum x -> b", "sum x b g -> y"], "x b", None),
        # In a concat every operand has its place.
        (["sum x -> b", "join x b -> y"], "x b y", "tiling-passes"),
        (["sum x -> b", "join x b -> y"], "x b", None),
        (["sum x -> b", "join x b -> y"], "x y", "tiling-passes"),
        (["sum x -> b", "join g b -> y"], "x b g y", None),
        (["join x g -> y", "join g x -> z", "sum y z -> w"], "x y z w", "tiling-passes"),
        (["join x g -> y", "join g x -> z", "sum y z -> w"], "x y g", None),
        (["join x g -> y", "pool y -> z", "join g z -> w"], "g y z", None),
        (["join x g -> y", "pool y -> z", "join g z -> w"], "g y z w", "tiling-passes"),
    ],
)
def test_what_can_be_made_slice_by_slice(lines: list[str], streamed: str, rule: str | None) -> None:
    inputs = X | {"g": (2, 6, 2)} if any(" g " in line for line in lines) else X
    made = [line.split()[-1] for line in lines]
    read = {name for line in lines for name in line.split()[1:-2]}
    outputs = " ".join(t for t in made if t not in read)
    assert judged(drawn(inputs, lines, outputs), streamed) == rule


def test_a_map_that_ends_in_one_row_is_there_at_once() -> None:
    # Row 0 of `a` is all that `y` reads, and `a` leaves the group: the only band makes all its rows.
    net = drawn({"x": (2, 4, 2)}, ["sum x -> a", "stride a -> y"], "a y")
    tiled = drawn_group(net, ("sum0", "stride1"), Tiling(1), 1)
    assert (tiled.group.subgroups, tiled.counts.rows["a"]) == (1, 4)
    assert plan_of(tiled, 1).result.dram_bytes == 2 * (2 * 4 * 2) + 2 * 2
    less = replace(tiled.group, scratch_bytes=tiled.group.scratch_bytes - 1)
    with pytest.raises(IllegalPlan, match="group-scratch"):
        plan_of(replace(tiled, group=less), 1)
