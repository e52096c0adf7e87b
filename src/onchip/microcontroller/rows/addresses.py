"""An address for every row of a schedule, in few bytes: the bytes of a plan are its extent."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from onchip import _core
from onchip.microcontroller.rows.graph import RowGraph
from onchip.microcontroller.rows.law import Life, Schedule, lives, most_alive, profile
from onchip.planners.limits import NO_LIMITS, Limits
from onchip.planners.packing import Buffer, Engine, pack

__all__ = ["Placed", "fault", "least_bytes", "place"]

ENGINES: tuple[Engine, ...] = ("search",)

NODES = 30_000
"""Nodes of the packing search in each extent that is tried."""

STEPS = 1000
"""Extents that differ by less than this part are one."""

TRIES = 60
"""Times that the packing starts over after a row that did not fit moved forward, without coming farther."""

MORE_TRIES = 240
"""The same where no packing search follows."""


@dataclass(frozen=True, slots=True)
class Placed:
    """A schedule with an address for every row, in the order of `lives`; `bytes` is the extent."""

    schedule: tuple[int, ...]
    lives: tuple[Life, ...]
    addresses: tuple[int, ...]
    bytes: int


def place(
    graph: RowGraph,
    schedule: Schedule,
    *,
    share: bool = False,
    pieces: bool = True,
    outputs: Sequence[Sequence[int]] | None = None,
    alignment: int = 1,
    spaces: Sequence[int] | None = None,
    tighten: bool = True,
    limits: Limits = NO_LIMITS,
) -> Placed:
    """Return addresses for the rows of a schedule.

    `share`: a row may lie over rows that its step reads last, at their distance or more below. `pieces`:
    each output lies in one piece from the lowest addresses on, and each held input in one piece up to the
    highest; `outputs` are the operators of each output, in the order of its bytes (None: each one that is
    kept). Beside the rows there is room for the workspace of every step, of so many bytes by operator in
    `spaces`. Without `tighten` the packing search is left out. Addresses are multiples of `alignment`,
    those of a piece's later rows as far as its row size allows.
    """
    found = lives(graph, schedule)
    at = {(life.operator, life.row): n for n, life in enumerate(found)}
    bottom: list[int] = []
    top: list[int] = []
    if pieces:
        ends = [(i,) for i in graph.outputs] if outputs is None else outputs
        for i in dict.fromkeys(i for parts in ends for i in parts):
            bottom += [at[i, row] for row in range(graph.operators[i].steps)]
        for i, op in enumerate(graph.operators):
            if op.held and not op.kept:
                top += [at[i, row] for row in range(op.steps)]
    pairs = pairs_of(graph, schedule, found) if share else ()
    rooms = _rooms(schedule, spaces)
    packed = _core.rows_pack(
        rows=[
            _core.RowRectangle(made=life.made, read=max(life.read, life.made), bytes=life.bytes)
            for life in (*found, *rooms)
        ],
        pairs=[_core.RowPair(under=u, over=o, distance=d) for u, o, d in pairs],
        bottom=bottom,
        top=top,
        alignment=alignment,
        least=least_bytes(graph, schedule, spaces, share=share),
        tries=TRIES if tighten else MORE_TRIES,
        limits=limits.core(lambda _: limits.stopped()),
    )
    placed = Placed(tuple(schedule), (*found, *rooms), tuple(packed.addresses), packed.extent)
    if tighten and not share:
        least = least_bytes(graph, schedule, spaces, share=False)
        placed = _tightened(placed, least, bottom, top, alignment, limits)
    return replace(placed, lives=found, addresses=placed.addresses[: len(found)])


def _rooms(schedule: Schedule, spaces: Sequence[int] | None) -> tuple[Life, ...]:
    """Return what the workspaces take: each lives in its step alone."""
    if spaces is None:
        return ()
    return tuple(Life(i, -1, spaces[i], time, time) for time, i in enumerate(schedule) if spaces[i])


def least_bytes(graph: RowGraph, schedule: Schedule, spaces: Sequence[int] | None, *, share: bool) -> int:
    """Return the bytes that a schedule needs at least, workspaces included."""
    if spaces is None:
        return most_alive(graph, schedule, share=share)
    first, *alive = profile(graph, schedule, share=share)
    return max(first, *(bytes_ + spaces[i] for bytes_, i in zip(alive, schedule, strict=True)))


def _tightened(
    placed: Placed,
    low: int,
    bottom: Sequence[int],
    top: Sequence[int],
    alignment: int,
    limits: Limits,
) -> Placed:
    """Return the rows within fewer bytes where the packing search finds addresses: halves of what is left.

    None are fewer than `low`.
    """
    best = placed
    size = [life.bytes for life in placed.lives]
    first = True
    while low < best.bytes and not limits.over():
        middle = low if first else low + (best.bytes - low) // 2
        first = False
        offsets = _fixed(size, bottom, top, middle, alignment)
        found = None
        if offsets is not None:
            buffers = [
                Buffer(
                    life.made,
                    max(life.read, life.made) + 1,
                    life.bytes,
                    1 if n in offsets else alignment,
                    offsets.get(n),
                )
                for n, life in enumerate(placed.lives)
            ]
            answer = pack(
                buffers,
                middle,
                node_limit=NODES,
                time_limit=limits.left(),
                engines=ENGINES,
                seed=limits.seed,
            )
            found = answer.offsets if answer.status == "packed" else None
        if found is None:
            low = middle + max(1, middle // STEPS)
            continue
        extent = max(a + b for a, b in zip(found, size, strict=True))
        best = Placed(placed.schedule, placed.lives, tuple(found), extent)
    return best


def _fixed(
    size: Sequence[int], bottom: Sequence[int], top: Sequence[int], extent: int, alignment: int
) -> dict[int, int] | None:
    """Return the addresses of rows in pieces within an extent; None where they do not fit."""
    found: dict[int, int] = {}
    at = 0
    for n in bottom:
        found[n] = at
        at += size[n]
    end = at
    at = (extent - sum(size[n] for n in top)) // alignment * alignment
    if at < 0 or end > extent:
        return None
    for n in top:
        found[n] = at
        at += size[n]
    return found


def pairs_of(graph: RowGraph, schedule: Schedule, found: Sequence[Life]) -> tuple[tuple[int, int, int], ...]:
    """Return the pairs of rows that may share bytes: one made, one that its step reads last, a distance."""
    made = {life.made: n for n, life in enumerate(found) if life.made >= 0}
    pairs = []
    for n, life in enumerate(found):
        if graph.operators[life.operator].kept or life.read <= life.made:
            continue
        distances = [
            operand.distance
            for operand in graph.operators[schedule[life.read]].operands
            if operand.maker == life.operator
        ]
        pairs.append((made[life.read], n, max(distances)))
    return tuple(pairs)


def fault(graph: RowGraph, placed: Placed, *, share: bool = False, pieces: bool = True) -> str | None:
    """Return what is wrong with the addresses, or None: found from the definition, pair by pair."""
    found = lives(graph, placed.schedule)
    if found != placed.lives or len(found) != len(placed.addresses):
        return "the rows are others"
    if any(a < 0 or a + life.bytes > placed.bytes for a, life in zip(placed.addresses, found, strict=True)):
        return "a row lies outside"
    allowed = {(u, o): d for u, o, d in pairs_of(graph, placed.schedule, found)} if share else {}
    order = sorted(range(len(found)), key=lambda n: found[n].made)
    alive: list[int] = []
    for n in order:
        alive = [m for m in alive if found[m].read >= found[n].made]
        for m in alive:
            a, b = placed.addresses[n], placed.addresses[m]
            if a + found[n].bytes <= b or b + found[m].bytes <= a:
                continue
            distance = allowed.get((n, m), allowed.get((m, n)))
            if distance is None or (b - a if (n, m) in allowed else a - b) < distance:
                return f"rows {found[n]} and {found[m]} lie over one another"
        alive.append(n)
    if pieces:
        where = {(life.operator, life.row): a for life, a in zip(found, placed.addresses, strict=True)}
        for i, op in enumerate(graph.operators):
            if (op.held or op.kept) and any(
                where[i, row] != where[i, 0] + row * op.bytes for row in range(op.steps)
            ):
                return f"{op.name} lies in pieces"
    return None
