"""The record of a group's execution, and the refusal of one that cannot be executed."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

__all__ = ["Executed", "IllegalTiling"]


@dataclass(frozen=True)
class Executed:
    """The bytes and elements of a group's execution: planned bytes by tensor, weights, elements (again)."""

    subgroups: int
    crossed: Mapping[int, int]
    weights: int
    made: int
    again: int
    written: Mapping[int, np.ndarray[Any, Any]]


class IllegalTiling(Exception):
    """A tiling that cannot be executed, by the rule it breaks; never leaves the package."""

    def __init__(self, rule: str, reason: str) -> None:
        self.rule, self.reason = rule, reason
        super().__init__(rule, reason)
