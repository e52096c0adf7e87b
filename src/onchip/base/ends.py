"""Why a search ended."""

from __future__ import annotations

from typing import Literal

__all__ = ["End"]

End = Literal["complete", "time", "memory", "stopped", "nodes", "width"]
"""Complete, or a limit was hit (`nodes`: of states to look at), or the caller (or Ctrl-C) stopped it, or only
a search of some width was asked for."""
