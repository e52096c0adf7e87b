"""The computation of each operator of a graph of rows: layers of the network, and the maps that it reads."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from math import prod
from typing import Literal

from onchip.microcontroller.int8.model import Int8Model, Layer, Shape
from onchip.microcontroller.rows.graph import RowGraph, Rows

__all__ = ["Cut", "Made", "Maker", "Phase", "RowModel", "Source"]

Phase = Literal["input", "row", "sum", "end", "whole", "gather"]
"""An input; one row of a layer; a row of a mean added to its sums; the mean's end; a layer as one step; all
rows of a map put behind one another."""


@dataclass(frozen=True, slots=True)
class Made:
    """A map as its operators make it: `parts` are operators that make its channels, the first ones first.

    A map that is `whole` comes in one step. `shape` is that of the map, its parts' channels together.
    """

    parts: tuple[int, ...]
    shape: Shape
    whole: bool = False

    @property
    def bytes(self) -> int:
        return prod(self.shape)


@dataclass(frozen=True, slots=True)
class Cut:
    """An operator that makes columns [first, end) of a map."""

    operator: int
    first: int
    end: int


@dataclass(frozen=True, slots=True)
class Source:
    """A map that a layer reads: the shape in which it sees it, and the rows of that shape for each step.

    `cuts` are the operators that make columns of each of the map's parts, where they are not its `parts`.
    """

    map: Made
    shape: Shape
    windows: tuple[Rows, ...]
    cuts: tuple[tuple[Cut, ...], ...] = ()


@dataclass(frozen=True, slots=True)
class Maker:
    """The first layer of an operator, and those that change its row element by element.

    `pad` is the layer in front whose padding the first layer has as its own. `columns` are those that the
    operator makes, None for all.
    """

    phase: Phase
    tensor: int
    layers: tuple[Layer, ...] = ()
    sources: tuple[Source, ...] = ()
    pad: Layer | None = None
    columns: Rows | None = None


@dataclass(frozen=True)
class RowModel:
    """An int8 network as a graph of rows, with what every operator computes.

    `outputs` are the network's, each as the operators whose rows, one after the other, are its bytes.
    """

    model: Int8Model
    graph: RowGraph
    makers: tuple[Maker, ...]
    outputs: tuple[tuple[int, ...], ...]
    maps: Mapping[int, Made] = field(default_factory=dict)
