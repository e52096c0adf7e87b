"""Small fused plans for the report's tests: a diamond with a tail, in bands, and a row of many groups."""

from __future__ import annotations

from functools import cache

from onchip.check import certify
from onchip.machines.chip import Chip
from onchip.network import Geometry, Network, OperatorSpec
from onchip.planners.fusion.fuse import fuse
from onchip.planners.fusion.options import FusionOptions
from onchip.plans import Alloc, Free, Group, Load, Plan, Run, Scratch, Store, Tiling

SIDE = 16


def conv(name: str, read: str, write: str, channels: tuple[int, int], kernel: int) -> OperatorSpec:
    shapes = [(1, c, SIDE, SIDE) for c in channels]
    around = (kernel // 2,) * 4
    geometry = Geometry("conv", *shapes, (kernel, kernel), (1, 1), around, (1, 1))
    return OperatorSpec(
        name, "Conv", [read], [write], channels[0] * channels[1] * kernel**2, geometry=geometry
    )


def diamond(prefix: str = "net/") -> Network:
    """Two convolutions of one input, added, and a convolution after that."""
    names = {n: prefix + n for n in ("x", "a", "b", "s", "y", "left", "right", "add", "last")}
    plane = SIDE * SIDE
    shape = (1, 16, SIDE, SIDE)
    return Network.build(
        prefix + "diamond",
        [
            (names["x"], 8 * plane, "input"),
            *((names[n], 16 * plane, "activation") for n in "abs"),
            (names["y"], 4 * plane, "activation"),
        ],
        [
            conv(names["left"], names["x"], names["a"], (8, 16), 3),
            conv(names["right"], names["x"], names["b"], (8, 16), 1),
            OperatorSpec(
                names["add"], "Add", [names["a"], names["b"]], [names["s"]],
                geometry=Geometry("elementwise", shape, shape),
            ),
            conv(names["last"], names["s"], names["y"], (16, 4), 3),
        ],
        [names["y"]],
    )  # fmt: skip


def row(count: int, name: str = "layer") -> Network:
    """`count` convolutions one after the other."""
    tensors = [(f"{name}/t{i}", 8 * SIDE * SIDE, "activation" if i else "input") for i in range(count + 1)]
    operators = [conv(f"{name}/op{i}", f"{name}/t{i}", f"{name}/t{i + 1}", (8, 8), 3) for i in range(count)]
    return Network.build("row", tensors, operators, [f"{name}/t{count}"])  # type: ignore[arg-type]


def fused(network: Network, budget: int = 4000) -> Plan:
    """The network's fused plan, by a search that is quick on long ones."""
    search = "exact" if len(network.operators) < 10 else "algorithm1"
    plan = fuse(network, Chip("small", 1), budget, FusionOptions(search=search, channel_tile=4)).plan
    assert plan is not None
    return plan


@cache
def kept_plan() -> Plan:
    """The diamond by hand: groups of one convolution in bands, most operands whole, the sum in place.

    While `right` runs, `a` is kept for later; only `x` comes in and `y` goes out.
    """
    network = diamond()
    size = {t.name: t.bytes for t in network.tensors}
    x, a, b, s, y = (f"net/{n}" for n in "xabsy")
    groups = [
        Group(f"g{i}", (f"net/{name}",), 1024, 4, ((f"net/{name}", 4),), (), Tiling(4, (), 4))
        for i, name in enumerate(("left", "right", "last"))
    ]
    program = [
        Load(x, 0), Alloc(a, 2048), Scratch("g0", 6144), Run("g0"),
        Alloc(b, 6144), Scratch("g1", 10240), Run("g1"), Free(x),
        Alloc(s, 2048, a, 0), Run("net/add"), Free(b),
        Scratch("g2", 6144), Run("g2", ((y, size[y]),)), Free(s),
    ]  # fmt: skip
    return certify(
        network, Chip("small", 1), 12_000, program,
        status="feasible", lower_bound_bytes=0, seconds=0, groups=groups,
    )  # fmt: skip


@cache
def streamed_plan() -> Plan:
    """Two convolutions: the first whole; the second takes in pieces what the first stored."""
    network = row(2)
    t0, t1, t2 = (f"layer/t{i}" for i in range(3))
    group = Group("g1", ("layer/op1",), 3648, 1, (), ("layer/op1",), Tiling(SIDE, (t1,), 4))
    program = [
        Load(t0, 0), Alloc(t1, 2048), Run("layer/op0"), Free(t0), Store(t1), Free(t1),
        Scratch("g1", 0), Run("g1", ((t1, 2048), (t2, 2048))),
    ]  # fmt: skip
    return certify(
        network, Chip("small", 1), 12_000, program,
        status="feasible", lower_bound_bytes=0, seconds=0, groups=[group],
    )  # fmt: skip


@cache
def diamond_plan() -> Plan:
    """The diamond in bands."""
    return fused(diamond())
