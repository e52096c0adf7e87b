"""The group costs of earlier fusers: all weights and a band of every map on chip, or no group.

DNNVM and Efficient-S, after section 2.2 of Optimus: a group is valid if sum of C * R_h * R_w over its feature
maps plus all its parameters fit the buffer together; then everything crosses once. The tile is not stated;
ours is the least one, T_h rows (one, on most chips) of the coarsest output over the whole width, with R_h as
in eq. 4. No channel streaming, no refilling.
"""

from __future__ import annotations

from dataclasses import replace

from onchip.network import bits
from onchip.planners.fusion.problem import FusionProblem
from onchip.planners.fusion.rows import bands_of, buffer_rows, overlaps
from onchip.planners.fusion.search import Fuser
from onchip.planners.fusion.streams import buffer_bytes

__all__ = ["Published"]


class Published:
    """The older cost model on one problem. Calls derive bands in C++; `need` defines them."""

    def __init__(self, problem: FusionProblem) -> None:
        self.problem = problem
        self._plain = replace(problem, options=replace(problem.options, isoa="off", halo="paper"))
        self._rounded = [problem.round_up(op.weight_bytes) for op in problem.operators]
        bare = tuple(replace(op, weight_bytes=0, tile_bytes=0) for op in problem.operators)
        self._maps = Fuser(replace(self._plain, operators=bare))

    def __call__(self, members: int) -> int | None:
        """Return the bytes of all images that a group moves, None if it is not valid.

        They are never fewer than the group's own cost if the options allow resident weights (`Bands` of T_h
        rows without streaming are among the ways to run it), and equal to it for a valid group.
        """
        problem = self.problem
        weights = sum(self._rounded[v] for v in bits(members))
        if weights > problem.weights_room(0):  # most groups end here, before their bands are derived
            return None
        if any(problem.operators[v].form == "opaque" for v in bits(members)):
            return None
        maps = self._maps.least_scratch(members)
        if maps is None or maps + weights > problem.budget:
            return None
        return problem.crossing_bytes(members) + sum(problem.operators[v].weight_bytes for v in bits(members))

    def need(self, members: int) -> int | None:
        """Return the bytes on chip that the model requires: a band of T_h rows of every map, and all weights.

        None if strides do not fit together, or an operator of the group runs only whole.
        """
        problem = self.problem
        bands = bands_of(problem, members)
        if bands is None:
            return None
        least = min(problem.least_rows, bands.longest)
        rows = buffer_rows(self._plain, bands, overlaps(self._plain, bands, 0), least)
        weights = sum(problem.round_up(problem.operators[v].weight_bytes) for v in bits(members))
        return weights + sum(buffer_bytes(self._plain, x, rows[x], 1, False) for x in bands.tensors)
