"""A network on a microcontroller as one self-contained HTML page, in the words of its world."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

from onchip.base.files import write_atomically
from onchip.microcontroller.result.board_fits import BoardFit, time_of
from onchip.microcontroller.result.board_fits_table import fits_sentence, verdict
from onchip.microcontroller.result.lowering import Lever, levers, peak_sentences
from onchip.microcontroller.result.microcontroller import Microcontroller
from onchip.microcontroller.result.microcontroller_table import lacks, remarks
from onchip.microcontroller.result.ram_steps import RamStep, ram_steps
from onchip.microcontroller.result.reckoned import reckoned_instructions
from onchip.microcontroller.result.report import pictures
from onchip.microcontroller.result.report.layers import layer_words
from onchip.report.shell import asset, hash_of, template, version
from onchip.report.wording import SENTENCE, short_size, visible

if TYPE_CHECKING:
    import jinja2

__all__ = ["html"]

MOST_STEPS = 200

ROLES = {
    "read": "read",
    "made": "made",
    "kept": "kept for later",
    "ring": "ring",
    "sums": "sums",
    "workspace": "workspace",
}


def html(
    made: Microcontroller,
    others: Sequence[Lever] = (),
    boards: Sequence[BoardFit] = (),
) -> str:
    """Return the page; `others` are other plans of the network, `boards` what it takes on other boards."""
    from markupsafe import Markup

    style = asset("page.css") + asset("mcu.css")
    script = asset("theme.js")
    steps = ram_steps(made.plan)
    return _template().render(
        network=visible(made.model.name),
        board=visible(made.board.name),
        core=made.board.core,
        fits=made.fits,
        lead=_lead(made),
        figures=_figures(made),
        memories=_memories(made),
        memory_keys=_MEMORY_KEYS,
        **_peak(made, steps),
        levers=_levers(made, others),
        **_steps(made, steps),
        **layer_words(made),
        boards=[_board(made, row) for row in boards],
        boards_say=" ".join(fits_sentence(boards)) if boards else "",
        methods=_methods(made),
        tried=[] if made.tried is None else made.tried.sentences(),
        facts=_facts(made),
        style=Markup(style),
        script=Markup(script),
        style_hash=hash_of(style),
        script_hash=hash_of(script),
        version=version(),
    )


def report(
    made: Microcontroller,
    path: Path,
    *,
    boards: Sequence[BoardFit] = (),
    progress: Callable[[str], None] = lambda _: None,
) -> None:
    """Write the page, after planning the network with the other options that might lower its peak."""
    write_atomically(path, html(made, levers(made, progress), boards))


@cache
def _template() -> jinja2.Template:
    return template("mcu.html.j2")


def _lead(made: Microcontroller) -> list[str]:
    lines = []
    if made.run is not None:
        run = made.run
        verdict = (
            "every byte of its outputs is equal to the reference's"
            if run.match
            else f"{run.different:,} of {run.output_bytes:,} bytes of its outputs DIFFER from the reference's"
        )
        inputs = f"{run.runs} {'input' if run.runs == 1 else 'inputs'}"
        lines.append(f"It ran {inputs} on an emulated {made.board.core} behind closed memory: {verdict}.")
    elif made.image is not None:
        lines.append("It was built and linked for this board; --run compares its outputs, too.")
    lines += lacks(made)
    return [visible(line, SENTENCE) for line in lines]


def _figures(made: Microcontroller) -> list[tuple[str, str, str]]:
    board, image = made.board, made.image

    def of(used: int, whole: int) -> str:
        return f"{used:,} B, {100 * used / whole:.1f} % of the board's"

    rows = [
        ("RAM", short_size(made.ram_bytes), of(made.ram_bytes, board.ram_bytes)),
        ("Flash", short_size(made.flash_bytes), of(made.flash_bytes, board.flash_bytes)),
        ("Activations and workspaces", short_size(made.arena_bytes), f"{made.arena_bytes:,} B"),
    ]
    if image is not None:
        rows.append(("Stack", short_size(image.stack_bytes), f"{image.stack_bytes:,} B, measured"))
    rows.append(("Weights and factors", short_size(made.constant_bytes), f"{made.constant_bytes:,} B"))
    run, about = made.run, ""
    instructions = None if run is None else run.total.instructions
    said = "an inference, counted"
    if run is None:
        instructions, about = reckoned_instructions(made.model, board.core), "~"
        said = "an inference, reckoned; --run counts"
    if instructions is not None:
        rows.append(("Instructions", f"{about}{instructions / 1e6:,.2f} M", f"{instructions:,} {said}"))
        if board.clock_hz is not None:
            seconds = instructions / board.clock_hz
            rows.append(("Time", f"~{time_of(seconds)}", f"one a cycle at {board.clock_hz / 1e6:,g} MHz"))
    macs = sum(op.macs for op in made.plan.network.operators)
    rows.append(("Multiply-adds", f"{macs / 1e6:,.2f} M", f"{macs:,}"))
    return rows


_MEMORY_KEYS = (
    ("arena", "activations and workspaces"),
    ("statics", "other statics"),
    ("stack", "stack"),
    ("constants", "weights and factors"),
    ("code", "code"),
)


_STEP_KEYS = (
    ("read", "read"),
    ("made", "made (what it covers shows through)"),
    ("kept", "kept for later"),
    ("ring", "rings of rows"),
    ("workspace", "sums and workspace"),
)


def _memories(made: Microcontroller) -> list[dict[str, Any]]:
    image, board = made.image, made.board
    ram = [("arena", "activations and workspaces", made.arena_bytes)]
    flash = [("constants", "weights and factors", made.constant_bytes)]
    if image is not None:
        ram.append(("statics", "other statics", image.bss_bytes + image.data_bytes - made.arena_bytes))
        ram.append(("stack", "stack", image.stack_bytes))
        flash.append(("code", "code", image.flash_bytes - made.constant_bytes))
    found = []
    for name, parts, used, room in (
        ("RAM", ram, made.ram_bytes, board.ram_bytes),
        ("Flash", flash, made.flash_bytes, board.flash_bytes),
    ):
        said = f"{used:,} of {room:,} bytes"
        note = "" if image is not None else ", without what only the linked program adds"
        found.append(
            {"name": name, "bar": pictures.stacked(parts, room, f"{name}: {said}"), "of": said + note}
        )
    return found


def _peak(made: Microcontroller, steps: tuple[RamStep, ...]) -> dict[str, Any]:
    most = max(steps, key=lambda step: step.bytes)
    return {
        "peak": [visible(line, SENTENCE) for line in (*peak_sentences(steps), *remarks(made))],
        "peak_rows": [
            {
                "name": visible(part.name),
                "role": f"{ROLES[part.role]}{f', {part.says}' if part.says else ''}",
                "bytes": f"{part.bytes:,}",
                "first": f"{part.first:,}",
                "end": f"{part.end:,}",
            }
            for part in sorted(most.parts, key=lambda part: -part.bytes)
        ],
    }


def _levers(made: Microcontroller, others: Sequence[Lever]) -> list[dict[str, Any]]:
    if not others:
        return []
    own = max(sum(op.work for op in made.plan.network.operators), 1)
    work = 1.0 if made.plan.result.macs is None else made.plan.result.macs / own
    rows = [
        {
            "says": "this plan",
            "bytes": f"{made.arena_bytes:,}",
            "work": f"{work:.3f}",
            "options": [],
            "own": True,
        }
    ]
    rows += [
        {
            "says": lever.says,
            "bytes": f"{lever.arena_bytes:,}",
            "work": f"{lever.work:.3f}",
            "options": [f"--{option}" for option in lever.options.removeprefix("--").split(" --")],
            "own": False,
        }
        for lever in others
    ]
    return rows


def _steps(made: Microcontroller, steps: tuple[RamStep, ...]) -> dict[str, Any]:
    if made.run is not None:
        each = {name: float(counts.instructions) for name, counts in made.run.by_layer.items()}
        of = "instructions"
    else:
        each = {op.name: float(op.work) for op in made.plan.network.operators}
        of = "multiply-adds"
    count = Counter(layer for step in steps for layer in step.layers)  # by rows a layer has many steps
    widths = [sum(each.get(layer, 0.0) / count[layer] for layer in step.layers) for step in steps]
    top = max(step.bytes for step in steps)
    roles = {part.role for step in steps for part in step.parts}
    most = max(steps, key=lambda step: step.bytes)
    return {
        "over_time": f"One inference from left to right: each step as wide as its share of the {of}, as high"
        " as the bytes that it holds. The fullest is marked.",
        "timeline": pictures.over_time(steps, widths, top, None),
        "tallest": f"the fullest step: {top:,} bytes",
        "arena": f"{made.arena_bytes:,}",
        "step_keys": [(role, name) for role, name in _STEP_KEYS if role in roles],
        "steps": [
            {
                "name": visible(step.name),
                "bytes": f"{step.bytes:,}",
                "bar": pictures.addresses(step, made.arena_bytes),
                "peak": step.bytes == most.bytes,
            }
            for step in steps[:MOST_STEPS]
        ],
        "steps_cut": f"The first {MOST_STEPS:,} of {len(steps):,}." if len(steps) > MOST_STEPS else "",
    }


def _board(made: Microcontroller, row: BoardFit) -> dict[str, Any]:
    board = row.board

    def strip(shade: str, used: int, room: int, memory: str) -> Any:
        over = used > room
        part = used / room if room else 1.0
        return pictures.share("over" if over else shade, part, f"{memory}: {used:,} of {room:,} bytes")

    about = "" if row.counted else "~"
    return {
        "name": visible(board.name),
        "core": f"{board.core}{f', {board.clock_hz / 1e6:,g} MHz' if board.clock_hz else ''}",
        "ram": strip("arena", row.ram_bytes, board.ram_bytes, "RAM"),
        "ram_of": f"{row.ram_bytes:,} of {board.ram_bytes:,} B of RAM",
        "flash": strip("flash", row.flash_bytes, board.flash_bytes, "flash"),
        "flash_of": f"{row.flash_bytes:,} of {board.flash_bytes:,} B of flash"
        if row.flash_bytes
        else "flash not known",
        "time": f"{about}{time_of(row.seconds)}" if row.seconds is not None else "-",
        "verdict": verdict(row),
        "fits": row.fits,
        "chosen": board.name == made.board.name,
    }


def _methods(made: Microcontroller) -> list[dict[str, str]]:
    return [
        {
            "name": method.name,
            "bytes": "-" if method.ram_bytes is None else f"{method.ram_bytes:,}",
            "work": "-" if method.work is None else f"{method.work:.2f}",
            "says": visible(method.says, SENTENCE),
        }
        for method in made.beside
    ]


def _facts(made: Microcontroller) -> list[tuple[str, str]]:
    board, options = made.board, made.plan.options
    facts = [("network from", visible(made.model.source)), ("sha256", made.model.sha256[:16])]
    facts.append(("board", visible(board.description or board.name)))
    facts.append(("input", str(options.get("input", "held"))))
    if "segments" in options:
        facts.append(("objective", str(options["segments"])))
    facts.append(("kernels", made.kernels))
    return [(key, value) for key, value in facts if value]
