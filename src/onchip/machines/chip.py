"""Chips: the machine as planners see it. TOML files with the unit in every key's name.

A chip must state its alignment and native element type; everything else is optional, and a caller that needs
a missing figure raises an error through `Chip.require`.
"""

from __future__ import annotations

import difflib
import re
from collections.abc import Mapping
from dataclasses import dataclass, fields
from importlib import resources
from pathlib import Path
from typing import Any

from onchip.base.errors import ChipError
from onchip.base.files import read_bytes
from onchip.base.toml_file import parse_toml
from onchip.base.units import MAX_BYTES
from onchip.machines.chip_memory import Memory, parse_memories

__all__ = ["DATAFLOWS", "ELEMENTS", "RATES", "Chip", "Memory", "builtin_chips", "chip_of", "load_chip"]

ELEMENTS = {"int8": 1, "int16": 2, "float16": 2, "bfloat16": 2, "float32": 4}
"""Native element types a chip may state, with their bytes."""

MAX_ALIGNMENT = 1 << 20

RATES = (
    "dram_bytes_per_second",
    "dram_picojoules_per_byte",
    "macs_per_second",
    "scratchpad_bytes_per_second",
    "mac_picojoules",
    "scratchpad_picojoules_per_byte",
)
"""The keys for time and energy that a plan carries along: positive numbers, all optional."""

ACCESSES = ("dram_access_macs", "buffer_access_macs", "array_access_macs", "register_access_macs")
"""The keys for the energy of an access to one word, in multiply-accumulates."""

SIZES = (
    "scratchpad_bytes",
    "weight_scratchpad_bytes",
    "input_buffer_bytes",
    "output_buffer_bytes",
    "weight_buffer_bytes",
    "register_file_bytes",
)

SPLIT = ("input_buffer_bytes", "output_buffer_bytes", "weight_buffer_bytes")

DATAFLOWS = ("ow-cout", "cin-cout", "oh-ow")
"""The two loops of a convolution that an array of processing elements unrolls, as Optimus names them."""

MAX_PES = 1 << 16
MAX_PATCH = 1 << 10
MAX_WEIGHT_BUFFERS = 16
NO_ARRAY = (1, 1, 16)
"""The tile of a chip that states no array or dataflow: sixteen channels, as Optimus' default chip has."""


