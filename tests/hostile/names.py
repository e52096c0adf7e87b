"""Names that a browser, a terminal, a shell or a spreadsheet would do something with."""

from __future__ import annotations

import json

from hostile.case import case, write
from hostile.networks import network, operator, tensor

HTML = "</script><img src=x onerror=alert(1)>"
FORMULAS = ("=1+1", "+1+1", "-1+1", "@SUM(1)", "\t=1+1", '=HYPERLINK("http://example.org";"x")')

for name, evil, what in (
    ("html", HTML, "names with HTML"),
    ("terminal", "\x1b]0;title\x07\x1b[31mred\x9b1m\u202e", "names with terminal sequences"),
    ("path", "../../climbed", "names with a path that climbs"),
    ("control", "a\r\nb\tc", "names with line ends and tabs"),
):
    made = network(
        [tensor(evil + "1", 10, "input"), tensor(evil + "2", 10), tensor(evil, 10)],
        [operator(evil + "x", [evil + "1"], [evil + "2"]), operator(evil + "y", [evil + "2"], [evil])],
        [evil],
        name=evil,
    )
    write(f"names_{name}.json", json.dumps(made))
    plan = (
        "plan",
        f"names_{name}.json",
        "--budget",
        "MR",
        "-o",
        "OUT/plan.json",
        "--report",
        "OUT/page.html",
    )
    case(f"names_{name}.json", *plan, table="names", want=(0, 2), what=what, pages=("page.html",))

rows = "".join('"' + cell.replace('"', '""') + f'",{i},{i + 1},4\n' for i, cell in enumerate(FORMULAS))
write("formulas.csv", "id,lower,upper,size\n" + rows)
pack = ("pack", "formulas.csv", "--capacity", "1MiB", "-o", "OUT/out.csv", "--time-limit", "2")
what = "names that a spreadsheet runs, and that come back in the CSV that is written"
case("formulas.csv", *pack, table="names", want=(0, 2), limit=2, what=what, tables=("out.csv",))

evil_network = network(
    [tensor(cell, 10, "activation" if i else "input") for i, cell in enumerate(FORMULAS)],
    [operator(f"o{i}", [FORMULAS[i]], [FORMULAS[i + 1]]) for i in range(len(FORMULAS) - 1)],
    [FORMULAS[-1]],
    name="=1+1",
)
write("=1+1.json", json.dumps(evil_network))
write("spec_formulas.toml", 'networks = ["=1+1.json"]\nchips = ["generic"]\nbudgets = [100]\n')
case(
    "spec_formulas.toml",
    *("sweep", "spec_formulas.toml", "-o", "OUT/sweep", "--jobs", "1"),
    table="names",
    want=(0, 2),
    what="a network's name that a spreadsheet runs, in the sweep's table",
    needs=("=1+1.json",),
    tables=("sweep/table.csv",),
    dear=True,
)
