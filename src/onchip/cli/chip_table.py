"""The tables of `onchip chips`: all chips under the headings of their families, and the datasheet of one."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any

from onchip.machines.chip import Chip
from onchip.report.wording import short_size, visible

if TYPE_CHECKING:
    from rich.console import Group, RenderableType

__all__ = ["data", "datasheet", "figures_of", "listed", "source_of"]

OWN = "Your own"
"""The heading of chips whose file names no family."""


def data(chip: Chip) -> dict[str, Any]:
    """Return all figures of a chip, with their documents and sources, for JSON."""
    import msgspec

    found: dict[str, Any] = msgspec.to_builtins(chip.figures())
    origin = chip.origin
    return found | {
        "family": chip.family,
        "caveat": "" if origin is None else origin.caveat,
        "unknown": list(chip.unknown),
        "documents": {} if origin is None else dict(origin.documents),
        "sources": {} if origin is None else dict(origin.sources),
    }


def listed(found: Sequence[Chip]) -> Group:
    """Return the chips, a line each, under the headings of their families; the templates come first."""
    from rich.console import Group
    from rich.text import Text

    from onchip.report.grid import Grid

    families = sorted({chip.family or OWN for chip in found}, key=lambda name: (name != "Templates", name))
    grid = Grid(
        ("chip", False), ("on chip", True), ("GMAC/s", True), ("DRAM GB/s", True), ("what it is", False)
    )
    for family in families:
        grid.add_row(Text(visible(family), style="bold"))
        for chip in (one for one in found if (one.family or OWN) == family):
            grid.add_row(
                f"  {visible(chip.name)}",
                _on_chip(chip),
                _rate(chip, "macs_per_second"),
                _rate(chip, "dram_bytes_per_second"),
                visible(chip.description, 200) if chip.description else "-",
            )
    return Group(
        grid,
        Text(),
        Text("?: in no public document; -: not stated. onchip chips NAME: every figure with its source."),
    )


def _on_chip(chip: Chip) -> str:
    if chip.memories:
        return short_size(sum(memory.bytes for memory in chip.memories))
    if chip.scratchpad_bytes is None:
        return "?" if "scratchpad_bytes" in chip.unknown else "-"
    return short_size(chip.scratchpad_bytes)


def _rate(chip: Chip, key: str) -> str:
    value = getattr(chip.rates, key)
    if value is None:
        return "?" if key in chip.unknown else "-"
    return f"{value / 1e9:,.0f}" if value >= 1e12 else f"{value / 1e9:.4g}"


def figures_of(chip: Chip) -> Iterator[tuple[str, str]]:
    """Yield the figures that a chip states, in words, by the names that their sources have."""
    for key, value in chip.figures().items():
        if key not in ("name", "description", "memories") and value not in (None, "", False, ()):
            yield key, _in_words(value)
    for memory in chip.memories:
        for key in ("bytes", "bytes_per_second", "picojoules_per_byte"):
            if (value := getattr(memory, key)) is not None:
                yield f"{memory.name}.{key}", _in_words(value)


def _in_words(value: Any) -> str:
    if isinstance(value, bool) or not isinstance(value, int | float):
        return str(value).lower() if isinstance(value, bool) else str(value)
    return f"{value:,.0f}" if value == round(value) else f"{value:,.12g}"


def source_of(chip: Chip, key: str) -> str:
    """Return the source of a figure as the file has it; that of `bank` for `bank0`. `-` without one."""
    sources = {} if chip.origin is None else dict(chip.origin.sources)
    memory, dot, rest = key.rpartition(".")
    return sources.get(key) or sources.get(f"{memory.rstrip('0123456789')}{dot}{rest}") or "-"


def datasheet(chip: Chip) -> Group:
    """Return every figure of a chip with its source, and what is unknown."""
    from rich.console import Group
    from rich.text import Text

    from onchip.methods.said import unknown_note
    from onchip.report.grid import Grid

    grid = Grid(("figure", False), ("value", True), ("source", False))
    for key, value in figures_of(chip):
        grid.add_row(visible(key), visible(value), visible(source_of(chip, key), 400))
    for key in chip.unknown:
        grid.add_row(visible(key), "unknown", "in no document that its file names")
    said: list[RenderableType] = [
        Text(": ".join(visible(words, 200) for words in (chip.name, chip.description) if words)),
        Text(),
        grid,
        Text(),
    ]
    documents = () if chip.origin is None else chip.origin.documents
    if chip.origin is not None and chip.origin.caveat:
        said[1:1] = [Text(visible(chip.origin.caveat, 400))]
    said += [Text(f"{visible(name)}: {visible(document, 400)}") for name, document in documents]
    return Group(*said, *(Text(visible(note, 400)) for note in unknown_note(chip)))
