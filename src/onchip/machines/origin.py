"""Where a chip's figures are from: the documents that a file names, and the figures that no document states.

A file may name its documents, and the place of every figure in one of them:

    unknown = ["dram_picojoules_per_byte"]

    [documents]
    vela = "ethos-u-vela 5.2.0, ethosu/config_files/Arm/vela.ini"

    [sources]
    clock_hertz = "vela: System_Config.Ethos_U65_High_End, core_clock"
    macs_per_second = "derived: 256 a cycle at 1 GHz"
    alignment_bytes = "assumed: the width of the bus"

`caveat = "..."` is a line on what a plan for the chip does not know. A figure of a `[[memory]]` is stated
under the memory's name: `sram.bytes = "..."`.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from onchip.base.errors import ChipError

__all__ = ["MARKS", "ORIGIN_KEYS", "Origin", "parse_origin", "stated_figures"]

ORIGIN_KEYS = ("family", "caveat", "unknown", "documents", "sources")
"""The keys of a file that say where its figures are from. None of them changes a plan."""

MARKS = ("assumed", "derived")
"""The words in the place of a document: our own assumption; a figure that follows from others."""

NO_FIGURES = ("name", "description", "memory", "tiles", *ORIGIN_KEYS)

MEMORY_FIGURES = ("bytes", "banks", "bytes_per_second", "picojoules_per_byte")

MOST_TEXT = 400


@dataclass(frozen=True, slots=True)
class Origin:
    """The documents of a chip's figures by their short names, the source of each figure, and what is unknown.

    A source is `DOCUMENT: place`, `derived: how` or `assumed: why`. `unsourced` are figures that the file
    states without a source. `caveat` is what a plan for the chip does not know of it.
    """

    documents: tuple[tuple[str, str], ...] = ()
    sources: tuple[tuple[str, str], ...] = ()
    unknown: tuple[str, ...] = ()
    unsourced: tuple[str, ...] = ()
    caveat: str = ""


def stated_figures(table: Mapping[str, Any]) -> Iterator[str]:
    """Yield the names of all figures that a chip's table states; those of a memory as `NAME.bytes`."""
    yield from (key for key in table if key not in NO_FIGURES)
    memories = table.get("memory", [])
    for memory in memories if isinstance(memories, list) else []:
        if isinstance(memory, dict):
            yield from (f"{memory.get('name', '')}.{key}" for key in MEMORY_FIGURES if key in memory)
    if "tiles" in table:
        yield "tiles"


def parse_origin(table: Mapping[str, Any], known: Iterable[str], where: str) -> Origin | None:
    """Return the origin that a chip's table states, None without one; `known` are the keys of all figures.

    Raises `ChipError` naming the file and the key.
    """
    if not any(key in table for key in ORIGIN_KEYS[1:]):
        return None
    stated = list(stated_figures(table))
    documents = dict(_texts(table.get("documents", {}), "documents", where))
    sources = dict(_texts(table.get("sources", {}), "sources", where))
    for mark in MARKS:
        if mark in documents:
            raise ChipError("is no name of a document", where=where, item=f"documents {mark}")
    for key, source in sources.items():
        if key not in stated:
            raise ChipError(
                "has a source, but the file does not state it", where=where, item=f"sources {key}"
            )
        mark, colon, place = source.partition(":")
        if mark not in (*documents, *MARKS) or not colon or not place.strip():
            marks = ", ".join((*documents, *MARKS))
            raise ChipError(f'must be "NAME: place", NAME one of {marks}', where=where, item=f"sources {key}")
    unknown = table.get("unknown", [])
    if not isinstance(unknown, list) or not all(isinstance(key, str) for key in unknown):
        raise ChipError("must be a list of keys", where=where, item="unknown")
    memories = {key.partition(".")[0] for key in stated if "." in key}
    allowed = {*known, *(f"{name}.{key}" for name in memories for key in MEMORY_FIGURES)}
    for key in unknown:
        if key not in allowed:
            raise ChipError(f"{key[:60]!r} is the key of no figure", where=where, item="unknown")
        if key in stated:
            raise ChipError(f"{key} is stated above", where=where, item="unknown")
    return Origin(
        tuple(documents.items()),
        tuple(sources.items()),
        tuple(dict.fromkeys(unknown)),
        tuple(key for key in stated if key not in sources),
        dict(_texts({"caveat": table["caveat"]}, "caveat", where))["caveat"] if "caveat" in table else "",
    )


def _texts(table: Any, item: str, where: str, prefix: str = "") -> Iterator[tuple[str, str]]:
    """Yield the texts of a table by their keys; those of a table inside as `OUTER.INNER`."""
    if not isinstance(table, dict):
        raise ChipError("must be a table of texts", where=where, item=item)
    for key, value in table.items():
        if isinstance(value, dict) and item == "sources" and not prefix:
            yield from _texts(value, item, where, f"{key}.")
            continue
        if not isinstance(value, str) or not value.isprintable() or not 0 < len(value) <= MOST_TEXT:
            raise ChipError(
                f"must be a line of text, up to {MOST_TEXT} characters",
                where=where,
                item=f"{item} {key[:60]}",
            )
        yield prefix + key, value
