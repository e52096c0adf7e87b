"""The parts of a tiled group's scratch: rows of tensors, and weights. The group needs their sum."""

from __future__ import annotations

from dataclasses import dataclass

__all__ = ["Part", "up"]


@dataclass(frozen=True, slots=True)
class Part:
    """A piece of a scratch: `channels` x `rows` x `columns` of `images` images of a tensor, or weights.

    Without a `tensor` it holds weights of the operator `name`: all of them if `kept`, else the largest of the
    tiles that are fetched repeatedly. `bytes` are rounded up to the alignment; `streamed` rows are present a
    few channels at a time.
    """

    name: str
    bytes: int
    tensor: int | None = None
    images: int = 0
    channels: int = 0
    rows: int = 0
    columns: int = 0
    streamed: bool = False
    kept: bool = False


def up(size: int, alignment: int) -> int:
    """Return `size` rounded up to the alignment."""
    return -(-size // alignment) * alignment
