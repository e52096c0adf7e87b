"""Groups in rings: small plans, and what a machine with a tag in every byte says of them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from itertools import pairwise
from math import prod
from random import Random

from byte_machine import up

from mutants.referee import Facts, require, work
from mutants.walks import Foul
from onchip.base.errors import IllegalPlan
from onchip.check import certify
from onchip.check.rings import rings_of
from onchip.check.rules import Broken
from onchip.machines.chip import Chip
from onchip.network import Geometry, Network, OperatorSpec
from onchip.network.maps import Maps
from onchip.plans import Alloc, Group, Instruction, Load, Plan, Rings, Run, Scratch, Stage, Store
from oracles.ring_machine import RingMachine, Sizes, map_of

__all__ = ["ring_facts", "ring_plan"]


def chain(rng: Random) -> Network:
    """Up to five operators on small NHWC maps, perhaps with a residual, perhaps with a pool over all."""
    shape = (1, rng.randint(1, 5), rng.randint(1, 5), rng.randint(1, 3))
    shapes, specs = [shape], list[OperatorSpec]()
    for i in range(rng.randint(1, 5)):
        n, h, w, c = given = shapes[-1]
        kind, inputs = (
            rng.choice(("conv", "conv", "depthwise", "pool", "point", "elementwise", "pad", "add")),
            [f"t{i}"],
        )
        pixels, chunk = rng.choice(((1, 0), (1, 0), (2, 0), (1, 1), (3, 2)))
        if kind == "add":
            alike = [j for j in range(i) if shapes[j] == given]
            inputs += [f"t{rng.choice(alike)}"] if alike else []
            kind = "elementwise"
        if kind in ("elementwise",):
            g = Geometry(kind, given, given, layout="NHWC")
        elif kind == "point":
            g = Geometry(
                "conv", given, (n, h, w, rng.randint(1, 3)), (1, 1), (1, 1), (0, 0, 0, 0), (1, 1), 1, "NHWC"
            )
        elif kind == "pad":
            p = tuple(rng.randint(0, 1) for _ in range(4))
            g = Geometry("pad", given, (n, h + p[0] + p[2], w + p[1] + p[3], c), padding=p, layout="NHWC")
        else:
            kernel = min(h, rng.randint(1, 3)), min(w, rng.randint(1, 3))
            stride = rng.choice((1, 1, 2)), rng.choice((1, 1, 2))
            p = tuple(rng.choice((0, kernel[a % 2] // 2)) for a in range(4))
            out = [(given[1 + a] + p[a] + p[a + 2] - kernel[a]) // stride[a] + 1 for a in (0, 1)]
            deep = rng.randint(1, 3) if kind == "conv" else c
            g = Geometry(
                kind,
                given,
                (n, *out, deep),
                kernel,
                stride,
                p,
                (1, 1),
                c if kind == "depthwise" else 1,
                "NHWC",
            )
        g = replace(g, pixels=pixels, channels=chunk)
        specs.append(
            OperatorSpec(f"op{i}", kind, inputs, [f"t{i + 1}"], rng.randint(0, 3), rng.randint(0, 2), g)
        )
        shapes.append(g.output)
    if rng.random() < 0.3:
        n, h, w, c = given = shapes[-1]
        i, g = len(specs), Geometry("pool", given, (1, 1, 1, c), (h, w), layout="NHWC")
        specs.append(OperatorSpec(f"op{i}", "Mean", [f"t{i}"], [f"t{i + 1}"], 0, 0, g))
        shapes.append(g.output)
    tensors = [(f"t{i}", prod(s), "input" if i == 0 else "activation") for i, s in enumerate(shapes)]
    return Network.build("chain", tensors, specs, [f"t{len(specs)}"])  # type: ignore[arg-type]


def ring_plan(rng: Random) -> Plan:
    """One group of all operators, over its input or beside it."""
    while True:
        network = chain(rng)
        names = [op.name for op in network.operators]
        cuts = (
            sorted(rng.sample(range(1, len(names)), rng.randint(0, len(names) - 1))) if len(names) > 1 else []
        )
        ends = [0, *cuts, len(names)]
        stages = tuple(Stage(tuple(names[a:b]), rng.choice((1, 1, 2))) for a, b in pairwise(ends))
        last = network.operators[-1].geometry
        assert last is not None
        rings = Rings(
            stages,
            rng.randint(1, last.output[2]),
            rng.choice(("rows", "columns")),
            rng.choice(("forward", "reverse")),
        )
        streamed = [network.tensor_id["t0"]] if rng.random() < 0.3 else []
        group = Group("g", tuple(names), 1 << 12, tiling=rings)
        x, y = network.tensors[0], network.tensors[network.outputs[0]]
        align = rng.choice((1, 1, 4))
        try:
            run = rings_of(Maps(network), group, streamed, alignment=align)
        except Broken:
            continue
        group = replace(group, scratch_bytes=run.need + rng.choice((0, 0, 3)))
        size, by = (
            up(x.bytes + y.bytes, 4),
            rng.choice((0, y.bytes, y.bytes - x.bytes, rng.randint(-x.bytes, y.bytes))),
        )
        by = by // align * align
        program: list[Instruction] = [] if streamed else [Load("t0", size)]
        beside = bool(streamed) or rng.random() < 0.2
        program.append(Alloc(y.name, 0) if beside else Alloc(y.name, size - by, "t0", by))
        crossing = tuple((network.tensors[t].name, n) for t, n in run.crossing.items())
        program += [Scratch("g", 3 * size), Run("g", crossing), Store(y.name)]
        try:
            return certify(
                network, Chip("c", align), 3 * size + up(group.scratch_bytes, align), program,
                status="feasible", lower_bound_bytes=0, seconds=0, groups=[group],
            )  # fmt: skip
        except IllegalPlan:
            continue


def ring_facts(plan: Plan, group: Group, streaming: Mapping[str, int]) -> Facts:
    """Executed with the ring sizes that the checker derives: enough, or it loses a byte here."""
    network, rings, align = plan.network, group.tiling, plan.chip.alignment_bytes
    require(isinstance(rings, Rings), "no rings")
    assert isinstance(rings, Rings)
    require(
        tuple(n for s in rings.stages for n in s.operators) == group.operators, "stages are not the group"
    )
    require(all(s.operators and s.rows >= 1 for s in rings.stages) and rings.strips >= 1, "no rows, no strip")
    require(group.subgroups == 1 and not group.resident_weights, "runs more than once")
    require(
        all(n == 1 for _, n in group.refills) and set(dict(group.refills)) <= set(group.operators), "refills"
    )
    at = {op.name: i for i, op in enumerate(network.operators)}
    order = [at[n] for n in group.operators]
    place = {op: i for i, op in enumerate(order)}
    for op in order:
        for t in network.operators[op].inputs:
            maker = network.producer[t]
            require(maker is None or maker not in place or place[maker] < place[op], "named too early")
    machine = RingMachine(network, group, tuple(streaming))
    run = rings_of(Maps(network), group, [network.tensor_id[t] for t in streaming], alignment=align)
    sizes, need, inner = Sizes(), 0, [0]
    element = {
        t.name: t.bytes // prod(machine.shape[t.name]) for t in network.tensors if t.name in machine.shape
    }
    for part in run.row_rings:
        sizes.rows[part.name], sizes.columns[part.name] = part.rows, part.columns
        need += up(part.rows * part.columns * machine.shape[part.name][2] * element[part.name], align)
    for stage in run.column_rings:
        mine = 0
        for part in stage:
            sizes.columns[part.name] = part.columns
            mine += up(part.rows * part.columns * machine.shape[part.name][2] * element[part.name], align)
        inner.append(mine)
    sums = 4 * sum(machine.shape[machine.out(s[-1])][2] for s in machine.stages if machine.accumulates(s))
    ops = [network.operators[i] for i in order]
    need += max(inner) + up(sums, align) + up(max(op.workspace for op in ops), align)
    if machine.lost(sizes):
        raise Foul("rings lose a row")
    fetched, pixels = dict(machine.fetched), dict(machine.pixels)
    macs = 0
    for op in ops:
        assert op.geometry is not None
        height, width, _ = map_of(op.geometry.output)
        macs += -(-work(op) * pixels[op.name] // (height * width))

    def loses(t: str, x: str, by: int) -> bool:
        return machine.lost(sizes, x, by)

    return Facts(need, fetched, sum(op.weight_bytes for op in ops), loses, macs)
