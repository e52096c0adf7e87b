"""Fig. 11 and 12: how much larger an image, or how many more channels, the same RAM allows."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from functools import cache

from vmcu_modules import BUFFERS, SHOWN, VWW, both
from vmcu_networks import Block, largest

__all__ = ["METHODS", "Grown", "fig_11", "fig_12", "reached", "span"]

METHODS = ("overlap", "window", "onchip")


def _image(block: Block, n: int) -> Block:
    return block.grown(n)


def _channels(block: Block, n: int) -> Block:
    return block.grown(block.size, n / block.channels)


def _ends(block: Block, n: int) -> Block:
    """Return the block with more channels in and out, and as many inside as before."""
    return replace(block, channels=n, outputs=round(block.outputs * n / block.channels))


KINDS: Mapping[str, tuple[Callable[[Block, int], Block], Callable[[Block], int]]] = {
    "image": (_image, lambda block: block.size),
    "channels": (_channels, lambda block: block.channels),
    "ends": (_ends, lambda block: block.channels),
}
"""What grows, and what it is counted in."""


@dataclass(frozen=True)
class Grown:
    """How far each method gets with the RAM that a block needs in place, with TinyEngine's buffers or not."""

    label: str
    printed: bool
    real: bool
    limit: int
    reached: Mapping[str, int]
    ratios: Mapping[str, float]


@cache
def reached(kind: str, limit_of: str = BUFFERS) -> tuple[Grown, ...]:
    """Return all blocks of MCUNet-5fps-VWW, grown in one way as far as it goes."""
    grown, unit = KINDS[kind]
    found = []
    for block, printed, real in both(VWW):
        limit = SHOWN[limit_of](block.network).ram_bytes

        def network(n: int, block: Block = block) -> object:
            return grown(block, n).network

        ends = {method: largest(network, method, limit) for method in METHODS}  # type: ignore[arg-type]
        label = block.name + ("" if printed else ", the network's")
        ratios = {method: n / unit(block) for method, n in ends.items()}
        found.append(Grown(label, printed, real, limit, ends, ratios))
    return tuple(found)


def span(kind: str, method: str, limit_of: str = BUFFERS, *, printed: bool = True) -> tuple[float, float]:
    """Return the least and the most of all blocks, by Table 2's or the network's shapes."""
    rows = [row for row in reached(kind, limit_of) if (row.printed if printed else row.real)]
    ratios = [row.ratios[method] for row in rows]
    return min(ratios), max(ratios)


def fig_11() -> Iterator[str]:
    yield from _table("image")
    yield ""
    yield from _spans({"image": "the image"}, "1.29 to 2.58")


def fig_12() -> Iterator[str]:
    yield from _table("channels")
    yield ""
    yield from _spans({"channels": "all channels", "ends": "channels in and out"}, "1.26 to 3.17")


def _table(kind: str) -> Iterator[str]:
    yield f"| block | RAM in place, buffers | {' | '.join(METHODS)} |"
    yield "|---|--:|--:|--:|--:|"
    for row in reached(kind):
        cells = (f"{row.ratios[method]:.2f} ({row.reached[method]})" for method in METHODS)
        yield f"| {row.label} | {row.limit:,} | {' | '.join(cells)} |"


def _spans(kinds: Mapping[str, str], paper: str) -> Iterator[str]:
    yield f"| what grows | shapes | RAM of | {' | '.join(METHODS)} | paper |"
    yield "|---|---|---|--:|--:|--:|--:|"
    for kind, words in kinds.items():
        for limit_of in (BUFFERS, "in place"):
            for printed in (True, False):
                ends = (span(kind, method, limit_of, printed=printed) for method in METHODS)
                cells = " | ".join(f"{low:.2f} to {high:.2f}" for low, high in ends)
                shapes = "Table 2" if printed else "the network"
                yield f"| {words} | {shapes} | *{limit_of}* | {cells} | {paper} |"
