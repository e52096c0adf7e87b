"""Chips: the machine as planners see it. TOML files with the unit in every key's name.

A chip must state its alignment and native element type; everything else is optional, and a caller that needs
a missing figure raises an error through `Chip.require`. A file states all figures side by side; a `Chip` has
them in the parts that `onchip.machines.chip_parts` defines.
"""

from __future__ import annotations

import re
import warnings
from collections.abc import Mapping
from dataclasses import dataclass, field
from importlib import resources
from pathlib import Path
from typing import TYPE_CHECKING, Any

from onchip.base.close_names import did_you_mean
from onchip.base.errors import ChipError
from onchip.base.fields import OUTSIDE, Member, members
from onchip.base.files import read_bytes
from onchip.base.toml_file import parse_toml
from onchip.machines.chip_memory import Memory, parse_memories
from onchip.machines.chip_parts import (
    AccessCosts,
    PartialWeights,
    PatchSize,
    PEArray,
    Rates,
    SplitBuffer,
    figure,
    keys_of,
    part_of,
)
from onchip.machines.origin import ORIGIN_KEYS, Origin, parse_origin
from onchip.machines.tile_rates import TileRates, parse_tiles

__all__ = [
    "DATAFLOWS",
    "ELEMENTS",
    "RATES",
    "AccessCosts",
    "Chip",
    "Memory",
    "Origin",
    "PEArray",
    "PartialWeights",
    "PatchSize",
    "Rates",
    "SplitBuffer",
    "TileRates",
    "builtin_chips",
    "chip_of",
    "load_chip",
]

ELEMENTS = {"int8": 1, "int16": 2, "float16": 2, "bfloat16": 2, "float32": 4}
"""Native element types a chip may state, with their bytes."""

MAX_ALIGNMENT = 1 << 20

MAX_ACCUMULATOR = 8
"""The most bytes of a sum that is not complete."""

RATES = tuple(keys_of(Rates))
"""The keys for time and energy that a plan carries along: positive numbers, all optional."""

DATAFLOWS = ("ow-cout", "cin-cout", "oh-ow")
"""The two loops of a convolution that an array of processing elements unrolls, as Optimus names them."""

NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,63}")
"""The names of chips."""

NO_ARRAY = (1, 1, 16)
"""The tile of a chip that states no array or dataflow: sixteen channels, as Optimus' default chip has."""


