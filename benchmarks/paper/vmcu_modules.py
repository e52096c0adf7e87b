"""Inverted bottlenecks: Table 2 as printed and as it is, and Fig. 9 to 12 by method."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from vmcu_networks import Block, blocks_of, largest

from onchip.microcontroller.compare.segments import METHODS

__all__ = ["fig_9", "fig_10", "fig_11", "fig_12", "table_2"]

SHOWN = ("order", "in place", "overlap", "window", "onchip")
VWW, IMAGENET = "made:mcunet_vww", "made:mcunet_320kb"


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


def fig_9() -> Iterator[str]:
    yield from _figure(VWW, "28.8-71.6 %", "13.0-61.5 %")


def fig_10() -> Iterator[str]:
    yield from _figure(IMAGENET, "26.5-89.6 %", "11.2-78.5 %")


def _figure(name: str, to_order: str, to_in_place: str) -> Iterator[str]:
    yield f"| block | {' | '.join(SHOWN)} | work of window | work of onchip |"
    yield f"|---|{'--:|' * (len(SHOWN) + 2)}"
    saved: dict[tuple[str, str], list[float]] = {}
    for printed, block in blocks_of(name):
        found = {method: METHODS[method](block.network) for method in SHOWN}
        once = found["order"].macs
        ram = {method: found[method].ram_bytes for method in SHOWN}
        for mine in ("window", "onchip"):
            for theirs in ("order", "in place"):
                saved.setdefault((mine, theirs), []).append(1 - ram[mine] / ram[theirs])
        mark = "" if printed == block else " *"
        bytes_ = " | ".join(f"{ram[method]:,}" for method in SHOWN)
        work = " | ".join(f"{found[method].macs / once:.2f}" for method in ("window", "onchip"))
        yield f"| {block.name}{mark} | {bytes_} | {work} |"
    yield ""
    for theirs, claim in (("order", to_order), ("in place", to_in_place)):
        parts = (
            f"{mine} {min(saved[mine, theirs]):.1%} to {max(saved[mine, theirs]):.1%}"
            for mine in ("window", "onchip")
        )
        yield f"- Less than `{theirs}`: {', '.join(parts)}; the paper says {claim}."


def fig_11() -> Iterator[str]:
    yield from _grown(lambda block, n: block.grown(n), lambda block, n: n / block.size, "1.29 to 2.58")


def fig_12() -> Iterator[str]:
    def wider(block: Block, n: int) -> Block:
        return block.grown(block.size, n / block.channels)

    yield from _grown(wider, lambda block, n: n / block.channels, "1.26 to 3.17")


def _grown(
    grown: Callable[[Block, int], Block], ratio: Callable[[Block, int], float], claim: str
) -> Iterator[str]:
    """For each block, how much larger it may be in the RAM that it takes in place."""
    methods = ("overlap", "window", "onchip")
    yield f"| block | RAM in place | {' | '.join(methods)} |"
    yield "|---|--:|--:|--:|--:|"
    reached: dict[str, list[float]] = {method: [] for method in methods}
    for _, block in blocks_of(VWW):
        limit = METHODS["in place"](block.network).ram_bytes
        cells = []
        for method in methods:
            n = largest(lambda n, block=block: grown(block, n).network, method, limit)  # type: ignore[misc]
            reached[method].append(ratio(block, n))
            cells.append(f"{ratio(block, n):.2f} ({n})")
        yield f"| {block.name} | {limit:,} | {' | '.join(cells)} |"
    yield ""
    parts = (f"{method} {min(all_):.2f} to {max(all_):.2f}" for method, all_ in reached.items())
    yield f"Ranges: {', '.join(parts)}; the paper says {claim}."
