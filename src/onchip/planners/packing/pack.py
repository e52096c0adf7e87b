"""Pack: heuristics, the complete search, and CP-SAT if that hits its limits."""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
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
    fault,
    max_load,
)
from onchip.planners.packing.large import core_buffers, is_large

__all__ = ["ENGINES", "Progress", "greedily", "pack"]

Progress = Callable[[int], object]

ENGINES: tuple[Engine, ...] = ("greedy", "search", "repair", "cp-sat")

LONG_SEARCH = 3_000_000
"""Nodes of the search, without a time limit, before CP-SAT takes over."""

SEARCH_SHARE = 0.6
"""Share of a time limit that the search may use before CP-SAT gets the rest."""


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
    """Return offsets in [0, capacity) for buffers with fixed live ranges, or a proof that there are none.

    Every offset is a multiple of `alignment` bytes, every size counts rounded up to it, and each buffer's own
    alignment, fixed offset and gaps hold. `time_limit` is in seconds, `node_limit` in nodes of the complete
    search; `progress` is called with the nodes or repairs so far about ten times a second. `engines` are the
    allowed ones. `KeyboardInterrupt` passes through. The offsets are validated independently of the engine
    that found them. Raises `ValueError` for a fixed offset that is no multiple of `alignment`.
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


def greedily(buffers: Sequence[Buffer], enough: int, rules: Rules = ALL_RULES) -> tuple[list[int], int]:
    """Return offsets by the best of the quick heuristics, and their extent in bytes.

    The first heuristic that stays within `enough` bytes is the last one tried.
    """
    found = _core.pack_greedy(
        buffers=core_buffers(buffers), enough=enough, rules=_core.PackRules(**asdict(rules))
    )
    return found.offsets, found.extent


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
        self.limits, self.node_limit = limits, node_limit
        self.rules, self.progress = _core.PackRules(**asdict(rules)), progress
        self.nodes = 0

    def decide(self, engines: Collection[Engine]) -> tuple[Status, Sequence[int], Engine]:
        """Return the first answer of the engines in turn, or `unknown` of the last one tried."""
        fixed = [b for b in self.buffers if b.offset is not None]
        if max_load(self.buffers) > self.room or fault(fixed, [b.offset or 0 for b in fixed], self.room):
            return "infeasible", (), "bound"
        last = self._core(engines)
        if last.status != "unknown" or "cp-sat" not in engines or self.limits.left() == 0.0:
            return last.status, last.offsets, last.method
        if is_large(self.buffers):
            return "unknown", (), last.method
        status, offsets = self._cpsat()
        return status, offsets, "cp-sat"

    def _core(self, engines: Collection[Engine]) -> _core.PackDecision:
        """Return the answer of the compiled engines in turn, or `unknown` of the last one tried."""
        after = "cp-sat" in engines
        found = _core.pack_decide(
            buffers=core_buffers(self.buffers),
            capacity=self.room,
            rules=self.rules,
            seed=self.limits.seed,
            effort=_core.PackEffort(
                greedy="greedy" in engines,
                search="search" in engines,
                repair="repair" in engines,
                nodes=self.node_limit,
                last_nodes=LONG_SEARCH if after and self.limits.time_limit is None else None,
                share=SEARCH_SHARE if after else 1.0,
            ),
            limits=self.limits.core(self._told),
        )
        self.nodes = found.nodes
        return found

    def _told(self, done: int) -> bool:
        if self.progress is not None:
            self.progress(done)
        return False

    def _cpsat(self) -> tuple[Status, Sequence[int]]:
        from onchip.planners.packing.cpsat import pack_with_cpsat

        return pack_with_cpsat(self.buffers, self.room, time_limit=self.limits.left(), seed=self.limits.seed)
