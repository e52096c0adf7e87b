"""The reach that follows from a geometry says of every box what the access relation says."""

from __future__ import annotations

from math import prod
from random import Random

import pytest

import onchip
from onchip.network import Geometry, Network, OperatorSpec
from onchip.network.access import access_of
from onchip.network.axes import axes_of
from onchip.network.maps import Maps
from onchip.network.operators import Side
from onchip.network.reaches import reach_for
from onchip.network.windows import Range


def needed(side: Side, made: Range) -> Range:
    first = (made[0] * side.stride - side.before) // side.per
    end = ((made[1] - 1) * side.stride - side.before) // side.per + side.span
    low, high = max(0, first), min(side.size, end)
    return (low, high) if low < high else (0, 0)


def agree(network: Network, rng: Random, layout: str = "NCHW") -> int:
    """Compare rows and columns that random boxes of every operator's output need; return the comparisons."""
    maps, compared = Maps(network), 0
    down = 2 if layout == "NCHW" else 1
    for op in network.operators:
        access, g = access_of(maps, op.id), op.geometry
        if isinstance(access, str) or op.reach is not None or g is None or len(op.outputs) > 1:
            continue
        reach = reach_for(network, op)
        if g.kind == "elementwise" and reach is None:
            continue
        assert reach is not None, (op.name, g)
        assert sum(constant.bytes for constant in reach.weights) == op.weight_bytes
        assert not isinstance(axes_of(network, [op.id]), str)
        if g.kind == "fully_connected" or len(reach.output) < 4:
            continue
        shift = len(reach.output) - 4 if layout == "NCHW" else 0  # groups are an axis of their own
        for operand, sides in zip(access.operands, reach.reads, strict=True):
            if operand.broadcast:
                continue
            size = network.tensors[operand.tensor].bytes
            assert size % prod(side.size for side in sides) == 0
            for i, window in enumerate((operand.rows, operand.columns)):
                side = next(s for s in sides if s.axis == down + shift + i)
                low = rng.randrange(window.outputs)
                made = low, rng.randrange(low + 1, window.outputs + 1)
                assert needed(side, made) == window.reads(made), (op.name, g, made)
                compared += 1
    return compared


@pytest.mark.parametrize("name", ["mobilenet_v2", "googlenet", "shufflenet_v2_x1_0", "resnext50_32x4d"])
def test_reaches_and_access_agree(name: str) -> None:
    assert agree(onchip.load(f"zoo:{name}").network, Random(name)) > 50


def test_random_windows_agree() -> None:
    rng, compared = Random(3), 0
    for _ in range(300):
        layout = rng.choice(("NCHW", "NHWC"))
        kind, n = rng.choice(("conv", "conv", "depthwise", "pool")), rng.choice((1, 2))
        groups = rng.choice((1, 1, 2, 3))
        deep, h, w = groups * rng.randint(1, 3), rng.randint(1, 7), rng.randint(1, 7)
        kernel, stride = [(rng.randint(1, 3), rng.randint(1, 3)) for _ in range(2)]
        dilation, pad = rng.choice(((1, 1), (2, 1))), [rng.randint(0, 2) for _ in range(4)]
        plane = [
            (size + pad[i] + pad[i + 2] - (kernel[i] - 1) * dilation[i] - 1) // stride[i] + 1
            for i, size in enumerate((h, w))
        ]
        if min(plane) < 1:
            continue
        made = groups * rng.randint(1, 3) if kind == "conv" else deep
        read, out = ((n, deep, h, w), (n, made, *plane))
        if layout == "NHWC":
            read, out = ((s[0], s[2], s[3], s[1]) for s in (read, out))
        taps = prod(kernel) * made * (deep // groups if kind == "conv" else 1)
        weights = 0 if kind == "pool" else taps + rng.choice((0, made, 1))
        g = Geometry(kind, read, out, kernel, stride, tuple(pad), dilation, groups, layout)  # type: ignore[arg-type]
        spec = OperatorSpec("op", kind, ["x"], ["y"], weights, geometry=g)
        rows = [("x", prod(read), "input"), ("y", prod(out), "activation")]
        compared += agree(Network.build("one", rows, [spec], ["y"]), rng, layout)  # type: ignore[list-item]
    assert compared > 300
