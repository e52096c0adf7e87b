"""The parts of a chip: figures that have a meaning together, and the keys by which its file states them.

A file states the figures of all parts side by side. The key of a figure is its field's name, or the key in
the field's mark (`onchip.base.fields`). A part's fields without a default go together: a file states all of
them or none, and the part's other fields mean nothing without them.
"""

from __future__ import annotations

from dataclasses import dataclass, field, fields, is_dataclass
from functools import cache
from typing import Any, cast

from onchip.base.fields import Member, members, wire
from onchip.base.units import MAX_BYTES

__all__ = [
    "AccessCosts",
    "Key",
    "PEArray",
    "PartialWeights",
    "PatchSize",
    "Rates",
    "SplitBuffer",
    "figure",
    "keys_of",
    "part_of",
]

MAX_PES = 1 << 16
MAX_PATCH = 1 << 10
MAX_WEIGHT_BUFFERS = 16


def figure(key: str = "", *, most: int = MAX_BYTES) -> dict[str, Any]:
    """Return the metadata of a figure with another key than its name, or with a limit for whole numbers."""
    return {**wire(key), "most": most}


@dataclass(frozen=True, slots=True)
class Rates:
    """The figures for time and energy that a plan carries along: bytes and multiply-accumulates.

    `macs_per_second` is the sustained rate of all multipliers together. `scratchpad_bytes_per_second` is the
    bandwidth between scratchpad and multipliers, which bounds an operator without multiplications.
    """

    dram_bytes_per_second: float | None = None
    dram_picojoules_per_byte: float | None = None
    macs_per_second: float | None = None
    scratchpad_bytes_per_second: float | None = None
    mac_picojoules: float | None = None
    scratchpad_picojoules_per_byte: float | None = None


@dataclass(frozen=True, slots=True)
class PEArray:
    """The array of processing elements (PEs): `rows` x `columns`, each with a register file."""

    rows: int = field(metadata=figure("pe_rows", most=MAX_PES))
    columns: int = field(metadata=figure("pe_columns", most=MAX_PES))
    register_file_bytes: int | None = None


@dataclass(frozen=True, slots=True)
class AccessCosts:
    """The energy of an access to one word, in multiply-accumulates; `array` is from one PE to the next."""

    dram: float = field(metadata=figure("dram_access_macs"))
    buffer: float = field(metadata=figure("buffer_access_macs"))
    array: float = field(metadata=figure("array_access_macs"))
    register: float = field(metadata=figure("register_access_macs"))


@dataclass(frozen=True, slots=True)
class SplitBuffer:
    """The three parts of a buffer that is split for inputs, outputs and weights."""

    input_bytes: int = field(metadata=figure("input_buffer_bytes"))
    output_bytes: int = field(metadata=figure("output_buffer_bytes"))
    weight_bytes: int = field(metadata=figure("weight_buffer_bytes"))

    @property
    def bytes(self) -> int:
        """The sum of the parts, which is the chip's `scratchpad_bytes`."""
        return self.input_bytes + self.output_bytes + self.weight_bytes


@dataclass(frozen=True, slots=True)
class PatchSize:
    """The patches that feature maps are stored in: `rows` x `columns` pixels of one channel."""

    rows: int = field(metadata=figure("patch_rows", most=MAX_PATCH))
    columns: int = field(metadata=figure("patch_columns", most=MAX_PATCH))


@dataclass(frozen=True, slots=True)
class PartialWeights:
    """The weights that are held at a time: those of `channels` output channels, `buffers` times.

    With two buffers the chip loads the next weights while it computes. None counts as one buffer.
    """

    channels: int = field(metadata=figure("parallel_channels", most=MAX_PES))
    buffers: int | None = field(default=None, metadata=figure("weight_buffers", most=MAX_WEIGHT_BUFFERS))


@dataclass(frozen=True, slots=True)
class Key:
    """A key of a chip's file: the fields that lead to its figure, the figure's type, its limit if whole."""

    path: tuple[str, ...]
    kind: Any
    most: int

    def of(self, chip: object) -> Any:
        """Return the figure of a chip; None if it has no such part."""
        found: Any = chip
        for name in self.path:
            found = None if found is None else getattr(found, name)
        return found


def part_of(m: Member) -> type | None:
    """Return the record of a field that is a part of its own; None for a single figure."""
    return cast("type", m.plain) if is_dataclass(m.plain) else None


@cache
def keys_of(record: type) -> dict[str, Key]:
    """Return all keys of a record in the order of its fields; those of a part stand in the part's place."""
    most = {f.name: f.metadata.get("most", MAX_BYTES) for f in fields(record)}
    found: dict[str, Key] = {}
    for m in members(record):
        if part := part_of(m):
            inside = keys_of(part).items()
            found |= {key: Key((m.name, *of.path), of.kind, of.most) for key, of in inside}
        else:
            found[m.key] = Key((m.name,), m.plain, most[m.name])
    return found
