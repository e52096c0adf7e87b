"""The cost of a fused group by trying everything: every band, every streamed set, all residents, all blocks.

What a way of running a group needs and moves is not computed here but asked of the checker, which derives it
from the plan's tiling alone.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import chain, combinations

from onchip.base.units import MAX_BYTES
from onchip.check.rules import Broken
from onchip.check.units import Unit, units_of
from onchip.network import bits
from onchip.planners.fusion import FusionProblem
from onchip.plans import Blocks, Group, Tiling

__all__ = ["blocks_by_trying", "cost_by_trying", "streamable"]


def cost_by_trying(problem: FusionProblem, members: int) -> int | None:
    """The fewest DRAM bytes of a group in bands within the budget, whatever band, streams and residents."""
    network = problem.network
    touched = 0
    for v in bits(members):
        touched |= network.reads[v] | network.writes[v]
    shapes = [m for t in bits(touched) if (m := problem.maps[t]) is not None]
    names = [network.tensors[t].name for t in bits(touched)]
    weighty = [network.operators[v].name for v in bits(members) if network.operators[v].weight_bytes]
    images = range(1, problem.batch + 1)
    best: int | None = None
    for streamed in _subsets(names):
        for t in range(1, max(m.rows for m in shapes) + 1):
            for m in images:
                tiling = Tiling(t, streamed, problem.channel_tile, m)
                bands = _subgroups(problem, members, tiling)
                if bands is None:
                    continue
                for kept in _subsets(weighty):
                    refilled = tuple((name, bands) for name in weighty if name not in kept)
                    unit = _unit(problem, members, bands, refilled, kept, tiling)
                    if unit.taken_bytes <= problem.budget:
                        moved = _moved(unit)
                        best = moved if best is None else min(best, moved)
    return best


def blocks_by_trying(problem: FusionProblem, operator: int, slices: Sequence[int]) -> int | None:
    """The fewest DRAM bytes of an operator in blocks, with input slices of those sizes."""
    op = problem.network.operators[operator]
    made = problem.maps[problem.operators[operator].outputs[0]]
    assert made is not None
    best: int | None = None
    for rows in range(1, made.rows + 1):
        for columns in range(1, made.columns + 1):
            tiles = problem.batch * -(-made.rows // rows) * -(-made.columns // columns)
            for deep in range(1, made.channels + 1):
                for slice_ in slices:
                    for keep in (True, False) if op.weight_bytes else (False,):
                        refills = ((op.name, 1 if keep else tiles),) if op.weight_bytes else ()
                        tiling = Blocks(rows, columns, deep, slice_, keep)
                        unit = _unit(problem, 1 << operator, tiles, refills, (), tiling)
                        if unit.taken_bytes <= problem.budget:
                            moved = _moved(unit)
                            best = moved if best is None else min(best, moved)
    return best


def streamable(problem: FusionProblem, members: int, streamed: int) -> bool:
    """Whether the checker proves that a group can run with those tensors streamed."""
    names = tuple(problem.network.tensors[t].name for t in bits(streamed))
    return _subgroups(problem, members, Tiling(1, names, problem.channel_tile, 1)) is not None


def _subsets(names: Sequence[str]) -> Iterator[tuple[str, ...]]:
    return chain.from_iterable(combinations(names, n) for n in range(len(names) + 1))


def _subgroups(problem: FusionProblem, members: int, tiling: Tiling) -> int | None:
    """How many sub-groups a tiling has, as the checker says when a wrong number is stated; None: illegal."""
    try:
        _unit(problem, members, MAX_BYTES, (), (), tiling)
    except Broken as refusal:
        if refusal.rule != "tiling-subgroups":
            return None
        return int(str(refusal).split("runs in ")[1].split(" subgroups")[0].replace(",", ""))
    raise AssertionError("a wrong number of sub-groups was accepted")


def _unit(
    problem: FusionProblem,
    members: int,
    subgroups: int,
    refills: tuple[tuple[str, int], ...],
    kept: tuple[str, ...],
    tiling: Tiling | Blocks,
) -> Unit:
    names = tuple(problem.network.operators[v].name for v in bits(members))
    group = Group("the group", names, MAX_BYTES, subgroups, refills, kept, tiling)
    units = units_of(problem.network, [group], alignment=problem.alignment, weights_resident=False)
    return units["the group"]


def _moved(unit: Unit) -> int:
    assert unit.crossing is not None
    return sum(unit.crossing.values()) + unit.weights
