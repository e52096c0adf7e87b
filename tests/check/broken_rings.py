"""Ways to break the rules about groups in rings, in plans of their own; see `broken_plans`."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from random import Random

from broken_plans import Broken, Site, breaks

from onchip.check import certify
from onchip.machines.chip import Chip
from onchip.network import Geometry, Network, OperatorSpec
from onchip.plans import Alloc, Group, Load, Plan, Rings, Run, Scratch, Stage, Store


def ringed(rng: Random) -> tuple[Plan, Group, Rings]:
    """A residual block in rings: expand, depthwise, project, add."""
    side, narrow, wide = rng.randint(2, 5), rng.randint(1, 3), rng.randint(2, 4)
    few, many = (1, side, side, narrow), (1, side, side, wide)
    point = {"kernel": (1, 1), "layout": "NHWC"}
    network = Network.build(
        "block",
        [("x", side * side * narrow, "input"), ("a", side * side * wide, "activation"),
         ("b", side * side * wide, "activation"), ("c", side * side * narrow, "activation"),
         ("y", side * side * narrow, "activation")],
        [
            OperatorSpec("e", "Conv", ["x"], ["a"], 0, 0, Geometry("conv", few, many, **point)),  # type: ignore[arg-type]
            OperatorSpec("d", "Conv", ["a"], ["b"], 0, 0, Geometry(
                "depthwise", many, many, (3, 3), padding=(1, 1, 1, 1), groups=wide, layout="NHWC")),
            OperatorSpec("p", "Conv", ["b"], ["c"], 0, 0, Geometry("conv", many, few, **point)),  # type: ignore[arg-type]
            OperatorSpec("s", "Add", ["c", "x"], ["y"], 0, 0,
                         Geometry("elementwise", few, few, layout="NHWC")),
        ],
        ["y"],
    )  # fmt: skip
    rings = Rings((Stage(("e",)), Stage(("d", "p", "s"))), traversal=rng.choice(("forward", "reverse")))
    group = Group("g", ("e", "d", "p", "s"), 10_000, tiling=rings)
    size = network.tensors[0].bytes
    program = [Load("x", 0), Alloc("y", size), Scratch("g", 2 * size), Run("g"), Store("y")]
    plan = certify(
        network,
        Chip("c", 1),
        20_000,
        program,
        status="feasible",
        lower_bound_bytes=0,
        seconds=0,
        groups=[group],
    )
    return plan, group, rings


def regrouped(plan: Plan, group: Group) -> Broken:
    return Broken(replace(plan, groups=(group,)), None)


@breaks("rings-stages")
def _(s: Site) -> Iterator[Broken]:
    plan, group, rings = ringed(s.rng)
    e, d, p, a = (Stage((name,)) for name in group.operators)
    for stages in (
        (e, d, p),
        (e, d, p, a, Stage(())),
        (d, e, p, a),
        (e, d, p, a, a),
        (Stage(("e", "d")), Stage(("nobody",)), p, a),
    ):
        yield regrouped(plan, replace(group, tiling=replace(rings, stages=stages)))
    turned = Rings((d, e, p, a))
    yield regrouped(plan, replace(group, operators=("d", "e", "p", "s"), tiling=turned))
    for wrong in ({"resident_weights": ("e",)}, {"subgroups": 2}, {"refills": (("e", 2),)}):
        yield regrouped(plan, replace(group, **wrong))  # type: ignore[arg-type]
    leaving = replace(plan.network, outputs=(*plan.network.outputs, plan.network.tensor_id["b"]))
    yield Broken(replace(plan, network=leaving), None)


@breaks("rings-sizes")
def _(s: Site) -> Iterator[Broken]:
    plan, group, rings = ringed(s.rng)
    for wrong in (0, -1):
        stages = (rings.stages[0], replace(rings.stages[1], rows=wrong))
        yield regrouped(plan, replace(group, tiling=replace(rings, stages=stages)))
        yield regrouped(plan, replace(group, tiling=replace(rings, strips=wrong)))
    yield regrouped(plan, replace(group, tiling=replace(rings, strips=6)))


@breaks("rings-fetched")
def _(s: Site) -> Iterator[Broken]:
    plan, group, rings = ringed(s.rng)
    program = tuple(Run("g", (("x", 1),)) if isinstance(i, Run) else i for i in plan.program)
    fetching = replace(group, tiling=replace(rings, fetched="columns"))
    yield Broken(replace(plan, groups=(fetching,), program=program), None)
