"""Instances beyond the search: addresses in near-linear time, each packing checked, the bound a bound."""

from __future__ import annotations

import random
import resource
import time

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from onchip.planners.packing import Buffer, PackOptions, decide, fault, irreducible, max_load, pack
from onchip.planners.packing.large import MOST_OVERLAPS, allocate, is_large


@st.composite
def instances(draw: st.DrawFn) -> list[Buffer]:
    found: list[Buffer] = []
    top = 0
    for _ in range(draw(st.integers(1, 30))):
        lower = draw(st.integers(-20, 40))
        length = draw(st.integers(1, 20))
        alignment = draw(st.sampled_from((1, 1, 1, 4, 6)))
        size = draw(st.integers(1, 50))
        offset = None
        if draw(st.integers(0, 9)) == 0:
            offset = -(-top // alignment) * alignment
            top = offset + size
        gap = ((lower + 1, lower + 2),) if length > 3 and draw(st.booleans()) else ()
        found.append(Buffer(lower, lower + length, size, alignment, offset, gap))
    return found


@pytest.mark.thorough
@given(instances())
@settings(max_examples=300)
def test_what_is_allocated_is_a_packing(buffers: list[Buffer]) -> None:
    offsets, end = allocate(buffers)
    assert fault(buffers, offsets, end) is None
    assert max_load(buffers) <= end


@pytest.mark.thorough
@given(instances())
def test_overlaps_are_counted_as_they_are(buffers: list[Buffer]) -> None:
    lives = [live for b in buffers for live in b.live]
    pairs = sum(a[0] < b[1] and b[0] < a[1] for i, a in enumerate(lives) for b in lives[:i])
    assert is_large(buffers, pairs - 1)
    assert not is_large(buffers, pairs + len(lives) * 2 * len(lives))


@pytest.mark.thorough
def test_buffers_one_after_the_other_are_not_large() -> None:
    assert not is_large([Buffer(i, i + 2, 8) for i in range(100_000)])
    assert is_large([Buffer(0, 1, 8)] * (int(MOST_OVERLAPS**0.5) * 2))


@pytest.mark.thorough
def test_many_overlaps_are_packed_within_memory_and_time() -> None:
    buffers = [Buffer(i % 1000, i % 1000 + 500, i % 97 + 1) for i in range(40_000)]
    held, began = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss, time.process_time()
    lowest = decide(buffers, None, PackOptions(minimise=True, time_limit=2.0))
    assert lowest.status == "packed"
    assert lowest.extent is not None
    assert fault(buffers, lowest.offsets, lowest.extent) is None
    assert lowest.lower_bound == max_load(buffers) <= lowest.extent < 1.3 * lowest.lower_bound
    refused = decide(buffers, lowest.lower_bound - 1, PackOptions(time_limit=2.0))
    assert refused.status == "infeasible"
    assert time.process_time() - began < 120
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - held < 300 << 10


def test_what_does_not_fit_is_named_and_minimal() -> None:
    rng = random.Random(3)
    buffers = [Buffer(0, 10, rng.randrange(1, 1000)) for _ in range(3_000)]
    assert is_large(buffers)
    which = irreducible(buffers, 5_000)
    sizes = [buffers[i].size for i in which]
    assert sum(sizes) > 5_000 >= sum(sizes) - min(sizes)
    verdict = decide(buffers, 5_000, PackOptions())
    assert verdict.conflict is not None
    assert verdict.conflict.minimal
    assert verdict.needs == sum(b.size for b in buffers)


def test_fixed_buffers_that_overlap_are_refused_however_many() -> None:
    buffers = [Buffer(0, 10, 8, offset=0), Buffer(5, 9, 8, offset=4), *[Buffer(0, 9, 1)] * 3_000]
    assert pack(buffers, 1 << 20).status == "infeasible"
    assert decide(buffers, None, PackOptions(minimise=True)).status == "infeasible"
