"""Plans of one group in a nest, and the worked example of docs/nests.md: a layer of two products."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from random import Random

from onchip.check import certify
from onchip.check.nests import nested
from onchip.machines.chip import Chip
from onchip.network import Constant, Network, OperatorSpec, Reach, Side
from onchip.plans import Alloc, Group, Instruction, Leaf, Load, Loop, Nest, Plan, Run, Scratch, Store

__all__ = [
    "BUDGET_12", "STREAM_AT", "nest_of", "nest_plan", "over_itself", "plan_of", "products", "slid", "stream",
]  # fmt: skip

CHIP = Chip("test", 1)

# Axes: of up m 0, f 1, d 2 (a sum); of down m 0, y 1, f 2 (a sum).
BUDGET_12 = Nest(
    (Loop((("up", 1), ("down", 2)), 2, (Leaf("up", ((2, 1), (0, 1))), Leaf("down", ((1, 1), (0, 1))))),)
)
"""Three slices of the hidden features; partial sums of z come and go."""


def products() -> Network:
    """`h = x A`, `z = h B`: x 4 x 4, A 4 x 6, B 6 x 4, a byte an element."""
    up = Reach((4, 6), ((Side(4, 0), Side(4, 2)),), (Constant("A", 24, (Side(4, 2), Side(6, 1))),), (4,))
    down = Reach((4, 4), ((Side(4, 0), Side(6, 2)),), (Constant("B", 24, (Side(6, 2), Side(4, 1))),), (6,))
    return Network.build(
        "products",
        [("x", 16, "input"), ("h", 24, "activation"), ("z", 16, "activation")],
        [
            OperatorSpec("up", "MatMul", ["x"], ["h"], 24, macs=96, reach=up),
            OperatorSpec("down", "MatMul", ["h"], ["z"], 24, macs=96, reach=down),
        ],
        ["z"],
    )


def slid(rows: Sequence[int], windows: Sequence[tuple[int, ...]], outputs: Sequence[str] = ()) -> Network:
    """Operators `c1`, `c2`, ... of one axis each, from `x` by `h1`, ...: by stride, before, span and per.

    Every operator reads what the one before makes. `outputs` leave, the last tensor alone if there are none.
    """
    names = ["x", *(f"h{n}" for n in range(1, len(rows)))]
    tensors = [
        (name, n, "activation" if at else "input")
        for at, (name, n) in enumerate(zip(names, rows, strict=True))
    ]
    specs = [
        OperatorSpec(
            f"c{n}",
            "Conv",
            [names[n - 1]],
            [names[n]],
            macs=rows[n],
            reach=Reach((rows[n],), ((Side(rows[n - 1], 0, *window),),)),
        )
        for n, window in enumerate(windows, 1)
    ]
    return Network.build("windows", tensors, specs, outputs or names[-1:])  # type: ignore[arg-type]


def nest_of(plan: Plan) -> Nest:
    (group,) = plan.groups
    assert isinstance(group.tiling, Nest)
    return group.tiling


def plan_of(network: Network, nest: Nest, whole: Collection[str] = (), chip: Chip = CHIP) -> Plan:
    """The plan of all of a network's operators in one nest, in the scratch that it needs."""
    alignment = chip.alignment_bytes
    members = tuple(op.name for op in network.operators)
    ids = [op.id for op in network.operators]
    operands = {t for op in network.operators for t in (*op.inputs, *op.outputs)}
    streamed = {network.root[t] for t in operands if network.tensors[t].name not in whole}
    found = nested(network, Group("g", members, 0, tiling=nest), ids, streamed, alignment)
    scratch = found.layout.extent
    group = Group("g", members, scratch, tiling=nest)
    streaming = tuple((network.tensors[t].name, n) for t, n in found.crossing.items())
    inputs = [t for t in network.tensors if t.name in whole and t.kind == "input"]
    outputs = [t for t in network.tensors if t.name in whole and t.kind != "input"]
    at, program = (
        -(-scratch // alignment) * alignment,
        list[Instruction]([Scratch("g", 0)] if scratch else []),
    )
    for tensor in (*inputs, *outputs):
        program.append(Load(tensor.name, at) if tensor in inputs else Alloc(tensor.name, at))
        at += -(-tensor.bytes // alignment) * alignment
    leaving = {network.tensors[t].name for t in network.outputs}
    program += [Run("g", streaming), *(Store(t.name) for t in outputs if t.name in leaving)]
    return certify(
        network, chip, at + 64, tuple(program),
        status="feasible", lower_bound_bytes=0, seconds=0.0, groups=(group,), options={},
    )  # fmt: skip


STREAM_AT = 1000
"""The address of a stream, behind the scratch."""


def stream(rows: int, width: int) -> Network:
    """`y = x + norm(x) A`, and `u` from x once more."""
    full = (Side(rows, 0), Side(width, 1))
    product = Reach(
        (rows, width),
        ((Side(rows, 0), Side(width, 2)),),
        (Constant("A", width * width, (Side(width, 2), Side(width, 1))),),
        (width,),
    )
    size = rows * width
    return Network.build(
        "stream",
        [("x", size, "input"), *((t, size, "activation") for t in ("n", "h", "u", "y"))],
        [
            OperatorSpec(
                "norm",
                "LayerNormalization",
                ["x"],
                ["n"],
                reach=Reach((rows, width), ((Side(rows, 0), Side(width, span=width)),)),
            ),
            OperatorSpec("product", "MatMul", ["n"], ["h"], width * width, macs=size * width, reach=product),
            OperatorSpec("again", "Relu", ["x"], ["u"], reach=Reach((rows, width), (full,))),
            OperatorSpec("add", "Add", ["x", "h"], ["y"], reach=Reach((rows, width), (full, full))),
        ],
        ["u", "y"],
    )


def over_itself(rows: int, width: int, nest: Nest | None = None) -> Plan:
    """The plan of a stream in one nest, whose output lies over x; all else streams."""
    nest = nest or Nest(tuple(Leaf(name) for name in ("norm", "product", "again", "add")))
    network = stream(rows, width)
    members = tuple(op.name for op in network.operators)
    group = Group("g", members, STREAM_AT, tiling=nest)
    ids = [op.id for op in network.operators]
    crossing = nested(network, group, ids, {network.tensor_id["u"]}, 1).crossing
    streaming = tuple((network.tensors[t].name, n) for t, n in crossing.items())
    program = (
        Scratch("g", 0), Load("x", STREAM_AT), Alloc("y", STREAM_AT, over="x"), Run("g", streaming),
        Store("y"),
    )  # fmt: skip
    return certify(
        network, CHIP, 2 * STREAM_AT, program,
        status="feasible", lower_bound_bytes=0, seconds=0.0, groups=(group,), options={},
    )  # fmt: skip


def nest_plan(rng: Random) -> Plan:
    """A legal plan of the two products in a nest with a loop, slices, and buffers that bodies keep."""
    over = (("up", 1), ("down", 2)) if rng.random() < 0.5 else (("up", 0), ("down", 0))
    tile = rng.randint(1, 3)
    free = [(a, rng.randint(1, 3)) for a in (0, 1, 2) if rng.random() < 0.7]
    up, down = (tuple(rng.sample(free, len(free))) for _ in range(2))
    inner = tuple(name for name in ("x", "z", "A") if rng.random() < 0.3)
    outer = tuple(name for name in ("x", "z", "B") if name not in inner and rng.random() < 0.3)
    nest = Nest((Loop(over, tile, (Leaf("up", up), Leaf("down", down)), inner),), outer)
    return plan_of(products(), nest, [] if "z" in inner + outer or rng.random() < 0.7 else ["z"])
