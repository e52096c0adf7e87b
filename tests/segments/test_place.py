"""Chains of groups in one pool: nothing overlaps that must not."""

from __future__ import annotations

from itertools import pairwise

from hypothesis import given
from hypothesis import strategies as st

from onchip.segments.place import Link, Way, place

sizes = st.integers(1, 40)


@st.composite
def chains(draw: st.DrawFn) -> list[Link]:
    """Each link's output is the next one's input."""
    bytes_of = [draw(sizes) for _ in range(draw(st.integers(2, 6)))]
    way = st.builds(Way, st.integers(0, 30), st.none() | st.integers(0, 12))
    return [Link(given, made, draw(way), draw(way)) for given, made in pairwise(bytes_of)]


@given(chains())
def test_a_placement_keeps_every_distance(links: list[Link]) -> None:
    placed = place(links)
    assert placed.bytes >= max(link.needs for link in links)
    at = placed.input
    for link, out, scratch, way in zip(
        links, placed.outputs, placed.scratches, placed.traversals, strict=True
    ):
        taken = link.forward if way == "forward" else link.reverse
        ranges = [(at, at + link.input), (out, out + link.output)]
        assert all(first >= 0 and end <= placed.bytes for first, end in ranges)
        if max(at, out) < min(at + link.input, out + link.output):
            assert taken.distance is not None
            apart = at - out if way == "forward" else out + link.output - (at + link.input)
            assert apart >= taken.distance
        if taken.scratch:
            mine = scratch, scratch + taken.scratch
            assert mine[0] >= 0
            assert mine[1] <= placed.bytes
            assert all(max(mine[0], first) >= min(mine[1], end) for first, end in ranges)
        at = out


@given(st.lists(sizes, min_size=2, max_size=6), st.integers(0, 5))
def test_a_chain_without_scratch_needs_no_more_than_its_worst_layer(
    tensors: list[int], distance: int
) -> None:
    links = [Link(a, b, Way(0, distance), Way(0, distance)) for a, b in pairwise(tensors)]
    assert place(links).bytes == max(link.needs for link in links)
