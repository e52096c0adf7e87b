"""What a plan says of how it was made, as far as proofs and claims rest on it."""

from __future__ import annotations

from collections.abc import Mapping

from onchip.check.rules import broken

__all__ = ["prove_options"]

BUDGETS = ("mr_bytes", "mp_bytes", "zero_traffic_bytes")


def prove_options(options: Mapping[str, object]) -> None:
    """Refuse words for where weights are that mean nothing, and budgets that are none. Raises `Broken`."""
    weights = options.get("weights", "streamed")
    if weights not in ("streamed", "resident"):
        broken("result", f"option weights is {str(weights)[:60]!r}, neither streamed nor resident")
    for key in BUDGETS:
        size = options.get(key)
        if size is not None and (type(size) is not int or size < 0):
            broken("result", f"option {key} is {str(size)[:60]}, no number of bytes")
