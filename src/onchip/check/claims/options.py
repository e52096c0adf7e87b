"""A plan's options: the record of how it was made, as far as proofs and claims rest on it."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

from onchip.base.units import MAX_BYTES
from onchip.check.rules import broken

__all__ = ["OPTIONS", "PINNED", "prove_options"]

BUDGETS = ("mr_bytes", "mp_bytes", "zero_traffic_bytes")

Kind = tuple[str, ...] | range | type[bool] | type[float]
"""Words, whole numbers, true or false, or seconds."""

_WEIGHTS = ("streamed", "resident")
_LIMITS: dict[str, Kind] = {"time_limit": float, "memory_limit": range(1, MAX_BYTES + 1)}
_CHANNELS, _SEED = range(1, (1 << 20) + 1), range(1 << 63)
_PLACEMENT: dict[str, Kind] = {
    **_LIMITS,
    "weights": _WEIGHTS,
    "order": ("free", "given", "minpeak"),
    "in_place": bool,
    "strategy": ("exact", "dnc", "beam", "greedy", "ilp"),
    "beam_width": range(1, 1_000_001),
    "solver": ("cp-sat", "highs", "scip"),
    "inputs": ("sensible", "literal"),
    "moves": bool,
    "seed": _SEED,
}

OPTIONS: Mapping[str, Mapping[str, Kind]] = MappingProxyType({
    "placement": _PLACEMENT,
    "memories": _PLACEMENT,
    "baseline": {key: kind for key, kind in _PLACEMENT.items() if key != "strategy"},
    "fusion": {
        **_LIMITS,
        "batch_weights": ("per-image", "held", "shared"),
        "isoa": ("channelwise", "paper", "off", "sums"),
        "halo": ("auto", "lines", "paper", "recompute"),
        "residency": ("partial", "all", "none"),
        "blocks": ("best", "fallback"),
        "weight_tile": bool,
        "search": ("exact", "algorithm1", "algorithm1-top-down", "online"),
        "space": ("full", "dnnvm", "efficient-s"),
        "channel_tile": _CHANNELS,
    },
    "joint": {
        **_LIMITS,
        "fuse": bool,
        "overlap": bool,
        "nests": bool,
        "concat_views": bool,
        "dram_tiles": bool,
        "recompute": bool,
        "in_place": bool,
        "channel_tile": _CHANNELS,
        "seed": _SEED,
    },
    "segments": {
        "segments": ("free", "once", "least"),
        "input": ("held", "once", "again"),
        "time_limit": float,
    },
    "branches": {"rules": ("paper", "ours"), "long_skip": range(1 << 63)},
})  # fmt: skip
"""Planner -> its options -> their allowed values. The objective is checked with the claims."""

PINNED = ("pin", "state", "capacity")
"""Keys that are not options of a plan: its pins and states stand apart, with addresses."""

_OPTIONAL = ("time_limit", "channel_tile")


def prove_options(options: Mapping[str, object]) -> None:
    """Refuse options with a value of another type or outside their planner's choices. Raises `Broken`."""
    weights = options.get("weights", "streamed")
    if weights not in _WEIGHTS:
        broken("result", f"option weights is {str(weights)[:60]!r}, neither streamed nor resident")
    for key in BUDGETS:
        size = options.get(key)
        if size is not None and (type(size) is not int or size < 0):
            broken("result", f"option {key} is {str(size)[:60]}, no number of bytes")
    planner = options.get("planner")
    known = OPTIONS.get(planner) if isinstance(planner, str) else None
    if known is None:
        return
    for key, value in options.items():
        if key in PINNED:
            broken("result", f"option {key} is no option of a plan: what it keeps stands in pins and state")
        kind = known.get(key)
        if kind is None or (value is None and key in _OPTIONAL):
            continue
        if wrong := _wrong(kind, value):
            broken("result", f"option {key} is {repr(value)[:60]}, {wrong}")


def _wrong(kind: Kind, value: object) -> str:
    """Return why a value is not of a kind, as the end of a sentence; empty if it is."""
    if isinstance(kind, tuple):
        return "" if value in kind else f"not one of {', '.join(kind)}"
    if isinstance(kind, range):
        fits = type(value) is int and value in kind
        return "" if fits else f"no whole number from {kind.start:,} to {kind.stop - 1:,}"
    if kind is bool:
        return "" if type(value) is bool else "neither true nor false"
    number = type(value) in (int, float) and 0 <= value < float("inf")  # type: ignore[operator]
    return "" if number else "no number of seconds from 0 up"
