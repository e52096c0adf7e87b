"""Rows of a graph: the law, the search against all orders, addresses, and plans run in one array."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from onchip.base.errors import ModelError
from onchip.microcontroller.int8.reference import run
from onchip.microcontroller.rows import Rules, search
from onchip.microcontroller.rows.addresses import Placed, fault, place
from onchip.microcontroller.rows.cut_model import model_of_pieces
from onchip.microcontroller.rows.execute import execute
from onchip.microcontroller.rows.front import front
from onchip.microcontroller.rows.graph import RowGraph
from onchip.microcontroller.rows.law import lives, most_alive
from onchip.microcontroller.rows.of_model import row_model
from onchip.microcontroller.rows.planning import plan
from onchip.microcontroller.rows.text import graph_of_text
from onchip.microcontroller.rows.windows import by_element, by_pixel, same_rows
from oracles.row_cases import random_model
from oracles.rows import TooManyStates, least_peak

EXAMPLE = """
in input 6x4x2
a conv 6x4x4 k=3x3 p=1,1 in=in
p pool 3x2x4 k=2x2 s=2x2 in=a
b conv 3x2x8 k=3x3 p=1,1 in=p
u resize 6x4x8 in=b
d conv 6x4x2 in=a,u
out dw 6x4x2 k=3x3 p=1,1 in=d keep
"""
"""A small encoder-decoder with one skip."""

ORDER = "in in a in a p in a in a p b u d u d in a a p b b u d u d u d u d out out out out out out"
ADDRESSES = {
    "in": (16, 8, 0, 88, 16, 0),
    "a": (72, 56, 136, 32, 56, 80),
    "p": (128, 24, 0),
    "b": (0, 96, 112),
    "u": (96, 96, 0, 0, 0, 0),
    "d": (48, 72, 128, 96, 32, 40),
    "out": (0, 8, 16, 24, 48, 56),
}
"""An order in 152 bytes, written down by hand."""

NAMES = ("in", "a", "p", "b", "u", "d", "out")


def example() -> RowGraph:
    return graph_of_text(EXAMPLE)


def test_an_order_written_down_by_hand_needs_what_is_counted_by_hand() -> None:
    schedule = tuple(NAMES.index(name) for name in ORDER.split())
    assert most_alive(example(), schedule, share=False) == 152
    found = lives(example(), schedule)
    by_hand = tuple(ADDRESSES[NAMES[life.operator]][life.row] for life in found)
    placed = Placed(schedule, found, by_hand, 152)
    assert fault(example(), placed, pieces=False) is None
    for n in range(len(found)):
        moved = (*by_hand[:n], by_hand[n] + 1, *by_hand[n + 1 :])
        assert fault(example(), replace(placed, addresses=moved, bytes=151), pieces=False) is not None


def test_the_example_has_its_least_peaks() -> None:
    beside, shared = (search(example(), share=share) for share in (False, True))
    assert (beside.peak, beside.bound, shared.peak, shared.bound) == (152, 152, 145, 145)
    assert least_peak(example(), share=False) == 152
    assert plan(example()).placed.bytes <= 160


def test_an_order_that_reads_what_is_not_made_is_illegal() -> None:
    with pytest.raises(ValueError, match="not made"):
        lives(example(), (1,))
    with pytest.raises(ValueError, match="of 6 rows"):
        lives(example(), (0, 0))


@pytest.mark.thorough
@pytest.mark.parametrize("share", [False, True])
def test_peaks_are_the_least_over_all_orders_and_rules_change_none(share: bool) -> None:
    tried = 0
    for seed in range(60):
        rows = row_model(random_model(seed))
        graph = rows.graph.held() if seed % 2 else rows.graph.by_rows()
        try:
            least = least_peak(graph, share=share, most=1500)
        except TooManyStates:
            continue
        tried += 1
        for rules in (Rules(), Rules(free_steps=False), Rules(valley=False)):
            found = search(graph, share=share, rules=rules)
            assert most_alive(graph, found.schedule, share=share) == found.peak
            assert found.bound <= least <= found.peak
            assert found.optimal
        short = search(graph, share=share, most_states=0)
        assert short.bound <= least <= short.peak
    assert tried >= 30


@pytest.mark.thorough
def test_plans_run_in_one_array_of_exactly_their_bytes() -> None:
    over = 0
    for seed in range(40):
        rows = row_model(random_model(seed))
        for share, held in ((False, True), (True, False), (True, True)):
            graph = rows.graph.held() if held else rows.graph.by_rows()
            order = search(graph, share=share)
            placed = place(graph, order.schedule, share=share, pieces=not share, outputs=rows.outputs)
            assert fault(graph, placed, share=share, pieces=not share) is None
            assert same_as_whole(seed, replace(rows, graph=graph), placed)
            over += fault(graph, placed, pieces=False) is not None
    assert over >= 20, "rows that share bytes are tried"


@pytest.mark.thorough
def test_running_a_plan_tells_a_wrong_address() -> None:
    """A row moved by one byte changes the outputs, where it lies over what is still to be read."""
    caught = wrong = 0
    for seed in range(12):
        rows = row_model(random_model(seed))
        graph = rows.graph.by_rows()
        order = search(graph)
        placed = place(graph, order.schedule, share=True, pieces=False)
        for n in range(0, len(placed.addresses), 3):
            moved = list(placed.addresses)
            moved[n] = moved[n] - 1 if moved[n] else moved[n] + 1
            other = replace(placed, addresses=tuple(moved), bytes=placed.bytes + 1)
            if fault(graph, other, share=True, pieces=False) is None:
                continue
            wrong += 1
            caught += not same_as_whole(seed, replace(rows, graph=graph), other)
    assert wrong >= 20
    assert caught > wrong // 3


def same_as_whole(seed: int, rows: object, placed: Placed) -> bool:
    from onchip.microcontroller.rows.makers import RowModel

    assert isinstance(rows, RowModel)
    random = np.random.default_rng(seed)
    images = [
        random.integers(-128, 128, rows.model.tensors[t].shape).astype(np.int8) for t in rows.model.inputs
    ]
    wanted, found = run(rows.model, images), execute(rows, placed, images)
    return all(np.array_equal(a.reshape(-1), b.reshape(-1)) for a, b in zip(wanted, found, strict=True))


def test_distances_of_kernels_are_those_of_their_elements() -> None:
    columns = same_rows(3)
    assert by_pixel(columns, 2, 4) == 1
    assert by_element(columns, 4, 4) == 0
    assert (
        by_element(columns, 6, 3, multiplier=2) == 9
    )  # the last but one element reads its pixel's last byte


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("", "no operators"),
        ("x", "a name, a kind and a shape"),
        ("x input 2x2", "2x2 is not 3 numbers"),
        ("x input 2x2x0", "numbers from 1"),
        ("x conv 2x2x2", "an input reads nothing"),
        ("x what 2x2x2", "is no kind"),
        ("x input 2x2x2\nx input 2x2x2", "comes twice"),
        ("x input 2x2x2\ny conv 2x2x2 in=z", "z is not made before"),
        ("x input 2x2x2\ny add 3x2x2 in=x", "is no operand of add"),
        ("x input 2x2x2\ny conv 2x2x2 in=x q=3", "is no attribute"),
    ],
)
def test_a_text_that_is_no_graph_is_refused_in_one_line(text: str, says: str) -> None:
    with pytest.raises(ModelError, match=says):
        graph_of_text(text)


@pytest.mark.thorough
def test_maps_made_anew_save_bytes_and_change_no_output() -> None:
    points = front(example(), most_work=2)
    assert points[0].work == 1
    assert [p.bytes for p in points] == sorted((p.bytes for p in points), reverse=True)
    assert (points[-1].bytes, round(points[-1].work, 3)) == (120, 1.387)
    assert search(points[-1].pieces.graph).peak < 114
    ran = 0
    for seed in (40, 52, 57, 109, 113, 132, 133):
        rows = row_model(random_model(seed))
        for graph in (rows.graph.held(), rows.graph.by_rows()):
            for point in front(graph, most_work=4)[1:]:
                again = model_of_pieces(replace(rows, graph=graph), point.pieces)
                placed = place(again.graph, point.order.schedule, outputs=again.outputs)
                assert fault(again.graph, placed) is None
                assert same_as_whole(seed, again, placed)
                ran += 1
    assert ran >= 4
