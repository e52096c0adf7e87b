"""All cases, and those that still fall short."""

from __future__ import annotations

from hostile import code, graphs, names, numbers, onnx_models, plans, tables  # noqa: F401  they add cases
from hostile.case import CASES

__all__ = ["CASES", "KNOWN_SHORT"]

KNOWN_SHORT: frozenset[str] = frozenset()
"""Cases that fall short today. Whoever mends one deletes it here: the test fails if it holds."""
