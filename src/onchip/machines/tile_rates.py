"""The figures of a chip that give times to tiles: channels to DRAM, an array with sides, rates of a step.

All are whole numbers: no float enters the time of a nest. docs/nest-times.md states the law.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

from onchip.base.errors import ChipError
from onchip.base.fields import LIMIT, WRITTEN

__all__ = ["MAX_CHANNELS", "MAX_SIDES", "ArraySide", "Channel", "TileRates", "parse_tiles"]

MAX_CHANNELS = 64
MAX_SIDES = 3


_LEAST = {"bytes_per_second": 1, "transfer_picoseconds": 0, "piece_picoseconds": 0, "burst_bytes": 1}
"""The least of each figure of a channel."""


@dataclass(frozen=True, slots=True)
class Channel:
    """A channel between DRAM and the scratchpad, which makes one transfer at a time.

    A transfer takes `transfer_picoseconds`, and `piece_picoseconds` for every contiguous piece, which is
    rounded up to `burst_bytes`. It `loads`, it `stores`, or both.
    """

    bytes_per_second: int
    transfer_picoseconds: int = 0
    piece_picoseconds: int = 0
    burst_bytes: int = 1
    loads: bool = field(default=True, metadata=WRITTEN)
    stores: bool = field(default=True, metadata=WRITTEN)


@dataclass(frozen=True, slots=True)
class ArraySide:
    """A side of the array of multipliers, `size` long: axes of outputs lie along it, or sums do."""

    kind: Literal["out", "sum"]
    size: int


@dataclass(frozen=True, slots=True)
class TileRates:
    """The rates at which a chip works on tiles. A rate that is None limits nothing.

    Every step takes `step_cycles` of the clock, and `block_cycles` for every block of outputs whose sums the
    array holds at once: what it takes to fill and to drain. `sides` are those of the array of multipliers;
    with `own_operands` each is fed apart, as in a vector unit, and not each row and column together.
    """

    clock_hertz: int
    channels: tuple[Channel, ...]
    step_cycles: int = 0
    sides: tuple[ArraySide, ...] = ()
    vector_operations_per_second: int | None = None
    scratchpad_bytes_per_second: int | None = None
    block_cycles: int = 0
    own_operands: bool = False

    def __post_init__(self) -> None:
        if not 1 <= len(self.channels) <= MAX_CHANNELS or len(self.sides) > MAX_SIDES:
            raise ValueError(f"tiles take 1 to {MAX_CHANNELS} channels, and up to {MAX_SIDES} sides")
        figures: list[tuple[str, int | None, int]] = [
            ("clock_hertz", self.clock_hertz, 1),
            ("step_cycles", self.step_cycles, 0),
            ("block_cycles", self.block_cycles, 0),
            ("vector_operations_per_second", self.vector_operations_per_second, 1),
            ("scratchpad_bytes_per_second", self.scratchpad_bytes_per_second, 1),
        ]
        for n, channel in enumerate(self.channels, 1):
            for key, least in _LEAST.items():
                figures.append((f"{key} of channel {n}", getattr(channel, key), least))
        figures += [(f"size of side {n}", side.size, 1) for n, side in enumerate(self.sides, 1)]
        for name, figure, least in figures:
            if figure is not None and not least <= figure < LIMIT:
                raise ValueError(f"{name} is {figure}, not from {least} to below 10^18")
        for way in ("loads", "stores"):
            if not any(getattr(channel, way) for channel in self.channels):
                raise ValueError(f"no channel of the tiles {way}")

    def first(self, way: Literal["loads", "stores"]) -> int:
        """Return the first channel that loads, or stores: the one where a plan names none."""
        return next(n for n, channel in enumerate(self.channels) if getattr(channel, way))


_TABLE = {
    "clock_hertz": int,
    "step_cycles": int,
    "block_cycles": int,
    "own_operands": bool,
    "vector_operations_per_second": int,
    "scratchpad_bytes_per_second": int,
    "channel": list,
    "side": list,
}
_CHANNEL = {
    "bytes_per_second": int,
    "transfer_picoseconds": int,
    "piece_picoseconds": int,
    "burst_bytes": int,
    "loads": bool,
    "stores": bool,
}
_SIDE = {"kind": str, "size": int}


def parse_tiles(table: Any, where: str) -> TileRates:
    """Return the tile rates in a chip's file: a table `[tiles]` with `[[tiles.channel]]`, `[[tiles.side]]`.

    Raises `ChipError` naming the file and the key.
    """
    given = _checked(table, _TABLE, ("clock_hertz", "channel"), "tiles", where)
    channels = [
        Channel(**_checked(one, _CHANNEL, ("bytes_per_second",), f"tiles channel {n}", where))
        for n, one in enumerate(given.pop("channel"), 1)
    ]
    sides = []
    for n, one in enumerate(given.pop("side", []), 1):
        side = _checked(one, _SIDE, ("kind", "size"), f"tiles side {n}", where)
        if side["kind"] not in ("out", "sum"):
            raise ChipError("must be out or sum", where=where, item=f"tiles side {n} kind")
        sides.append(ArraySide(side["kind"], side["size"]))
    try:
        return TileRates(channels=tuple(channels), sides=tuple(sides), **given)
    except ValueError as problem:
        raise ChipError(str(problem), where=where, item="tiles") from None


def _checked(
    table: Any, known: Mapping[str, type], needed: tuple[str, ...], item: str, where: str
) -> dict[str, Any]:
    """Return a copy of a table that has known keys of their types, and the needed ones."""
    if not isinstance(table, dict):
        raise ChipError("must be a table", where=where, item=item)
    for key, value in table.items():
        if key not in known:
            raise ChipError(
                f"unknown key; there are {', '.join(known)}", where=where, item=f"{item} {key[:60]}"
            )
        if type(value) is not known[key]:
            kinds = {int: "a whole number", bool: "true or false", str: "a string", list: "tables"}
            raise ChipError(f"must be {kinds[known[key]]}", where=where, item=f"{item} {key}")
    for key in needed:
        if key not in table:
            raise ChipError("is missing", where=where, item=f"{item} {key}")
    return dict(table)
