"""Padding that cuts rows off, as NASNet's does, is a window like any other."""

from __future__ import annotations

from onchip.machines.chip import Chip
from onchip.network import Geometry, Network, OperatorSpec
from onchip.planners.fusion.fuse import fuse
from onchip.planners.fusion.options import FusionOptions


def test_a_network_that_cuts_rows_off_is_fused() -> None:
    whole, cut = (1, 8, 16, 16), (1, 8, 15, 15)
    conv = Geometry("conv", whole, whole, (3, 3), (1, 1), (1, 1, 1, 1), (1, 1))
    crop = Geometry("pad", whole, cut, padding=(-1, -1, 0, 0))
    pool = Geometry("pool", cut, (1, 8, 8, 8), (1, 1), (2, 2), (0, 0, 0, 0), (1, 1))
    network = Network.build(
        "cropped",
        [
            ("x", 8 * 256, "input"),
            ("a", 8 * 256, "activation"),
            ("b", 8 * 225, "activation"),
            ("y", 8 * 64, "activation"),
        ],
        [
            OperatorSpec("conv", "Conv", ["x"], ["a"], 8 * 8 * 9, geometry=conv),
            OperatorSpec("crop", "Pad", ["a"], ["b"], geometry=crop),
            OperatorSpec("pool", "AveragePool", ["b"], ["y"], geometry=pool),
        ],
        ["y"],
    )
    made = fuse(network, Chip("c", 1), 3000, FusionOptions(channel_tile=4))
    assert made.plan is not None  # certified: the checker counts the same bytes
    assert made.dram_bytes < made.baselines["none"]
    assert any(g.subgroups > 1 and g.members.bit_count() > 1 for g in made.groups)
