"""Inverted bottlenecks: Table 2 as printed and as it is, and Fig. 9 and 10 by method."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import cache

from vmcu_networks import PRINTED, Block, blocks_of

from onchip.microcontroller.compare.in_place import with_buffers
from onchip.microcontroller.compare.lives import Baseline, Lives
from onchip.microcontroller.compare.segments import METHODS
from onchip.microcontroller.compare.window_fused import bottlenecks
from onchip.network import Network

__all__ = [
    "BUFFERS",
    "IMAGENET",
    "SHOWN",
    "VWW",
    "Row",
    "both",
    "clipped",
    "fig_9",
    "fig_10",
    "measured",
    "saved",
    "table_2",
]

BUFFERS = "in place, buffers"
SHOWN: Mapping[str, Callable[[Network], Baseline]] = {
    "order": METHODS["order"],
    "in place": METHODS["in place"],
    BUFFERS: lambda network: with_buffers(Lives.of(network)),
    "overlap": METHODS["overlap"],
    "window": METHODS["window"],
    "onchip": METHODS["onchip"],
}
THEIRS, OURS = ("order", "in place", BUFFERS), ("window", "onchip")
VWW, IMAGENET = "made:mcunet_vww", "made:mcunet_320kb"


@dataclass(frozen=True)
class Row:
    """A block by every method: bytes, and work as a multiple of making everything once."""

    block: Block
    printed: bool
    """True if Table 2 has these shapes."""
    real: bool
    """True if the network has them."""
    ram: Mapping[str, int]
    work: Mapping[str, float]


def table_2() -> Iterator[str]:
    yield "| block | Table 2 | the network |"
    yield "|---|---|---|"
    for name in (VWW, IMAGENET):
        for printed, real in blocks_of(name):
            if printed != real:
                yield f"| {printed.name} | {_words(printed)} | {_words(real)} |"


def _words(block: Block) -> str:
    across = ", ".join(map(str, (block.channels, block.inside, block.outputs)))
    strides = ",".join(map(str, block.strides))
    return (
        f"{block.size} x {block.size}, channels {across}, {block.kernel} x {block.kernel}, strides {strides}"
    )


def both(name: str) -> Iterator[tuple[Block, bool, bool]]:
    """Yield the blocks by Table 2's shapes, each followed by the network's where those are others."""
    for printed, real in blocks_of(name):
        yield printed, True, printed == real
        if printed != real:
            yield real, False, True


@cache
def measured(name: str) -> tuple[Row, ...]:
    """Return all blocks of a network by every method."""
    return tuple(_row(*given) for given in both(name))


def _row(block: Block, printed: bool, real: bool) -> Row:
    found = {method: make(block.network) for method, make in SHOWN.items()}
    once = found["order"].macs
    ram = {method: made.ram_bytes for method, made in found.items()}
    return Row(block, printed, real, ram, {method: made.macs / once for method, made in found.items()})


def saved(name: str, mine: str, theirs: str, *, printed: bool = True) -> tuple[float, float]:
    """Return the least and the most that a method saves of another, by Table 2's or the network's shapes."""
    rows = [row for row in measured(name) if (row.printed if printed else row.real)]
    shares = [1 - row.ram[mine] / row.ram[theirs] for row in rows]
    return min(shares), max(shares)


def fig_9() -> Iterator[str]:
    yield from _figure(VWW, "28.8-71.6 %", "13.0-61.5 %")


def fig_10() -> Iterator[str]:
    yield from _figure(IMAGENET, "26.5-89.6 %", "11.2-78.5 %")
    yield ""
    block, bytes_ = clipped()
    of_order, of_place = (1 - bytes_ / block.ram[theirs] for theirs in ("order", BUFFERS))
    yield (
        f"{block.block.name}'s window is larger than its map. Fused all the same, with a segment for each "
        f"pixel of the map, it takes {bytes_:,} bytes: {of_order:.1%} less than *order*, {of_place:.1%} less "
        f"than *{BUFFERS}*."
    )
    yield ""
    more = {row.block.name: _walked(row.block) for row in measured(IMAGENET) if row.printed}
    more = {name: walked for name, walked in more.items() if walked[0] > walked[1]}
    told = ", ".join(f"{name} {walked:,} for {least:,}" for name, (walked, least) in more.items())
    yield (
        "The paper walks from a map's first pixel on; *window* takes the better of that and of the walk from "
        f"the last. By the first alone: {told}."
    )


def _walked(block: Block) -> tuple[int, int]:
    """Return a block's bytes by the paper's walk, and by the better of it and its mirror."""
    lives = Lives.of(block.network)
    return max(((b.walked_bytes, b.bytes) for b in bottlenecks(lives)), default=(0, 0))


def clipped() -> tuple[Row, int]:
    """Return B16, and its bytes by a window kernel with no more segments than its map has pixels."""
    row = _row(next(block for block in PRINTED[IMAGENET] if block.name == "B16"), True, True)
    (fused,) = bottlenecks(Lives.of(row.block.network), larger=True)
    return row, fused.bytes


def _figure(name: str, to_order: str, to_in_place: str) -> Iterator[str]:
    yield f"| block | {' | '.join(SHOWN)} | work of window | work of onchip |"
    yield f"|---|{'--:|' * (len(SHOWN) + 2)}"
    for row in measured(name):
        label = row.block.name + ("" if row.printed else ", the network's")
        bytes_ = " | ".join(f"{row.ram[method]:,}" for method in SHOWN)
        work = " | ".join(f"{row.work[method]:.2f}" for method in OURS)
        yield f"| {label} | {bytes_} | {work} |"
    yield ""
    yield "| saved, least to most | Table 2: window | onchip | the network: window | onchip | paper |"
    yield "|---|--:|--:|--:|--:|--:|"
    for theirs in THEIRS:
        cells = [_range(*saved(name, mine, theirs, printed=p)) for p in (True, False) for mine in OURS]
        yield f"| of *{theirs}* | {' | '.join(cells)} | {to_order if theirs == 'order' else to_in_place} |"


def _range(low: float, high: float) -> str:
    return f"{low:.1%} to {high:.1%}"
