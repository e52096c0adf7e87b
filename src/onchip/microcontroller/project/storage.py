"""Where the C of a network keeps what it writes: its own array, one shared with others, or an instance's."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

from onchip.microcontroller.project.text import Text, plus

__all__ = ["ALIGNMENT", "Storage", "StorageKind"]

StorageKind = Literal["own", "shared", "instance"]
"""The file's own array; a part of an array of several networks; memory that the caller gives an instance."""

ALIGNMENT = 4
"""The alignment of arenas: workspaces in them are read by words."""


@dataclass(frozen=True, slots=True)
class Storage:
    """The pointers through which the functions of a network reach memory, and what they pass on.

    `arena` is the plan's array of `extent` bytes. Unless it is the file's own, its first `state_bytes`, which
    are kept between inferences, lie apart behind a pointer `state`. Where it is `shared`, the two begin at
    `arena_at` and `state_at` of the array of the `project`. An instance's lie where its `context` says, which
    every function takes; no function writes a variable of the file then.
    """

    kind: StorageKind
    name: str
    extent: int
    state_bytes: int
    project: str = ""
    arena_at: int = 0
    state_at: int = 0

    @property
    def apart(self) -> int:
        """The bytes at the bottom of the plan's array that lie behind a pointer of their own."""
        return 0 if self.kind == "own" else self.state_bytes

    @property
    def skipped(self) -> int:
        """The bytes of the plan's array in front of `arena`: as many as keep its alignment."""
        return self.apart // ALIGNMENT * ALIGNMENT

    @property
    def arena_bytes(self) -> int:
        """The bytes behind `arena`."""
        return self.extent - self.skipped

    def at(self, address: int) -> str:
        """Return a place of the plan's array in C."""
        if address < self.apart:
            return plus("state", str(address))
        return plus("arena", str(address - self.skipped))

    def takes(self, parameters: str = "") -> str:
        """Return a function's parameters."""
        context = f"{self.name}_context *context" if self.kind == "instance" else ""
        return ", ".join(part for part in (context, parameters) if part) or "void"

    def passes(self, arguments: str = "") -> str:
        """Return the arguments of a call of such a function."""
        context = "context" if self.kind == "instance" else ""
        return ", ".join(part for part in (context, arguments) if part)

    def function(self, out: Text, head: str, parameters: str = "") -> Text.Block:
        """Return the block of a function that may use `arena`, `state` and `lines`."""
        return out.block(f"{head}({self.takes(parameters)})", locals=self.locals)

    @property
    def locals(self) -> Mapping[str, str]:
        """The declarations of the pointers that are no variables of the file."""
        if self.kind == "instance":
            return {
                "lines": "const int8_t **const lines = context->lines;",
                "state": "int8_t *const state = context->state;",
                "arena": "int8_t *const arena = context->arena;",
            }
        if self.kind == "shared":
            array = f"{self.project}_arena"
            return {
                "state": f"int8_t *const state = {plus(array, str(self.state_at))};",
                "arena": f"int8_t *const arena = {plus(array, str(self.arena_at))};",
            }
        return {}
