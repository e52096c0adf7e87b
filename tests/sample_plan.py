"""One plan with everything in it that a form must carry; it is not legal."""

from __future__ import annotations

from onchip.machines.chip import Memory
from onchip.network import Geometry, Network, OperatorSpec, Patches
from onchip.plans import (
    Alloc,
    Blocks,
    Free,
    Group,
    Join,
    Load,
    MemoryUse,
    Move,
    Moved,
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

RESULT = Result(
    "feasible", 1, 2, 3, 4, 5, 6, 7, 8, 9, 0.1, 10, 11, 12, 13, 14, move_bytes=15, memory_picoseconds=16,
    memory_lower_bound_picoseconds=3, memories=(MemoryUse("in", 1, 2, 3), MemoryUse("a b", 4, 5, 6)),
    moves=(Moved("in", "a b", 7),), space='all "orders"\nof # 7', version="0.1", claim_sha256="0f",
)  # fmt: skip
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
    PlanChip(
        "generic", 4, 1e9, 0.5, macs_per_second=2.0,
        memories=(Memory("in", 4), Memory("a b", 6, False, 1e9, 0.5), Memory("storage", 1, True, None, 2.0)),
    ),
    10,
    (
        Load("x", 0), Alloc("in", 3, "x", -2), Run("op", (("x:1 y", 3), ("k", 4))), Scratch("run", 0),
        Store("x"), Free('a "b"\n#'), Alloc("in", 0), Run("run"),
        Alloc("in", 8, parts=("of", "x y")), Join("op"),
        Load("x", 0, "in"), Alloc("in", 1, memory="a b"), Alloc("in", 3, "in", -2, memory="in"),
        Alloc("in", 8, parts=("in", "of"), memory="over"), Scratch("run", 2, "of"), Move("in", 4, "in"),
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
