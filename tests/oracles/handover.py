"""The earliest module of a chain that has no addresses, from the bases that each one before it can reach."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from onchip.planners.branches.handover import Problem
from oracles import regions

__all__ = ["first_stuck"]


def first_stuck(modules: Sequence[Problem], capacity: int, alignment: int) -> int | None:
    """Its index; None when all have addresses. Every base of every output is tried; for tiny memories."""
    handed: set[int] | None = None
    for m, module in enumerate(modules):
        reached: set[int | None] = set()
        for at in [None] if handed is None or module.input is None else handed:
            pieces = list(module.pieces)
            if at is not None and module.input is not None:
                given = pieces[module.input]
                if given.at not in (None, at):
                    continue
                pieces[module.input] = replace(given, at=at)
            for base in [None] if module.output is None else range(0, capacity, alignment):
                pinned = list(pieces)
                for i, p in enumerate(pieces):
                    if base is not None and p.cluster == module.output:
                        if p.at not in (None, base + p.offset):
                            break
                        pinned[i] = replace(p, at=base + p.offset)
                else:
                    if regions.fits(pinned, capacity, alignment):
                        reached.add(base)
        if not reached:
            return m
        handed = None if module.output is None else {at for at in reached if at is not None}
    return None
