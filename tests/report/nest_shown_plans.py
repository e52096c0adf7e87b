"""Plans of nests for the report's tests: the worked example of docs/nests.md, alone and in equal layers."""

from __future__ import annotations

from collections.abc import Sequence

from onchip.check import certify
from onchip.check.nests import nested
from onchip.machines.chip import Chip
from onchip.network import Constant, Network, OperatorSpec, Reach, Side
from onchip.plans import Alloc, Group, Instruction, Leaf, Load, Loop, Nest, Plan, Run, Scratch, Store

UP = Reach((4, 6), ((Side(4, 0), Side(4, 2)),), (Constant("A", 24, (Side(4, 2), Side(6, 1))),), (4,))
DOWN = Reach((4, 4), ((Side(4, 0), Side(6, 2)),), (Constant("B", 24, (Side(6, 2), Side(4, 1))),), (6,))


def example(prefix: str = "") -> Nest:
    """Three slices of the hidden features; partial sums of z come and go."""
    up, down = prefix + "up", prefix + "down"
    body = (Leaf(up, ((2, 1), (0, 1))), Leaf(down, ((1, 1), (0, 1))))
    return Nest((Loop(((up, 1), (down, 2)), 2, body),))


def layers(count: int, names: Sequence[str] = ("layer{}.up", "layer{}.down", "t{}")) -> Plan:
    """`count` times two products, one pair after the other, each in the nest of the example."""
    up, down, t = names
    tensors = [(t.replace("{}", str(0)), 16, "input")]
    operators = []
    groups = []
    for i in range(count):
        h = f"{t.replace('{}', str(i))}h"
        tensors += [(h, 24, "activation"), (t.replace("{}", str(i + 1)), 16, "activation")]
        operators += [
            OperatorSpec(
                up.replace("{}", str(i)), "MatMul", [t.replace("{}", str(i))], [h], 24, macs=96, reach=UP
            ),
            OperatorSpec(
                down.replace("{}", str(i)),
                "MatMul",
                [h],
                [t.replace("{}", str(i + 1))],
                24,
                macs=96,
                reach=DOWN,
            ),
        ]
        (loop,) = example().body
        assert isinstance(loop, Loop)
        name = {"up": up.replace("{}", str(i)), "down": down.replace("{}", str(i))}
        body = tuple(Leaf(name[leaf.operator], leaf.slices) for leaf in loop.body if isinstance(leaf, Leaf))
        over = tuple((name[op], axis) for op, axis in loop.over)
        groups.append(Group(f"g{i}", (*name.values(),), 11, tiling=Nest((Loop(over, 2, body),))))
    network = Network.build("layers", tensors, operators, [t.replace("{}", str(count))])  # type: ignore[arg-type]
    program: list[Instruction] = []
    for i, group in enumerate(groups):
        streaming = ((t.replace("{}", str(i)), 48), (t.replace("{}", str(i + 1)), 80))
        program += [Scratch(group.name, 0), Run(group.name, streaming)]
    return _plan(network, groups, program)


def products_plan(nest: Nest | None = None, whole: Sequence[str] = ()) -> Plan:
    """The worked example, or its two products in another nest, with some operands whole on chip."""
    nest = nest or example()
    network = Network.build(
        "products",
        [("x", 16, "input"), ("h", 24, "activation"), ("z", 16, "activation")],
        [
            OperatorSpec("up", "MatMul", ["x"], ["h"], 24, macs=96, reach=UP),
            OperatorSpec("down", "MatMul", ["h"], ["z"], 24, macs=96, reach=DOWN),
        ],
        ["z"],
    )
    return plan_in(network, nest, whole)


def windows_plan(ring: tuple[str, ...] = ()) -> Plan:
    """Two convolutions of one axis in a loop over rows: 8, 8 and, by stride 2, 4 rows of a byte."""
    network = Network.build(
        "windows",
        [("x", 8, "input"), ("h", 8, "activation"), ("y", 4, "activation")],
        [
            OperatorSpec("c1", "Conv", ["x"], ["h"], macs=8, reach=Reach((8,), ((Side(8, 0, 1, 1, 3),),))),
            OperatorSpec("c2", "Conv", ["h"], ["y"], macs=4, reach=Reach((4,), ((Side(8, 0, 2, 1, 3),),))),
        ],
        ["y"],
    )
    body = (Leaf("c1"), Leaf("c2"))
    return plan_in(network, Nest((Loop((("c1", 0), ("c2", 0)), 1, body, ("x",), ring),)))


def plan_in(network: Network, nest: Nest, whole: Sequence[str] = (), budget: int = 200) -> Plan:
    """The plan of all of a network's operators in one nest; the operands `whole` lie beside its scratch."""
    members = tuple(op.name for op in network.operators)
    ends = [t for t in network.tensors if network.input_roots >> t.id & 1 or t.id in network.outputs]
    streamed = {t.id for t in ends if t.name not in whole}
    ids = [op.id for op in network.operators]
    found = nested(network, Group("g", members, 0, tiling=nest), ids, streamed, 1)
    at = found.layout.extent
    group = Group("g", members, at, tiling=nest)
    before: list[Instruction] = []
    after: list[Instruction] = []
    for tensor in (t for t in ends if t.name in whole):
        leaves = tensor.id in network.outputs
        before.append(Alloc(tensor.name, at) if leaves else Load(tensor.name, at))
        after += [Store(tensor.name)] if leaves else []
        at += tensor.bytes
    streaming = tuple((network.tensors[t].name, n) for t, n in found.crossing.items())
    return _plan(network, [group], [*before, Scratch("g", 0), Run("g", streaming), *after], budget)


def _plan(
    network: Network, groups: Sequence[Group], program: Sequence[Instruction], budget: int = 200
) -> Plan:
    return certify(
        network, Chip("test", 1), budget, program,
        status="feasible", lower_bound_bytes=0, seconds=0, groups=groups,
    )  # fmt: skip
