"""Exact tilings, where the load equals the capacity at every step: how many does the packing search solve?

    python benchmarks/packing_tilings.py [--sizes 100,200,350,500,1000] [--each 2] [--side 1000] [--seconds S]
    python benchmarks/packing_tilings.py --sides 10000,1000,200 --into docs/packing.md

Three kinds of tilings, `--each` of every kind and size: *guillotine* (a rectangle halved at random again and
again), *pinwheel* (some rectangles cut into five that no straight line separates) and *jittered* (bands of
equal height, each cut in time near the points of a grid, within the rectangles of a coarse guillotine). The
smaller the side of the rectangle that is cut, the more sums of sizes coincide, and the harder it gets.
Prints how many of each kind are solved; with `--sides` how many of all kinds, by side. Seconds are CPU time
of this process; CP-SAT has one worker, and its limit is of the clock.
"""

from __future__ import annotations

import argparse
import platform
import random
import time
from collections.abc import Callable, Iterator
from dataclasses import fields, replace
from pathlib import Path

from page_marks import write

from onchip.planners.packing import ALL_RULES, Buffer, Rules, pack
from onchip.planners.packing.cpsat import pack_with_cpsat

Tile = tuple[int, int, int, int]
"""First step, step after the last, first byte, byte after the last."""


def guillotine(n: int, rnd: random.Random, side: int) -> list[Tile]:
    tiles = [(0, side, 0, side)]
    while len(tiles) < n:
        tile = _large(tiles, rnd)
        t0, t1, a0, a1 = tile
        along_time = rnd.random() < (t1 - t0) / (t1 - t0 + a1 - a0)
        if (t1 - t0 if along_time else a1 - a0) < 2:
            tiles.append(tile)
        elif along_time:
            cut = rnd.randint(t0 + 1, t1 - 1)
            tiles += [(t0, cut, a0, a1), (cut, t1, a0, a1)]
        else:
            cut = rnd.randint(a0 + 1, a1 - 1)
            tiles += [(t0, t1, a0, cut), (t0, t1, cut, a1)]
    return tiles


def pinwheel(n: int, rnd: random.Random, side: int) -> list[Tile]:
    """Five tiles around a centre, turning left or right, as long as four more are wanted and some tile is
    large enough."""
    tiles, small = [(0, side, 0, side)], list[Tile]()
    while tiles and len(tiles) + len(small) + 4 <= n:
        tile = _large(tiles, rnd)
        t0, t1, a0, a1 = tile
        if min(t1 - t0, a1 - a0) < 4:
            small.append(tile)
            continue
        t, u = sorted(rnd.sample(range(t0 + 1, t1), 2))
        a, b = sorted(rnd.sample(range(a0 + 1, a1), 2))
        if rnd.random() < 0.5:
            tiles += [(t0, t, a0, b), (t0, u, b, a1), (u, t1, a, a1), (t, t1, a0, a), (t, u, a, b)]
        else:
            tiles += [(t0, u, a0, a), (u, t1, a0, b), (t, t1, b, a1), (t0, t, a, a1), (t, u, a, b)]
    return tiles + small


