"""One plan with everything in it that a form must carry; it is not legal."""

from __future__ import annotations

from onchip.network import Geometry, Network, OperatorSpec, Patches
from onchip.plan import (
    Alloc,
    Blocks,
    Free,
    Group,
    Join,
    Load,
    Plan,
    PlanChip,
    Result,
    Rings,
    Run,
    Scratch,
    Section,
    Stage,
    Store,
    Tiling,
    Timed,
)

RESULT = Result("feasible", 1, 2, 3, 4, 5, 6, 7, 8, 9, 0.1, 10, 11, 12, 13, 14)
NETWORK = Network.build(
    "n",
    [("x", 4, "input"), ("in", 4, "activation"), ('a "b"\n#', 4, "activation"), ("half", 2, "activation")],
    [
        OperatorSpec("op", "Relu", ["x", "x"], ["in"], 3, 2, Geometry("elementwise", (1, 4), (1, 4)), 6),
        OperatorSpec(
            "run",
            "",
            ["in"],
            ['a "b"\n#'],
            geometry=Geometry("pool", traversal="reverse", pixels=4, channels=2),
        ),
    ],
    ['a "b"\n#'],
    views=[("half", "in", 2)],
    patches={'a "b"\n#': Patches(1, 1, 2, 2, 2)},
)
PLAN = Plan(
    NETWORK,
    PlanChip("generic", 4, 1e9, 0.5, macs_per_second=2.0),
    10,
    (
        Load("x", 0), Alloc("in", 3, "x", -2), Run("op", (("x:1 y", 3), ("k", 4))), Scratch("run", 0),
        Store("x"), Free('a "b"\n#'), Alloc("in", 0), Run("run"),
        Alloc("in", 8, parts=("of", "x y")), Join("op"),
    ),
    RESULT,
    groups=(
        Group("g", ("op", "run"), 3, 2, (("op", 2),), ("run",)),
        Group("tiled", ("op",), 5, 6, (), (), Tiling(2, ("rows", "x y"), 16, 3)),
        Group("blocked", ("rows", "run"), 5, 6, (), (), Blocks(1, 2, 3, 4, True)),
        Group(
            "ringed", ("op", "stage"), 5, 1, (), ("run",),
            Rings((Stage(("op", "rows"), 2), Stage(("stage",), 1), Stage((), 3)), 4, "columns", "reverse"),
        ),
    ),
    options={"a": None, "b": 1.5, "c": "x y", "d": True, "e": "1", "f": 7},
    timing=(Timed(0, 1, 2), Timed(2, 3, 9, 5)),
    sections=(
        Section("stem", 0, 2),
        Section("a b", 2, 10, "start", "run", (("op", "branch"), (), ("merge",)), "II"),
    ),
)  # fmt: skip
