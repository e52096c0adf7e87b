"""Fig. 7 to 12 as pictures, from the data of the page's tables."""

from __future__ import annotations

from pathlib import Path

from charts import Panel, bars
from vmcu_fig7 import rows as fig_7_rows
from vmcu_grown import METHODS as GROWING
from vmcu_grown import reached
from vmcu_modules import IMAGENET, VWW, measured
from vmcu_page import numbers, rows

__all__ = ["draw"]

NAMES = {
    "onchip": "onchip (rings)",
    "window": "vMCU (window)",
    "in place, buffers": "TinyEngine (in place, buffers)",
    "order": "HMCOS (order)",
    "overlap": "vMCU (layer by layer)",
}


def draw(folder: Path) -> None:
    """Write all six pictures into a folder."""
    cases = [one for one, _, _ in fig_7_rows()]
    shapes = [f"{side}, {c}>{k}" for side, c, k in (one.shape for one in cases)]
    ram = {
        "vMCU (overlapped)": [one.bytes / 1024 for one in cases],
        "TinyEngine (in + out)": [one.whole / 1024 for one in cases],
    }
    bars(
        folder / "vmcu-fig7.svg",
        [Panel("RAM of tensors; the board has 128 KB", shapes, ram)],
        unit="KB",
        across=1,
    )
    _fig_8(folder / "vmcu-fig8.svg")
    for name, file in ((VWW, "vmcu-fig9.svg"), (IMAGENET, "vmcu-fig10.svg")):
        blocks = [row for row in measured(name) if row.printed]
        ram = {
            NAMES[method]: [row.ram[method] / 1000 for row in blocks]
            for method in ("onchip", "window", "in place, buffers", "order")
        }
        title = f"RAM of each block of {name.removeprefix('made:')}, shapes of Table 2"
        bars(
            folder / file,
            [Panel(title, [row.block.name for row in blocks], ram)],
            unit="1,000 bytes",
            across=1,
        )
    for kind, file, unit in (
        ("image", "vmcu-fig11.svg", "times the side"),
        ("channels", "vmcu-fig12.svg", "times the channels"),
    ):
        grown = [row for row in reached(kind) if row.printed]
        ratios = {NAMES[method]: [row.ratios[method] for row in grown] for method in reversed(GROWING)}
        title = "how much larger in TinyEngine's RAM, shapes of Table 2"
        bars(folder / file, [Panel(title, [row.label for row in grown], ratios)], unit=unit, across=1)


def _fig_8(path: Path) -> None:
    """Draw Fig. 8 from the page: it takes a checkout of TinyEngine to measure."""
    found = [(row[1].split(" ", 1), numbers([*row[2:8], *row[10:13]])) for row in rows("fig8", 14)]
    labels = [f"{size.split('x')[0]}, {channels.replace(' ', '')}" for (size, channels), _ in found]
    millions = [
        ("instructions, millions", [(n[0], n[3], n[6]) for _, n in found]),
        ("loads and stores, millions", [(n[1] + n[2], n[4] + n[5], n[7] + n[8]) for _, n in found]),
    ]
    names = ("onchip", "TinyEngine", "TinyEngine in floating point")
    panels = [
        Panel(
            title,
            labels,
            {name: [counts[i] / 1e6 for counts in each] for i, name in enumerate(names)},
        )
        for title, each in millions
    ]
    bars(path, panels, unit="millions", across=2)
