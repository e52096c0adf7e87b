"""COSMA's evaluation again (Fig. 3, Fig. 4, Table II): the tables and plots of docs/cosma.md.

    python benchmarks/paper/cosma.py measure DATA.json [--networks FOLDER] [--only PATTERN]
    python benchmarks/paper/cosma.py render DATA.json [--section claims ...] [--into docs/cosma.md]
    python benchmarks/paper/cosma.py render --only PATTERN --section fig3 plans

`measure` plans the fourteen networks at MR, MH and MP, with weights streamed ("activations") and resident
("with parameters"), fused and not, in onchip's ways and in the paper's four; networks come from the zoo, or
where that lacks one from a FOLDER of `onchip.network/1` files. What DATA.json holds of other networks stays.
`render` prints the sections (`--list` names them), or puts them into the page, and the plots beside it where
matplotlib is installed (`pip install 'onchip[docs]'`); `--section arena arena_all belady orders` need no
DATA, and with `--only` these networks are measured first, for their rows in `fig3`, `fig4` and `plans`.
Seconds are CPU seconds of one process, the best of three where they are under half a second.
"""

from __future__ import annotations

import argparse
import fnmatch
import json
import os
import platform
import resource
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any, Literal, get_args, get_type_hints

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from cosma_settings import BUDGETS, GENERIC, HUMAN, NAS, WEIGHTS
from page_marks import write

import onchip
from onchip import zoo
from onchip.check import certify
from onchip.comparison.baselines import SCHEMES, DoesNotFit, solve
from onchip.network import Network
from onchip.network.json import read_network
from onchip.planners.limits import Limits
from onchip.planners.placement import PlacementOptions, Problem, minimum_peak, minimum_traffic, plan
from onchip.planners.placement.program import program
from onchip.planners.placement.strategy import Task, strategy

WITHOUT_DATA = {"arena", "arena_all", "belady", "orders"}
"""Sections that are measured as they are printed."""
KEYS = ("network", "granularity", "weights", "at")
Row = dict[str, Any]


# -- measuring -----------------------------------------------------------------------------------------------


def network(name: str, granularity: str, folder: Path | None) -> Network | None:
    """From the zoo, else from the folder, else None."""
    if name in zoo.names():
        return onchip.load(f"zoo:{name}", granularity=granularity).network
    if folder is not None and (path := folder / f"{name}.{granularity}.json").is_file():
        return read_network(path)
    return None


def measure(folder: Path | None, only: str) -> Iterator[Row]:
    """One record per network, granularity, weights and budget."""
    for name in fnmatch.filter([*HUMAN, *NAS], only):
        for granularity in ("fused", "op"):
            net = network(name, granularity, folder)
            if net is None:
                print(f"{name}: not in the zoo, and no --networks folder has it: left out", file=sys.stderr)
                break
            for weights in WEIGHTS:
                yield from _budgets(name, granularity, weights, net)


