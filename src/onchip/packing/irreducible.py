"""A minimal set of buffers that do not fit together: the answer to "which ones?"."""

from __future__ import annotations

import time
from collections.abc import Sequence

from onchip.packing.buffers import ALL_RULES, Buffer, Engine, Rules
from onchip.packing.pack import pack

__all__ = ["irreducible"]

PROOFS: tuple[Engine, ...] = ("search",)
"""Only a proof drops a buffer, so no other engine need be asked."""


def irreducible(
    buffers: Sequence[Buffer],
    capacity: int,
    *,
    alignment: int = 1,
    time_limit: float | None = None,
    node_limit: int = 20_000,
    rules: Rules = ALL_RULES,
) -> tuple[int, ...]:
    """Indices of an infeasible subset, by chunked deletion: dropping any one of them makes the rest fit.

    A subset that is not proved infeasible within `node_limit` nodes counts as fitting, so the result is
    always infeasible if `buffers` are, and minimal as far as those limits and `time_limit` (seconds) reach.
    """
    deadline = None if time_limit is None else time.monotonic() + time_limit
    kept = list(range(len(buffers)))
    chunk = len(kept) // 2
    while chunk and kept:
        at = 0
        while at < len(kept):
            if deadline is not None and time.monotonic() >= deadline:
                return tuple(kept)
            rest = kept[:at] + kept[at + chunk :]
            left = None if deadline is None else max(0.0, deadline - time.monotonic())
            answer = pack(
                [buffers[i] for i in rest],
                capacity,
                alignment=alignment,
                time_limit=left,
                node_limit=node_limit,
                rules=rules,
                engines=PROOFS,
            )
            if answer.status == "infeasible":
                kept = rest
            else:
                at += chunk
        chunk //= 2
    return tuple(kept)
