"""Maps made anew: a reader gets a map from makers of its own, so that nobody keeps its rows for it.

An operator stands in the graph twice then, and so do those that it reads, back to the input; a held input is
there and stands once. The law of bytes stays as it is, the work grows.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from onchip.microcontroller.rows.graph import Operand, RowGraph, RowOperator
from onchip.microcontroller.rows.makers import Maker, RowModel

__all__ = ["Copied", "copied", "model_of_copies"]


@dataclass(frozen=True, slots=True)
class Copied:
    """A graph with maps made anew; `origin` is each operator's number in the graph that it began with."""

    graph: RowGraph
    origin: tuple[int, ...]

    @classmethod
    def nothing(cls, graph: RowGraph) -> Copied:
        """Return the graph itself: nothing is made anew."""
        return cls(graph, tuple(range(len(graph.operators))))


def copied(before: Copied, reader: int, maker: int) -> Copied:
    """Return the graph in which `reader` reads the map of `maker` from makers of its own.

    Operators that nobody reads any more are left out.
    """
    graph = before.graph
    again = _needed(graph, maker)
    operators: list[RowOperator] = []
    origin: list[int] = []
    new: dict[int, int] = {}
    copies: dict[int, int] = {}
    for i, op in enumerate(graph.operators):
        if i == reader:
            for old in again:
                copies[old] = len(operators)
                known = graph.operators[old]
                origin.append(before.origin[old])
                operands = _renamed(known.operands, {**new, **copies})
                operators.append(replace(known, operands=operands, anew=True, kept=False))
        new[i] = len(operators)
        names = {**new, maker: copies[maker]} if i == reader else new
        origin.append(before.origin[i])
        operators.append(replace(op, operands=_renamed(op.operands, names)))
    return _read_alone(Copied(RowGraph(tuple(operators)), tuple(origin)))


def _needed(graph: RowGraph, maker: int) -> list[int]:
    """Return a map's operator and those before it, but for held inputs, in their order."""
    found: set[int] = set()
    open_ = [maker]
    while open_:
        i = open_.pop()
        if i in found or graph.operators[i].held:
            continue
        found.add(i)
        open_ += [operand.maker for operand in graph.operators[i].operands]
    return sorted(found)


def _renamed(operands: tuple[Operand, ...], names: dict[int, int]) -> tuple[Operand, ...]:
    return tuple(replace(operand, maker=names[operand.maker]) for operand in operands)


def _read_alone(given: Copied) -> Copied:
    """Return the graph without operators that neither an output nor another operator needs."""
    ops = given.graph.operators
    wanted = {i for i, op in enumerate(ops) if op.kept or op.held}
    for i in range(len(ops) - 1, -1, -1):
        if i in wanted:
            wanted |= {operand.maker for operand in ops[i].operands}
    names = {old: n for n, old in enumerate(sorted(wanted))}
    kept = tuple(replace(ops[i], operands=_renamed(ops[i].operands, names)) for i in sorted(wanted))
    return Copied(RowGraph(kept), tuple(given.origin[i] for i in sorted(wanted)))


def model_of_copies(rows: RowModel, found: Copied) -> RowModel:
    """Return the network with what every operator of its new graph computes, for running it."""
    makers: list[Maker] = []
    ends: dict[int, int] = {}
    for i, (op, old) in enumerate(zip(found.graph.operators, found.origin, strict=True)):
        maker = rows.makers[old]
        reads = iter([operand.maker for operand in op.operands])
        sources = []
        for source in maker.sources:
            parts = tuple(next(reads) for _ in source.map.parts)
            sources.append(replace(source, map=replace(source.map, parts=parts)))
        makers.append(replace(maker, sources=tuple(sources)))
        if op.kept:
            ends[old] = i
    outputs = tuple(tuple(ends[op] for op in parts) for parts in rows.outputs)
    return RowModel(rows.model, found.graph, tuple(makers), outputs)