def _budgets(
    name: str, granularity: str, weights: Literal["streamed", "resident"], net: Network
) -> Iterator[Row]:
    seen = net if weights == "streamed" else net.with_resident_weights()
    problem = Problem.of(seen)
    peak, order_seconds = timed(lambda: minimum_peak(problem))
    mr, mp = problem.minimum_budget, peak.value
    for at, budget in zip(BUDGETS, (mr, (mr + mp) // 2, mp), strict=True):
        rows: dict[str, Row] = {}
        found, search_seconds = timed(lambda b=budget: minimum_traffic(problem, b))
        made, seconds = timed(lambda b=budget: plan(net, GENERIC, b, PlacementOptions(weights=weights)))
        rows["exact"] = entry(made.result.traffic_bytes, made.result.status, seconds)
        for label, order in (("exact:given", seen.order), ("exact:minpeak", peak.order)):
            (traffic, status), seconds = timed(lambda o=order, b=budget: fixed(seen, problem, o, b))
            rows[label] = entry(traffic, status, seconds)
        if "dnc" in get_args(get_type_hints(PlacementOptions)["strategy"]):
            dnc = PlacementOptions(weights=weights, strategy="dnc", time_limit=60.0)
            made, seconds = timed(lambda b=budget, o=dnc: plan(net, GENERIC, b, o))
            rows["dnc"] = entry(made.result.traffic_bytes, made.result.status, seconds)
        for scheme in SCHEMES:
            order = seen.order if SCHEMES[scheme].order == "given" else peak.order
            got, seconds = timed(
                lambda s=scheme, o=order, b=budget: solve(s, net, GENERIC, b, weights=weights, order=o)
            )
            if isinstance(got, DoesNotFit):
                rows[scheme] = {"needs": got.needs, "seconds": seconds}
            else:
                rows[scheme] = entry(got.result.traffic_bytes, got.result.status, seconds)
        yield {
            "network": name,
            "granularity": granularity,
            "weights": weights,
            "at": at,
            "budget": budget,
            "operators": len(net.operators),
            "states": found.states,
            "megabytes": round(found.memory / 1e6, 1),
            "search_seconds": search_seconds,
            "order_seconds": order_seconds,
            "resident_megabytes": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1e3,
            "rows": rows,
        }


def fixed(net: Network, problem: Problem, order: Sequence[int], budget: int) -> tuple[int, str]:
    """Traffic and status of the exact planner on one order that is known already."""
    task = Task(net, problem.in_order(order), budget, 1, Limits(time_limit=60.0))
    answer = strategy("exact")(task)
    status: Literal["optimal", "feasible"] = "optimal" if answer.traffic == answer.bound else "feasible"
    steps = program(net, problem, answer.order, answer.placed, answer.scratch)
    made = certify(net, GENERIC, budget, steps, status=status, lower_bound_bytes=answer.bound, seconds=0.0)
    return made.result.traffic_bytes, status


def timed(work: Callable[[], Any]) -> tuple[Any, float]:
    """What `work` gives, and its CPU seconds; of what is quick the best of three, as others disturb it."""
    best = float("inf")
    for _ in range(3):
        began = time.process_time()
        result = work()
        best = min(best, time.process_time() - began)
        if best > 0.5:
            break
    return result, best


def entry(traffic: int, status: str, seconds: float) -> Row:
    return {"traffic": traffic, "status": status, "seconds": seconds}


# -- the command line ----------------------------------------------------------------------------------------


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n")[0])
    parser.add_argument("action", choices=("measure", "render"), nargs="?")
    parser.add_argument("data", type=Path, nargs="?")
    parser.add_argument("--networks", type=Path, metavar="FOLDER")
    parser.add_argument("--only", action="append", metavar="PATTERN", help="may be given several times")
    parser.add_argument("--section", nargs="+", metavar="SECTION", help="of the page")
    parser.add_argument("--into", type=Path, metavar="PAGE")
    parser.add_argument("--list", action="store_true", help="names of the sections")
    args = parser.parse_args()
    if args.list:
        import cosma_page

        print("\n".join(cosma_page.sections({"records": [], "machine": ""})))
        return
    unmeasured = bool(args.section) and {*args.section} <= WITHOUT_DATA
    needless = args.action == "render" and (unmeasured or args.only)
    if args.action is None or (args.data is None and not needless):
        parser.error("say measure or render, and DATA.json")
    if args.action == "render" and args.only and args.into:
        parser.error("--only prints some rows of a table: it goes without --into")
    if args.action == "measure":
        import ortools.sat.python.cp_model  # noqa: F401  so that no plan's time has its import in it

        machine = (
            f"{platform.machine()}, {os.cpu_count()} cores, one used; Python {platform.python_version()}"
        )
        records = json.loads(args.data.read_text())["records"] if args.data.exists() else []
        for only in args.only or ["*"]:
            for record in measure(args.networks, only):
                records = [r for r in records if any(r[k] != record[k] for k in KEYS)] + [record]
                args.data.write_text(json.dumps({"machine": machine, "records": records}, indent=1) + "\n")
                exact = record["rows"]["exact"]
                print(
                    f"{record['network']} {record['granularity']} {record['weights']} {record['at']}: "
                    f"{exact['traffic']:,} {exact['status']}, {exact['seconds']:.2f} s",
                    file=sys.stderr,
                    flush=True,
                )
        return
    import cosma_page

    if args.data is None:
        records = [record for only in args.only or () for record in measure(args.networks, only)]
        measured = {"records": records, "machine": ""}
    else:
        measured = json.loads(args.data.read_text())
    sections = cosma_page.sections(measured)
    if unknown := {*(args.section or ())} - {*sections}:
        parser.error(f"no section {', '.join(sorted(unknown))}; --list names them")
    chosen = {name: sections[name] for name in args.section or sections}
    write(chosen, args.into)
    if args.into is not None and args.data is not None:
        try:
            cosma_page.pictures(measured, args.into.parent / "images")
        except ImportError:
            print("no pictures without pip install 'onchip[docs]'", file=sys.stderr)


if __name__ == "__main__":
    main()
