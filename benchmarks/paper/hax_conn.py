"""HaX-CoNN's evaluation in simulation, ours beside theirs: the figures of docs/hax-conn.md.

    python benchmarks/paper/hax_conn.py [--only table6 fig5 ...] [--into docs/hax-conn.md]

A section is printed as soon as it is there; `--into` puts each between its marks on the page, at once. Exit
code 1 when a schedule is worse than any baseline or is refused when it is judged again. `--list` names the
sections. All of them take about two minutes, of which half are Z3's (`z3`; `--z3-seconds` is its limit for a
case); without `z3`, `fig7` and `pairs` it is ten seconds.
"""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path

import hax_conn_acceptance
import hax_conn_cases
import hax_conn_timed
from hax_conn_claims import claims
from hax_conn_figures import fig_1, fig_3, fig_4, fig_5, fig_6
from hax_conn_sensitivity import sensitivity
from hax_conn_tables import readings, table_2, table_4, table_5, table_6, table_8

Section = Callable[[], Iterator[str]]

SECTIONS: dict[str, Section] = {
    "claims": claims,
    "table2": table_2,
    "readings": readings,
    "table4": table_4,
    "table5": table_5,
    "table6": table_6,
    "table8": table_8,
    "fig1": fig_1,
    "fig3": fig_3,
    "fig4": fig_4,
    "fig5": fig_5,
    "fig6": fig_6,
    "sensitivity": sensitivity,
    "pairs": lambda: hax_conn_acceptance.lines(hax_conn_acceptance.swept()),
    "fig7": hax_conn_timed.fig_7,
    "planning": hax_conn_timed.planning,
    "z3": hax_conn_timed.beside_z3,
}


def marks(name: str) -> tuple[str, str]:
    """What a section stands between on the page."""
    return f"<!-- {name}: begin -->", f"<!-- {name}: end -->"


def put_into(page: str, name: str, text: str) -> str:
    """The page with the section's new text. Raises `SystemExit` where it has no such marks."""
    begin, end = marks(name)
    before, begun, rest = page.partition(begin)
    _, ended, after = rest.partition(end)
    if not begun or not ended:
        raise SystemExit(f"the page has no {begin} ... {end}")
    return f"{before}{begin}\n{text}\n{end}{after}"


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n")[0])
    parser.add_argument("--only", nargs="+", metavar="SECTION", choices=SECTIONS, default=[*SECTIONS])
    parser.add_argument("--into", type=Path, metavar="PAGE")
    parser.add_argument("--list", action="store_true", help="names of the sections")
    parser.add_argument(
        "--z3-seconds", type=float, default=hax_conn_timed.Z3_LIMIT, help="for each of its cases"
    )
    args = parser.parse_args()
    if args.list:
        print("\n".join(SECTIONS))
        return
    sections = {**SECTIONS, "z3": partial(hax_conn_timed.beside_z3, args.z3_seconds)}
    for name in args.only:
        began = time.perf_counter()
        lines = []
        for line in sections[name]():
            lines.append(line)
            if args.into is None:
                print(line, flush=True)
        if args.into is None:
            print(flush=True)
        else:
            args.into.write_text(put_into(args.into.read_text(), name, "\n".join(lines)))
        print(f"{name}: {time.perf_counter() - began:.1f} s", file=sys.stderr, flush=True)
    for line in hax_conn_cases.WRONG:
        print(line, file=sys.stderr)
    raise SystemExit(1 if hax_conn_cases.WRONG else 0)


if __name__ == "__main__":
    main()