@dataclass(frozen=True, slots=True)
class Chip:
    """One chip. Sizes in bytes, bandwidths in bytes per second, energies in picojoules.

    `macs_per_second` is the sustained rate of all its multipliers together. `scratchpad_bytes_per_second` is
    the bandwidth between scratchpad and multipliers, which bounds an operator without multiplications.

    The processing elements are an array of `pe_rows` x `pe_columns`, each with a register file of
    `register_file_bytes`, at `clock_hertz`; `dataflow` states the loops that they unroll. `dram_access_macs`
    and its like are the energy of an access to one word relative to one multiply-accumulate. A chip whose
    buffer is split for inputs, outputs and weights states all three parts and their sum as
    `scratchpad_bytes`. `feature_map_compression` is the number of bytes of feature map for each byte to or
    from DRAM.

    A chip with `patch_rows` x `patch_columns` stores feature maps in such patches, computes
    `parallel_channels` output channels at a time and holds their weights `weight_buffers` times (2: the next
    ones are loaded meanwhile). With `stages_strided`, a strided layer first copies its reads of the input.

    With several `memories` on chip (the first is preferred where rates do not decide) there is no
    `scratchpad_bytes`; a chip with one has it, and no `memories`.
    """

    name: str
    alignment_bytes: int
    element: str = "int8"
    description: str = ""
    scratchpad_bytes: int | None = None
    dram_bytes_per_second: float | None = None
    dram_picojoules_per_byte: float | None = None
    macs_per_second: float | None = None
    scratchpad_bytes_per_second: float | None = None
    mac_picojoules: float | None = None
    scratchpad_picojoules_per_byte: float | None = None
    weight_scratchpad_bytes: int | None = None
    pe_rows: int | None = None
    pe_columns: int | None = None
    register_file_bytes: int | None = None
    clock_hertz: float | None = None
    dataflow: str | None = None
    dram_access_macs: float | None = None
    buffer_access_macs: float | None = None
    array_access_macs: float | None = None
    register_access_macs: float | None = None
    input_buffer_bytes: int | None = None
    output_buffer_bytes: int | None = None
    weight_buffer_bytes: int | None = None
    feature_map_compression: float | None = None
    patch_rows: int | None = None
    patch_columns: int | None = None
    parallel_channels: int | None = None
    weight_buffers: int | None = None
    stages_strided: bool = False
    memories: tuple[Memory, ...] = ()

    @property
    def tile(self) -> tuple[int, int, int]:
        """(T_h, T_w, T_c): the least rows, columns and channels of a tile that keep the array busy.

        Source: Optimus eq. 4 and its footnote. `ow-cout` lays output columns along the array's columns and
        output channels along its rows, `oh-ow` output rows and columns, `cin-cout` channels both ways, of
        which a tile then has as many as the longer side. (1, 1, 16) without an array or a dataflow.
        """
        if self.dataflow is None or self.pe_rows is None or self.pe_columns is None:
            return NO_ARRAY
        match self.dataflow:
            case "ow-cout":
                return 1, self.pe_columns, self.pe_rows
            case "oh-ow":
                return self.pe_rows, self.pe_columns, 1
        return 1, 1, max(self.pe_rows, self.pe_columns)

    def round_up(self, size: int) -> int:
        """Return `size` rounded up to the alignment, the bytes that it takes in the scratchpad."""
        return -(-size // self.alignment_bytes) * self.alignment_bytes

    def require(self, key: str, purpose: str) -> int | float:
        """Return the figure `key`; raises `ChipError` with its purpose when the chip has none."""
        value: int | float | None = getattr(self, key)
        if value is None:
            raise ChipError(f"does not state {key}, which {purpose} needs", where=f"chip {self.name}")
        return value


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
    known = builtin_chips()
    for chip in known:
        if chip.name == text:
            return chip
    names = ", ".join(c.name for c in known)
    raise ChipError(f"no such chip; built in: {names}; or give the path of a .toml file", where=text)


def parse_chip(content: bytes, where: str) -> Chip:
    """Return the chip in a TOML file's bytes; `where` names the file in errors."""
    return chip_of(parse_toml(content, what="a chip", where=where, error=ChipError), where)


def chip_of(table: Mapping[str, Any], where: str) -> Chip:
    """Return the chip that a table of its keys describes; `where` names its place in errors."""
    table = dict(table)
    allowed = {f.name for f in fields(Chip)} - {"memories"} | {"memory"}
    for key in table:
        if key not in allowed:
            close = difflib.get_close_matches(key, allowed, n=3, cutoff=0.5)
            hint = (
                f"did you mean {' or '.join(close)}" if close else "docs/chips.md lists those that there are"
            )
            raise ChipError(f"unknown key; {hint}", where=where, item=key)
    for key in ("name", "alignment_bytes", "element"):
        if key not in table:
            raise ChipError("is missing", where=where, item=key)
    for key in ("name", "element", "description"):
        if not isinstance(table.get(key, ""), str):
            raise ChipError("must be a string", where=where, item=key)
    if not re.fullmatch(r"[A-Za-z0-9][A-Za-z0-9._-]{0,63}", table["name"]):
        raise ChipError("must be letters, digits, '.', '_' and '-'", where=where, item="name")
    if table["element"] not in ELEMENTS:
        raise ChipError(f"must be one of {', '.join(ELEMENTS)}", where=where, item="element")
    most = {
        "alignment_bytes": MAX_ALIGNMENT,
        "pe_rows": MAX_PES,
        "pe_columns": MAX_PES,
        "patch_rows": MAX_PATCH,
        "patch_columns": MAX_PATCH,
        "parallel_channels": MAX_PES,
        "weight_buffers": MAX_WEIGHT_BUFFERS,
        **dict.fromkeys(SIZES, MAX_BYTES),
    }
    for key, limit in most.items():
        value = table.get(key)
        if value is not None and (type(value) is not int or not 1 <= value <= limit):
            raise ChipError(f"must be a whole number from 1 to {limit:,}", where=where, item=key)
    for key in (*RATES, *ACCESSES, "clock_hertz", "feature_map_compression"):
        value = table.get(key)
        if value is not None and (type(value) not in (int, float) or not 0 < value < 1e18):
            raise ChipError("must be a positive number", where=where, item=key)
    if type(table.get("stages_strided", False)) is not bool:
        raise ChipError("must be true or false", where=where, item="stages_strided")
    if "dataflow" in table and table["dataflow"] not in DATAFLOWS:
        raise ChipError(f"must be one of {', '.join(DATAFLOWS)}", where=where, item="dataflow")
    memories = parse_memories(table.pop("memory"), where) if "memory" in table else ()
    if memories:
        _as_scratchpad(table, memories, where)
    _check_together(table, where)
    return Chip(**table, memories=memories if len(memories) > 1 else ())


def _as_scratchpad(table: dict[str, Any], memories: tuple[Memory, ...], where: str) -> None:
    """Refuse keys that `[[memory]]` states instead; a single memory is the scratchpad."""
    for key in ("scratchpad_bytes", *SPLIT):
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


def _check_together(table: dict[str, Any], where: str) -> None:
    """Refuse figures that have no meaning without others, or contradict them."""
    groups = (("pe_rows", "pe_columns"), ("patch_rows", "patch_columns"), SPLIT, ACCESSES)
    for group in groups:
        missing = [key for key in group if key not in table]
        if missing and len(missing) < len(group):
            raise ChipError(
                f"must be there, too: {', '.join(group)} go together", where=where, item=missing[0]
            )
    for key in ("dataflow", "register_file_bytes"):
        if key in table and "pe_rows" not in table:
            raise ChipError("means nothing without pe_rows and pe_columns", where=where, item=key)
    if "weight_buffers" in table and "parallel_channels" not in table:
        raise ChipError("means nothing without parallel_channels", where=where, item="weight_buffers")
    if SPLIT[0] in table:
        whole = sum(table[key] for key in SPLIT)
        if table.get("scratchpad_bytes") != whole:
            raise ChipError(
                f"must be {whole}, the sum of {', '.join(SPLIT)}", where=where, item="scratchpad_bytes"
            )
    if table.get("feature_map_compression", 1) < 1:
        raise ChipError("must be at least 1", where=where, item="feature_map_compression")
