"""The result of module detection: modules, the stretches between them, long skips, and rejected merges.

Operators and tensors are ids of the network; tensors are roots, never views.
"""

from __future__ import annotations

from dataclasses import dataclass

__all__ = ["Branch", "Detection", "LongSkip", "Module", "Rejected", "Step", "Stretch"]


@dataclass(frozen=True, slots=True)
class Branch:
    """One way from a module's start to its merge: operators and nested modules, in a legal order.

    `outputs` are its tensors that the merge reads. Without steps the merge reads the start itself.
    """

    steps: tuple[int | Module, ...]
    outputs: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Module:
    """Everything between the tensor `start` and the operator `merge`, in branches that share nothing else.

    Branches come in the order of the merge's operands. `operators` is the bitset of all operators inside,
    nested ones and the merge included; `depth` is 1 for a module in no other. Operands of inner operators and
    of the merge that come over a long skip belong to no branch.
    """

    name: str
    start: int
    merge: int
    output: int
    branches: tuple[Branch, ...]
    operators: int
    depth: int


Step = int | Module
"""An operator, or a nested module."""


@dataclass(frozen=True, slots=True)
class LongSkip:
    """`reader` reads `tensor` beside a way of `span` layers: it crosses DRAM instead of waiting on chip."""

    tensor: int
    reader: int
    span: int


@dataclass(frozen=True, slots=True)
class Stretch:
    """Operators outside of all modules that run one after the other."""

    operators: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Rejected:
    """A concat or a sum that closes no module, and the reason."""

    merge: int
    reason: str


@dataclass(frozen=True, slots=True)
class Detection:
    """A network divided into modules and stretches. `items` are in running order, every operator once."""

    items: tuple[Module | Stretch, ...]
    long_skips: tuple[LongSkip, ...]
    rejected: tuple[Rejected, ...]

    @property
    def modules(self) -> tuple[Module, ...]:
        """The outermost modules, in the order in which they run."""
        return tuple(item for item in self.items if isinstance(item, Module))
