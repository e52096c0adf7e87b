"""COSMA's integer linear program, equation by equation, solved by an open solver: strategy `ilp`.

It decides order, addresses, spills and retrievals in one model (eq. 1-12), or with a given order (eq. 16-17),
or the order of least peak alone (eq. 13-15). It is the reference for the other strategies, and a way to try
the paper; `exact` finds the same optimum far sooner.
"""

from __future__ import annotations

from onchip.planners.placement.ilp.reading import AS_PRINTED, SENSIBLE, Reading
from onchip.planners.placement.ilp.solvers import Solver
from onchip.planners.placement.ilp.strategy import Peak, Solved, minimum_peak, minimum_traffic, solve

__all__ = [
    "AS_PRINTED",
    "SENSIBLE",
    "Peak",
    "Reading",
    "Solved",
    "Solver",
    "minimum_peak",
    "minimum_traffic",
    "solve",
]
