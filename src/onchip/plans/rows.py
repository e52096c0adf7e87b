"""A group that runs row by row: every row of every map has an address of its own in the group's scratch.

docs/plan-program.md is the formal page. JSON states these records by their fields; `text_rows` writes them
as lines.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, get_args

__all__ = ["DOES", "RowMap", "Rows", "RowsDoes"]

RowsDoes = Literal["rows", "whole", "fetch", "gather", "sums", "end", "joined"]

DOES: tuple[str, ...] = get_args(RowsDoes)


@dataclass(frozen=True, slots=True)
class RowMap:
    """The rows of one map and the steps that make them, the first row first.

    `tensor` is the map, `operators` those that a step runs: pads, the operator that reads, and element-wise
    ones that change its row. `reads` are the numbers of the maps that they read, in the order of their
    operands. `addresses` are bytes of the scratch, one for each step; `workspace` are those of the kernel's
    workspace: one for all steps, or one for each.

    A map that has only some `columns`, [first, end), stands for these columns of the tensor's rows. Its
    reader names all maps that it reads of an operand, one after the other; each column of a row is made of
    the first of them that has every column of its window.

    `does` says what a step makes: one of the `rows`; the `whole` map from all rows of what it reads; a row to
    `fetch` from outside; all rows of a map put behind one another (`gather`); a pool's 32-bit `sums` with one
    more row of its input, and their `end`. A map that is `joined` has no steps: it is the maps that it reads,
    one behind the other.
    """

    tensor: str
    addresses: tuple[int, ...] = ()
    operators: tuple[str, ...] = ()
    reads: tuple[int, ...] = ()
    does: RowsDoes = "rows"
    workspace: tuple[int, ...] = ()
    columns: tuple[int, ...] = ()


@dataclass(frozen=True, slots=True)
class Rows:
    """A group runs in `steps`: each is the number of the map of which it makes the next row.

    A map that stands twice is made anew for one of its readers. All operands of the group are streamed.
    """

    maps: tuple[RowMap, ...]
    steps: tuple[int, ...]
