"""Whole networks planned for the shortest time, beside two plans for which no time is searched.

    .venv/bin/python benchmarks/time_networks.py [NETWORK ...] [--chips EDGE ...] [--budgets 256KiB ...]
    .venv/bin/python benchmarks/time_networks.py --campaign FOLDER [--time-limit 60]
    .venv/bin/python benchmarks/time_networks.py --table [--into docs/nest-networks.md --section campaign]

NETWORK is what `onchip plan` takes, a file, or `zoo:NAME`; or `llama:LAYERS`, below. *Fewest bytes* is the
plan that moves the fewest bytes, with tensors apart, in its nests or those of fewest bytes, with the best
copies of every buffer. *Whole operators* is the plan of least latency of whole operators, at the rates of the
tiles, with weights cut into the best slices along one axis, two copies each. *For time* is what `--objective
latency` makes. The checker prices all three. The chips are below: those of `time_known_values.py`, and three
made of `EDGE`. *In tiles* are tensors that lie in DRAM in tiles. *Bound* is that of every plan of nests. CPU
seconds are of all plans together.

Every row is kept, a line of JSON in `build/results/time_networks.jsonl` (or `--keep`), and a row that stands
there is not made again: so a run goes on where the last one ended. `--campaign` plans all networks of the zoo
and all files of FOLDER on all chips; `--table` plans nothing and prints the rows that there are, or puts them
`--into` a page. Exit code 1 where a plan for time is slower than one of the others.
"""

from __future__ import annotations

import argparse
import json
import sys
import time
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

from page_marks import write
from time_known_values import EDGE, SERVER

from nest_networks import network_of
from onchip.base.errors import OnchipError
from onchip.base.units import parse_bytes
from onchip.check import check
from onchip.machines.chip import Chip
from onchip.machines.tile_rates import ArraySide, Channel
from onchip.network import Network
from onchip.planners.joint.by_bytes import FewestBytes
from onchip.planners.joint.large_tiles import with_large_tiles
from onchip.planners.joint.options import JointOptions
from onchip.planners.joint.planning import BYTES
from onchip.planners.joint.timed.answer import quickest, starts_of
from onchip.planners.limits import Limits
from onchip.planners.placement import PlacementOptions
from onchip.plans import Plan
from onchip.readers import ReadOptions, load
from onchip.zoo import names

CHIPS = {
    "EDGE": EDGE,
    "SERVER": SERVER,
    "TWO": replace(  # one channel each way
        EDGE,
        channels=(replace(EDGE.channels[0], stores=False), replace(EDGE.channels[0], loads=False)),
    ),
    "SLOW": replace(EDGE, channels=(Channel(8 * 10**8, 500_000, 40_000, 32),)),
    "SMALL": replace(EDGE, sides=(ArraySide("out", 8), ArraySide("sum", 8))),
}


def llama(layers: int, tokens: int = 512) -> Network:
    """Layers of Llama 3.2 1B at 16 bit: 2,048 wide, 32 heads for 8 of keys and values, 8,192 inside."""
    lines = []
    for n in range(layers):
        lines += [
            f"norm{n} RMSNormalization: n{n}(m,d) = x{n}(m,*d) G{n}(d)",
            f"K{n} MatMul: k{n}(p,g,u) = n{n}(p,d) WK{n}(d,g,u)",
            f"turnK{n} RotaryEmbedding: kr{n}(p,g,u) = k{n}(p,g,*u)",
            f"V{n} MatMul: v{n}(p,g,v) = n{n}(p,d) WV{n}(d,g,v)",
            f"Q{n} MatMul: q{n}(m,g,r,u) = n{n}(m,d) WQ{n}(d,g,r,u)",
            f"turnQ{n} RotaryEmbedding: qr{n}(m,g,r,u) = q{n}(m,g,r,*u)",
            f"S{n} MatMul+Softmax: s{n}(g,r,m,p) = qr{n}(m,g,r,u) kr{n}(*p,g,u)",
            f"AV{n} MatMul: a{n}(m,g,r,v) = s{n}(g,r,m,p) v{n}(p,g,v)",
            f"out{n} MatMul: o{n}(m,d) = a{n}(m,g,r,v) WO{n}(g,r,v,d)",
            f"add{n} Add: y{n}(m,d) = o{n}(m,d) x{n}(m,d)",
            f"middle{n} RMSNormalization: b{n}(m,d) = y{n}(m,*d) H{n}(d)",
            f"gate{n} MatMul+Silu: t{n}(m,f) = b{n}(m,d) WG{n}(d,f)",
            f"up{n} MatMul: w{n}(m,f) = b{n}(m,d) WU{n}(d,f)",
            f"mul{n} Mul: z{n}(m,f) = t{n}(m,f) w{n}(m,f)",
            f"down{n} MatMul: c{n}(m,d) = z{n}(m,f) WD{n}(f,d)",
            f"end{n} Add: x{n + 1}(m,d) = c{n}(m,d) y{n}(m,d)",
        ]
    sizes = f"m={tokens} p={tokens} d=2048 g=8 r=4 u=64 v=64 f=8192"
    return network_of(sizes, lines, ["x0"], [f"x{layers}"], 2).network


KEPT = Path(__file__).resolve().parents[1] / "build" / "results" / "time_networks.jsonl"

Row = dict[str, Any]


