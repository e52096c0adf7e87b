"""vMCU's evaluation, ours beside theirs: the figures of docs/vmcu.md.

    python benchmarks/paper/vmcu.py [--only networks fig9 ...] [--into docs/vmcu.md] [--models FILE ...]
                                    [--tinyengine DIR] [--draw docs/images]

A section is printed as soon as it is there; `--into` puts each between its marks on the page. `--models`
takes `.tflite` files in place of the made networks for the table of networks, for which TFLM's interpreter
says its arena (extra `dev`). `--list` names the sections; `table3`, `window` and `modulo` need
the cross compiler and the emulator of `onchip mcu`; `fig8` and `table3_beside` a checkout of TinyEngine with
its submodule, too: where none is named they stay as they are on the page. Some ten minutes on one core, most
of it `nas` and `networks`.
"""

from __future__ import annotations

import argparse
import shutil
import sys
from functools import partial
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from page_marks import Section, write
from vmcu_charts import draw
from vmcu_claims import claims
from vmcu_executed import table_3
from vmcu_fig7 import fig_7
from vmcu_grown import fig_11, fig_12
from vmcu_layers import errata, formulas
from vmcu_modules import fig_9, fig_10, table_2
from vmcu_modulo import modulo
from vmcu_networks import MADE
from vmcu_tinyengine import fig_8, table_3_beside
from vmcu_whole import nas, networks
from vmcu_window import window

from onchip.base.errors import OnchipError

SECTIONS: dict[str, Section] = {
    "networks": partial(networks, MADE),
    "formulas": formulas,
    "errata": errata,
    "fig7": fig_7,
    "table2": table_2,
    "fig9": fig_9,
    "fig10": fig_10,
    "fig11": fig_11,
    "fig12": fig_12,
    "nas": nas,
    "table3": table_3,
    "window": window,
    "modulo": modulo,
}

LAST = {"claims": claims}
"""What reads other sections from the page."""

PROGRAMS = ("arm-none-eabi-gcc", "qemu-system-arm")
EMULATED = ("table3", "window", "modulo")
"""Sections whose programs are built and run."""

BESIDE = {"fig8": fig_8, "table3_beside": table_3_beside}
"""Sections that need a checkout of TinyEngine."""


def main() -> None:
    every = [*SECTIONS, *BESIDE, *LAST]
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n")[0])
    parser.add_argument("--only", nargs="+", metavar="SECTION", choices=every, default=every)
    parser.add_argument("--into", type=Path, metavar="PAGE")
    parser.add_argument("--models", nargs="+", metavar="FILE", help="instead of the made networks")
    parser.add_argument("--tinyengine", type=Path, metavar="DIR", help="a checkout of TinyEngine")
    parser.add_argument("--draw", type=Path, metavar="FOLDER", help="the pictures, too")
    parser.add_argument("--list", action="store_true", help="names of the sections")
    args = parser.parse_args()
    if args.list:
        print("\n".join(every))
        return
    sections = {**SECTIONS, **LAST, "networks": partial(networks, tuple(args.models or MADE))}
    if args.tinyengine:
        sections |= {name: partial(make, args.tinyengine) for name, make in BESIDE.items()}
    lacking = [program for program in PROGRAMS if shutil.which(program) is None]
    for name in args.only:
        need = "--tinyengine DIR" if name in BESIDE and name not in sections else ""
        if lacking and name in (*EMULATED, *BESIDE):
            sections.pop(name, None)
            need = " and ".join(lacking)
        if need:
            print(f"{name}: stays as it is on the page; it needs {need}", file=sys.stderr)
    try:
        write({name: sections[name] for name in args.only if name in sections}, args.into)
    except OnchipError as error:
        raise SystemExit(str(error)) from None
    if args.draw:
        draw(args.draw)


if __name__ == "__main__":
    main()
