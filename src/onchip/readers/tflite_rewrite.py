"""A `.tflite` file with parts replaced: a new head in front of the old bytes.

The offsets of a flatbuffer point forwards, so the new tables precede the file and point into it, and not one
byte of the original changes: everything that is not replaced is the same by construction. The new head is
padded to a multiple of 64 bytes, so that weights keep their alignment.
"""

from __future__ import annotations

import struct
from collections.abc import Sequence
from typing import Any

from onchip.base.errors import ModelError
from onchip.readers.tflite_graph import TfliteGraph, schema

__all__ = ["rewritten"]

_ALIGNMENT = 64
_MODEL = ("version", "operator_codes", "subgraphs", "description", "buffers", "metadata_buffer", "metadata",
          "signature_defs")  # fmt: skip
_SUBGRAPH = ("tensors", "inputs", "outputs", "operators", "name")
_BARE = frozenset({"description", "metadata_buffer", "metadata", "signature_defs"})

Field = tuple[int, str, int]
"""(slot, `value` | `old` | `new`, the number, the position in the old file, or the label)"""


class _Head:
    """Tables and vectors at the start of a file; a label stands for a part that is appended later."""

    def __init__(self) -> None:
        self.bytes = bytearray(8)
        self.bytes[4:8] = b"TFL3"
        self.at: dict[int, int] = {}
        self.links: list[tuple[int, str, int]] = []  # (position of the offset, old | new, where it leads)

    def table(self, label: int, fields: Sequence[Field]) -> None:
        slots = max(slot for slot, _, _ in fields) + 1
        size = 4 + 2 * slots
        while (len(self.bytes) + size) % 4:
            self.bytes.append(0)
        offsets = [0] * slots
        for i, (slot, _, _) in enumerate(fields):
            offsets[slot] = 4 + 4 * i
        self.bytes += struct.pack(f"<HH{slots}H", size, 4 + 4 * len(fields), *offsets)
        self.at[label] = len(self.bytes)
        self.bytes += struct.pack("<i", size)
        for _, kind, value in fields:
            self.word(kind, value)

    def word(self, kind: str, value: int) -> None:
        """Append a number, or an offset to be filled in."""
        if kind != "value":
            self.links.append((len(self.bytes), kind, value))
        self.bytes += struct.pack("<I", value if kind == "value" else 0)

    def vector(self, label: int, rows: Sequence[tuple[str, int]]) -> None:
        """Append a vector of offsets, or of 32-bit numbers."""
        self.align(4)
        self.at[label] = len(self.bytes)
        self.word("value", len(rows))
        for kind, value in rows:
            self.word(kind, value)

    def blob(self, label: int, data: bytes) -> None:
        """Append a vector of bytes on a 16-byte boundary, with a zero behind it, as for a string."""
        self.align(16, 4)
        self.at[label] = len(self.bytes)
        self.bytes += struct.pack("<I", len(data)) + data + b"\0"

    def align(self, to: int, ahead: int = 0) -> None:
        self.bytes += bytes(-(len(self.bytes) + ahead) % to)

    def before(self, content: bytes, root: int) -> bytes:
        """Return the whole file."""
        self.align(_ALIGNMENT)
        size = len(self.bytes)
        struct.pack_into("<I", self.bytes, 0, self.at[root])
        for at, kind, value in self.links:
            target = value + size if kind == "old" else self.at[value]
            struct.pack_into("<I", self.bytes, at, target - at)
        return bytes(self.bytes) + content


def rewritten(
    graph: TfliteGraph,
    *,
    operators: Sequence[int] | None = None,
    inputs: Sequence[int] | None = None,
    outputs: Sequence[int] | None = None,
    metadata: tuple[str, bytes] | None = None,
    bare: bool = False,
) -> bytes:
    """Return the file with these operators of its own in this order, these inputs, outputs and metadata.

    They are those of the first subgraph; further subgraphs stay as they are. A None keeps the file's own. An
    entry of `metadata` replaces one of its name; `bare` leaves out all metadata and signatures. Raises
    `ModelError` for a file with data behind the flatbuffer: it would move.
    """
    tflite, content = schema(), graph.content
    model = tflite.Model.GetRootAs(content, 0)
    _refuse_data_behind(model, graph)
    subgraph = model.Subgraphs(0)
    head = _Head()
    root, graphs, first = 0, 1, 2  # labels
    buffers, entries, lists = 4, 5, iter(range(6, 10))
    entry, name, buffer, blob = 10, 11, 12, 13
    old = {what: _vector(model, slot) for slot, what in enumerate(_MODEL) if slot}
    fields: list[Field] = [(0, "value", model.Version())]
    for slot, what in enumerate(_MODEL):
        if what == "subgraphs":
            fields.append((slot, "new", graphs))
        elif what in ("buffers", "metadata") and metadata is not None:
            fields.append((slot, "new", buffers if what == "buffers" else entries))
        elif slot and old[what] is not None and not (bare and what in _BARE):
            fields.append((slot, "old", old[what] or 0))
    head.table(root, fields)
    more = [("old", int(model.Subgraphs(i)._tab.Pos)) for i in range(1, model.SubgraphsLength())]
    head.vector(graphs, [("new", first), *more])

    parts: list[Field] = []
    written: list[tuple[int, list[tuple[str, int]]]] = []
    chosen = {
        "inputs": None if inputs is None else [("value", t) for t in inputs],
        "outputs": None if outputs is None else [("value", t) for t in outputs],
        "operators": None
        if operators is None
        else [("old", int(subgraph.Operators(i)._tab.Pos)) for i in operators],
    }
    for slot, what in enumerate(_SUBGRAPH):
        rows, there = chosen.get(what), _vector(subgraph, slot)
        if rows is not None:
            label = next(lists)
            written.append((label, rows))
            parts.append((slot, "new", label))
        elif there is not None:
            parts.append((slot, "old", there))
    head.table(first, parts)
    for label, rows in written:
        head.vector(label, rows)

    if metadata is not None:
        count = model.BuffersLength()
        rows = [("old", int(model.Buffers(i)._tab.Pos)) for i in range(count)]
        head.vector(buffers, [*rows, ("new", buffer)])
        kept = [model.Metadata(i) for i in range(model.MetadataLength())]
        rows = [("old", int(m._tab.Pos)) for m in kept if bytes(m.Name() or b"") != metadata[0].encode()]
        head.vector(entries, [*rows, ("new", entry)])
        head.table(entry, [(0, "new", name), (1, "value", count)])
        head.table(buffer, [(0, "new", blob)])
        head.blob(name, metadata[0].encode())
        head.blob(blob, metadata[1])
    return head.before(content, root)


def _vector(table: Any, slot: int) -> int | None:
    """Return the position of a table's vector, string or table in the file; None if it has none."""
    offset = table._tab.Offset(4 + 2 * slot)
    return int(table._tab.Indirect(table._tab.Pos + offset)) if offset else None


def _refuse_data_behind(model: Any, graph: TfliteGraph) -> None:
    if any(model.Buffers(i).Offset() > 1 for i in range(model.BuffersLength())):
        raise ModelError("keeps weights behind the flatbuffer: it cannot be rewritten", where=graph.where)
    subgraphs = [model.Subgraphs(i) for i in range(model.SubgraphsLength())]
    operators = (part.Operators(i) for part in subgraphs for i in range(part.OperatorsLength()))
    if any(operator.LargeCustomOptionsOffset() > 1 for operator in operators):
        raise ModelError("keeps options behind the flatbuffer: it cannot be rewritten", where=graph.where)
