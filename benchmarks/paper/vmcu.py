"""vMCU's evaluation, ours beside theirs: the figures of docs/vmcu.md.

    python benchmarks/paper/vmcu.py [--only networks fig9 ...] [--into docs/vmcu.md] [--models FILE ...]

A section is printed as soon as it is there; `--into` puts each between its marks on the page. `--models`
takes `.tflite` files in place of the made networks for the table of networks, for which TFLM's interpreter
says its arena (extra `dev`). `--list` names the sections; `table3` needs
the cross compiler and the emulator of `onchip mcu`. Some ten minutes on one core, most of it
`nas` and `networks`.
"""

from __future__ import annotations

import argparse
import sys
from functools import partial
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from page_marks import Section, write
from vmcu_executed import table_3
from vmcu_layers import errata, fig_7, formulas
from vmcu_modules import fig_9, fig_10, fig_11, fig_12, table_2
from vmcu_networks import MADE
from vmcu_whole import nas, networks

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
}


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n")[0])
    parser.add_argument("--only", nargs="+", metavar="SECTION", choices=SECTIONS, default=[*SECTIONS])
    parser.add_argument("--into", type=Path, metavar="PAGE")
    parser.add_argument("--models", nargs="+", metavar="FILE", help="instead of the made networks")
    parser.add_argument("--list", action="store_true", help="names of the sections")
    args = parser.parse_args()
    if args.list:
        print("\n".join(SECTIONS))
        return
    sections = {**SECTIONS, "networks": partial(networks, tuple(args.models or MADE))}
    write({name: sections[name] for name in args.only}, args.into)


if __name__ == "__main__":
    main()
