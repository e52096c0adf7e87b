"""The records of RAM while a step of a plan runs: parts of the array, and what they hold."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

__all__ = ["Part", "RamStep", "Role", "covered"]

Role = Literal["read", "made", "kept", "ring", "sums", "workspace"]


@dataclass(frozen=True, slots=True)
class Part:
    """Bytes [`first`, `end`) of the array and what they hold while a step runs.

    A tensor is `read`, `made` or `kept` for later steps. A ring holds the rows or columns of a tensor that
    are alive at a time; `says` how many.
    """

    name: str
    role: Role
    first: int
    end: int
    says: str = ""

    @property
    def bytes(self) -> int:
        return self.end - self.first


@dataclass(frozen=True, slots=True)
class RamStep:
    """A step of the plan, a layer or a fused group of layers, with all that lies in RAM meanwhile."""

    name: str
    layers: tuple[str, ...]
    parts: tuple[Part, ...]

    @property
    def bytes(self) -> int:
        """The bytes that hold anything: where an output lies over its input they count once."""
        return covered([(part.first, part.end) for part in self.parts])

    @property
    def shared(self) -> int:
        """The bytes that overlapping saves: the sum of the parts, less what they cover together."""
        return sum(part.bytes for part in self.parts) - self.bytes


def covered(ranges: list[tuple[int, int]]) -> int:
    """Return the bytes that lie in any of the ranges."""
    total, reach = 0, 0
    for first, end in sorted(ranges):
        total += max(0, end - max(first, reach))
        reach = max(reach, end)
    return total
