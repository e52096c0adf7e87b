"""Plans on a chip that gives times to tiles: the worked example of docs/nest-times.md, and two groups."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import pytest

from nest_networks import nest_of, network_of
from onchip.check import certify
from onchip.check.nests import nested
from onchip.machines.tile_rates import ArraySide, Channel, TileRates
from onchip.network import Network
from onchip.planners.joint.timed.partition import Efforts
from onchip.plans import Group, Instruction, Nest, Plan, PlanChip, Run, Scratch

__all__ = ["CHIP", "EXAMPLE", "SPILLED", "TILES", "WORDED", "chained", "example", "few_looks", "timed_plan"]

TILES = TileRates(10**9, (Channel(10**9, 2_000, 1_000, 4),), 1, (ArraySide("out", 2), ArraySide("out", 2)))

CHIP = PlanChip("example", 1, tiles=TILES)

WORDED = network_of(
    "m=4 d=4 f=6 y=4",
    ["up MatMul: h(m,f) = x(m,d) A(d,f)", "down MatMul: z(m,y) = h(m,f) B(f,y)"],
    ["x"],
    ["z"],
)

EXAMPLE = """keep x z
for f 2
  keep A{A} B{B}
  run up array m | f
  run down array m | y"""

SPILLED = """keep x
for f 2
  keep A{A}
  run up array m | f
  for y 2
    keep B{B} z{z}
    run down array m | y"""


def example(text: str = EXAMPLE, **copies: int) -> Nest:
    """The nest of the example with so many copies of buffers, 1 of others."""
    numbers = {name: f":{copies[name]}" if name in copies else "" for name in "ABz"}
    nest, _ = nest_of(WORDED, text.format(**numbers).splitlines())
    return nest


def timed_plan(
    network: Network, nests: Sequence[Nest], members: Sequence[Sequence[str]], chip: PlanChip = CHIP
) -> Plan:
    """A plan that runs groups in nests one after the other, all of whose operands are streamed.

    The scratch of each lies beside that of the one before it, and is reserved before that runs.
    """
    program: list[Instruction] = []
    groups = []
    at = 0
    for n, (nest, names) in enumerate(zip(nests, members, strict=True)):
        group = Group(f"g{n}", tuple(names), 0, tiling=nest)
        ids = [network.operator_id[name] for name in names]
        law = nested(network, group, ids, None, chip.alignment_bytes, chip.accumulator_bytes)
        groups.append(replace(group, scratch_bytes=law.layout.extent))
        crosses = [(network.tensors[t].name, moved) for t, moved in law.crossing.items()]
        scratch = [Scratch(group.name, at)] if law.layout.extent else []
        at += law.layout.extent
        if nest.beside and program:
            program[-1:-1] = scratch
        else:
            program += scratch
        program.append(Run(group.name, tuple(crosses)))
    return certify(
        network, chip, at, program, status="feasible", lower_bound_bytes=0, seconds=0.0, groups=groups
    )


CHAINED = network_of(
    "m=6 d=4 f=4 y=4",
    [
        "one MatMul: a(m,f) = x(m,d) A(d,f)",
        "two MatMul: b(m,y) = w(m,d) B(d,y)",
        "three Add: c(m,f) = a(m,f) b(m,f)",
    ],
    ["x", "w"],
    ["c", "b"],
)


def chained(*, beside: tuple[bool, bool] = (True, False), chip: PlanChip = CHIP) -> Plan:
    """Three groups: a product, another one that needs nothing of it, and their sum."""
    nests = []
    for name, keeps, flag in (
        ("one", "x:2 a:2", False),
        ("two", "w:2 b:2", beside[0]),
        ("three", "a:2 b:2 c:2", beside[1]),
    ):
        lines = ["for m 1", f"  keep {keeps}", f"  run {name}" + (" array m" if name != "three" else "")]
        nests.append(nest_of(CHAINED, lines, beside=flag)[0])
    return timed_plan(CHAINED.network, nests, [["one"], ["two"], ["three"]], chip)


def few_looks(monkeypatch: pytest.MonkeyPatch) -> None:
    """Search little for nests: networks of a few operators need no more."""
    few = Efforts(20_000, 100_000, 20_000, 1_000_000, 1_000_000, 10_000_000)
    monkeypatch.setattr("onchip.planners.joint.timed.answer.EFFORTS", few)
    monkeypatch.setattr("onchip.planners.joint.timed.answer.START_EFFORT", 60_000)
    monkeypatch.setattr("onchip.planners.joint.timed.answer.PLAN_EFFORT", 60_000)
    monkeypatch.setattr("onchip.planners.joint.timed.answer.ALL_EFFORT", 60_000)
