"""RAM step by step in a plan by rows: which rows of which maps are alive, and where they lie."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from onchip.check.row_lives import RowLife, RowLives, lives_of
from onchip.microcontroller.result.step_parts import Part, RamStep, Role
from onchip.plans import Group, Plan, Rows

__all__ = ["row_steps"]


def row_steps(plan: Plan, group: Group, at: int, short: Mapping[str, str]) -> Iterator[RamStep]:
    """Yield the steps of a group by rows whose scratch begins at `at`, but for rows of held inputs.

    Rows of a map that lie side by side are one part. Tensors have their `short` names.
    """
    rows = group.tiling
    assert isinstance(rows, Rows)
    known = lives_of(plan.network, group)
    made = [0] * len(known.maps)
    alive: list[RowLife] = []
    begins: dict[int, RowLife] = {life.made: life for life in known.lives}
    for time, k in enumerate(rows.steps):
        alive = [life for life in alive if life.last >= time]
        alive.append(begins[time])
        step = made[k]
        made[k] += 1
        if time < known.begin:
            continue
        parts = _parts(plan, rows, known, alive, time, short, at)
        one, space = rows.maps[k], known.maps[k].workspace
        if space:
            first = at + one.workspace[step if len(one.workspace) > 1 else 0]
            parts.append(Part("the kernel's workspace", "workspace", first, first + space))
        layers = one.operators
        last = layers[-1] if layers else short[one.tensor]
        what = f", row {step}" if known.maps[k].steps > 1 else ""
        yield RamStep(last + what, layers, tuple(parts))


def _parts(
    plan: Plan,
    rows: Rows,
    known: RowLives,
    alive: Sequence[RowLife],
    time: int,
    short: Mapping[str, str],
    at: int,
) -> list[Part]:
    reads = {read.map for read in known.maps[rows.steps[time]].reads[_step(alive, time)]}
    by_map: dict[tuple[int, Role], list[RowLife]] = {}
    for life in alive:
        role: Role = "made" if life.made == time else "read" if life.map in reads else "kept"
        by_map.setdefault((life.map, role), []).append(life)
    parts = []
    for (k, role), lives in by_map.items():
        steps = known.maps[k].steps
        says = "" if steps == 1 else f"{len(lives)} of {steps} rows"
        name = short[plan.network.tensors[known.maps[k].tensor].name]
        if rows.maps[k].does == "sums":
            name = f"sums of {name}"
        for first, end in _together(lives):
            parts.append(Part(name, role, at + first, at + end, says))
    return parts


def _step(alive: Sequence[RowLife], time: int) -> int:
    return next(life.step for life in alive if life.made == time)


def _together(lives: Sequence[RowLife]) -> Iterator[tuple[int, int]]:
    """Yield the ranges of bytes that rows take, those side by side as one."""
    ranges = sorted((life.address, life.address + life.bytes) for life in lives)
    first, end = ranges[0]
    for low, high in ranges[1:]:
        if low > end:
            yield first, end
            first, end = low, high
        end = max(end, high)
    yield first, end
