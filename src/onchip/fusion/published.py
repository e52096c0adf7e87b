"""What earlier fusers take a group to cost: all its weights and a band of every map on chip, or no group.

DNNVM and Efficient-S, after section 2.2 of Optimus: a group is valid if sum of C * R_h * R_w over its feature
maps plus all its parameters fit the buffer together; then everything crosses once. The tile is not stated;
ours is the least one, T_h rows (one, on most chips) of the coarsest output over the whole width, with R_h as
eq. 4 counts it. No channel streaming, no refilling.
"""

from __future__ import annotations

from dataclasses import replace

from onchip.fusion.problem import FusionProblem
from onchip.fusion.rows import bands_of, buffer_rows, overlaps
from onchip.fusion.streams import buffer_bytes
from onchip.network import bits

__all__ = ["published_cost"]


def published_cost(problem: FusionProblem, members: int) -> int | None:
    """Bytes of all images that a group moves by the older cost model, None where it is not valid.

    That is never less than the group's own cost where the options allow resident weights (`Bands` of T_h rows
    without streaming are among the ways to run it), and equal to it where it is valid.
    """
    weights = sum(problem.round_up(problem.operators[v].weight_bytes) for v in bits(members))
    if weights > problem.budget:
        return None
    bands = bands_of(problem, members)
    if bands is None:
        return None
    plain = replace(problem, options=replace(problem.options, isoa="off", halo="paper"))
    least = min(problem.least_rows, bands.longest)
    rows = buffer_rows(plain, bands, overlaps(plain, bands, 0), least)
    maps = sum(buffer_bytes(plain, x, rows[x], 1, False) for x in bands.tensors)
    if maps + weights > problem.budget:
        return None
    return problem.crossing_bytes(members) + sum(problem.operators[v].weight_bytes for v in bits(members))
