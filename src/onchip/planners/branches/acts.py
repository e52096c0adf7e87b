"""The planner's decisions about one layer, before addresses: tensors loaded, kept and stored."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

__all__ = ["Act", "DoesNotFit", "Item"]


@dataclass(frozen=True, slots=True)
class Act:
    """The decisions about one layer. Tensors are ids of roots.

    `branch` are the places of its branches in the processing order, outermost first and from 1; empty for a
    module's own merge and outside modules. `required` and `available` are size_req(b, k) and size_avail(b, k)
    of Algorithm 6, in bytes; `forwarded` is fwd(k). The `load`s and the stores `store_first` come first, then
    the run (or join), which streams `read` in and `written` out and leaves `made` on chip, over `over` or of
    `parts`; then the stores and frees.
    """

    operator: int
    branch: tuple[int, ...]
    how: Literal["run", "join"]
    required: int
    available: int
    forwarded: bool
    workspace: int = 0
    load: tuple[int, ...] = ()
    store_first: tuple[int, ...] = ()
    read: tuple[int, ...] = ()
    written: tuple[int, ...] = ()
    made: tuple[int, ...] = ()
    over: int | None = None
    parts: tuple[int, ...] = ()
    store: tuple[int, ...] = ()
    free: tuple[int, ...] = ()

    @property
    def moved(self) -> tuple[int, ...]:
        """The tensors that cross to or from DRAM, one for every access; a join moves nothing of its own."""
        written = self.written if self.how == "run" else ()
        return (*self.load, *self.read, *self.store_first, *self.store, *written)


@dataclass(frozen=True, slots=True)
class Item:
    """The decisions about a module, or one layer outside any.

    `handed` is the tensor that lies on chip at its beginning, `output` the one that stays at its end. For a
    module, `order` lists the branches (numbers from 0) of it and of every nested one, by merge operator.
    """

    acts: tuple[Act, ...]
    handed: int | None
    output: int | None
    module: int | None = None
    processing: Literal["I", "II"] | None = None
    order: tuple[tuple[int, tuple[int, ...]], ...] = ()


class DoesNotFit(Exception):
    """A layer needs more than there is: bytes required and available, and their use `for_`."""

    def __init__(
        self, operator: int, required: int, available: int, for_: tuple[tuple[str, int], ...] = ()
    ) -> None:
        super().__init__(operator, required, available)
        self.operator, self.required, self.available = operator, required, available
        self.for_ = for_
