"""Maps in pieces: an operator stands in the graph for several spans of columns, or twice for two readers.

- *Strips*: the operators of a region once for each span of columns; what two spans need is made twice.
- *Copies*: a reader gets a map from makers of its own, back to the input or to maps that stay; these make no
  more columns than it reads.
- *Partial copies*: the copy of one strip.

The law of bytes stays as it is, with the rows of every piece as buffers; the work grows. A column of a piece
is made of one piece of each operand, which has all columns of its window.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property

from onchip.microcontroller.rows.graph import Operand, RowGraph, RowOperator, Rows

__all__ = ["Piece", "Pieces", "copied", "runs", "stripped", "whole"]


@dataclass(frozen=True, slots=True)
class Piece:
    """Columns [first, end) of the rows of operator `op`; `reads` are the pieces of each of its operands.

    An operator whose rows are not cut has one column.
    """

    op: int
    first: int
    end: int
    reads: tuple[tuple[int, ...], ...]
    anew: bool = False

    @property
    def columns(self) -> Rows:
        return self.first, self.end


@dataclass(frozen=True)
class Pieces:
    """The operators of a graph in pieces, in an order in which they can run."""

    base: RowGraph
    pieces: tuple[Piece, ...]

    @cached_property
    def graph(self) -> RowGraph:
        """The graph whose operators are the pieces."""
        return RowGraph(tuple(self._operator(n, piece) for n, piece in enumerate(self.pieces)))

    def _operator(self, number: int, piece: Piece) -> RowOperator:
        op = self.base.operators[piece.op]
        every = piece.columns == (0, max(op.columns, 1))
        if every and all(len(reads) == 1 for reads in piece.reads):
            operands = tuple(
                replace(o, maker=number if reads[0] < 0 else reads[0])
                if reads[0] < 0 or self.is_full(reads[0])
                else replace(o, maker=reads[0], distance=op.bytes)
                for o, reads in zip(op.operands, piece.reads, strict=True)
            )
            return replace(op, operands=operands, anew=piece.anew, kept=op.kept and not piece.anew)
        share = piece.end - piece.first
        size = op.bytes // max(op.columns, 1) * share
        operands = tuple(
            Operand(maker, o.windows, size)
            for o, reads in zip(op.operands, piece.reads, strict=True)
            for maker in reads
        )
        work = -(-op.work * share // max(op.columns, 1))
        return replace(
            op,
            bytes=size,
            operands=operands,
            anew=piece.anew,
            kept=op.kept and not piece.anew,
            work=work,
            columns=0,
        )

    def is_full(self, number: int) -> bool:
        """Return whether a piece has all columns of its map."""
        piece = self.pieces[number]
        return piece.columns == (0, max(self.base.operators[piece.op].columns, 1))

    @cached_property
    def readers(self) -> tuple[tuple[int, ...], ...]:
        """The pieces that read each piece, itself left out."""
        found: list[list[int]] = [[] for _ in self.pieces]
        for n, piece in enumerate(self.pieces):
            for maker in {m for reads in piece.reads for m in reads if m >= 0}:
                found[maker].append(n)
        return tuple(map(tuple, found))

    def marked(self, number: int) -> Pieces:
        """Return the graph with a piece marked as made anew."""
        changed = replace(self.pieces[number], anew=True)
        return Pieces(self.base, (*self.pieces[:number], changed, *self.pieces[number + 1 :]))

    @property
    def work(self) -> int:
        """Multiply-accumulates of all pieces."""
        return self.graph.work

    @property
    def again(self) -> bool:
        """True if rows of an input that comes by rows, or columns of them, come in several pieces."""
        count: dict[int, int] = {}
        for piece in self.pieces:
            if not self.base.operators[piece.op].operands and not self.base.operators[piece.op].held:
                count[piece.op] = count.get(piece.op, 0) + 1
        return any(n > 1 for n in count.values())


def whole(graph: RowGraph) -> Pieces:
    """Return the graph in one piece an operator."""
    return Pieces(
        graph,
        tuple(
            Piece(i, 0, max(op.columns, 1), tuple((-1 if o.maker == i else o.maker,) for o in op.operands))
            for i, op in enumerate(graph.operators)
        ),
    )


def needed(graph: RowGraph, op: int, operand: int, columns: Rows) -> Rows | None:
    """Return the columns of an operand that these columns of an operator are made of; None for none."""
    reads = graph.operators[op].operands[operand]
    every = 0, max(graph.operators[reads.maker].columns, 1)
    if not reads.columns or not graph.operators[op].columns or every == (0, 1):
        return every
    windows = [w for w in reads.columns[columns[0] : columns[1]] if w[0] < w[1]]
    if not windows:
        return None
    return min(w[0] for w in windows), max(w[1] for w in windows)


def runs(pieces: Pieces, number: int) -> tuple[tuple[Rows, tuple[int, ...]], ...] | None:
    """Return the columns that a piece makes at a time, each with the piece of each operand that they read.

    It is the first of those that have all columns of the windows. None where no piece has them.
    """
    piece = pieces.pieces[number]
    op = pieces.base.operators[piece.op]
    if all(len(reads) == 1 for reads in piece.reads):
        return _one_run(pieces, piece)
    found: list[tuple[Rows, tuple[int, ...]]] = []
    for x in range(piece.first, piece.end):
        taken = []
        for k, reads in enumerate(piece.reads):
            window = needed(pieces.base, piece.op, k, (x, x + 1) if op.columns else piece.columns)
            there = [
                n
                for n in reads
                if n < 0
                or window is None
                or (pieces.pieces[n].first <= window[0] and window[1] <= pieces.pieces[n].end)
            ]
            if not there:
                return None
            taken.append(there[0])
        if found and found[-1][1] == tuple(taken):
            found[-1] = ((found[-1][0][0], x + 1), found[-1][1])
        else:
            found.append(((x, x + 1), tuple(taken)))
    return tuple(found)


def _one_run(pieces: Pieces, piece: Piece) -> tuple[tuple[Rows, tuple[int, ...]], ...] | None:
    for k, (n,) in enumerate(piece.reads):
        window = needed(pieces.base, piece.op, k, piece.columns) if n >= 0 else None
        if window and not (pieces.pieces[n].first <= window[0] and window[1] <= pieces.pieces[n].end):
            return None
    return ((piece.columns, tuple(n for (n,) in piece.reads)),)


def copied(before: Pieces, reader: int, made: int, stop: Collection[int] = ()) -> Pieces | None:
    """Return the graph in which piece `reader` reads piece `made` from makers of its own.

    These read held inputs and the pieces in `stop` as they are. Pieces that nobody reads any more are left
    out. None where there is nothing to make anew.
    """
    pieces = before.pieces
    span = _span_read(before, reader, made)
    if span is None or before.base.operators[pieces[made].op].held:
        return None
    spans: dict[int, Rows] = {made: span}
    order = [made]
    for n in range(made, -1, -1):
        if n not in spans:
            continue
        if n != made:
            order.append(n)
        for k, reads in enumerate(pieces[n].reads):
            window = needed(before.base, pieces[n].op, k, spans[n])
            for m in reads:
                if m < 0 or m in stop or before.base.operators[pieces[m].op].held or window is None:
                    continue
                low, high = max(window[0], pieces[m].first), min(window[1], pieces[m].end)
                if low < high:
                    spans[m] = _hull(spans.get(m), (low, high))
    copies = {n: len(pieces) + i for i, n in enumerate(reversed(order))}
    found = list(pieces)
    for n in reversed(order):
        found.append(replace(pieces[n], first=spans[n][0], end=spans[n][1], anew=True))
    for n in order:
        found[copies[n]] = replace(
            found[copies[n]], reads=_narrowed(before, found, copies[n], pieces[n].reads, copies)
        )
    mine = tuple(tuple(copies[made] if m == made else m for m in each) for each in pieces[reader].reads)
    found[reader] = replace(pieces[reader], reads=mine)
    return _ordered(before.base, found)


def stripped(before: Pieces, region: Collection[int], count: int) -> Pieces | None:
    """Return the graph in which the pieces of a region stand once for each of `count` spans of columns.

    None where a piece of it cannot be cut, or a reader behind it reads over an edge.
    """
    pieces, base = before.pieces, before.base
    inside = sorted(region)
    for n in inside:
        op = base.operators[pieces[n].op]
        if op.columns < count or op.kept or op.held or not before.is_full(n):
            return None
    ends = {n for n in inside if any(r not in region for r in before.readers[n])}
    if not ends:
        return None
    found = list(pieces)
    strips: dict[int, list[int]] = {n: [] for n in inside}
    for j in range(count):
        spans: dict[int, Rows] = {}
        for n in reversed(inside):
            columns = base.operators[pieces[n].op].columns
            if n in ends:
                spans[n] = _hull(spans.get(n), (j * columns // count, (j + 1) * columns // count))
            if n not in spans:
                return None
            for k, reads in enumerate(pieces[n].reads):
                window = needed(base, pieces[n].op, k, spans[n])
                for m in reads:
                    if m in strips:
                        if window is None:
                            return None
                        spans[m] = _hull(spans.get(m), window)
        mine: dict[int, int] = {}
        for n in inside:
            mine[n] = len(found)
            strips[n].append(mine[n])
            found.append(replace(pieces[n], first=spans[n][0], end=spans[n][1]))
            strip = tuple(tuple(mine.get(m, m) for m in each) for each in pieces[n].reads)
            found[mine[n]] = replace(found[mine[n]], reads=_narrowed(before, found, mine[n], strip, {}))
    behind_it = {r for n in ends for r in before.readers[n] if r not in region}
    for r in behind_it:
        behind = tuple(tuple(new for m in each for new in strips.get(m, [m])) for each in pieces[r].reads)
        found[r] = replace(pieces[r], reads=_narrowed(before, found, r, behind, {}))
    changed = Pieces(base, tuple(found))
    if any(runs(changed, n) is None for n in (*range(len(pieces), len(found)), *behind_it)):
        return None
    return _ordered(base, found)


def _span_read(given: Pieces, reader: int, made: int) -> Rows | None:
    """Return the columns of a piece that a reader reads."""
    span: Rows | None = None
    for columns, taken in runs(given, reader) or ():
        for k, n in enumerate(taken):
            if n == made and (window := needed(given.base, given.pieces[reader].op, k, columns)):
                span = _hull(span, window)
    return span


def _hull(one: Rows | None, other: Rows) -> Rows:
    return other if one is None else (min(one[0], other[0]), max(one[1], other[1]))


def _narrowed(
    before: Pieces,
    found: Sequence[Piece],
    number: int,
    reads: Iterable[Iterable[int]],
    names: dict[int, int],
) -> tuple[tuple[int, ...], ...]:
    """Return the pieces of each operand that a piece's columns read, under their new numbers."""
    renamed = tuple(tuple(names.get(m, m) for m in each) for each in reads)
    piece = replace(found[number], reads=renamed)
    trial = Pieces(before.base, (*found[:number], piece, *found[number + 1 :]))
    taken = runs(trial, number)
    if taken is None:
        return renamed
    return tuple(tuple(dict.fromkeys(t[k] for _, t in taken)) for k in range(len(renamed)))


