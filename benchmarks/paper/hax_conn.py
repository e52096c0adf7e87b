"""HaX-CoNN's evaluation in simulation, ours beside theirs: the figures of docs/hax-conn.md.

    python benchmarks/paper/hax_conn.py [--only table6 fig5 ...] [--into docs/hax-conn.md]

A section is printed as soon as it is there; `--into` puts each between its marks on the page, at once, and
its picture, if it has one, into the images beside the page (`pip install 'onchip[docs]'`). Exit code 1 when a
schedule is worse than any baseline or is refused when it is judged again. `--list` names the sections. All of
them take about five minutes, of which two are Z3's (`z3`, `z3_long`; `--z3-seconds` is its limit for a case
of the first) and one H2H's in Python (`searched`); without these, `fig7` and `pairs` it is half a minute.
"""

from __future__ import annotations

import argparse
import sys
from functools import partial
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

import hax_conn_acceptance
import hax_conn_cases
import hax_conn_timed
from hax_conn_alone import alone
from hax_conn_claims import claims
from hax_conn_figures import fig_1, fig_3, fig_4, fig_5, fig_6
from hax_conn_overhead import table_7
from hax_conn_pairs import table_8_rivals
from hax_conn_rivals import layers, rivals, searched
from hax_conn_sensitivity import sensitivity
from hax_conn_setup import setup, table_6
from hax_conn_strength import strength, vgg19_pairs
from hax_conn_tables import readings, table_2, table_4, table_5, table_8, totals
from hax_conn_transitions import transitions
from page_marks import Section, marks, write

SECTIONS: dict[str, Section] = {
    "claims": claims,
    "table2": table_2,
    "readings": readings,
    "table4": table_4,
    "table5": table_5,
    "table6": table_6,
    "setup": setup,
    "rivals": rivals,
    "layers": layers,
    "transitions": transitions,
    "totals": totals,
    "strength": strength,
    "alone": alone,
    "vgg19": vgg19_pairs,
    "table7": table_7,
    "table8": table_8,
    "table8_rivals": table_8_rivals,
    "fig1": fig_1,
    "fig3": fig_3,
    "fig4": fig_4,
    "fig5": fig_5,
    "fig6": fig_6,
    "sensitivity": sensitivity,
    "pairs": hax_conn_acceptance.pairs,
    "fig7": hax_conn_timed.fig_7,
    "planning": hax_conn_timed.planning,
    "searched": searched,
    "z3": hax_conn_timed.beside_z3,
    "z3_long": hax_conn_timed.long_z3,
}


def draw(name: str, page: Path) -> None:
    """The picture of a section into the images beside the page, where matplotlib is installed."""
    try:
        import matplotlib  # noqa: F401
    except ImportError:
        print(f"{name}: no picture without pip install 'onchip[docs]'", file=sys.stderr)
        return
    import hax_conn_drawn

    begin, end = marks(name)
    text = page.read_text("utf-8").split(begin, 1)[1].split(end, 1)[0]
    hax_conn_drawn.draw(name, text, page.parent / "images")


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
    sections: dict[str, Section] = {**SECTIONS, "z3": partial(hax_conn_timed.beside_z3, args.z3_seconds)}
    for name in args.only:
        write({name: sections[name]}, args.into)
        if args.into is not None:
            draw(name, args.into)
    for line in hax_conn_cases.WRONG:
        print(line, file=sys.stderr)
    raise SystemExit(1 if hax_conn_cases.WRONG else 0)


if __name__ == "__main__":
    main()
