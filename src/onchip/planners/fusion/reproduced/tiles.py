"""The same cost in narrow tiles: the fusers of section 2.2 as Optimus' section 2.3 prints their need.

A group is valid if the sum of C * R_h * R_w over its feature maps for a tile of T_h x T_w, the array's own,
and all its parameters fit the buffer together; then everything crosses once. Between narrow tiles columns
overlap as rows do. The text charges neither buffer nor words for what neighbours share, so that such a group
cannot run as it is priced; `costs` has the reading that can, with bands of the maps' whole width.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from onchip.network import bits
from onchip.planners.fusion.problem import FusedOperator, FusionProblem
from onchip.planners.fusion.rows import bands_of, overlaps, rows_of

__all__ = ["Tiled"]


class Tiled:
    """The older cost model with tiles of T_h x T_w on one problem; called with a group, it gives bytes."""

    def __init__(self, problem: FusionProblem) -> None:
        self.problem = problem
        self._upright = replace(problem, options=replace(problem.options, isoa="off", halo="paper"))
        self._turned = _turned(self._upright)

    def __call__(self, members: int) -> int | None:
        """Return the bytes of all images that a group moves, None if it is not valid."""
        problem = self.problem
        weights = sum(problem.round_up(problem.operators[v].weight_bytes) for v in bits(members))
        if weights > problem.weights_room(0):
            return None
        maps = self.maps(members)
        if maps is None or maps > problem.maps_room or weights > problem.weights_room(maps):
            return None
        return problem.crossing_bytes(members) + sum(problem.operators[v].weight_bytes for v in bits(members))

    def need(self, members: int) -> int | None:
        """Return the bytes on chip that the model requires: a tile of every map, and all weights.

        None if strides do not fit together, or an operator of the group runs only whole.
        """
        maps = self.maps(members)
        if maps is None:
            return None
        return maps + sum(
            self.problem.round_up(self.problem.operators[v].weight_bytes) for v in bits(members)
        )

    def maps(self, members: int) -> int | None:
        """Return the bytes of a tile of every map: sum of C * R_h * R_w."""
        problem = self.problem
        high = _reach(self._upright, members, problem.least_rows)
        if high is None:
            return None
        wide = _reach(self._turned, members, problem.least_columns)
        if wide is None:
            return None
        total = 0
        for x, rows in high.items():
            shape = problem.maps[x]
            assert shape is not None
            total += problem.round_up(shape.channels * shape.element * rows * wide[x])
        return total


def _reach(problem: FusionProblem, members: int, least: int) -> Mapping[int, int] | None:
    """Return R of every tensor for a tile of `least` rows of the coarsest output."""
    bands = bands_of(problem, members)
    if bands is None:
        return None
    rows, more = rows_of(problem, bands.tensors), overlaps(problem, bands, 0)
    tile = min(least, bands.longest)
    return {
        x: rows[x] if (m := more[x]) is None else max(0, min(rows[x], bands.scale[x] * tile + m))
        for x in bands.tensors
    }


def _turned(problem: FusionProblem) -> FusionProblem:
    """Return the problem with rows for columns."""
    maps = tuple(m and replace(m, rows=m.columns, columns=m.rows) for m in problem.maps)
    return replace(problem, maps=maps, operators=tuple(map(_turned_operator, problem.operators)))


def _turned_operator(op: FusedOperator) -> FusedOperator:
    if op.access is None:
        return op
    operands = tuple(replace(x, rows=x.columns, columns=x.rows) for x in op.access.operands)
    return replace(op, access=replace(op.access, operands=operands))
