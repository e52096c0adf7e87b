"""The sizes of a program, linked or not yet, and what a board lacks for it."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import TYPE_CHECKING

from onchip.base.errors import DoesNotFitBoard, Mismatch

if TYPE_CHECKING:
    from onchip.machines.board import Board
    from onchip.microcontroller.emulator import Image
    from onchip.microcontroller.emulator.verify import Verified
    from onchip.microcontroller.emulator.verify_several import VerifiedSeveral

__all__ = ["ProgramSizes"]


class ProgramSizes(ABC):
    """A program for a board: `image` once it is linked, `short` the memories that the board lacks for it."""

    board: Board
    image: Image | None
    short: tuple[tuple[str, int, int], ...]
    run: Verified | VerifiedSeveral | None

    @property
    @abstractmethod
    def arena_bytes(self) -> int:
        """RAM for activations, workspaces and states."""

    @property
    @abstractmethod
    def constant_bytes(self) -> int:
        """Flash for weights, factors and tables."""

    @property
    def ram_bytes(self) -> int:
        """RAM as linked, stack included, or the known part without a compiler."""
        if self.image is not None:
            return self.image.ram_bytes
        return next((needs for memory, needs, _ in self.short if memory == "RAM"), self.arena_bytes)

    @property
    def flash_bytes(self) -> int:
        """Flash as linked, or the known part without a compiler."""
        if self.image is not None:
            return self.image.flash_bytes
        return next((needs for memory, needs, _ in self.short if memory == "flash"), self.constant_bytes)

    @property
    def fits(self) -> bool:
        return not self.short

    def lacks(self, memory: str) -> bool:
        """Return whether the board has too little of a memory, `RAM` or `flash`."""
        return any(name == memory for name, *_ in self.short)

    def raise_what_is_wrong(self) -> None:
        """Raise `DoesNotFitBoard` if a memory is too small, `Mismatch` if a run made other bytes."""
        if self.short:
            raise DoesNotFitBoard(self.board.name, self.short)
        if self.run is not None and not self.run.match:
            raise Mismatch(f"{self.run.different:,} of {self.run.output_bytes:,} output bytes differ")
