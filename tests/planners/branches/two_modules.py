"""A plan of two modules in a row, by hand: a concat of two branches, then a sum with an identity."""

from __future__ import annotations

from onchip.machines.chip import Chip
from onchip.network import Geometry, Network, OperatorSpec
from onchip.plans import Instruction, Load, Plan, PlanChip, Result, Run, Section, Store

__all__ = ["CHIP", "ON_CHIP", "network", "plan", "runs"]

CHIP = Chip("plain", 1, parallel_channels=16)
RESULT = Result("feasible", 0, 0, 0, 0, 0, 0, 0, 0, 0, 0.25)


def conv(name: str, read: str, made: str, channels: tuple[int, int]) -> OperatorSpec:
    shapes = [(1, c, 4, 4) for c in channels]
    geometry = Geometry("conv", shapes[0], shapes[1], (1, 1), (1, 1), (0, 0, 0, 0), (1, 1))
    return OperatorSpec(name, "Conv", [read], [made], channels[0] * channels[1], 0, geometry)


def network() -> Network:
    """stem; a module of two branches and a concat; one of a convolution and an identity with a sum; head."""
    maps = [("x", 1), ("a", 4), ("p", 2), ("q", 3), ("r", 4), ("m", 6), ("u", 6), ("y", 6), ("z", 2)]
    shape = (1, 6, 4, 4)
    return Network.build(
        "two modules",
        [(name, 16 * channels, "input" if name == "x" else "activation") for name, channels in maps],
        [
            conv("stem", "x", "a", (1, 4)),
            conv("c1", "a", "p", (4, 2)),
            conv("c2", "a", "q", (4, 3)),
            conv("c3", "q", "r", (3, 4)),
            OperatorSpec("cat", "Concat", ["p", "r"], ["m"], 0, 0, Geometry("concat", (1, 2, 4, 4), shape)),
            conv("c4", "m", "u", (6, 6)),
            OperatorSpec("add", "Add", ["u", "m"], ["y"], 0, 0, Geometry("elementwise", shape, shape)),
            conv("head", "y", "z", (6, 2)),
        ],
        ["z"],
    )


def plan(*inner: Instruction, split: int) -> Plan:
    """A plan (nobody checks it) whose modules have the instructions `inner`, the first `split` of them."""
    program = (Load("x", 0), Run("stem"), *inner, Run("head"), Store("z"))
    middle, end = 2 + split, 2 + len(inner)
    return Plan(
        network(),
        PlanChip("plain"),
        4096,
        program,
        RESULT,
        sections=(
            Section("before", 0, 2),
            Section("first", 2, middle, "a", "cat", (("c1",), ("c2", "c3")), "I"),
            Section("second", middle, end, "m", "add", (("c4",), ()), "I"),
            Section("after", end, len(program)),
        ),
    )


def runs(*names: str) -> tuple[Run, ...]:
    return tuple(map(Run, names))


ON_CHIP = plan(*runs("c1", "c2", "c3", "cat", "c4", "add"), split=4)
