"""Draw what onchip does, in one picture: `scripts/overview.py` writes docs/images/overview.svg and
overview-dark.svg.

What is drawn of plans is of plans: the memory map is that of NASNet-A's first steps in its least memory,
the program those of a plan, the time line that of GoogleNet beside itself on a Xavier. No font, no link:
one file each."""

from __future__ import annotations

import argparse
from collections.abc import Iterator
from html import escape
from pathlib import Path

import onchip
from onchip.base.files import write_atomically
from onchip.network import TensorKind
from onchip.plans import to_text
from onchip.report import timeline

IMAGES = Path(__file__).resolve().parents[1] / "docs" / "images"
WIDTH, HEIGHT = 1280, 572
SANS = "ui-sans-serif,system-ui,-apple-system,'Segoe UI',Helvetica,Arial,sans-serif"
MONO = "ui-monospace,SFMono-Regular,Menlo,Consolas,'DejaVu Sans Mono',monospace"

# Okabe and Ito's colours, which colour-blind eyes tell apart.
LIGHT = {
    "paper": "#ffffff", "card": "#f6f8fa", "line": "#d0d7de", "ink": "#1f2328", "soft": "#57606a",
    "arrow": "#8c959f", "blue": "#0072b2", "orange": "#d98200", "green": "#009e73", "pink": "#b8588f",
    "sky": "#3a9bd9", "pale": "#dbe7f3",
}  # fmt: skip
DARK = {
    "paper": "#0d1117", "card": "#161b22", "line": "#30363d", "ink": "#e6edf3", "soft": "#9aa4b0",
    "arrow": "#6e7681", "blue": "#4aa3df", "orange": "#f0a92e", "green": "#2bc59a", "pink": "#dd8fbd",
    "sky": "#7cc4f0", "pale": "#1f3246",
}  # fmt: skip

Lines = Iterator[str]
Colours = dict[str, str]


def text(x: float, y: float, words: str, fill: str, size: float = 14, **more: str) -> str:
    font = MONO if more.pop("mono", "") else SANS
    extra = "".join(f' {k.replace("_", "-")}="{v}"' for k, v in more.items())
    return (
        f'<text x="{x:g}" y="{y:g}" font-family="{font}" font-size="{size:g}" fill="{fill}"{extra}'
        ' xml:space="preserve">'
        f"{escape(words)}</text>"
    )


def box(
    x: float, y: float, w: float, h: float, fill: str, stroke: str = "none", r: float = 3, **more: str
) -> str:
    extra = "".join(f' {k.replace("_", "-")}="{v}"' for k, v in more.items())
    return (
        f'<rect x="{x:.2f}" y="{y:.2f}" width="{w:.2f}" height="{h:.2f}" rx="{r:g}" fill="{fill}"'
        f' stroke="{stroke}"{extra}/>'
    )


def line(points: list[tuple[float, float]], stroke: str, width: float = 1.5, **more: str) -> str:
    extra = "".join(f' {k.replace("_", "-")}="{v}"' for k, v in more.items())
    path = " ".join(f"{x:g},{y:g}" for x, y in points)
    return f'<polyline points="{path}" fill="none" stroke="{stroke}" stroke-width="{width:g}"{extra}/>'


def arrow(x: float, y: float, to: float, colour: str) -> Lines:
    """An arrow to the right."""
    yield line([(x, y), (to - 7, y)], colour, 2.5)
    yield f'<polygon points="{to - 10:g},{y - 6:g} {to:g},{y:g} {to - 10:g},{y + 6:g}" fill="{colour}"/>'


def network(x: float, y: float, c: Colours) -> Lines:
    """A small graph of operators."""
    at = {"a": (0, 40), "b": (44, 14), "c": (44, 66), "d": (88, 14), "e": (132, 40), "f": (176, 40)}
    for one, other in ("ab", "ac", "bd", "de", "ce", "ef"):
        (x1, y1), (x2, y2) = at[one], at[other]
        yield line([(x + x1 + 24, y + y1 + 9), (x + x2, y + y2 + 9)], c["arrow"])
    for name, (dx, dy) in at.items():
        yield box(x + dx, y + dy, 24, 18, c["sky"] if name in "af" else c["blue"], r=4)


