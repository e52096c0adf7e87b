"""The claims of planners: a digest binds them to their problem.

`optimal` and a bound speak of one network on one chip within one budget, under options, in a space of plans.
The digest covers all of that and the figures of the claims, so that none can be exchanged unseen. It is no
signature: an author who changes a plan on purpose can compute it again. So a plan from a file only claims,
and a planner of this process has proved.
"""

from __future__ import annotations

import hashlib
from dataclasses import astuple, fields, replace
from functools import cache

from onchip.plans.program import Plan
from onchip.plans.result import Result

__all__ = ["bind", "claim_digest", "is_proved"]

_FIGURES = (
    "status", "space", "version", "traffic_bytes", "spill_bytes", "reload_bytes", "compulsory_bytes",
    "weight_bytes", "dram_bytes", "peak_bytes", "extent_bytes",
)  # fmt: skip
"""The fields of a result that the digest covers, besides all bounds; stated optional figures are derived."""

_BOUNDS = tuple(f.name for f in fields(Result) if "lower_bound" in f.name)


@cache
def _version() -> str:
    from importlib.metadata import PackageNotFoundError, version  # slow to import

    try:
        return version("onchip")
    except PackageNotFoundError:
        return "unknown"


def claim_digest(plan: Plan) -> str:
    """Return the SHA-256, in hex, of the claims of a plan and everything that they depend on.

    That is the network (its fingerprint), the chip, the budget, the options, pins, states and caches; and the
    result's space, version, status, bounds and bytes.
    """
    about = (
        plan.network.fingerprint,
        astuple(plan.chip)[: None if plan.chip.tiles else -1],  # a chip of before has no `tiles`, the last
        plan.budget,
        sorted(plan.options.items()),
        plan.pins,
        plan.state,
        *([plan.caches] if plan.caches else []),  # plans of files without keep their digests
        [(key, getattr(plan.result, key)) for key in (*_FIGURES, *_BOUNDS)],
    )
    return hashlib.sha256(repr(about).encode("utf-8", "surrogatepass")).hexdigest()


def bind(plan: Plan) -> Plan:
    """Return the plan with its claims bound to its problem, as proved in this process. Planners end here."""
    plan = replace(plan, result=replace(plan.result, version=_version()))
    digest = claim_digest(plan)
    return replace(plan, result=replace(plan.result, claim_sha256=digest), proof=digest)


def is_proved(plan: Plan) -> bool:
    """Return whether a planner of this process made these claims of exactly this problem."""
    return bool(plan.proof) and plan.proof == claim_digest(plan)
