"""Pack: a quick pass of heuristics, the complete search, and CP-SAT when that hits its limits."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import asdict

from onchip import _core
from onchip.packing.buffers import ALL_RULES, Buffer, Packing, Rules, Status, fault, max_load

__all__ = ["core_rules", "pack"]

Progress = Callable[[int], object]

SEARCH_SHARE = 0.6
"""Share of a time limit that the complete search may use before CP-SAT gets the rest."""

SEARCH_NODES = 3_000_000
"""Nodes the complete search spends, without a time limit, before CP-SAT takes over."""


def core_rules(rules: Rules) -> _core.PackRules:
    """The switches as the compiled core takes them."""
    result = _core.PackRules()
    for name, value in asdict(rules).items():
        setattr(result, name, value)
    return result


def pack(
    buffers: Sequence[Buffer],
    capacity: int,
    *,
    alignment: int = 1,
    time_limit: float | None = None,
    node_limit: int | None = None,
    rules: Rules = ALL_RULES,
    seed: int = 0,
    second_engine: bool = True,
    progress: Progress | None = None,
) -> Packing:
    """Offsets in [0, capacity) for buffers with fixed live ranges, or a proof that there are none.

    Every offset is a multiple of `alignment` bytes and every size counts rounded up to it. `time_limit` is in
    seconds, `node_limit` in nodes of the complete search; `progress` is called with the nodes so far about
    ten times a second. Without `second_engine` CP-SAT is not asked. `KeyboardInterrupt` passes through.
    The offsets have been validated independently of the solver that found them.
    """
    if alignment < 1:
        raise ValueError("alignment must be at least 1")
    start = time.monotonic()
    # Rounded sizes and offsets are multiples of the alignment: counting in units of it loses nothing.
    units = [Buffer(b.lower, b.upper, -(-b.size // alignment)) for b in buffers]
    room = capacity // alignment
    nodes = 0

    def answer(status: Status, engine: str, offsets: Sequence[int] = ()) -> Packing:
        result = tuple(at * alignment for at in offsets)
        if status == "packed":
            wrong = fault(buffers, result, capacity, alignment=alignment)
            if wrong is not None:
                raise AssertionError(f"the packer ({engine}) is wrong: {wrong}")
        return Packing(status, result, nodes, time.monotonic() - start, engine)

    def left() -> float | None:
        return None if time_limit is None else max(0.0, time_limit - (time.monotonic() - start))

    if not units:
        return answer("packed", "greedy")
    if max_load(units) > room:
        return answer("infeasible", "bound")
    columns = [b.lower for b in units], [b.upper for b in units], [b.size for b in units]
    offsets, extent = _core.pack_greedy(*columns, room, core_rules(rules))
    if extent <= room:
        return answer("packed", "greedy", offsets)

    seconds = left()
    if second_engine:
        seconds = None if seconds is None else seconds * SEARCH_SHARE
        node_limit = SEARCH_NODES if node_limit is None and seconds is None else node_limit
    status, offsets, nodes = _core.pack_search(
        *columns, room, core_rules(rules), seed, seconds, node_limit, progress
    )
    if status != "unknown" or not second_engine or (left() or 1.0) < 0.05:
        return answer(status, "search", offsets)

    from onchip.packing.cpsat import pack_with_cpsat

    verdict, found = pack_with_cpsat(units, room, time_limit=left(), seed=seed)
    return answer(verdict, "cp-sat", found)
