"""A network on a microcontroller as a table for a terminal."""

from __future__ import annotations

from rich.console import Group, RenderableType
from rich.padding import Padding
from rich.text import Text

from onchip.base.figures import columns
from onchip.base.short_names import short_names
from onchip.microcontroller.kernels import SHAREABLE
from onchip.microcontroller.result.lowering import peak_sentences
from onchip.microcontroller.result.microcontroller import Buffers, Microcontroller, buffers
from onchip.microcontroller.result.ram_steps import ram_steps, step_name
from onchip.report.claims import space_sentence, status_sentence
from onchip.report.grid import Grid
from onchip.report.wording import SENTENCE, shorten, visible

__all__ = ["advice", "lacks", "remarks", "table"]

NAME_WIDTH = 16
"""The most characters of a layer's name beside figures."""

MOST_ROWS = 12
"""The number of listed steps and layers; the rest is summed up."""


def table(made: Microcontroller) -> RenderableType:
    """Return a rich renderable: memories, largest steps and constants, what limits, and the core's run."""
    head = Text(visible(f"{made.model.name} on {made.board.name}"), style="bold")
    head.append(f", {made.board.core}: {'fits' if made.fits else 'does not fit'}", style="not bold")
    parts: list[RenderableType] = [head, Text(), Padding(_memories(made), (0, 0, 0, 2)), Text()]
    parts += [Text("RAM by step", style="bold"), Padding(_steps(made), (0, 0, 0, 2)), Text()]
    parts += [Text("Flash by layer", style="bold"), Padding(_constants(made), (0, 0, 0, 2)), Text()]
    parts += [Text(visible(line, SENTENCE)) for line in advice(made)]
    if made.beside:
        parts += [Text(), Text("RAM by method", style="bold"), Padding(_beside(made), (0, 0, 0, 2))]
    if made.run is not None:
        parts += [Text(), *_run(made)]
    if made.tried is not None:
        parts += [Text(), Text("On your inputs", style="bold"), *(Text(s) for s in made.tried.sentences())]
    return Group(*parts)


def _memories(made: Microcontroller) -> Grid:
    rows = Grid(("memory", False), ("bytes", True), ("of", True), ("what", False))
    image, board = made.image, made.board
    ram = f"activations and workspaces {made.arena_bytes:,}"
    flash = f"constants {made.constant_bytes:,}"
    if image is None:
        ram += "; stack and statics come with the program"
        flash += "; code comes with the program"
    else:
        ram += f", other statics {image.bss_bytes + image.data_bytes - made.arena_bytes:,}"
        ram += f", stack {image.stack_bytes:,}"
        flash += f", code {image.flash_bytes - made.constant_bytes:,}"
    rows.add_row("RAM", f"{made.ram_bytes:,}", f"{board.ram_bytes:,}", ram)
    rows.add_row("flash", f"{made.flash_bytes:,}", f"{board.flash_bytes:,}", flash)
    return rows


def _steps(made: Microcontroller) -> Grid:
    steps = sorted(buffers(made.plan), key=lambda step: -step.bytes)
    sizes = columns(Buffers, steps)
    short = short_names(t.name for t in made.model.tensors)
    rows = Grid(("step", False), *((column.heading, True) for column in sizes), ("tensors", False))
    for step in steps[:MOST_ROWS]:
        tensors = ", ".join(f"{visible(short.get(name, name))} {size:,}" for name, size in step.tensors)
        rows.add_row(
            visible(_unfolded(step_name(step.layers))),
            *(column.cell(step, {}) for column in sizes),
            tensors,
        )
    if len(steps) > MOST_ROWS:
        rows.add_row(f"{len(steps) - MOST_ROWS} more", f"<= {steps[MOST_ROWS].bytes:,}")
    return rows


def _unfolded(name: str) -> str:
    """Return the name of one layer so short that no terminal folds it: its number stays with it."""
    if " " in name or len(name) <= NAME_WIDTH:
        return name
    kind, _, number = name.rpartition(".")
    return shorten(f"{_SHORTER.get(kind, kind)}.{number}", NAME_WIDTH)


_SHORTER = {
    "DEPTHWISE_CONV_2D": "DEPTHWISE",
    "FULLY_CONNECTED": "FULLY_CONN",
    "AVERAGE_POOL_2D": "AVERAGE_POOL",
    "RESIZE_NEAREST_NEIGHBOR": "RESIZE",
    "RESIZE_BILINEAR": "RESIZE",
    "UNIDIRECTIONAL_SEQUENCE_LSTM": "LSTM",
    "CONCATENATION": "CONCAT",
}
"""Kinds of layers with long names, for a column of `NAME_WIDTH` characters."""


def _beside(made: Microcontroller) -> Grid:
    rows = Grid(("method", False), ("bytes", True), ("work", True), ("", False))
    for method in made.beside:
        size = "-" if method.ram_bytes is None else f"{method.ram_bytes:,}"
        work = "-" if method.work is None else f"{method.work:.2f}"
        rows.add_row(method.name, size, work, visible(method.says))
    return rows