def chip(x: float, y: float, c: Colours) -> Lines:
    """Processing elements, a scratchpad beside them, DRAM outside."""
    for row in range(4):
        for column in range(4):
            yield box(x + 16 * column, y + 16 * row, 12, 12, c["orange"], r=2)
    yield box(x + 76, y, 42, 60, c["blue"], r=4)
    yield text(x + 97, y + 34, "SRAM", c["paper"], 11, text_anchor="middle", font_weight="600")
    yield line([(x + 122, y + 30), (x + 152, y + 30)], c["arrow"], 2, stroke_dasharray="4 3")
    yield box(x + 156, y, 44, 60, "none", c["soft"], 4, stroke_dasharray="4 3")
    yield text(x + 178, y + 34, "DRAM", c["soft"], 11, text_anchor="middle", font_weight="600")


def placement(x: float, y: float, c: Colours) -> Lines:
    """Addresses across, steps down, of a plan's first steps; orange leaves for DRAM and comes back."""
    plan = onchip.plan("zoo:nasnetalarge", budget="MR", fuse=False)
    steps, (w, h) = 42, (150, 62)
    yield box(x, y, w, h, c["pale"], r=2)
    for r in timeline(plan).residencies:
        if r.start < steps:
            spilled = r.departure in ("spill", "evict") or r.arrival == "reload"
            top, rows = y + r.start * h / steps, (min(r.end, steps) - r.start) * h / steps
            left, wide = x + r.address * w / plan.budget, r.size * w / plan.budget
            colour = c["orange"] if spilled else c["blue"]
            yield box(left, top, max(wide - 0.4, 0.6), max(rows - 0.4, 0.6), colour, r=0.5)


def fusion(x: float, y: float, c: Colours) -> Lines:
    """Three maps in one group, a band of rows of each on chip."""
    yield box(x, y, 150, 62, "none", c["green"], 8, stroke_width="1.8", stroke_dasharray="5 3")
    for i, (size, band) in enumerate(((44, 12), (36, 9), (28, 7))):
        left, top = x + 12 + 48 * i, y + 31 - size / 2
        yield box(left, top, 34, size, c["pale"], r=2)
        yield box(left, top + size * 0.4, 34, band, c["green"], r=1)
        if i:
            yield line([(left - 12, y + 31), (left - 3, y + 31)], c["arrow"], 2)


def branches(x: float, y: float, c: Colours) -> Lines:
    """A module: one input, branches of several layers, one output."""
    rows = ((8, 2), (26, 3), (44, 1))
    for top, layers in rows:
        yield line(
            [(x + 22, y + 31), (x + 34, y + top + 6), (x + 116, y + top + 6), (x + 128, y + 31)], c["arrow"]
        )
        for i in range(layers):
            yield box(x + 75 - 13 * layers + 26 * i + 3, y + top, 20, 12, c["pink"], r=3)
    yield box(x, y + 18, 22, 26, c["sky"], r=3)
    yield box(x + 128, y + 18, 22, 26, c["sky"], r=3)


def segments(x: float, y: float, c: Colours) -> Lines:
    """An output over the input that it is made of, and a ring of rows."""
    yield box(x, y + 6, 100, 18, c["sky"], r=2)
    yield box(x + 22, y + 36, 100, 18, c["blue"], r=2)
    for at in (22, 100):
        yield line([(x + at, y + 2), (x + at, y + 60)], c["soft"], 1, stroke_dasharray="3 3")
    yield text(x + 61, y + 34, "shared bytes", c["soft"], 9.5, text_anchor="middle")
    for i in range(3):
        yield box(x + 130, y + 4 + 19 * i, 22, 16, (c["green"], c["green"], c["pale"])[i], r=2)


def corun(x: float, y: float, c: Colours) -> Lines:
    """Two copies of GoogleNet on a GPU and a DLA, over the time of one frame."""
    made = onchip.corun(["zoo:googlenet", "zoo:googlenet"], "xavier-agx")
    for unit, name in enumerate(("GPU", "DLA")):
        yield text(x, y + 21 + 30 * unit, name, c["soft"], 10)
    for segment in made.timeline.segments:
        left, right = (at / made.makespan_ms * 122 for at in (segment.start, segment.end))
        colour = c["orange"] if segment.step.job else c["blue"]
        yield box(x + 28 + left, y + 6 + 30 * segment.unit, max(right - left - 0.7, 0.5), 20, colour, r=1)


PLANNERS = (
    ("placement", "onchip plan", "order, addresses, spills: the least traffic", "COSMA", placement),
    ("fusion", "onchip fuse", "which operators run as one, band by band", "Optimus", fusion),
    (
        "branches",
        "onchip branches",
        "modules that stay on chip, in milliseconds",
        "A Simple Method",
        branches,
    ),
    ("segments", "onchip mcu", "outputs over inputs, rings of rows; as C", "vMCU", segments),
    ("co-run", "onchip corun", "several networks on a GPU and a DLA", "HaX-CoNN", corun),
)


