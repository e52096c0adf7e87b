"""MiniMalloc's CSV files: buffers with their names in, the same with offsets out."""

from __future__ import annotations

import csv
import io
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from onchip.base.allowance import reading, spend
from onchip.base.cells import neutral, original
from onchip.base.errors import InputError
from onchip.base.files import read_bytes, write_atomically
from onchip.planners.packing.buffers import Buffer

__all__ = ["BufferFile", "read_buffers", "write_buffers"]

ALIASES = {"buffer": "id", "buffer_id": "id", "begin": "lower", "start": "lower", "end": "upper"}
COLUMNS = ("id", "lower", "upper", "size", "alignment", "hint", "gaps", "offset")


@dataclass(frozen=True, slots=True)
class BufferFile:
    """Buffers in file order, and the name of each: any text, unique."""

    ids: tuple[str, ...]
    buffers: tuple[Buffer, ...]


def read_buffers(path: Path) -> BufferFile:
    """Return the buffers of a CSV file: `id,lower,upper,size[,alignment][,gaps][,offset]`, in any order.

    Live ranges and gaps are half-open; if the file says `end` instead of `upper` they include that step.
    `gaps` are `lower-upper`, separated by spaces. An `offset` fixes the buffer there; an empty one leaves it
    free. `hint` is ignored. Raises `InputError` naming the file and line for anything else.
    """
    content = read_bytes(path, error=InputError)
    with reading(str(path), len(content)):
        return _read(content, path)


def _read(content: bytes, path: Path) -> BufferFile:
    try:
        text = content.decode("utf-8-sig")
    except UnicodeDecodeError:
        raise InputError("is not UTF-8 text", where=str(path)) from None
    rows = csv.reader(io.StringIO(text, newline=""), strict=True)
    try:
        header = [name.strip() for name in next(rows, [])]
        names = [ALIASES.get(name, name) for name in header]
        missing = {"id", "lower", "upper", "size"} - set(names)
        if missing:
            raise ValueError(f"has no column {', '.join(sorted(missing))}")
        if unknown := [name for name in names if name not in COLUMNS]:
            raise ValueError(f"has a column it should not: {unknown[0]!r}")
        if len(set(names)) < len(names):
            raise ValueError("has a column twice")
        last = 1 if "end" in header else 0
        found: dict[str, Buffer] = {}
        for row in rows:
            spend(lambda: f"line {rows.line_num}")
            if not row:
                continue
            if len(row) != len(names):
                raise ValueError(f"{len(row)} values for {len(names)} columns")
            values = dict(zip(names, row, strict=True))
            name = original(values["id"])
            if name in found:
                raise ValueError(f"a second buffer {name!r}")
            found[name] = _buffer(values, last)
    except (ValueError, csv.Error) as problem:
        line = f"line {max(rows.line_num, 1)}"
        raise InputError(str(problem), where=str(path), item=line) from None
    return BufferFile(tuple(found), tuple(found.values()))


def _buffer(values: dict[str, str], last: int) -> Buffer:
    offset = values.get("offset", "").strip()
    return Buffer(
        _number(values, "lower"),
        _number(values, "upper") + last,
        _number(values, "size"),
        _number(values, "alignment") if values.get("alignment", "").strip() else 1,
        _number(values, "offset") if offset else None,
        tuple(_gap(text, last) for text in values.get("gaps", "").split()),
    )


def _number(values: dict[str, str], name: str) -> int:
    return _integer(values[name], f"{name} is no whole number")


def _integer(text: str, problem: str) -> int:
    digits = text.strip().removeprefix("-")
    if not (digits.isascii() and digits.isdigit() and len(digits) <= 30):
        raise ValueError(f"{problem}: {text[:40]!r}")
    return int(text)


def _gap(text: str, last: int) -> tuple[int, int]:
    if "@" in text:
        raise ValueError(f"a gap in which a part of the buffer stays is not supported: {text[:40]!r}")
    at = text.find("-", 1)  # the first sign may be that of a negative time
    if at < 0:
        raise ValueError(f"a gap is not written lower-upper: {text[:40]!r}")
    problem = "a gap is not written lower-upper"
    return _integer(text[:at], problem), _integer(text[at + 1 :], problem) + last


def write_buffers(
    path: Path,
    buffers: Sequence[Buffer],
    ids: Sequence[str] | None = None,
    offsets: Sequence[int] | None = None,
) -> None:
    """Write buffers as `id,lower,upper,size[,alignment][,gaps][,offset]`, atomically.

    `alignment` and `gaps` only if a buffer has one; `offset` if `offsets` are given or one is fixed. Without
    `ids` they are numbered from 0. Raises `InputError` if the file cannot be written.
    """
    aligned = any(b.alignment != 1 for b in buffers)
    gapped = any(b.gaps for b in buffers)
    shown: Sequence[int | None] = [b.offset for b in buffers] if offsets is None else offsets
    placed = offsets is not None or any(at is not None for at in shown)
    names = [str(i) for i in range(len(buffers))] if ids is None else ids
    extra = [
        name for name, wanted in (("alignment", aligned), ("gaps", gapped), ("offset", placed)) if wanted
    ]
    lines = [["id", "lower", "upper", "size", *extra]]
    for name, b, at in zip(names, buffers, shown, strict=True):
        gaps = " ".join(f"{begin}-{after}" for begin, after in b.gaps)
        values = {"alignment": str(b.alignment), "gaps": gaps, "offset": "" if at is None else str(at)}
        lines.append([_quoted(name), str(b.lower), str(b.upper), str(b.size), *(values[x] for x in extra)])
    write_atomically(path, "".join(",".join(line) + "\n" for line in lines))


def _quoted(name: str) -> str:
    name = neutral(name)
    return '"' + name.replace('"', '""') + '"' if set(name) & set(',"\r\n\t') else name
