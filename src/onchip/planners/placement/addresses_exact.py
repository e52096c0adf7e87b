"""The relocation problem as one CP-SAT model: an independent second opinion on `place`, for small schedules.

Every use of a tensor is a box one step wide at an address of its own. Two successive uses either share an
address, and the steps between them are occupied too, or the tensor is moved between them, at its cost.
"""

from __future__ import annotations

import time
from collections.abc import Sequence

from onchip.base.or_tools import needs_or_tools
from onchip.planners.placement.addresses import Piece, Placement, Rectangle, Relocation, relocation_bytes

__all__ = ["place_exact"]


def place_exact(
    rectangles: Sequence[Rectangle],
    budget: int,
    *,
    alignment: int = 1,
    time_limit: float | None = None,
    seed: int = 0,
) -> Placement:
    """Return addresses at the least relocation for a given schedule, with the solver's lower bound on it.

    `unknown` if `time_limit` (seconds) ends it without any. Raises `ValueError` if there are no addresses
    whatever is moved. The model grows with the number of uses: it is for networks of some ten operators.
    """
    needs_or_tools()
    from ortools.sat.python import cp_model

    start = time.monotonic()
    model = cp_model.CpModel()
    room = budget // alignment
    across, up = [], []

    def box(begin: int, end: int, at: cp_model.IntVar, size: int, present: cp_model.IntVar | int) -> None:
        across.append(model.new_optional_fixed_size_interval_var(begin, end - begin, present, ""))
        up.append(model.new_optional_fixed_size_interval_var(at, size, present, ""))

    moved: dict[Relocation, cp_model.IntVar] = {}
    address: dict[tuple[int, int], cp_model.IntVar] = {}
    written: dict[int, cp_model.IntVar] = {}
    cost = []
    for i, r in enumerate(rectangles):
        size = -(-r.size // alignment)
        if (r.offset or 0) // alignment + size > room:
            raise ValueError("a rectangle is larger than the budget")
        if (r.offset or 0) % alignment:
            raise ValueError("a rectangle is fixed where nothing is aligned")
        least, most = (0, room - size) if r.offset is None else (r.offset // alignment, r.offset // alignment)
        if not r.gaps:
            address[i, r.start] = model.new_int_var(least, most, "")
            box(r.start, r.end, address[i, r.start], size, 1)
        for use in sorted({use for gap in r.gaps for use in gap}):
            address[i, use] = model.new_int_var(least, most, "")
            box(use, use + 1, address[i, use], size, 1)
        for after, before in r.gaps:
            move = moved[Relocation(i, after, before)] = model.new_bool_var("")
            model.add(address[i, after] == address[i, before]).only_enforce_if(move.Not())
            if before > after + 1:
                box(after + 1, before, address[i, after], size, move.Not())
            cost.append(r.transfer * move)
            item, copied = r.holder(after)
            if not copied:
                if item not in written:
                    written[item] = model.new_bool_var("")
                    cost.append(r.transfer * written[item])
                model.add_implication(move, written[item])
    model.add_no_overlap_2d(across, up)
    model.minimize(sum(cost))

    solver = cp_model.CpSolver()
    solver.parameters.num_workers = 1
    solver.parameters.random_seed = seed
    if time_limit is not None:
        solver.parameters.max_time_in_seconds = time_limit
    status = solver.solve(model)
    if status == cp_model.INFEASIBLE:
        raise ValueError("there are no addresses, whatever is moved")
    if status not in (cp_model.OPTIMAL, cp_model.FEASIBLE):
        return Placement("unknown", (), (), 0, 0, (), time.monotonic() - start)

    moves = [m for m, move in moved.items() if solver.value(move)]
    pieces = []
    for i, r in enumerate(rectangles):
        cuts = sorted((m.after + 1, m.before) for m in moves if m.rectangle == i)
        begins = [r.start, *(before for _, before in cuts)]
        ends = [*(after for after, _ in cuts), r.end]
        for begin, end in zip(begins, ends, strict=True):
            pieces.append(Piece(i, begin, end, solver.value(address[i, begin]) * alignment))
    total = relocation_bytes(rectangles, moves)
    bound = total if status == cp_model.OPTIMAL else min(total, round(solver.best_objective_bound))
    return Placement(
        "relocated" if moves else "packed",
        tuple(pieces),
        tuple(moves),
        total,
        bound,
        (),
        time.monotonic() - start,
    )