def _ordered(base: RowGraph, pieces: Sequence[Piece]) -> Pieces:
    """Return the pieces that an output needs, each behind those that it reads."""
    order: list[int] = []
    seen: set[int] = set()

    def visit(n: int) -> None:
        stack = [(n, False)]
        while stack:
            m, done = stack.pop()
            if done:
                order.append(m)
            elif m not in seen:
                seen.add(m)
                stack.append((m, True))
                stack += [(r, False) for each in reversed(pieces[m].reads) for r in reversed(each) if r >= 0]

    wanted = [
        n
        for n, piece in enumerate(pieces)
        if base.operators[piece.op].held or (base.operators[piece.op].kept and not piece.anew)
    ]
    for n in wanted:
        visit(n)
    rank = {old: new for new, old in enumerate(_as_before(base, pieces, order))}
    return Pieces(
        base,
        tuple(
            replace(
                pieces[old],
                reads=tuple(tuple(m if m < 0 else rank[m] for m in each) for each in pieces[old].reads),
            )
            for old in rank
        ),
    )


def _as_before(base: RowGraph, pieces: Sequence[Piece], some: Sequence[int]) -> list[int]:
    """Return pieces in the order of the file, as far as copies allow: those read first stand first."""
    done: set[int] = set()
    found: list[int] = []
    for n in sorted(some, key=lambda n: (pieces[n].op, not pieces[n].anew, pieces[n].first)):
        stack = [n]
        while stack:
            m = stack[-1]
            missing = [r for each in pieces[m].reads for r in each if r >= 0 and r not in done]
            if m in done or not missing:
                stack.pop()
                if m not in done:
                    done.add(m)
                    found.append(m)
            else:
                stack.append(missing[0])
    return found