def made(name: str, chip_name: str, size: str, seconds: float) -> Row:
    """Plan one network; return its figures, or why it has none."""
    began = time.process_time()
    row: Row = {"network": name, "chip": chip_name, "scratchpad": size, "limit": seconds}
    layers = name.removeprefix("llama:")
    apart = JointOptions(fuse=True, overlap=False, concat_views=False)
    placing = PlacementOptions(in_place=False, time_limit=seconds)
    try:
        network = llama(int(layers)) if layers != name else load(name, ReadOptions(dtype="int8")).network
        chip = Chip(chip_name, 64, "int8", tiles=CHIPS[chip_name])
        budget, limits = parse_bytes(size), Limits.of(placing)
        row["operators"] = len(network.operators)
        run = FewestBytes(network, chip, budget, apart, placing, limits.until(BYTES))
        least, problem = with_large_tiles(run.run().plan, limits), run.problem
        starts = starts_of(least, problem, limits.began, limits, "latency")
        plan = quickest(least, problem, limits.began, limits, starts=starts)
    except OnchipError as no:
        return {**row, "no": str(no).splitlines()[0], "cpu": round(time.process_time() - began)}
    return {
        **row,
        "groups": len(plan.groups),
        "in_tiles": len(plan.layouts),
        "fewest": _picoseconds(starts.fewest_bytes),
        "whole": _picoseconds(starts.whole_operators),
        "time": _picoseconds(plan),
        "bound": plan.result.latency_lower_bound_picoseconds,
        "least_bytes": least.result.dram_bytes,
        "bytes": plan.result.dram_bytes,
        "cpu": round(time.process_time() - began),
    }


def _picoseconds(plan: Plan | None) -> int | None:
    """The time of a plan that the checker derives."""
    return None if plan is None else check(plan).latency_picoseconds


def shown(row: Row) -> str:
    """A row of the table."""
    called = row["network"].removeprefix("zoo:").rpartition("/")[2].removesuffix(".onnx")
    cells = [called, row["chip"], row["scratchpad"], str(row.get("operators", ""))]
    if "no" in row:
        return f"| {' | '.join(cells)} | {row['no']} |"
    others = [n for n in (row["fewest"], row["whole"]) if n is not None]
    cells += [str(row["groups"]), str(row["in_tiles"])]
    cells += ["-" if n is None else f"{n * 1e-9:,.3f}" for n in (row["fewest"], row["whole"], row["time"])]
    cells.append(f"{1 - row['time'] / min(others):.1%}" if others else "-")
    cells += [f"{row['bound'] * 1e-9:,.3f}", f"{row['time'] / row['bound'] - 1:.1%}"]
    cells += [f"{row['least_bytes']:,}", f"{row['bytes']:,}", str(row["cpu"])]
    return f"| {' | '.join(cells)} |"


def slower(row: Row) -> bool:
    """Whether the plan for time is slower than one without a search."""
    return "time" in row and any(n is not None and n < row["time"] for n in (row["fewest"], row["whole"]))


def asked_cases(asked: argparse.Namespace) -> Iterator[tuple[str, str, str]]:
    """Yield network, chip and scratchpad of every row that is asked for."""
    networks, chips = list(asked.networks), asked.chips or ["EDGE"]
    if asked.campaign is not None:
        networks += [f"zoo:{name}" for name in names()]
        networks += sorted(str(path) for path in asked.campaign.glob("*.onnx"))
        chips = asked.chips or list(CHIPS)
    for name in networks or ["zoo:squeezenet1_0", "zoo:mobilenet_v2"]:
        for chip in chips:
            for size in asked.budgets:
                yield name, chip, size


HEAD = (
    "| network | chip | scratchpad | operators | groups | in tiles | fewest bytes, ms | whole operators, ms"
    " | for time, ms | faster than both | bound, ms | above it | fewest bytes | bytes for time | CPU s |",
    "|---|---|---|" + "--:|" * 12,
)


def summary(rows: list[Row]) -> str:
    """Return how many plans there are, how many are slower than another one, and how near the bound."""
    made = [row for row in rows if "time" in row]
    late = sum(map(slower, made))
    near = [sum(row["time"] <= times * row["bound"] for row in made) for times in (1.1, 2)]
    return (
        f"{len(made)} of {len(rows)} planned, {late} slower than a plan without a search;"
        f" {near[0]} within 10 % of the bound, {near[1]} within twice"
    )


def main() -> int:
    """Print the table."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("networks", nargs="*")
    parser.add_argument("--chips", nargs="+", choices=CHIPS)
    parser.add_argument("--budgets", nargs="+", default=["512KiB"])
    parser.add_argument("--time-limit", type=float, default=300.0, help="seconds for each plan")
    parser.add_argument("--campaign", type=Path, metavar="FOLDER")
    parser.add_argument("--keep", type=Path, default=KEPT, metavar="FILE")
    parser.add_argument("--table", action="store_true")
    parser.add_argument("--into", type=Path, metavar="PAGE", help="with --table")
    parser.add_argument("--section", choices=("campaign", "six networks"), default="campaign")
    asked = parser.parse_args()
    lines = asked.keep.read_text().splitlines() if asked.keep.exists() else []
    known = {(r["network"], r["chip"], r["scratchpad"], r["limit"]): r for r in map(json.loads, lines)}
    if asked.table:
        rows = list(known.values())
        found = [*HEAD, *map(shown, rows), "", summary(rows)]
        write({asked.section: lambda: iter(found)}, asked.into)
        return 1 if any(map(slower, rows)) else 0
    rows = []
    print("\n".join(HEAD))
    for case in [(*case, asked.time_limit) for case in asked_cases(asked)]:
        if case not in known:
            known[case] = made(*case)
            asked.keep.parent.mkdir(parents=True, exist_ok=True)
            with asked.keep.open("a") as file:
                print(json.dumps(known[case]), file=file)
        rows.append(known[case])
        print(shown(known[case]), flush=True)
    print(f"\n{summary(rows)}")
    return 1 if any(map(slower, rows)) else 0


if __name__ == "__main__":
    sys.exit(main())
