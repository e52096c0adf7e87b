"""The axes of a group's operators by the dimensions of their maps: images, channels, rows, columns."""

from __future__ import annotations

from collections.abc import Sequence
from math import prod

from onchip.check.as_nests.unsaid import no_nest
from onchip.network.axes import ALL, GroupAxes, Use
from onchip.network.maps import Maps

__all__ = ["Letters"]


class Letters:
    """A group's axes, with the dimension (n, c, h or w) that every side of a tensor belongs to."""

    def __init__(self, maps: Maps, axes: GroupAxes) -> None:
        self.maps, self.axes = maps, axes
        self.known: dict[int, tuple[str, ...]] = {}

    def of_buffer(self, buffer: int) -> tuple[str, ...]:
        """Return the dimension of every side of a tensor's buffer; of one of one element, none.

        A side over several dimensions has all of them: `chw`. Raises `NoNest` if a side crosses the end of a
        dimension and does not begin and end with one.
        """
        if buffer not in self.known:
            self.known[buffer] = self.letters(buffer)
        return self.known[buffer]

    def letters(self, buffer: int) -> tuple[str, ...]:
        b = self.axes.buffers[buffer]
        assert b.tensor is not None
        left = [(letter, size) for letter, size in self.maps.dimensions(b.tensor) if size > 1]
        found: list[str] = []
        for side in b.whole if b.whole != (1,) else ():
            letters, size = "", 1
            while size < side and left:
                one, more = left.pop(0)
                letters, size = letters + one, size * more
            if size % side or (size > side and len(letters) > 1):
                no_nest("across-axes", f"a side of {b.name} crosses the end of a dimension of its map")
            found.append(letters)
            if size > side:
                left.insert(0, (letters, size // side))
        return tuple(found)

    def along(self, use: Use, letter: str) -> list[int]:
        """Return the axes of an operator along a dimension of a tensor that it uses, outermost first.

        Sides that it does not go along index by index are left out.
        """
        letters = self.of_buffer(use.buffer)
        return [a for a, one in zip(use.axes, letters, strict=False) if one == letter and a != ALL]

    def made(self, at: int, letter: str) -> list[int]:
        """Return the axes of an operator along a dimension of its output, outermost first."""
        return self.along(self.axes.operators[at].writes, letter)

    def channels(self, at: int, use: Use) -> tuple[list[int], int]:
        """Return the axes of an operator along the channels of a tensor that it uses, and how many indices of
        them a channel has: more than one where it goes along pixels of a map from outside, too."""
        letters = self.of_buffer(use.buffer)
        axes = [a for a, one in zip(use.axes, letters, strict=False) if "c" in one and a != ALL]
        b = self.axes.buffers[use.buffer]
        assert b.tensor is not None
        channels = dict(self.maps.dimensions(b.tensor)).get("c", 1)
        return axes, max(1, prod(self.sizes(at, axes)) // channels)

    def sizes(self, at: int, axes: Sequence[int]) -> list[int]:
        """Return the sizes of some axes of an operator."""
        return [self.axes.operators[at].axes[axis] for axis in axes]
