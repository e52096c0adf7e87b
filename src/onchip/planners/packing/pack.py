"""Pack: heuristics, the complete search, and CP-SAT when that hits its limits."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import asdict

from onchip import _core
from onchip.planners.limits import Limits
from onchip.planners.packing.buffers import (
    ALL_RULES,
    Buffer,
    Engine,
    Packing,
    Rules,
    Status,
    aligned,
    columns,
    fault,
    max_load,
)
from onchip.planners.packing.large import allocate, is_large

__all__ = ["ENGINES", "Progress", "core_rules", "pack"]

Progress = Callable[[int], object]

ENGINES: tuple[Engine, ...] = ("greedy", "search", "repair", "cp-sat")

SHORT_SEARCH = 20_000
"""Nodes of a first search: most of what first fit cannot pack falls to it, and most of the rest to repair."""

REPAIRS = 300
"""First fits tried, each after moving forward what the last one left above the capacity."""

LONG_SEARCH = 3_000_000
"""Nodes the search spends, without a time limit, before CP-SAT takes over."""

SEARCH_SHARE = 0.6
"""Share of a time limit that the search may use before CP-SAT gets the rest."""


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
    engines: Collection[Engine] = ENGINES,
    progress: Progress | None = None,
) -> Packing:
    """Offsets in [0, capacity) for buffers with fixed live ranges, or a proof that there are none.

    Every offset is a multiple of `alignment` bytes, every size counts rounded up to it, and each buffer's own
    alignment, fixed offset and gaps hold. `time_limit` is in
    seconds, `node_limit` in nodes of the complete search; `progress` is called with the nodes or repairs so
    far about ten times a second. `engines` are those allowed. `KeyboardInterrupt` passes through. The offsets
    have been validated independently of the engine that found them. Raises `ValueError` for a fixed offset
    that is no multiple of `alignment`.
    """
    given = aligned(buffers, alignment)
    limits = Limits(time_limit, seed=seed)
    run = _Run(given, capacity // alignment * alignment, limits, node_limit, rules, progress)
    status, found, engine = run.decide(engines)
    offsets = tuple(found)
    if status == "packed":
        wrong = fault(buffers, offsets, capacity, alignment=alignment)
        if wrong is not None:
            raise AssertionError(f"the packer ({engine}) is wrong: {wrong}")
    return Packing(status, offsets, run.nodes, limits.spent(), engine)


class _Run:
    """One call of `pack`."""

    def __init__(
        self,
        buffers: Sequence[Buffer],
        room: int,
        limits: Limits,
        node_limit: int | None,
        rules: Rules,
        progress: Progress | None,
    ) -> None:
        self.buffers, self.room = buffers, room
        self.columns = columns(buffers)
        self.limits, self.node_limit = limits, node_limit
        self.rules, self.progress = core_rules(rules), progress
        self.nodes = 0

    def decide(self, engines: Collection[Engine]) -> tuple[Status, Sequence[int], Engine]:
        """The first answer of the engines in turn, or `unknown` of the last one asked."""
        fixed = [b for b in self.buffers if b.offset is not None]
        if max_load(self.buffers) > self.room or fault(fixed, [b.offset or 0 for b in fixed], self.room):
            return "infeasible", (), "bound"
        if is_large(self.buffers):
            status, offsets = self._fits(allocate(self.buffers)) if "greedy" in engines else ("unknown", ())
            return status, offsets, "greedy"
        last: Engine = "bound"
        for engine, attempt in self._stages(engines):
            status, offsets = attempt()
            if status != "unknown":
                return status, offsets, engine
            last = engine
            if self.limits.left() == 0.0:
                break
        return "unknown", (), last

    def _stages(
        self, engines: Collection[Engine]
    ) -> Iterator[tuple[Engine, Callable[[], tuple[Status, Sequence[int]]]]]:
        if "greedy" in engines:
            yield "greedy", self._greedily
        if "search" in engines and "repair" in engines:
            yield "search", lambda: self._search(SHORT_SEARCH, 1.0)
        if "repair" in engines:
            yield "repair", self._repair
        if "search" in engines and "cp-sat" in engines:
            nodes = LONG_SEARCH if self.limits.time_limit is None else None
            yield "search", lambda: self._search(nodes, SEARCH_SHARE)
        elif "search" in engines:
            yield "search", lambda: self._search(None, 1.0)
        if "cp-sat" in engines:
            yield "cp-sat", self._cpsat

    def _fits(self, found: tuple[Sequence[int], int]) -> tuple[Status, Sequence[int]]:
        offsets, extent = found
        return ("packed", offsets) if extent <= self.room else ("unknown", ())

    def _greedily(self) -> tuple[Status, Sequence[int]]:
        return self._fits(_core.pack_greedy(*self.columns, self.room, self.rules))

    def _repair(self) -> tuple[Status, Sequence[int]]:
        return self._fits(
            _core.pack_by_blame(
                *self.columns,
                self.room,
                self.rules,
                self.limits.seed,
                REPAIRS,
                self.limits.left(),
                self._told,
            )
        )

    def _search(self, nodes: int | None, share: float) -> tuple[Status, Sequence[int]]:
        limits = [n for n in (nodes, self.node_limit and self.node_limit - self.nodes) if n is not None]
        if limits and min(limits) <= 0:
            return "unknown", ()
        limit = min(limits, default=None)
        left = self.limits.until(share).left()
        status, offsets, spent = _core.pack_search(
            *self.columns, self.room, self.rules, self.limits.seed, left, limit, self._told
        )
        self.nodes += spent
        return status, offsets

    def _told(self, done: int) -> bool:
        if self.progress is not None:
            self.progress(done)
        return False

    def _cpsat(self) -> tuple[Status, Sequence[int]]:
        from onchip.planners.packing.cpsat import pack_with_cpsat

        return pack_with_cpsat(self.buffers, self.room, time_limit=self.limits.left(), seed=self.limits.seed)
