"""Chains of groups in one pool: nothing overlaps that must not."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from onchip.microcontroller.segments.distances import Distances
from onchip.microcontroller.segments.place import Link, Way, place


@st.composite
def holes(draw: st.DrawFn, given: int, made: int) -> Distances:
    """Any distances legal; those at which two tensors lie beside each other always are."""
    meet = st.integers(min(1 - given, 0), max(made - 1, 0))
    lost = draw(st.sets(meet, max_size=12)) if given and given + made > 1 else set()
    lost |= set(range(*sorted((draw(meet), draw(meet))))) if lost else set()
    at = np.array(sorted(lost), dtype=np.int64)
    return Distances.but(at, at)


@st.composite
def chains(draw: st.DrawFn, most: int = 40, scratch: int = 30) -> list[Link]:
    """Each link's output is the next one's input."""
    bytes_of = [draw(st.integers(1, most)) for _ in range(draw(st.integers(2, 6)))]
    if draw(st.booleans()):
        bytes_of[0] = 0  # fetched
    links = []
    for source, made in pairwise(bytes_of):
        ways = [Way(draw(st.integers(0, scratch)), draw(holes(source, made))) for _ in range(2)]
        links.append(Link(source, made, ways[0], ways[1] if draw(st.booleans()) else None))
    return links


@pytest.mark.thorough
@given(chains())
def test_a_placement_keeps_every_distance(links: list[Link]) -> None:
    placed = place(links)
    assert placed.bytes >= max(link.needs for link in links)
    at = placed.input
    for link, out, scratch, traversal in zip(
        links, placed.outputs, placed.scratches, placed.traversals, strict=True
    ):
        way = dict(link.ways)[traversal]
        ranges = [(out, out + link.output)]
        if link.input:
            ranges.append((at, at + link.input))
            assert at - out in way.distances
        if way.scratch:
            assert scratch % 4 == 0
            assert all(scratch + way.scratch <= first or scratch >= end for first, end in ranges)
            ranges.append((scratch, scratch + way.scratch))
        assert all(first >= 0 and end <= placed.bytes for first, end in ranges)
        at = out


@pytest.mark.thorough
@given(chains(most=12, scratch=6))
@settings(max_examples=60)
def test_no_placement_takes_fewer_bytes(links: list[Link]) -> None:
    assert not fits(links, place(links).bytes - 1)


def fits(links: list[Link], pool: int) -> bool:
    """Whether there is a placement in so many bytes: every address of every tensor and scratch."""
    addresses = set(range(pool - links[0].input + 1))
    for link in links:
        addresses = {
            out
            for at in addresses
            for out in range(pool - link.output + 1)
            if any(not link.input or at - out in way.distances for _, way in link.ways)
            if any(
                (not link.input or at - out in way.distances)
                and (not way.scratch or any(
                    all(
                        scratch + way.scratch <= a or scratch >= b
                        for a, b in ((out, out + link.output), (at, at + link.input))
                        if a < b
                    )
                    for scratch in range(0, pool - way.scratch + 1, 4)
                ))
                for _, way in link.ways
            )
        }  # fmt: skip
    return bool(addresses)


@pytest.mark.thorough
@given(chains(most=30, scratch=9))
def test_what_a_link_needs_is_its_least_placement(links: list[Link]) -> None:
    for link in links:
        assert place([link]).bytes == link.needs


@given(st.lists(st.integers(1, 40), min_size=2, max_size=6), st.integers(0, 5))
def test_a_chain_without_scratch_needs_no_more_than_its_worst_layer(
    tensors: list[int], distance: int
) -> None:
    """With one distance and all beyond it legal, forward from above and in reverse from below."""
    links = []
    for source, made in pairwise(tensors):
        lost = (1 - source, min(distance, made) - 1)
        forward = Distances((lost,) if lost[0] <= lost[1] else ())
        links.append(Link(source, made, Way(0, forward), Way(0, forward.mirrored(source, made))))
    assert place(links).bytes == max(link.needs for link in links)