@dataclass(frozen=True, slots=True)
class Chip:
    """One chip. Sizes in bytes, bandwidths in bytes per second, energies in picojoules.

    The processing elements are an `array` at `clock_hertz`; `dataflow` states the loops that they unroll.
    `access_costs` are the energy of an access to one word relative to one multiply-accumulate. With a split
    `buffer`, `scratchpad_bytes` is the sum of its parts. `feature_map_compression` is the number of bytes of
    feature map for each byte to or from DRAM.

    A chip with a `patch` stores feature maps in such patches. One with `partial_weights` computes that many
    output channels at a time. With `stages_strided`, a strided layer first copies its reads of the input.
    Sums that are not complete take `accumulator_bytes` each, if that is more than an element. `tiles` give
    times to nests.

    With several `memories` on chip (the first is preferred where rates do not decide) there is no
    `scratchpad_bytes`; a chip with one has it, and no `memories`.

    `family` is the heading that lists show the chip under, and `origin` says where its figures are from.
    Neither is a figure: chips that differ only there are equal.
    """

    name: str
    alignment_bytes: int = field(metadata=figure(most=MAX_ALIGNMENT))
    element: str = "int8"
    description: str = ""
    scratchpad_bytes: int | None = None
    rates: Rates = field(default=Rates())
    weight_scratchpad_bytes: int | None = None
    array: PEArray | None = None
    clock_hertz: float | None = None
    dataflow: str | None = None
    access_costs: AccessCosts | None = None
    buffer: SplitBuffer | None = None
    feature_map_compression: float | None = None
    patch: PatchSize | None = None
    partial_weights: PartialWeights | None = None
    stages_strided: bool = False
    accumulator_bytes: int | None = field(default=None, metadata=figure(most=MAX_ACCUMULATOR))
    memories: tuple[Memory, ...] = ()
    tiles: TileRates | None = field(default=None, metadata=OUTSIDE)
    family: str = field(default="", metadata=OUTSIDE, compare=False)
    origin: Origin | None = field(default=None, metadata=OUTSIDE, compare=False)

    @property
    def tile(self) -> tuple[int, int, int]:
        """(T_h, T_w, T_c): the least rows, columns and channels of a tile that keep the array busy.

        Source: Optimus eq. 4 and its footnote. `ow-cout` lays output columns along the array's columns and
        output channels along its rows, `oh-ow` output rows and columns, `cin-cout` channels both ways, of
        which a tile then has as many as the longer side. (1, 1, 16) without an array or a dataflow.
        """
        if self.array is None or self.dataflow is None:
            return NO_ARRAY
        rows, columns = self.array.rows, self.array.columns
        match self.dataflow:
            case "ow-cout":
                return 1, columns, rows
            case "oh-ow":
                return rows, columns, 1
        return 1, 1, max(rows, columns)

    def round_up(self, size: int) -> int:
        """Return `size` rounded up to the alignment, the bytes that it takes in the scratchpad."""
        return -(-size // self.alignment_bytes) * self.alignment_bytes

    def require(self, key: str, purpose: str) -> int | float:
        """Return the figure with the key; raises `ChipError` with its purpose when the chip has none."""
        value: int | float | None = keys_of(Chip)[key].of(self)
        if value is None:
            unknown = " (unknown: no document that its file names has it)" if key in self.unknown else ""
            raise ChipError(
                f"does not state {key}, which {purpose} needs{unknown}", where=f"chip {self.name}"
            )
        return value

    @property
    def unknown(self) -> tuple[str, ...]:
        """The keys of figures that the chip's file calls unknown."""
        return () if self.origin is None else self.origin.unknown

    def figures(self) -> dict[str, Any]:
        """Return all figures by their keys in a file, None for those that the chip does not state."""
        return {key: of.of(self) for key, of in keys_of(Chip).items()}

    if not TYPE_CHECKING:  # these names go with the release after 0.1

        def __getattr__(self, name: str) -> Any:
            """Return a figure of a part under its former name, its key, with a warning."""
            of = keys_of(Chip).get(name)
            if of is None or len(of.path) == 1:
                raise AttributeError(f"{type(self).__name__!r} object has no attribute {name!r}")
            warnings.warn(f"Chip.{name} is Chip.{'.'.join(of.path)} now", FutureWarning, stacklevel=2)
            return of.of(self)


def builtin_chips() -> tuple[Chip, ...]:
    """Return the chips that come with onchip, `generic` first."""
    folder = resources.files("onchip.machines") / "chips"
    chips = [
        parse_chip(entry.read_bytes(), entry.name)
        for entry in folder.iterdir()
        if entry.name.endswith(".toml")
    ]
    return tuple(sorted(chips, key=lambda c: (c.name != "generic", c.name)))


def load_chip(name_or_path: str | Path) -> Chip:
    """Return a built-in chip by name, or a user's own by the path of its TOML file.

    Raises `ChipError` naming the file and key for anything missing, unknown, of the wrong type or out of
    range.
    """
    text = str(name_or_path)
    if text.endswith(".toml") or "/" in text:
        return parse_chip(read_bytes(Path(text), error=ChipError), text)
    folder = resources.files("onchip.machines") / "chips"
    if NAME.fullmatch(text) and (file := folder / f"{text}.toml").is_file():  # of that name, as a test holds
        return parse_chip(file.read_bytes(), file.name)
    names = [chip.name for chip in builtin_chips()]
    hint = did_you_mean(text, names)
    raise ChipError(
        f"no such chip; {hint and hint + '? '}`onchip chips` lists those built in;"
        " or give the path of a .toml file",
        where=text,
    )


def parse_chip(content: bytes, where: str) -> Chip:
    """Return the chip in a TOML file's bytes; `where` names the file in errors."""
    return chip_of(parse_toml(content, what="a chip", where=where, error=ChipError), where)


def chip_of(table: Mapping[str, Any], where: str) -> Chip:
    """Return the chip that a table of its keys describes; `where` names its place in errors."""
    table, keys = dict(table), keys_of(Chip)
    allowed = set(keys) - {"memories"} | {"memory", "tiles", *ORIGIN_KEYS}
    for key in table:
        if key not in allowed:
            hint = did_you_mean(key, allowed, otherwise="docs/chips.md lists those that there are")
            raise ChipError(f"unknown key; {hint}", where=where, item=key)
    for key in ("name", "alignment_bytes", "element"):
        if table.get(key) is None:
            raise ChipError("is missing", where=where, item=key)
    for key in ("name", "element", "description", "family"):
        if not isinstance(table.get(key, ""), str):
            raise ChipError("must be a string", where=where, item=key)
    if not NAME.fullmatch(table["name"]):
        raise ChipError("must be letters, digits, '.', '_' and '-'", where=where, item="name")
    if table["element"] not in ELEMENTS:
        raise ChipError(f"must be one of {', '.join(ELEMENTS)}", where=where, item="element")
    for key, of in keys.items():
        value = table.get(key)
        if of.kind is int and value is not None and (type(value) is not int or not 1 <= value <= of.most):
            raise ChipError(f"must be a whole number from 1 to {of.most:,}", where=where, item=key)
    for key, of in keys.items():
        value = table.get(key)
        number = type(value) in (int, float)
        if of.kind is float and value is not None and not (number and 0 < value < 1e18):
            raise ChipError("must be a positive number", where=where, item=key)
    if type(table.get("stages_strided", False)) is not bool:
        raise ChipError("must be true or false", where=where, item="stages_strided")
    if "dataflow" in table and table["dataflow"] not in DATAFLOWS:
        raise ChipError(f"must be one of {', '.join(DATAFLOWS)}", where=where, item="dataflow")
    origin = parse_origin(table, keys, where)
    memories = parse_memories(table.pop("memory"), where) if "memory" in table else ()
    tiles = parse_tiles(table.pop("tiles"), where) if "tiles" in table else None
    if tiles is not None and len(memories) > 1:
        raise ChipError("give no times on a chip with several memories", where=where, item="tiles")
    if memories:
        _as_scratchpad(table, memories, where)
    _check_together(table, where)
    table["memories"] = memories if len(memories) > 1 else ()
    parts = {m.name: part for m in members(Chip) if (part := _read(m, table)) is not None}
    chip = Chip(**parts, tiles=tiles, family=table.get("family", ""), origin=origin)
    _check_contradictions(chip, where)
    return chip


def _read(of: Member, table: Mapping[str, Any]) -> Any:
    """Return the value of a field of the chip; None where the table does not state it."""
    part = part_of(of)
    if part is None:
        return table.get(of.key)
    given = {m.name: value for m in members(part) if (value := table.get(m.key)) is not None}
    return part(**given) if all(m.name in given for m in members(part) if m.needed) else None


def _as_scratchpad(table: dict[str, Any], memories: tuple[Memory, ...], where: str) -> None:
    """Refuse keys that `[[memory]]` states instead; a single memory is the scratchpad."""
    for key in ("scratchpad_bytes", *keys_of(SplitBuffer)):
        if key in table:
            raise ChipError("is for a chip without [[memory]]", where=where, item=key)
    if len(memories) > 1:
        if any(m.bytes_per_second is None for m in memories) and "scratchpad_bytes_per_second" not in table:
            raise ChipError(
                "is missing: several memories are told apart by it",
                where=where,
                item="memory bytes_per_second",
            )
        return
    (only,) = memories
    table["scratchpad_bytes"] = only.bytes
    for key in ("bytes_per_second", "picojoules_per_byte"):
        value = getattr(only, key)
        if value is not None and table.setdefault(f"scratchpad_{key}", value) != value:
            raise ChipError("is not the memory's", where=where, item=f"scratchpad_{key}")


def _check_together(table: Mapping[str, Any], where: str) -> None:
    """Refuse figures that have no meaning without others."""
    parts = [part for part in map(part_of, members(Chip)) if part is not None]
    together = {part: [m.key for m in members(part) if m.needed] for part in parts}
    for group in sorted(together.values(), key=len):
        missing = [key for key in group if key not in table]
        if missing and len(missing) < len(group):
            raise ChipError(
                f"must be there, too: {', '.join(group)} go together", where=where, item=missing[0]
            )
    without = {"dataflow": together[PEArray]}
    without |= {m.key: together[part] for part in parts for m in members(part) if not m.needed}
    for key, group in without.items():
        if key in table and any(other not in table for other in group):
            raise ChipError(f"means nothing without {' and '.join(group)}", where=where, item=key)


def _check_contradictions(chip: Chip, where: str) -> None:
    """Refuse figures that contradict others."""
    if chip.buffer is not None and chip.scratchpad_bytes != chip.buffer.bytes:
        raise ChipError(
            f"must be {chip.buffer.bytes}, the sum of {', '.join(keys_of(SplitBuffer))}",
            where=where,
            item="scratchpad_bytes",
        )
    if chip.feature_map_compression is not None and chip.feature_map_compression < 1:
        raise ChipError("must be at least 1", where=where, item="feature_map_compression")
