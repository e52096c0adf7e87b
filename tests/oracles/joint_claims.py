"""Joint plans beside what elementary moves find, for the scripts that compare many networks."""

from __future__ import annotations

from onchip.planners.fusion import FusionProblem
from onchip.planners.fusion.least import least_bytes
from onchip.planners.joint.search import JointSearch
from oracles.joint import least_dram_bytes

__all__ = ["difference"]


def difference(
    problem: FusionProblem,
    over: tuple[tuple[int, ...], ...],
    search: JointSearch,
    most_states: int,
    *,
    nests: bool = False,
    joins: tuple[int, ...] = (),
) -> tuple[int | None, str]:
    """The DRAM bytes found (None: nothing fits), and what is wrong with them; empty where nothing is.

    Raises `TooManyStates` where elementary moves do not end within `most_states`.
    """
    found = None if search.misfits else search.best().dram_bytes
    expected = least_dram_bytes(
        problem, over, most_states=most_states, nests=nests, under=search.nests.overlap, joins=joins
    )
    if found != expected:
        return found, f"{found} found, {expected} by elementary moves"
    if found is not None and found < least_bytes(problem):
        return found, f"{found} found, said to need {least_bytes(problem)}"
    return found, ""
