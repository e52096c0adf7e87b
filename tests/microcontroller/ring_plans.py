"""Small int8 networks and plans that run them as one group in rings, in any stages, strips and direction."""

from __future__ import annotations

import random
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Literal

from onchip.check import certify
from onchip.check.rings import rings_of
from onchip.microcontroller.int8.model import Int8Model
from onchip.microcontroller.int8.read import model_of
from onchip.microcontroller.made import Builder
from onchip.microcontroller.network import network_of
from onchip.network.maps import Maps
from onchip.plans import (
    Alloc,
    Free,
    Group,
    Instruction,
    Load,
    Plan,
    PlanChip,
    Rings,
    Run,
    Scratch,
    Stage,
    Store,
)


@dataclass(frozen=True)
class Shape:
    """Before which layers stages begin, rows of each stage's bands, and the rest of a group in rings."""

    cuts: tuple[int, ...]
    rows: tuple[int, ...]
    strips: int = 1
    traversal: Literal["forward", "reverse"] = "forward"
    fetched: Literal["rows", "columns"] | None = None


def one_group(model: Int8Model, shape: Shape) -> Plan:
    """The whole network as one group; nothing overlaps."""
    network = network_of(model)
    names = [layer.name for layer in model.layers]
    stages = tuple(
        Stage(tuple(names[first:end]), rows)
        for (first, end), rows in zip(pairwise((0, *shape.cuts, len(names))), shape.rows, strict=True)
    )
    tiling = Rings(stages, shape.strips, shape.fetched or "rows", shape.traversal)
    group = Group("group", tuple(names), 0, tiling=tiling)
    x, y = model.tensors[model.inputs[0]], model.tensors[model.outputs[0]]
    entering = network.tensor_id[x.name]
    run = rings_of(Maps(network), group, [entering] if shape.fetched else [], alignment=1)
    group = replace(group, scratch_bytes=run.need)
    held = 0 if shape.fetched else x.bytes
    program: list[Instruction] = [Alloc(y.name, held)]
    if run.need:
        program.append(Scratch(group.name, -(-(held + y.bytes) // 4) * 4))
    if shape.fetched:
        program.append(Run(group.name, ((x.name, run.crossing[entering]),)))
    else:
        program = [Load(x.name, 0), *program, Run(group.name), Free(x.name)]
    program += [Store(y.name), Free(y.name)]
    return certify(
        network,
        PlanChip("mcu"),
        1 << 24,
        program,
        status="feasible",
        lower_bound_bytes=0,
        seconds=0.0,
        groups=[group],
    )


def layer_by_layer(model: Int8Model) -> Plan:
    """Every layer alone, every tensor in a place of its own."""
    network = network_of(model)
    name = [t.name for t in model.tensors]
    last = {t: i for i, layer in enumerate(model.layers) for t in layer.inputs}
    program: list[Instruction] = [Load(name[model.inputs[0]], 0)]
    free = model.tensors[model.inputs[0]].bytes
    for i, layer in enumerate(model.layers):
        program.append(Alloc(name[layer.output], free))
        free += model.tensors[layer.output].bytes
        work = network.operators[network.operator_id[layer.name]].workspace
        if work:
            program.append(Scratch(layer.name, free))
        program.append(Run(layer.name))
        free += work
        program += [Free(name[t]) for t in dict.fromkeys(layer.inputs) if last[t] == i]
    out = name[model.outputs[0]]
    return certify(
        network,
        PlanChip("mcu"),
        1 << 24,
        [*program, Store(out), Free(out)],
        status="feasible",
        lower_bound_bytes=0,
        seconds=0.0,
    )


def some_network(seed: int) -> Int8Model:
    """Convolutions of all sorts, an addition of an older map here and there; a name that is no name in C."""
    rng, builder = random.Random(seed), Builder(seed)
    x = builder.input((1, rng.randint(5, 14), rng.randint(5, 14), rng.randint(1, 5)))
    for _ in range(rng.randint(2, 4)):
        kernel = rng.choice([1, 1, 3, 3, (1, 3), (3, 1), 5, (2, 4)])
        stride = rng.choice([1, 1, 1, 2, (1, 2)])
        before = x
        if rng.random() < 0.5:
            x = builder.depthwise(x, kernel, stride)
        else:
            x = builder.conv(x, rng.randint(1, 9), kernel, stride, activation=rng.choice(["NONE", "RELU"]))
        if before.shape == x.shape and rng.random() < 0.7:
            x = builder.add(x, before)
    if rng.random() < 0.3:
        x = rng.choice([builder.mean, lambda x: builder.average_pool(x, x.shape[1:3], padding="VALID")])(x)
    return model_of(builder.file(x), name=f"no. {seed} */ \\", where="test")


def some_shape(model: Int8Model, seed: int) -> Shape:
    """A way to run the network as one group; stages are cut where one tensor alone goes on."""
    rng = random.Random(seed)
    last_reader = {t: max((model.layers.index(r) for r in rs), default=0) for t, rs in model.readers.items()}
    free = [
        i
        for i in range(1, len(model.layers))
        if all(last_reader[layer.output] <= i for layer in model.layers[: i - 1])
    ]
    cuts = tuple(sorted(rng.sample(free, rng.randint(0, len(free)))))
    width = model.tensors[model.outputs[0]].shape[2]
    return Shape(
        cuts,
        tuple(rng.choice([1, 1, 2, 3, 4]) for _ in range(len(cuts) + 1)),
        min(width, rng.choice([1, 1, 2, 3])),
        rng.choice(["forward", "reverse"]),
        rng.choice([None, "rows", "columns"]),
    )
