"""The second engine: CP-SAT's NoOverlap2D, time on one axis and addresses on the other."""

from __future__ import annotations

import os
from collections.abc import Sequence

from onchip.base.or_tools import needs_or_tools
from onchip.planners.packing.buffers import Buffer, Status

__all__ = ["pack_with_cpsat"]


def pack_with_cpsat(
    buffers: Sequence[Buffer],
    capacity: int,
    *,
    time_limit: float | None = None,
    seed: int = 0,
    workers: int | None = None,
) -> tuple[Status, tuple[int, ...]]:
    """Return offsets, a proof that there are none, or `unknown` at the time limit (seconds)."""
    needs_or_tools()
    from ortools.sat.python import cp_model

    if any((b.offset or 0) + b.size > capacity for b in buffers):
        return "infeasible", ()
    model = cp_model.CpModel()
    offsets, times, addresses, sizes = [], [], [], []
    for i, b in enumerate(buffers):
        if b.offset is not None:
            at: cp_model.LinearExprT = b.offset
        elif b.alignment == 1:
            at = model.new_int_var(0, capacity - b.size, f"at{i}")
        else:
            at = b.alignment * model.new_int_var(0, (capacity - b.size) // b.alignment, f"at{i}")
        offsets.append(at)
        for lower, upper in b.live:
            addresses.append(model.new_fixed_size_interval_var(at, b.size, f"address{i}"))
            times.append(model.new_fixed_size_interval_var(lower, upper - lower, f"time{i}"))
            sizes.append(b.size)
    model.add_no_overlap_2d(times, addresses)
    model.add_cumulative(times, sizes, capacity)
    solver = cp_model.CpSolver()
    solver.parameters.num_workers = workers or min(8, os.cpu_count() or 1)
    solver.parameters.random_seed = seed
    if time_limit is not None:
        solver.parameters.max_time_in_seconds = time_limit
    status = solver.solve(model)
    if status in (cp_model.OPTIMAL, cp_model.FEASIBLE):
        return "packed", tuple(solver.value(at) for at in offsets)
    return ("infeasible", ()) if status == cp_model.INFEASIBLE else ("unknown", ())
