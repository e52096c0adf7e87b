"""Maps in strips, copied, or copied in part: the same bytes come out, and the checker finds what is wrong."""

from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import replace
from functools import cache
from itertools import pairwise
from pathlib import Path

import pytest

from microcontroller.native import needs_compiler
from microcontroller.rows.test_row_plans import compared, example, soon
from microcontroller.rows.test_rows import same_as_whole
from onchip.base.errors import IllegalPlan
from onchip.check import check
from onchip.microcontroller.int8.model import Int8Model
from onchip.microcontroller.row_plan import plan_of_rows, planned_rows
from onchip.microcontroller.row_points import points_of
from onchip.microcontroller.rows.addresses import fault, place
from onchip.microcontroller.rows.cut_model import model_of_pieces
from onchip.microcontroller.rows.front import QUICK, front, strips_around
from onchip.microcontroller.rows.makers import RowModel
from onchip.microcontroller.rows.of_model import row_model
from onchip.microcontroller.rows.pieces import Pieces, copied, runs, stripped, whole
from onchip.microcontroller.rows.search import search
from onchip.microcontroller.rows.text import graph_of_text
from onchip.plans import Plan, RowMap, Rows, read_plan, write_plan
from oracles.row_cases import random_model

CHAIN = """
in input 8x12x2
a conv 8x12x8 k=3x3 p=1,1 in=in
b dw 8x12x8 k=3x3 p=1,1 in=a
c conv 8x12x2 in=b
out conv 8x12x4 in=c keep
"""

SKIP = """
in input 16x16x2
a conv 16x16x16 k=3x3 p=1,1 in=in
b dw 8x8x16 k=3x3 s=2x2 in=a
c conv 8x8x8 in=b
d conv 8x8x8 in=c
e conv 4x4x16 k=3x3 s=2x2 in=c
f whole 1x1x256 in=e
g whole 4x4x16 in=f
u resize 8x8x16 in=g
out conv 8x8x2 in=u,d keep
"""


def test_strips_make_the_columns_between_them_twice_and_no_others() -> None:
    graph = graph_of_text(CHAIN).by_rows()
    before = whole(graph)
    assert before.graph == graph
    cut = stripped(before, {1, 2, 3}, 2)
    assert cut is not None
    spans = {(piece.op, *piece.columns) for piece in cut.pieces}
    assert spans == {
        (0, 0, 12), (1, 0, 7), (1, 5, 12), (2, 0, 6), (2, 6, 12), (3, 0, 6), (3, 6, 12), (4, 0, 12),
    }  # fmt: skip
    work = {op.name: op.work for op in graph.operators}
    assert cut.work == graph.work + work["a"] // 12 * 2
    assert stripped(before, {1}, 2) is None  # its reader reads over the edge
    assert stripped(before, {4}, 2) is None  # an output stays whole


def test_a_copy_makes_no_more_columns_than_are_read() -> None:
    graph = graph_of_text(CHAIN).held()
    cut = stripped(whole(graph), {3}, 3)
    assert cut is not None
    last = max(n for n, piece in enumerate(cut.pieces) if piece.op == 3)
    again = copied(cut, last, next(n for n, piece in enumerate(cut.pieces) if piece.op == 2))
    assert again is not None
    anew = {(piece.op, *piece.columns) for piece in again.pieces if piece.anew}
    assert anew == {(1, 7, 12), (2, 8, 12)}
    near = copied(cut, last, 2, stop={1})
    assert near is not None
    assert {piece.op for piece in near.pieces if piece.anew} == {2}


@cache
def some(seed: int, *, kernels: bool) -> tuple[RowModel, tuple[Pieces, ...]]:
    """A random network, and graphs in which something of it is cut or made anew."""
    model = random_model(seed)
    held = seed % 2 == 1
    rows = row_model(model, kernels=kernels, held=held)
    rows = replace(rows, graph=rows.graph.held() if held else rows.graph.by_rows())
    return rows, some_of(rows, seed)


def some_of(rows: RowModel, seed: int) -> tuple[Pieces, ...]:
    pick, first = random.Random(seed), whole(rows.graph)
    found = []
    for _ in range(60):
        n = pick.randrange(len(first.pieces))
        end = min(n + pick.randint(1, 3), len(first.pieces))
        made = stripped(first, range(n, end), pick.randint(2, 3))
        readers = first.readers[n]
        if pick.random() < 0.5 and readers:
            made = copied(first, pick.choice(readers), n)
        if made is not None and made not in found:
            found.append(made)
    return tuple(found[:3])


def test_pieces_change_no_byte_of_the_outputs() -> None:
    cut = anew = 0
    for seed in range(14):
        rows, graphs = some(seed, kernels=False)
        for pieces in graphs:
            assert all(runs(pieces, n) is not None for n in range(len(pieces.pieces)))
            again = model_of_pieces(rows, pieces)
            order = search(again.graph, share=False, rules=QUICK, most_states=0, most_moves=2)
            placed = place(again.graph, order.schedule, outputs=again.outputs, tighten=False)
            assert fault(again.graph, placed) is None
            assert same_as_whole(seed, again, placed)
            cut += any(maker.columns is not None for maker in again.makers)
            anew += any(op.anew for op in again.graph.operators)
    assert cut > 3
    assert anew > 3


