"""What the simple method beside exact placement consists of: runs of modules, and smallest buffers."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

__all__ = ["BesideRow", "Zero"]


@dataclass(frozen=True, slots=True)
class BesideRow:
    """A run of modules. Bytes are beyond what every plan moves: inputs once, outputs once.

    `exact_bytes` is exact placement's, `bound_bytes` proved for any plan that runs the operators whole, and
    both None where an operator alone needs more than the budget: then `needs_bytes` is how much.
    `copied_bytes` is exact placement's if concats copy their operands on chip: a plan as it stands, while the
    operands of a concat lie anywhere in the other. `space` names the plans that `status` and the bound range
    over.
    """

    modules: tuple[str, ...]
    operators: int
    simple_bytes: int
    status: Literal["optimal", "feasible", "does not fit"]
    exact_bytes: int | None
    bound_bytes: int | None
    copied_bytes: int | None
    needs_bytes: int | None
    seconds: float
    space: str = ""


@dataclass(frozen=True, slots=True)
class Zero:
    """The smallest buffer with which the modules move nothing: `bytes`, None when none was found.

    Nothing but what enters, once; the output of the last of consecutive modules stays on chip, as it would
    to be handed on.

    No buffer below `at_least` can do: proved for exact placement, 0 for the simple method, for which `tried`
    smaller buffers were tried and had traffic.
    """

    bytes: int | None
    at_least: int = 0
    tried: int = 0
