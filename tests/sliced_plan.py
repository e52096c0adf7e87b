"""Plans of one group in bands: a convolution that takes more as a nest, and a split that is none."""

from __future__ import annotations

from onchip.check import certify
from onchip.machines.chip import Chip
from onchip.network import Geometry, Network, OperatorSpec
from onchip.plans import Group, Plan, Run, Scratch, Tiling

__all__ = ["sliced_plan", "split_plan"]


def sliced_plan(budget: int, name: str = "g") -> Plan:
    """Eight channels of x are summed, one at a time, into two of y, row by row, in `budget` bytes.

    A row of one channel of x (4), of y (8), and the weights of one output channel for one of x, with a share
    of the 9 that belong to no channel (1 + 5): 18 bytes of scratch. In a nest all 9 are there.
    """
    geometry = Geometry("conv", (1, 8, 4, 4), (1, 2, 4, 4), (1, 1))
    network = Network.build(
        "sums", [("x", 128, "input"), ("y", 32, "activation")],
        [OperatorSpec("f", "Conv", ["x"], ["y"], 25, 0, geometry)], ["y"],
        shapes={"x": (1, 8, 4, 4), "y": (1, 2, 4, 4)},
    )  # fmt: skip
    group = Group(name, ("f",), 18, 4, (("f", 4),), (), Tiling(1, ("x",), 1))
    return certify(
        network, Chip("c", 1), budget, (Scratch(name, 0), Run(name, (("x", 128), ("y", 32)))),
        status="feasible", lower_bound_bytes=0, seconds=0, groups=[group],
    )  # fmt: skip


def split_plan() -> Plan:
    """The four channels of x in two parts, y and z, a row at a time: an operator that writes two tensors."""
    split = Geometry("rowwise", (1, 4, 4, 4), (1, 4, 4, 4))
    network = Network.build(
        "parts", [("x", 64, "input"), ("y", 16, "activation"), ("z", 48, "activation")],
        [OperatorSpec("f", "Split", ["x"], ["y", "z"], 0, 0, split)], ["y", "z"],
    )  # fmt: skip
    group = Group("g", ("f",), 32, 4, tiling=Tiling(1))
    streaming = (("x", 64), ("y", 16), ("z", 48))
    return certify(
        network, Chip("c", 1), 32, (Scratch("g", 0), Run("g", streaming)),
        status="feasible", lower_bound_bytes=0, seconds=0, groups=[group],
    )  # fmt: skip
