"""The computation of every piece of a graph in pieces: the network to run, and to plan."""

from __future__ import annotations

from dataclasses import replace

from onchip.microcontroller.rows.makers import Cut, Maker, RowModel
from onchip.microcontroller.rows.pieces import Pieces

__all__ = ["model_of_pieces"]


def model_of_pieces(rows: RowModel, found: Pieces) -> RowModel:
    """Return the network with what every operator of its graph in pieces computes."""
    makers: list[Maker] = []
    ends: dict[int, int] = {}
    for n, piece in enumerate(found.pieces):
        maker = rows.makers[piece.op]
        operands = iter(piece.reads)
        sources = []
        for source in maker.sources:
            reads = [next(operands) for _ in source.map.parts]
            if all(len(each) == 1 and found.is_full(each[0]) for each in reads):
                parts = tuple(each[0] for each in reads)
                sources.append(replace(source, map=replace(source.map, parts=parts)))
            else:
                cuts = tuple(tuple(Cut(m, *found.pieces[m].columns) for m in each) for each in reads)
                sources.append(replace(source, cuts=cuts))
        columns = None if found.is_full(n) else piece.columns
        makers.append(replace(maker, sources=tuple(sources), columns=columns))
        if rows.graph.operators[piece.op].kept and not piece.anew:
            ends[piece.op] = n
    outputs = tuple(tuple(ends[op] for op in parts) for parts in rows.outputs)
    return RowModel(rows.model, found.graph, tuple(makers), outputs)
