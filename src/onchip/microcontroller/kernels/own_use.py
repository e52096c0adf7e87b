"""A kernel of a layer that holds its own arithmetic, as a file of such a layer gives it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from onchip.machines.cores import Forms
from onchip.microcontroller.kernel_language import Function

__all__ = ["OwnUse"]


@dataclass(frozen=True)
class OwnUse:
    """A kernel before it is traced: `make(name, shape)` returns the function that makes a row of the output.

    `lines[i]` is the first row of operand i, and y the row. `words` are the layer's constants, `workspace`
    the bytes of `patch`. Equal `kind` and `shape` mean equal code. `by_forms` returns the use for the forms
    of a core, where they matter.
    """

    kind: str
    make: Callable[[str, Any], Function]
    shape: Any
    words: list[int]
    workspace: int = 0
    by_forms: Callable[[Forms], OwnUse] | None = None
