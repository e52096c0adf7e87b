"""Optimus' evaluation again: the tables and pictures of docs/optimus.md.

    python benchmarks/paper/optimus.py [--only SECTION ...] [--networks PATTERN] [--data FILE]
                                       [--into docs/optimus.md] [--list]

Measures what the sections show and prints them, or puts them into the page and draws the pictures beside it
(needs `pip install 'onchip[docs]'`). The paper's networks are fused at batch 4 on chip `optimus` and its
relatives; they come from the zoo (`fusion_graphs.py`). What FILE has is not measured again, and what is
measured is kept there. Seconds are CPU seconds of one process, the best of five where they are under a tenth
of a second. Some fifteen minutes, most of them for NASNet, whose searches end by the clock: its figures may
differ by a few per cent. Without it (`--networks '[!n]*'`) three minutes.
"""

from __future__ import annotations

import argparse
import fnmatch
import json
import os
import platform
import sys
from collections.abc import Iterator
from functools import partial
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from optimus_causes import CAUSES
from optimus_causes_more import MORE_CAUSES
from optimus_causes_tried import TRIED
from optimus_claims import NEEDS, claims
from optimus_data import Data, Row
from optimus_graphs import GRAPHS
from optimus_lines import LINE_PARTS
from optimus_parts import PARTS
from optimus_schemes import NETWORKS, Bench
from optimus_tables import TABLES
from page_marks import Section, write

ALL = PARTS | CAUSES | MORE_CAUSES | TRIED | GRAPHS | LINE_PARTS
SECTIONS = {"claims": (claims, NEEDS), **TABLES}


def records(parts: list[str], networks: str, file: Path | None) -> tuple[str, list[Row]]:
    """The machine, and the records of these parts: those of the file, and what it lacks, measured now."""
    machine = f"{platform.machine()}, {os.cpu_count()} cores, one used; Python {platform.python_version()}"
    kept: dict[str, list[Row]] = {}
    if file is not None and file.exists():
        saved = json.loads(file.read_text())
        machine, kept = saved["machine"], saved["parts"]
    bench = Bench()
    for part in parts:
        for name in fnmatch.filter(NETWORKS, networks):
            if (key := f"{part} {name}") in kept:
                continue
            kept[key] = [{"part": part, "network": name} | r for r in ALL[part](bench, name)]
            print(f"{key}: {len(kept[key])} records", file=sys.stderr, flush=True)
            if file is not None:
                file.write_text(json.dumps({"machine": machine, "parts": kept}, indent=1) + "\n")
    chosen = fnmatch.filter(NETWORKS, networks)
    return machine, [r for part in parts for name in chosen for r in kept[f"{part} {name}"]]


def section(name: str, data: Data, machine: str) -> Iterator[str]:
    """A section's lines; the one with times says whose."""
    if name == "tab5":
        yield f"<!-- {machine} -->"
    yield from SECTIONS[name][0](data)


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n")[0])
    parser.add_argument("--only", nargs="+", metavar="SECTION", choices=SECTIONS, default=[*SECTIONS])
    parser.add_argument("--networks", default="*", metavar="PATTERN")
    parser.add_argument("--data", type=Path, metavar="FILE")
    parser.add_argument("--into", type=Path, metavar="PAGE")
    parser.add_argument("--list", action="store_true", help="names of the sections")
    args = parser.parse_args()
    if args.list:
        print("\n".join(SECTIONS))
        return
    parts = list(dict.fromkeys(part for name in args.only for part in SECTIONS[name][1]))
    machine, found = records(parts, args.networks, args.data)
    data = Data(found)
    sections: dict[str, Section] = {name: partial(section, name, data, machine) for name in args.only}
    write(sections, args.into)
    if args.into is not None:
        from optimus_pictures import PICTURES

        for name in args.only:
            if name in PICTURES:
                PICTURES[name](args.into.parent / "images", data)


if __name__ == "__main__":
    main()
