"""Plans that follow each other in one arena: the proof that each finds its caches where the one before leaves
them.

Each plan is judged by itself (`check`); this is about the pair.
"""

from __future__ import annotations

from onchip.base.errors import IllegalPlan
from onchip.network import Rows, rows_of
from onchip.plans import Cache, Plan

__all__ = ["prove_following"]

RULE = "hand-over"


def prove_following(before: Plan, after: Plan) -> None:
    """Refuse two legal plans unless the second may run in the arena as the first has left it.

    They are for one chip and budget, and have the same caches in the same order: each at the same address, in
    a buffer of the same blocks, rows and bytes, of which the first plan fills as many rows as the second one
    finds. What the second appends is its own. Raises `IllegalPlan` of the rule `hand-over`.
    """
    try:
        _prove(before, after)
    except _Apart as reason:
        names = f"{before.network.name}, then {after.network.name}"
        raise IllegalPlan(RULE, f"{names}: {reason}") from None


class _Apart(Exception):
    """Two plans do not follow each other."""


def _prove(before: Plan, after: Plan) -> None:
    if (before.chip.name, before.chip.alignment_bytes) != (after.chip.name, after.chip.alignment_bytes):
        raise _Apart(f"chip {before.chip.name}, then chip {after.chip.name}")
    if before.budget != after.budget:
        raise _Apart(f"a budget of {before.budget:,}, then of {after.budget:,}")
    if len(before.caches) != len(after.caches):
        raise _Apart(f"{len(before.caches)} caches, then {len(after.caches)}")
    if before.network.element != after.network.element:
        raise _Apart(f"elements {before.network.element}, then {after.network.element}")
    for left, found in zip(before.caches, after.caches, strict=True):
        pair = f"{left.output} and {found.output}"
        if (left.address, left.axis, left.rows) != (found.address, found.axis, found.rows):
            raise _Apart(
                f"{pair}: at {left.address} with {left.rows} rows along axis {left.axis}, then at"
                f" {found.address} with {found.rows} along {found.axis}"
            )
        if found.input is None:
            raise _Apart(f"{found.output} begins anew")
        one, other = _rows(before, left, left.output), _rows(after, found, found.input)
        if (one.blocks, one.row_bytes) != (other.blocks, other.row_bytes):
            raise _Apart(
                f"{pair}: {one.blocks} blocks of rows of {one.row_bytes} bytes, then {other.blocks} of"
                f" {other.row_bytes}"
            )
        if one.rows != other.rows:
            raise _Apart(f"{left.output} leaves {one.rows:,} rows, and {found.input} has {other.rows:,}")


def _rows(plan: Plan, cache: Cache, name: str) -> Rows:
    found = rows_of(plan.network, plan.network.tensor_id[name], cache.axis)
    if isinstance(found, str):
        raise _Apart(found)
    return found
