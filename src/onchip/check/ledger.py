"""Bytes between scratchpad and DRAM, sorted into compulsory, reload, spill and weights."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass, field

__all__ = ["Ledger"]


@dataclass
class Ledger:
    """Counts bytes as they cross. Tensors are ids of roots; sizes are exact, not rounded up.

    `copies` are the tensors that DRAM holds: the graph inputs at first.
    """

    inputs: Collection[int]
    outputs: Collection[int]
    copies: set[int]
    compulsory: int = 0
    reload: int = 0
    spill: int = 0
    weights: int = 0
    _fetched: set[int] = field(default_factory=set)

    def bring_in(self, tensor: int, size: int, crossing: int, *, parts: bool = False) -> bool:
        """Count `crossing` bytes that come from DRAM; a graph input's first whole passage is compulsory.

        With `parts` it is that, too, if it brings only what is needed of the tensor. Returns whether this is
        that passage.
        """
        enough = min(size, crossing) if parts else size
        first = tensor in self.inputs and tensor not in self._fetched and crossing >= enough
        if first:
            self._fetched.add(tensor)
            self.compulsory += enough
        self.reload += crossing - enough if first else crossing
        return first

    def send_out(self, tensor: int, size: int, crossing: int) -> bool:
        """Count `crossing` bytes that go to DRAM; an output's first whole passage is compulsory.

        Returns whether this is that passage.
        """
        first = tensor in self.outputs and tensor not in self.copies and crossing >= size
        if first:
            self.compulsory += size
        self.spill += crossing - size if first else crossing
        self.copies.add(tensor)
        return first
