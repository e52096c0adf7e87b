"""Random packing problems, hard ones too, and a reference so small that it is plainly right."""

from __future__ import annotations

import random

from hypothesis import strategies as st

from onchip.planners.packing import Buffer, max_load


def exhaustive(buffers: list[Buffer], capacity: int) -> bool:
    """Whether the buffers fit, by trying every offset of every buffer."""
    placed: list[tuple[Buffer, int]] = []

    def rest_fits(i: int) -> bool:
        if i == len(order):
            return True
        b = order[i]
        for at in range(0, capacity - b.size + 1, b.alignment):
            if b.offset in (None, at) and all(
                apart(b, c) or at + b.size <= other or other + c.size <= at for c, other in placed
            ):
                placed.append((b, at))
                if rest_fits(i + 1):
                    return True
                placed.pop()
        return False

    order = sorted(buffers, key=lambda b: -b.size)
    return rest_fits(0)


def apart(b: Buffer, c: Buffer) -> bool:
    """Whether the two never live at the same time."""
    return all(e <= start or end <= s for s, e in b.live for start, end in c.live)


def featured(seed: int, *, most: int = 7, capacity: int = 12) -> tuple[list[Buffer], int]:
    """Small buffers, some aligned, some fixed, some with gaps, and a capacity near their load."""
    rnd = random.Random(seed)
    wanted = [rnd.random() < 0.5 for _ in range(3)]
    buffers = []
    for _ in range(rnd.randint(2, most)):
        lower = rnd.randint(0, 6)
        upper = lower + rnd.randint(1, 6)
        size = rnd.randint(1, 5)
        alignment = rnd.choice([1, 1, 2, 3, 4]) if wanted[0] else 1
        offset = rnd.randrange(0, capacity, alignment) if wanted[1] and rnd.random() < 0.25 else None
        gaps = []
        if wanted[2] and upper - lower > 2 and rnd.random() < 0.6:
            cuts = sorted(rnd.sample(range(lower, upper + 1), 4 if upper - lower > 4 else 2))
            gaps = [(b, e) for b, e in zip(cuts[::2], cuts[1::2], strict=True) if (b, e) != (lower, upper)]
        buffers.append(Buffer(lower, upper, size, alignment, offset, tuple(gaps)))
    return buffers, min(capacity, max_load(buffers) + rnd.choice([0, 0, 0, 0, 1, 2]))


@st.composite
def small_instances(draw: st.DrawFn, most: int = 6) -> tuple[list[Buffer], int]:
    """A few buffers and a capacity at or just above their load."""
    n = draw(st.integers(1, most))
    buffers = []
    for _ in range(n):
        lower = draw(st.integers(0, 7))
        buffers.append(Buffer(lower, draw(st.integers(lower + 1, 8)), draw(st.integers(1, 5))))
    load = max(sum(b.size for b in buffers if b.lower <= t < b.upper) for t in range(8))
    return buffers, max(1, load + draw(st.integers(-1, 2)))


def tight_instance(seed: int) -> tuple[list[Buffer], int]:
    """6-22 buffers that fill a capacity nearly everywhere: about one in ten of those does not fit."""
    rnd = random.Random(seed)
    steps, capacity = rnd.choice([6, 8, 10, 14, 20]), rnd.randint(5, 14)
    buffers: list[Buffer] = []
    load = [0] * steps
    for _ in range(rnd.randint(6, 22)):
        room = [t for t in range(steps) if load[t] < capacity]
        if not room:
            break
        lower = rnd.choice(room)
        size = min(rnd.randint(1, capacity - load[lower]), rnd.randint(1, capacity))
        upper, grow = lower + 1, rnd.choice([0.5, 0.7, 0.9])
        while lower > 0 and load[lower - 1] + size <= capacity and rnd.random() < grow:
            lower -= 1
        while upper < steps and load[upper] + size <= capacity and rnd.random() < grow:
            upper += 1
        buffers.append(Buffer(lower, upper, size))
        for t in range(lower, upper):
            load[t] += size
    return buffers, max(load)


def exact_tiling(n: int, seed: int, *, steps: int = 1000, capacity: int = 1000) -> list[Buffer]:
    """At least `n` buffers cut out of one full rectangle: load equals capacity at every step."""
    rnd = random.Random(seed)
    tiles = [(0, steps, 0, capacity)]
    while len(tiles) < n:
        i = max(range(len(tiles)), key=lambda k: _area(tiles[k]) * rnd.uniform(0.3, 1))
        t0, t1, a0, a1 = tiles.pop(i)
        if rnd.random() < 0.5 and t1 - t0 > 1:
            cut = rnd.randint(t0 + 1, t1 - 1)
            tiles += [(t0, cut, a0, a1), (cut, t1, a0, a1)]
        elif a1 - a0 > 1:
            cut = rnd.randint(a0 + 1, a1 - 1)
            tiles += [(t0, t1, a0, cut), (t0, t1, cut, a1)]
        else:
            tiles.append((t0, t1, a0, a1))
    rnd.shuffle(tiles)
    return [Buffer(t0, t1, a1 - a0) for t0, t1, a0, a1 in tiles]


def _area(tile: tuple[int, int, int, int]) -> int:
    return (tile[1] - tile[0]) * (tile[3] - tile[2])
