"""How far a long search is, as one line now and then."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from onchip.planners import placement

__all__ = ["Progress", "of_fusion", "of_joint", "of_placement"]

Progress = Callable[[str], None]
"""Called now and then with one line that says how far a long search is."""


def of_fusion(progress: Progress | None) -> Callable[[str, int], None] | None:
    """A fuser's progress as lines."""
    return None if progress is None else lambda what, count: progress(f"fusing: {count:,} {what}")


def of_joint(progress: Progress | None) -> Callable[[Any], None] | None:
    """A joint search's progress as lines."""
    if progress is None:
        return None
    return lambda now: progress(
        f"fusing and placing: {now.groups:,} groups, {now.states:,} states, {now.seconds:.0f} s"
    )


def of_placement(progress: Progress | None) -> Callable[[placement.Progress], None] | None:
    """A search's progress as lines."""
    if progress is None:
        return None

    def say(now: placement.Progress) -> None:
        best = "none yet" if now.best is None else f"{now.best:,} B"
        progress(
            f"searching: {now.states:,} states, best {best}, at least {now.bound:,} B, {now.seconds:.0f} s"
        )

    return say
