"""The parts of the comparison of the simple method and exact placement: module runs, smallest buffers."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

__all__ = ["BesideRow", "Zero"]


@dataclass(frozen=True, slots=True)
class BesideRow:
    """A run of modules. Bytes are beyond what every plan moves: inputs once, outputs once.

    `exact_bytes` is exact placement's, `bound_bytes` proved for any plan that runs the operators whole, and
    both None where an operator alone needs more than the budget: `needs_bytes` is then its need.
    `copied_bytes` is exact placement's if concats copy their operands on chip, which is a valid plan as it
    stands; without copies, the operands of a concat lie anywhere. `space` names the plans that `status` and
    the bound range over.
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

    The only transfer is of the inputs, once; the output of the last of consecutive modules stays on chip,
    ready for the next. Buffers below `at_least` are proved too small: for exact placement only, 0 for the
    simple method, for which `tried` smaller buffers were tried and had traffic.
    """

    bytes: int | None
    at_least: int = 0
    tried: int = 0