def jittered(n: int, rnd: random.Random, side: int) -> list[Tile]:
    coarse = guillotine(max(1, n // 25), rnd, side)
    tiles: list[Tile] = []
    for i, (t0, t1, a0, a1) in enumerate(coarse):
        left = (n - len(tiles)) // (len(coarse) - i)
        bands = max(1, min(a1 - a0, round(left**0.5)))
        heights = sorted(rnd.sample(range(a0 + 1, a1), bands - 1))
        for k, (low, high) in enumerate(zip([a0, *heights], [*heights, a1], strict=True)):
            parts = max(1, min(t1 - t0, left // bands + (k < left % bands)))
            step = (t1 - t0) / parts
            cuts = sorted(
                {t0 + round((j + rnd.uniform(-0.4, 0.4)) * step) for j in range(1, parts)} - {t0, t1}
            )
            tiles += [(b, e, low, high) for b, e in zip([t0, *cuts], [*cuts, t1], strict=True)]
    return tiles


def _large(tiles: list[Tile], rnd: random.Random) -> Tile:
    weights = [(t1 - t0) * (a1 - a0) * rnd.uniform(0.2, 1) for t0, t1, a0, a1 in tiles]
    return tiles.pop(weights.index(max(weights)))


KINDS: dict[str, Callable[[int, random.Random, int], list[Tile]]] = {
    "guillotine": guillotine,
    "pinwheel": pinwheel,
    "jittered": jittered,
}


def tiling(kind: str, n: int, seed: int, side: int) -> list[Buffer]:
    """About `n` buffers that fill `side` bytes at every step, in random order."""
    rnd = random.Random(f"{kind} {n} {seed}")
    tiles = KINDS[kind](n, rnd, side)
    rnd.shuffle(tiles)
    return [Buffer(t0, t1, a1 - a0) for t0, t1, a0, a1 in tiles]


def by_side(sizes: list[int], sides: list[int], each: int, limit: float) -> Iterator[str]:
    """The tilings of all kinds that are solved, with the seconds of the slowest where all are."""
    yield "| buffers | " + " | ".join(f"S = {side:,}" for side in sides) + " |"
    yield "|---|" + "---|" * len(sides)
    for n in sizes:
        cells = []
        for side in sides:
            all_ = [tiling(kind, n, seed, side) for kind in KINDS for seed in range(each)]
            solved, seconds = _solved(lambda b, side=side: _search(b, side, limit), all_)
            slowest = f" ({max(seconds):.1f} s)" if solved == len(all_) else ""
            cells.append(f"{solved} of {len(all_)}{slowest}")
        yield f"| {n} | " + " | ".join(cells) + " |"


def by_kind(
    sizes: list[int], engines: dict[str, Callable[[list[Buffer]], str]], side: int, each: int
) -> Iterator[str]:
    """The tilings of each kind that each engine solves, with all seconds."""
    yield "| buffers | " + " | ".join(f"{kind} by {engine}" for engine in engines for kind in KINDS) + " |"
    yield "|---|" + "---|" * (len(engines) * len(KINDS))
    for n in sizes:
        cells = []
        for solve in engines.values():
            for kind in KINDS:
                solved, seconds = _solved(solve, [tiling(kind, n, seed, side) for seed in range(each)])
                cells.append(f"{solved}/{each} ({', '.join(f'{s:.1f}' for s in seconds)} s)")
        yield f"| {n} | " + " | ".join(cells) + " |"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--sizes", default="100,200,350,500,1000")
    parser.add_argument("--each", type=int, default=2)
    parser.add_argument("--side", type=int, default=1000, help="bytes and steps of the rectangle")
    parser.add_argument("--sides", help="of several rectangles, for the table of the page")
    parser.add_argument("--seconds", type=float, default=10.0)
    parser.add_argument("--cpsat", action="store_true", help="CP-SAT as well")
    parser.add_argument("--ablation", action="store_true", help="each rule switched off in turn")
    parser.add_argument("--into", type=Path, help="the page whose table --sides is")
    options = parser.parse_args()
    sizes = [int(n) for n in options.sizes.split(",")]
    if options.sides:
        sides = [int(side) for side in options.sides.split(",")]
        write({"tilings": lambda: by_side(sizes, sides, options.each, options.seconds)}, options.into)
        return
    print(f"machine: {platform.machine()}, {platform.python_implementation()} {platform.python_version()}")
    engines: dict[str, Callable[[list[Buffer]], str]] = {
        "search": lambda b: _search(b, options.side, options.seconds)
    }
    if options.cpsat:
        engines["CP-SAT"] = lambda b: pack_with_cpsat(b, options.side, time_limit=options.seconds, workers=1)[
            0
        ]
    if options.ablation:
        for rule in (f.name for f in fields(Rules)):
            rules = replace(ALL_RULES, **{rule: False})
            engines[f"without {rule}"] = lambda b, rules=rules: _search(
                b, options.side, options.seconds, rules
            )
    write({"tilings": lambda: by_kind(sizes, engines, options.side, options.each)}, None)


def _solved(solve: Callable[[list[Buffer]], str], tilings: list[list[Buffer]]) -> tuple[int, list[float]]:
    """How many tilings are packed, and the seconds of each."""
    solved, seconds = 0, []
    for buffers in tilings:
        begin = time.process_time()
        solved += solve(buffers) == "packed"
        seconds.append(time.process_time() - begin)
    return solved, seconds


def _search(buffers: list[Buffer], side: int, seconds: float, rules: Rules = ALL_RULES) -> str:
    begin = time.process_time()

    def over(_: int) -> None:
        if time.process_time() - begin > seconds:
            raise TimeoutError

    try:
        return pack(buffers, side, rules=rules, engines=("search",), progress=over).status
    except TimeoutError:
        return "unknown"


if __name__ == "__main__":
    main()
