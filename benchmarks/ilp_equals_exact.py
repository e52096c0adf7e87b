"""The paper's ILP beside the exact search with another solver, a given order, or networks of one's own.

    python benchmarks/ilp_equals_exact.py [--only NAME ...] [--at MR MH] [--weights streamed resident]
        [--order given] [--solver highs] [--workers 2] [--time-limit SECONDS] [--networks FOLDER]
        [--into docs/placement-ilp.md]

Networks are the zoo's, or FOLDER's `onchip.network/1` files. For each, at MR and MH, with weights streamed
and resident: variables and constraints after and before lifetime pruning, CPU seconds to build and solve,
the ILP's optimum, what the exact search has with addresses (and its bound, if that is lower), and whether
they agree. Prints a Markdown table; `--into` puts it into the page's section `given`. The exit code is 1 if a
proved optimum differs.
"""

from __future__ import annotations

import argparse
import os
import platform
import sys
from collections.abc import Iterator
from pathlib import Path

from ilp_networks import cpu_seconds
from page_marks import put_into

import onchip
from onchip.network import Network
from onchip.network.json import read_network
from onchip.planners.limits import Limits
from onchip.planners.placement import Problem, minimum_peak
from onchip.planners.placement.ilp import minimum_traffic
from onchip.planners.placement.ilp.size import unpruned
from onchip.planners.placement.ilp.solvers import cp_sat
from onchip.planners.placement.strategy import Task, strategy

NETWORKS = (
    "resnet50",
    "vit_b_16",
    "r2plus1d_18",
    "deeplabv3_resnet50",
    "s3d",
    "fcn_resnet50",
    "lraspp_mobilenet_v3_large",
)


HEAD = "| network | weights | at | variables | constraints | unpruned | CPU s | ILP | exact | equal |"


def main() -> None:
    args = parsed()
    cp_sat.WORKERS = args.workers
    threads = f"{args.workers} threads" if args.solver == "cp-sat" else "1 thread"
    lines = [
        f"<!-- {args.solver}, {threads}, order {args.order}, {args.granularity}; "
        f"{platform.machine()}, {os.cpu_count()} cores, Python {platform.python_version()} -->",
        HEAD,
        "|---|---|---|--:|--:|--:|--:|--:|--:|---|",
    ]
    print("\n".join(lines))
    for row in rows(args):
        print(row, flush=True)
        lines.append(row)
    if args.into is not None:
        page = args.into.read_text("utf-8")
        args.into.write_text(put_into(page, "given", "\n".join(lines)), "utf-8")
    sys.exit(1 if any(row.endswith(" NO |") for row in lines) else 0)


def parsed() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n")[0])
    parser.add_argument("--networks", type=Path, metavar="FOLDER")
    parser.add_argument("--only", nargs="+", default=NETWORKS, metavar="NAME")
    parser.add_argument("--granularity", default="fused", choices=("fused", "op"))
    parser.add_argument("--at", nargs="+", default=("MR", "MH"), choices=("MR", "MH", "MP"))
    parser.add_argument("--weights", nargs="+", default=("streamed", "resident"))
    parser.add_argument("--order", default="free", choices=("free", "given"))
    parser.add_argument("--solver", default="cp-sat", choices=("cp-sat", "highs", "scip"))
    parser.add_argument("--workers", type=int, default=2, help="threads of CP-SAT")
    parser.add_argument("--time-limit", type=float, default=120.0, help="wall time of each case")
    parser.add_argument("--into", type=Path, metavar="PAGE")
    return parser.parse_args()


def rows(args: argparse.Namespace) -> Iterator[str]:
    """A row for each case, as soon as it is solved."""
    for name in args.only:
        if args.networks is None:
            network = onchip.load(f"zoo:{name}", granularity=args.granularity).network
        else:
            network = read_network(args.networks / f"{name}.{args.granularity}.json")
        for weights in args.weights:
            seen = network if weights == "streamed" else network.with_resident_weights()
            problem = Problem.of(seen)
            mr, mp = problem.minimum_budget, minimum_peak(problem).value
            if args.order == "given":
                problem = problem.in_order(network.order)
            for at in args.at:
                budget = {"MR": mr, "MH": (mr + mp) // 2, "MP": mp}[at]
                yield f"| {name} | {weights} | {at} | {row(seen, problem, budget, args)} |"


def row(network: Network, problem: Problem, budget: int, args: argparse.Namespace) -> str:
    """Solve one case; its cells after network, weights and budget."""
    began = cpu_seconds()
    found = minimum_traffic(problem, budget, solver=args.solver, limits=Limits(args.time_limit))
    seconds = cpu_seconds() - began
    exact = strategy("exact")(Task(network, problem, budget, 1, Limits()))
    whole = unpruned(found.lifetimes)
    if found.value is not None and found.value == found.bound:
        equal = "yes" if found.value == exact.traffic else "NO"
        ilp = f"{found.value:,}"
    else:
        equal = f"no proof in {args.time_limit:g} s"
        best = "none" if found.value is None else f"{found.value:,}"
        ilp = f"best {best}, bound {found.bound:,}"
    told = f"{exact.traffic:,}" + (f", bound {exact.bound:,}" if exact.bound < exact.traffic else "")
    return (
        f"{found.model.variables:,} | {found.model.constraints:,} "
        f"| {whole.variables:,} / {whole.constraints:,} | {seconds:.1f} | {ilp} | {told} | {equal}"
    )


if __name__ == "__main__":
    main()