def in_strips(*, held: bool) -> tuple[Int8Model, Plan]:
    """The example with its widest map in strips, for kernels."""
    model, _ = example()
    rows = row_model(model, kernels=True, held=held)
    rows = replace(rows, graph=rows.graph.held() if held else rows.graph.by_rows())
    found = [p for p in (stripped(whole(rows.graph), {n}, 2) for n in range(1, 12)) if p is not None]
    assert found
    again = model_of_pieces(rows, found[0])
    return model, plan_of_rows(again, *soon(again))


def changed(plan: Plan, number: int, change: Callable[[RowMap], RowMap]) -> Plan:
    rows = plan.groups[0].tiling
    assert isinstance(rows, Rows)
    maps = list(rows.maps)
    maps[number] = change(maps[number])
    return replace(plan, groups=[replace(plan.groups[0], tiling=replace(rows, maps=tuple(maps)))])


def test_a_plan_in_strips_comes_back_and_every_part_of_it_is_proved(tmp_path: Path) -> None:
    _, plan = in_strips(held=True)
    check(plan)
    for name in ("plan.json", "plan.txt"):
        write_plan(plan, tmp_path / name)
        back = read_plan(tmp_path / name)
        assert back.groups == plan.groups
    rows = plan.groups[0].tiling
    assert isinstance(rows, Rows)
    strip = next(n for n, one in enumerate(rows.maps) if one.columns)
    reader = next(n for n, one in enumerate(rows.maps) if strip in one.reads)
    first, end = rows.maps[strip].columns
    wrong: list[tuple[int, Callable[[RowMap], RowMap], str]] = [
        (strip, lambda one: replace(one, columns=(first, end - 1)), "has all columns"),
        (strip, lambda one: replace(one, columns=(first, 99)), "of columns of the"),
        (strip, lambda one: replace(one, columns=(end, first)), "of columns of the"),
        (strip, lambda one: replace(one, columns=(first,)), "of columns of the"),
        (reader, lambda one: replace(one, reads=one.reads[1:]), "has all columns|in its turn"),
        (reader, lambda one: replace(one, columns=(0, 1)), "reads no column|columns of"),
    ]
    for number, change, says in wrong:
        with pytest.raises(IllegalPlan, match=says):
            check(changed(plan, number, change))


def test_the_front_has_no_point_that_another_is_as_good_as() -> None:
    points = front(graph_of_text(CHAIN).by_rows(), rounds=2)
    assert len(points) > 1
    for a, b in pairwise(points):
        assert a.work < b.work
        assert a.bytes > b.bytes


def test_more_graphs_tried_give_no_worse_a_front() -> None:
    graph = graph_of_text(CHAIN).by_rows()
    fronts = [front(graph, rounds=2, most_steps=n * graph.steps) for n in (0, 20, 1000)]
    assert len(fronts[0]) == 1
    assert len(fronts[0]) < len(fronts[2])
    for few, many in pairwise(fronts):
        assert all(any(b.bytes <= a.bytes and b.work <= a.work for b in many) for a in few)


def test_every_point_that_none_beats_is_kept_with_its_addresses() -> None:
    """Without a time limit none is left out, however long its addresses take."""
    model, _ = example()
    rows = row_model(model, kernels=True, held=False)
    rows = replace(rows, graph=rows.graph.by_rows())
    kept = points_of(rows, again=True, shrink=False)
    assert kept
    assert all(a.macs < b.macs and a.bytes > b.bytes for a, b in pairwise(kept))
    last = None
    for point in front(rows.graph):
        if point.pieces.pieces == whole(rows.graph).pieces or (last and point.bytes * 100 > last * 99):
            continue
        last = point.bytes
        again = model_of_pieces(rows, point.pieces)
        plan, _ = planned_rows(again, known=point.order)
        assert any(one.bytes <= plan.placed.bytes and one.macs <= again.graph.work for one in kept)


def test_what_is_made_once_is_cut_beside_copies_in_strips() -> None:
    """Strips of copies stand between the pieces of a region in the order of the graph."""
    twice = copied(whole(graph_of_text(SKIP).by_rows()), 4, 3)
    assert twice is not None
    copies = [n for n, piece in enumerate(twice.pieces) if piece.anew and piece.op in (1, 2)]
    beside = stripped(twice, copies, 2)
    assert beside is not None
    b = next(n for n, piece in enumerate(beside.pieces) if piece.op == 2 and not piece.anew)
    found = [cut for family in strips_around(beside, b) for cut in family]
    assert any(
        [(piece.op, piece.first, piece.end) for piece in cut.pieces if not piece.anew and piece.op in (1, 2)]
        == [(1, 0, 9), (1, 8, 16), (2, 0, 4), (2, 4, 8)]
        for cut in found
    )
    points = front(graph_of_text(SKIP).by_rows(), rounds=3)
    assert points[-1].bytes <= 996
    assert points[-1].work < 1.24


@needs_compiler
@pytest.mark.thorough
@pytest.mark.parametrize("held", [True, False])
def test_the_c_of_strips_makes_every_byte(held: bool, tmp_path: Path) -> None:
    compared(*in_strips(held=held), tmp_path)


@needs_compiler
@pytest.mark.thorough
def test_the_c_of_a_copy_makes_every_byte(tmp_path: Path) -> None:
    """A network of which a map is made anew back to the input, whose rows come again."""
    seed = next(s for s in range(0, 40, 2) if any(p.again for p in some(s, kernels=True)[1]))
    rows, graphs = some(seed, kernels=True)
    again = model_of_pieces(rows, next(p for p in graphs if p.again))
    compared(rows.model, plan_of_rows(again, *soon(again)), tmp_path)