def _constants(made: Microcontroller) -> Grid:
    rows = Grid(("layer", False), ("bytes", True), ("share", True))
    found = sorted(made.sources.constant_bytes.items(), key=lambda item: -item[1])
    total = max(made.constant_bytes, 1)
    for name, size in found[:MOST_ROWS]:
        rows.add_row(visible(name), f"{size:,}", f"{100 * size / total:.1f} %")
    rest = sum(size for _, size in found[MOST_ROWS:])
    if rest:
        rows.add_row(f"{len(found) - MOST_ROWS} more", f"{rest:,}", f"{100 * rest / total:.1f} %")
    return rows


def advice(made: Microcontroller) -> list[str]:
    """Return sentences on what limits the network on this board, and what would have to change."""
    return [*peak_sentences(ram_steps(made.plan)), *remarks(made), *lacks(made)]


def remarks(made: Microcontroller) -> list[str]:
    """Return sentences on the plan's claim, on its kernels, and on the input that it holds."""
    lines = [status_sentence(made.plan, 0)]
    if among := space_sentence(made.plan):
        lines.append(among)
    if made.whole is not None:
        lines.append(f"Tensors lie whole, in the order of least peak: {made.whole}.")
    if made.shared:
        count = sum(isinstance(layer, SHAREABLE) for layer in made.model.layers)
        lines.append(
            f"{len(made.shared)} of {count} layers with weights share kernels for all shapes: less flash,"
            " more instructions."
        )
    if made.shared_flash is not None:
        beyond = made.shared_flash - made.board.flash_bytes
        lines.append(
            "All figures are of kernels specialised on each layer's shape. With kernels shared by layers of"
            f" all shapes it takes {made.shared_flash:,} bytes of flash: then {beyond:,} are missing."
        )
    if made.unlinked is not None:
        lines.append(
            f"Not linked, so that stack, statics and code are not in these figures: {made.unlinked}."
        )
    name = made.model.tensors[made.model.inputs[0]].name
    held = any(name == tensor for tensor, _ in made.bottleneck.tensors)
    if held and not made.sources.streamed and made.whole is None:
        lines.append(
            f"It holds the input ({made.sources.input_bytes:,} bytes): --input once takes it row by row."
        )
    if held and made.sources.streamed:
        lines.append(
            f"It holds the input ({made.sources.input_bytes:,} bytes): less than its pieces would take."
        )
    left = dict.fromkeys(label for o in made.model.originals.values() for label in o.through)
    if left:
        lines.append(f"At its edge and left to the caller, not in bytes: {', '.join(left)}.")
    if made.model.states:
        kept = sum(len(state.initial) for state in made.model.states)
        name = made.sources.name
        lines.append(f"It keeps {kept:,} bytes from one inference to the next; {name}_reset() begins anew.")
    return lines


def lacks(made: Microcontroller) -> list[str]:
    """Return sentences on the bytes that the board lacks."""
    lines = []
    for memory, needs, there in made.short:
        if memory == "RAM":
            lines.append(
                f"{needs - there:,} bytes of RAM are missing: a smaller image or fewer channels in that step,"
                " or a board with more."
            )
        else:
            name, size = max(made.sources.constant_bytes.items(), key=lambda item: item[1])
            lines.append(
                f"{needs - there:,} bytes of flash are missing: constants alone take {made.constant_bytes:,}"
                f" (the most: {name}, {size:,}); fewer channels, or a board with more flash."
            )
    return lines


def _run(made: Microcontroller) -> list[RenderableType]:
    from onchip.microcontroller.emulator.counting import Counts

    run = made.run
    assert run is not None
    verdict = (
        "every byte equal" if run.match else f"{run.different:,} of {run.output_bytes:,} bytes DIFFERENT"
    )
    line = (
        f"Ran {run.runs} inputs on the emulated {made.board.core}: {verdict} to the reference;"
        f" {run.total.instructions:,} instructions, {run.total.loads:,} loads, {run.total.stores:,} stores"
        f" an input; {run.stack_bytes:,} bytes of stack used."
    )
    first, *others = columns(Counts, [])
    headings = first.heading, "share", *(column.heading for column in others)
    rows = Grid(("layer", False), *((heading, True) for heading in headings))
    total = max(sum(c.instructions for c in run.by_layer.values()), 1)
    found = sorted(run.by_layer.items(), key=lambda item: -item[1].instructions)
    for name, c in found[:MOST_ROWS]:
        share = f"{100 * c.instructions / total:.1f} %"
        cells = first.cell(c, {}), share, *(column.cell(c, {}) for column in others)
        rows.add_row(visible(name), *cells)
    rest = sum(c.instructions for _, c in found[MOST_ROWS:])
    if rest:
        rows.add_row(f"{len(found) - MOST_ROWS} more", f"{rest:,}", f"{100 * rest / total:.1f} %")
    return [Text(line), Text(), Padding(rows, (0, 0, 0, 2))]
