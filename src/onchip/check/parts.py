"""The parts of a tiled group's scratch: rows of tensors, and weights. The group needs their sum."""

from __future__ import annotations

from dataclasses import dataclass

__all__ = ["Part", "up"]


@dataclass(frozen=True, slots=True)
class Part:
    """A piece of a scratch: of a tensor (in a ring images, channels, rows and columns are known), or weights.

    Without a `tensor` it holds weights of the operator `name`: all of them if `kept`, else the largest of the
    tiles that are fetched repeatedly. `bytes` are rounded up to the alignment.
    """

    name: str
    bytes: int
    tensor: int | None = None
    images: int = 0
    channels: int = 0
    rows: int = 0
    columns: int = 0
    kept: bool = False


def up(size: int, alignment: int) -> int:
    """Return `size` rounded up to the alignment."""
    return -(-size // alignment) * alignment
