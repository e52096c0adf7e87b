"""The drawing of a graph: nothing overlaps, every link ends where it should, and no link runs over a box."""

from __future__ import annotations

from random import Random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from onchip.report.graph import Box, Drawing, Link, draw
from onchip.report.graph.layers import Arc, Place, heights


def graph(rng: Random) -> tuple[list[Box], list[Link]]:
    """Boxes of many sizes, forks, joins and long links; some links share a net."""
    count = rng.randint(1, 40)
    boxes = [Box(rng.choice([0, 30, 94, 300]), rng.choice([0, 24, 31, 120])) for _ in range(count)]
    links = []
    for b in range(1, count):
        for a in {
            rng.randrange(max(0, b - rng.choice([1, 3, 40])), b) for _ in range(rng.choice([0, 1, 1, 2, 4]))
        }:
            out, into = rng.random() * boxes[a].height, rng.random() * boxes[b].height
            links.append(Link(a, b, out, into, a))
    return boxes, links


def points(route: tuple[float, ...]) -> list[tuple[float, float]]:
    """A route as points along its curves."""
    found = [(route[0], route[1])]
    for i in range(2, len(route), 6):
        (x0, y0), (ax, ay, bx, by, x, y) = found[-1], route[i : i + 6]
        for s in range(1, 13):
            t = s / 12
            u = 1 - t
            weights = (u**3, 3 * u * u * t, 3 * u * t * t, t**3)
            found.append(
                (
                    sum(w * v for w, v in zip(weights, (x0, ax, bx, x), strict=True)),
                    sum(w * v for w, v in zip(weights, (y0, ay, by, y), strict=True)),
                )
            )
    return found


@pytest.mark.thorough
@given(st.randoms(use_true_random=False), st.sampled_from([(300, 200), (1300, 600), (90, 4000)]))
@settings(max_examples=80)
def test_boxes_stay_apart_and_inside_and_links_off_them(rng: Random, room: tuple[int, int]) -> None:
    boxes, links = graph(rng)
    made = draw(boxes, links, room)
    placed = list(zip(made.at, boxes, strict=True))
    for i, ((x, y), box) in enumerate(placed):
        assert -0.01 <= x <= x + box.width <= made.width + 0.01
        assert -0.01 <= y <= y + box.height <= made.height + 0.01
        for (ox, oy), other in placed[:i]:
            apart = x + box.width <= ox + 0.01 or ox + other.width <= x + 0.01
            assert apart or y + box.height < oy + 0.01 or oy + other.height < y + 0.01
    for link, route in zip(links, made.routes, strict=True):
        ends(made, boxes, link, route)
        for x, y in points(route):
            for v, ((left, top), box) in enumerate(placed):
                if v not in (link.source, link.target):
                    across = left + 0.5 < x < left + box.width - 0.5
                    assert not (across and top + 0.5 < y < top + box.height - 0.5)


def ends(made: Drawing, boxes: list[Box], link: Link, route: tuple[float, ...]) -> None:
    (sx, sy), (tx, ty) = made.at[link.source], made.at[link.target]
    assert route[:2] == pytest.approx((sx + boxes[link.source].width, sy + link.out), abs=0.1)
    assert route[-2:] == pytest.approx((tx, ty + link.into), abs=0.1)


def test_a_chain_reads_like_text_and_fills_the_room() -> None:
    boxes = [Box(100, 30)] * 24
    links = [Link(i, i + 1, 15, 15, i) for i in range(23)]
    made = draw(boxes, links, (800, 400))
    lines = sorted({y for _, y in made.at})
    assert len(lines) > 1
    assert [made.at[i][1] for i in range(24)] == sorted(y for _, y in made.at)
    for line in lines:
        across = [x for x, y in made.at if y == line]
        assert across == sorted(across)
    one_line = 24 * 126 / 800
    assert max(made.width / 800, made.height / 400) < one_line / 2


def test_what_fits_is_one_line() -> None:
    made = draw([Box(90, 30)] * 4, [Link(i, i + 1, 15, 15, i) for i in range(3)], (800, 400))
    assert len({y for _, y in made.at}) == 1


def test_a_chain_in_a_line_is_level() -> None:
    made = draw([Box(50, h) for h in (30, 90, 10)], [Link(0, 1, 15, 45, 0), Link(1, 2, 45, 5, 1)], (800, 400))
    assert {round(y, 1) for route in made.routes for y in route[1::2]} == {45.0}


def test_a_circle_is_refused() -> None:
    with pytest.raises(ValueError, match="circle"):
        draw([Box(1, 1)] * 2, [Link(0, 1, 0, 0, 0), Link(1, 0, 0, 0, 1)], (10, 10))


def test_heights_keep_the_order_and_the_gap() -> None:
    places = [Place(10, 0), Place(10, 1), Place(10, 2), Place(4)]
    arcs = [Arc(0, 1, 5, 5), Arc(0, 2, 5, 5), Arc(0, 3, 5, 2)]
    top = heights([[0], [1, 2, 3]], places, arcs, 6)
    assert top[1] + 16 <= top[2] + 1e-9
    assert top[2] + 16 <= top[3] + 1e-9
    middle = (top[1] + top[3] + 4) / 2
    assert abs(middle - (top[0] + 5)) < 6
