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
    tensors = [(t.format(0), 16, "input")]
    operators = []
    groups = []
    for i in range(count):
        h = f"{t.format(i)}h"
        tensors += [(h, 24, "activation"), (t.format(i + 1), 16, "activation")]
        operators += [
            OperatorSpec(up.format(i), "MatMul", [t.format(i)], [h], 24, macs=96, reach=UP),
            OperatorSpec(down.format(i), "MatMul", [h], [t.format(i + 1)], 24, macs=96, reach=DOWN),
        ]
        (loop,) = example().body
        assert isinstance(loop, Loop)
        name = {"up": up.format(i), "down": down.format(i)}
        body = tuple(Leaf(name[leaf.operator], leaf.slices) for leaf in loop.body if isinstance(leaf, Leaf))
        over = tuple((name[op], axis) for op, axis in loop.over)
        groups.append(Group(f"g{i}", (*name.values(),), 11, tiling=Nest((Loop(over, 2, body),))))
    network = Network.build("layers", tensors, operators, [t.format(count)])  # type: ignore[arg-type]
    program: list[Instruction] = []
    for i, group in enumerate(groups):
        streaming = ((t.format(i), 48), (t.format(i + 1), 80))
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
    streamed = {network.tensor_id[name] for name in "xz" if name not in whole}
    found = nested(network, Group("g", ("up", "down"), 0, tiling=nest), [0, 1], streamed, 1)
    extent = found.layout.extent
    group = Group("g", ("up", "down"), extent, tiling=nest)
    program: list[Instruction] = []
    if "x" in whole:
        program.append(Load("x", extent))
    if "z" in whole:
        program.append(Alloc("z", extent + 16))
    streaming = tuple((network.tensors[t].name, n) for t, n in found.crossing.items())
    program += [Scratch("g", 0), Run("g", streaming)]
    if "z" in whole:
        program.append(Store("z"))
    return _plan(network, [group], program)


def _plan(network: Network, groups: Sequence[Group], program: Sequence[Instruction]) -> Plan:
    return certify(
        network, Chip("test", 1), 200, program,
        status="feasible", lower_bound_bytes=0, seconds=0, groups=groups,
    )  # fmt: skip
