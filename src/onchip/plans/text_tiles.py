"""The figures of a chip that give times to tiles, in the text form: lines of facts, one for each part.

tiles clock 1000000000 step 128 block 16 vector 512000000000
channel 32000000000 transfer 500000 piece 2000 burst 64 loads stores
side sum 128
"""

from __future__ import annotations

from collections.abc import Sequence

from onchip.machines.tile_rates import ArraySide, Channel, TileRates
from onchip.plans.text_words import Word, integer, names

__all__ = ["TileFacts", "tile_lines"]

_TILES = ("clock", "step", "block", "vector", "scratchpad")
_CHANNEL = ("transfer", "piece", "burst")


def tile_lines(tiles: TileRates) -> list[str]:
    """Return the lines of a chip's tile rates."""
    figures = (
        tiles.clock_hertz, tiles.step_cycles, tiles.block_cycles or None,
        tiles.vector_operations_per_second, tiles.scratchpad_bytes_per_second,
    )  # fmt: skip
    stated = [f"{key} {n}" for key, n in zip(_TILES, figures, strict=True) if n is not None]
    found = [f"tiles {' '.join(stated)}" + " own" * tiles.own_operands]
    for one in tiles.channels:
        line = f"channel {one.bytes_per_second} transfer {one.transfer_picoseconds}"
        line += f" piece {one.piece_picoseconds} burst {one.burst_bytes}"
        found.append(line + " loads" * one.loads + " stores" * one.stores)
    return found + [f"side {side.kind} {side.size}" for side in tiles.sides]


class TileFacts:
    """Lines of a chip's tile rates that are being read. Raises `ValueError` for a wrong one."""

    def __init__(self) -> None:
        self.figures: dict[str, int] | None = None
        self.own = False
        self.channels: list[Channel] = []
        self.sides: list[ArraySide] = []

    def line(self, line: Sequence[Word]) -> bool:
        """Take the words of a line; return False if it is none of these."""
        match names(line):
            case ["tiles", *rest]:
                if self.figures is not None:
                    raise ValueError("tiles are given twice")
                self.own = rest[-1:] == ["own"]
                self.figures = _figures(rest[:-1] if self.own else rest, _TILES)
            case ["channel", rate, *rest]:
                ways = [rest.pop() for way in ("stores", "loads") if rest[-1:] == [way]]
                found = _figures(rest, _CHANNEL)
                transfer, piece, burst = (
                    found.get(key, n) for key, n in zip(_CHANNEL, (0, 0, 1), strict=True)
                )
                one = Channel(integer(rate), transfer, piece, burst, "loads" in ways, "stores" in ways)
                self.channels.append(one)
            case ["side", ("out" | "sum") as kind, size]:
                self.sides.append(ArraySide(kind, integer(size)))
            case _:
                return False
        return True

    def rates(self) -> TileRates | None:
        """Return what the lines state; None without any."""
        if self.figures is None:
            if self.channels or self.sides:
                raise ValueError("channels and sides of a chip need its `tiles`")
            return None
        if "clock" not in self.figures:
            raise ValueError("tiles need a clock")
        given = self.figures.get
        return TileRates(
            self.figures["clock"], tuple(self.channels), given("step", 0), tuple(self.sides),
            given("vector"), given("scratchpad"), given("block", 0), self.own,
        )  # fmt: skip


def _figures(rest: Sequence[str], known: Sequence[str]) -> dict[str, int]:
    found: dict[str, int] = {}
    if len(rest) % 2:
        raise ValueError(f"not understood: {' '.join(rest)[:80]}")
    for key, value in zip(rest[::2], rest[1::2], strict=True):
        if key not in known or key in found:
            raise ValueError(f"expected {', '.join(known)}, each once; found {key[:60]!r}")
        found[key] = integer(value)
    return found
