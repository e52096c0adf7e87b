"""The plans that the claims of the branches planner range over."""

from __future__ import annotations

__all__ = ["SPACE"]

SPACE = "all legal plans: what is compulsory crosses in every one of them"
"""The method searches no space, so its only bound is that of every plan: no traffic at all."""