def column_of_inputs(c: Colours) -> Lines:
    for top, title, draw, below in (
        (56, "a network", network, ("ONNX · TFLite · PyTorch", "or a graph as JSON")),
        (318, "a chip", chip, ("scratchpad, DRAM, units", "a few lines of TOML")),
    ):
        yield box(24, top, 248, 226, c["card"], c["line"], 10)
        yield text(44, top + 34, title, c["ink"], 19, font_weight="600")
        yield from draw(46, top + 62, c)
        for i, words in enumerate(below):
            yield text(44, top + 180 + 21 * i, words, c["soft"], 13.5)


def column_of_planners(c: Colours) -> Lines:
    for i, (name, command, says, paper, draw) in enumerate(PLANNERS):
        top = 56 + 99 * i
        yield box(320, top, 520, 92, c["card"], c["line"], 10)
        yield from draw(338, top + 15, c)
        yield text(512, top + 33, name, c["ink"], 17, font_weight="600")
        yield text(824, top + 33, command, c["blue"], 13.5, mono="yes", text_anchor="end")
        yield text(512, top + 56, says, c["ink"], 13.5)
        yield text(512, top + 77, f"after {paper}", c["soft"], 12.5)


def diamond() -> onchip.Network:
    """A network that does not fit: what two operators read stands in the way of the second."""
    operators = [
        onchip.OperatorSpec("conv1", "Conv", ("image",), ("left",)),
        onchip.OperatorSpec("conv2", "Conv", ("image",), ("right",), workspace=5),
        onchip.OperatorSpec("concat", "Concat", ("left", "right"), ("joined",)),
    ]
    tensors: list[tuple[str, int, TensorKind]] = [
        ("image", 10, "input"),
        ("left", 6, "activation"),
        ("right", 4, "activation"),
        ("joined", 3, "activation"),
    ]
    return onchip.Network.build("diamond", tensors, operators, ("joined",))


VERBS = (
    ("check", "green", "proves it legal, counts every byte anew"),
    ("run", "blue", "executes it: the same bits as onnxruntime"),
    ("report", "orange", "shows it: one page, opens from disk"),
    ("export", "pink", "hands it on: TFLM, C, JSON, Perfetto"),
)


def column_of_plans(c: Colours) -> Lines:
    program = to_text(onchip.plan(diamond(), budget=19, fuse=False)).split("program\n")[1].splitlines()
    yield box(888, 56, 368, 246, c["card"], c["line"], 10)
    yield text(908, 90, "one plan: a program", c["ink"], 19, font_weight="600")
    for i, instruction in enumerate(program[:8]):
        yield text(908, 118 + 20 * i, shortened(instruction.strip()), c["ink"], 13, mono="yes")
    yield text(908, 118 + 20 * 8, "…", c["soft"], 13, mono="yes")
    for i, (verb, colour, says) in enumerate(VERBS):
        top = 318 + 57.5 * i
        yield box(888, top, 368, 50, c["card"], c["line"], 10)
        yield box(888, top, 6, 50, c[colour], r=3)
        yield text(908, top + 21, verb, c["ink"], 15, font_weight="600")
        yield text(908, top + 40, says, c["soft"], 13)


def shortened(words: str, most: int = 42) -> str:
    return words if len(words) <= most else words[: most - 1] + "…"


def picture(c: Colours) -> str:
    """The whole picture in one set of colours."""
    body = [
        box(0, 0, WIDTH, HEIGHT, c["paper"], r=0),
        text(24, 34, "what there is", c["soft"], 14),
        text(320, 34, "five planners decide", c["soft"], 14),
        text(888, 34, "one plan is proved, run, shown", c["soft"], 14),
        *column_of_inputs(c),
        *column_of_planners(c),
        *column_of_plans(c),
        *arrow(278, 300, 316, c["arrow"]),
        *arrow(846, 300, 884, c["arrow"]),
    ]
    title = "a network and a chip go in; five planners decide; one plan is checked, run, shown, exported"
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {HEIGHT}"'
        f' width="{WIDTH}" height="{HEIGHT}" role="img"><title>{title}</title>\n'
        + "\n".join(body)
        + "\n</svg>\n"
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--into", type=Path, default=IMAGES, help="the folder")
    into = parser.parse_args().into
    for name, colours in (("overview.svg", LIGHT), ("overview-dark.svg", DARK)):
        write_atomically(into / name, picture(colours))
        print(into / name)


if __name__ == "__main__":
    main()
