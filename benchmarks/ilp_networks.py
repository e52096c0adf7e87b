"""COSMA's ILP on its ten networks, beside the exact search: tables of two pages, placement-ilp and cosma.

    python benchmarks/ilp_networks.py measure DATA.json [--only PATTERN] [--graph fused op]
        [--tensors streamed resident] [--at MR MH MP] [--start plan nothing scip highs] [--seconds 20]
    python benchmarks/ilp_networks.py render DATA.json [--into docs/placement-ilp.md]
        [--summary docs/cosma.md]

`measure` solves each case twice: from nothing, and from the exact search's plan as a first solution, which
leaves only the proof to the solver. `--seconds` is CPU time for each (for SCIP and HiGHS, which are other
processes, wall time); a case that is not proved in it is measured again when the limit is longer. Times are
CPU seconds of building and solving, in one process. All cases take some hours at `--seconds 600`; what
DATA.json holds of other cases stays. Exit code 1 if a proved optimum is not the exact search's.
"""

from __future__ import annotations

import argparse
import fnmatch
import json
import platform
import re
import resource
import sys
from collections.abc import Iterator
from pathlib import Path
from statistics import mean, median
from typing import Any, Literal

from page_marks import put_into

import onchip
from onchip.network import Network, OperatorSpec
from onchip.planners.limits import Limits
from onchip.planners.placement import Problem, minimum_peak
from onchip.planners.placement.ilp import minimum_traffic
from onchip.planners.placement.ilp import strategy as ilp_strategy
from onchip.planners.placement.ilp.size import unpruned
from onchip.planners.placement.ilp.solvers import Solver, cp_sat
from onchip.planners.placement.strategy import Answer, Task, strategy

sys.path.append(str(Path(__file__).resolve().parent / "paper"))
from cosma_settings import HUMAN as TITLES

GRAPHS = ("fused", "op", "attention")
"""`attention`: the Transformer, fused, with every attention as one operator, as a PyTorch module has it."""
TENSORS: tuple[Literal["streamed", "resident"], ...] = ("streamed", "resident")
BUDGETS = ("MR", "MH", "MP")
STARTS = ("plan", "nothing")
OTHERS = ("scip", "highs")
"""Other solvers, from nothing; given to `--start` like the two ways of CP-SAT."""
UNREDUCED = "plan, no presolve"
"""CP-SAT from the plan without its presolve, another `--start`."""
KEYS = ("network", "graph", "tensors", "at", "start")
PAPER_DEEPLAB = {"MR": 6.96, "MH": 17.242, "MP": 0.12}
"""Seconds of Gurobi on an M1 Pro for DeepLabV3 with parameters (V-B1)."""
PAPER_MEAN = 0.296
"""The mean of its seconds over the nine others, all budgets and both settings."""
MOST_PAIRS = 2_000_000
"""More than what `onchip plan` builds: no network is left out."""
GRAPH_TITLES = {"attention": "attention whole"}
Row = dict[str, Any]


# -- measuring -------------------------------------------------------------------------------------------


def cases(args: argparse.Namespace) -> Iterator[tuple[Row, Network, int]]:
    """The keys of a case without its start, its network, and its budget in bytes."""
    for name in fnmatch.filter(TITLES, args.only):
        for graph in args.graph:
            if graph == "attention" and name != "transformer":
                continue
            network = graph_of(name, graph)
            for tensors in args.tensors:
                seen = network if tensors == "streamed" else network.with_resident_weights()
                problem = Problem.of(seen)
                mr, mp = problem.minimum_budget, minimum_peak(problem).value
                for at in args.at:
                    budget = {"MR": mr, "MH": (mr + mp) // 2, "MP": mp}[at]
                    yield {"network": name, "graph": graph, "tensors": tensors, "at": at}, seen, budget


def graph_of(name: str, graph: str) -> Network:
    """A network of the zoo as a graph of operators."""
    if graph == "attention":
        return attention_whole(onchip.load(f"zoo:{name}").network)
    return onchip.load(f"zoo:{name}", granularity=graph).network


def attention_whole(network: Network) -> Network:
    """The network with the operators of each attention as one; what passes between them takes no room."""
    parts: dict[str, list[int]] = {}
    for i, op in enumerate(network.operators):
        found = re.match(r"(.*_attn)\.", op.name)
        parts.setdefault(found[1] if found else op.name, []).append(i)
    tensors, specs = network.tensors, []
    inner: set[int] = set()
    for name, members in parts.items():
        made = {t for i in members for t in network.write_ids[i]}
        read = dict.fromkeys(t for i in members for t in network.read_ids[i] if t not in made)
        others = {t for i in range(len(network.operators)) if i not in members for t in network.read_ids[i]}
        handed = [t for t in sorted(made) if t in others or t in network.outputs]
        inner |= made - set(handed)
        weights = sum(network.operators[i].weight_bytes for i in members)
        inputs, outputs = ([tensors[t].name for t in ids] for ids in (read, handed))
        specs.append(OperatorSpec(name, "Any", inputs, outputs, weight_bytes=weights))
    rows = [(t.name, t.bytes, t.kind) for i, t in enumerate(tensors) if i not in inner]
    return Network.build(
        f"{network.name}, attention whole", rows, specs, [tensors[t].name for t in network.outputs]
    )


def measured(case: Row, network: Network, budget: int, start: str, seconds: float) -> Row:
    """One solve, beside the exact search's optimum."""
    problem = Problem.of(network)
    plan: Answer = strategy("exact")(Task(network, problem, budget, 1, Limits()))
    solver: Solver = "scip" if start == "scip" else "highs" if start == "highs" else "cp-sat"
    first = plan if start in ("plan", UNREDUCED) else None
    cp_sat.PRESOLVE = start != UNREDUCED
    began = cpu_seconds()
    limits = within_cpu(seconds) if solver == "cp-sat" else Limits(time_limit=seconds)
    found = minimum_traffic(problem, budget, solver=solver, limits=limits, first=first)
    spent = cpu_seconds() - began
    whole = unpruned(found.lifetimes)
    return {
        **case,
        "start": start,
        "budget": budget,
        "operators": len(network.operators),
        "variables": found.model.variables,
        "constraints": found.model.constraints,
        "unpruned": [whole.variables, whole.constraints],
        "value": found.value,
        "bound": found.bound,
        "exact": plan.traffic,
        "seconds": spent,
        "limit": seconds,
    }


def within_cpu(seconds: float) -> Limits:
    """Limits of a search in this process by its CPU time: beside other work it gets no less done."""
    began = cpu_seconds()
    return Limits(cancelled=lambda: cpu_seconds() - began >= seconds)


def cpu_seconds() -> float:
    """Of this process and of those that have ended under it, as HiGHS and SCIP do."""
    used = [resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
    return sum(one.ru_utime + one.ru_stime for one in used)


def proved(row: Row) -> bool:
    return row["value"] is not None and bool(row["value"] == row["bound"])


def measure(args: argparse.Namespace, records: list[Row]) -> Iterator[list[Row]]:
    """The records with one more each time."""
    for case, network, budget in cases(args):
        for start in args.start:
            keys = {**case, "start": start}
            known = [r for r in records if all(r[k] == keys[k] for k in KEYS)]
            if known and (proved(known[0]) or known[0]["limit"] >= args.seconds):
                continue
            row = measured(case, network, budget, start, args.seconds)
            records = [r for r in records if any(r[k] != keys[k] for k in KEYS)] + [row]
            print(
                f"{' '.join(str(keys[k]) for k in KEYS)}: {row['variables']:,} variables, "
                f"{'proved' if proved(row) else 'not proved'}, {row['seconds']:.1f} s",
                file=sys.stderr,
                flush=True,
            )
            yield records


# -- tables ----------------------------------------------------------------------------------------------


def by_case(records: list[Row]) -> Iterator[tuple[Row, dict[str, Row]]]:
    """Each case in the order of the tables, with its row by start."""
    for name in TITLES:
        for graph in GRAPHS:
            for tensors in TENSORS:
                for at in BUDGETS:
                    case = {"network": name, "graph": graph, "tensors": tensors, "at": at}
                    rows = {r["start"]: r for r in records if all(r[k] == v for k, v in case.items())}
                    if rows.keys() & {*STARTS}:
                        yield case, rows


def what(tensors: str) -> str:
    return "activations" if tensors == "streamed" else "with parameters"


def equal(records: list[Row]) -> Iterator[str]:
    """A row for each case."""
    yield (
        "| network | graph | tensors | at | variables | constraints | unpruned | exact, bytes |"
        " ILP from its plan, CPU s | ILP from nothing, CPU s | equal |"
    )
    yield "|---|---|---|---|--:|--:|--:|--:|--:|--:|---|"
    for case, rows in by_case(records):
        one = next(rows[start] for start in STARTS if start in rows)
        cells = [told(rows.get(start)) for start in STARTS]
        ended = [r for r in rows.values() if proved(r)]
        same = "" if not ended else "yes" if all(r["value"] == r["exact"] for r in ended) else "**NO**"
        graph = GRAPH_TITLES.get(case["graph"], case["graph"])
        sizes = f"{one['variables']:,} | {one['constraints']:,}"
        whole = " / ".join(f"{n:,}" for n in one["unpruned"])
        yield (
            f"| {TITLES[case['network']]} | {graph} | {what(case['tensors'])} | {case['at']} | {sizes} |"
            f" {whole} | {one['exact']:,} | {' | '.join(cells)} | {same} |"
        )


def solvers(records: list[Row]) -> Iterator[str]:
    """The cases that the other solvers were given."""
    yield "| network | graph | tensors | at | CP-SAT from nothing, CPU s | SCIP | HiGHS | equal |"
    yield "|---|---|---|---|--:|--:|--:|---|"
    for case, rows in by_case(records):
        if rows.keys() & {*OTHERS}:
            cells = [told(rows.get(start)) for start in ("nothing", *OTHERS)]
            ended = [row for start in OTHERS if (row := rows.get(start)) and proved(row)]
            same = "" if not ended else "yes" if all(r["value"] == r["exact"] for r in ended) else "**NO**"
            yield (
                f"| {TITLES[case['network']]} | {case['graph']} | {what(case['tensors'])} | {case['at']} |"
                f" {' | '.join(cells)} | {same} |"
            )


def told(row: Row | None) -> str:
    """CPU seconds to the proof, or what there is without one."""
    if row is None:
        return ""
    if proved(row):
        return f"{row['seconds']:.1f}"
    best = "none" if row["value"] is None else f"{row['value']:,}"
    return f"no proof in {row['limit']:g} s: {best}, bound {row['bound']:,}"


def summary(records: list[Row]) -> Iterator[str]:
    """Proved cases and seconds, beside the paper's."""
    yield (
        "| CPU seconds of the ILP | the paper | "
        + " | ".join(f"{graph}, from {start}" for graph in GRAPHS[:2] for start in ("the plan", "nothing"))
        + " |"
    )
    yield "|---|--:|" + "--:|" * (2 * len(STARTS))
    columns = [(g, s) for g in GRAPHS[:2] for s in STARTS]

    def chosen(graph: str, start: str, **wanted: str) -> list[Row]:
        return [
            r
            for r in records
            if r["graph"] == graph and r["start"] == start and all(r[k] == v for k, v in wanted.items())
        ]

    cells: dict[str, list[str]] = {"all": [], "quick": [], "mean": [], "median": []}
    for graph, start in columns:
        rows = chosen(graph, start)
        others = [r["seconds"] for r in rows if r["network"] != "deeplabv3_resnet50" and proved(r)]
        cells["all"].append(f"{sum(map(proved, rows))} of {len(rows)}" if rows else "")
        cells["quick"].append(str(sum(s < 1.0 for s in others)) if rows else "")
        cells["mean"].append(f"{mean(others):.2f}" if others else "")
        cells["median"].append(f"{median(others):.2f}" if others else "")
    nine = "the nine but DeepLabV3"
    yield "| cases proved | all of 60 | " + " | ".join(cells["all"]) + " |"
    yield f"| {nine}: in under a second, of 54 | all | " + " | ".join(cells["quick"]) + " |"
    yield f"| {nine}: mean, where proved | {PAPER_MEAN} | " + " | ".join(cells["mean"]) + " |"
    yield f"| {nine}: median, where proved | | " + " | ".join(cells["median"]) + " |"
    for at, theirs in PAPER_DEEPLAB.items():
        of_deeplab = []
        for graph, start in columns:
            rows = chosen(graph, start, network="deeplabv3_resnet50", tensors="resident", at=at)
            of_deeplab.append(told(rows[0]) if rows else "")
        yield f"| DeepLabV3 with parameters at {at} | {theirs:g} | " + " | ".join(of_deeplab) + " |"
    yield from _without_presolve(records)
    whole, mean_whole = [], []
    for start in STARTS:
        rows = chosen("attention", start)
        ten = [*rows, *(r for r in chosen("fused", start) if r["network"] != "transformer")]
        took = [r["seconds"] for r in ten if proved(r)]
        mean_whole.append(f"{mean(took):.2f} ({len(took)} of {len(ten)})" if rows else "")
        ended = [r["seconds"] for r in rows if proved(r)]
        whole.append(f"{max(ended):.1f} ({len(ended)} of {len(rows)})" if ended else "")
    yield f"| the Transformer with attention whole: most | | {' | '.join(whole)} | | |"
    yield f"| all ten with attention whole: mean | under 1 | {' | '.join(mean_whole)} | | |"


def _without_presolve(records: list[Row]) -> Iterator[str]:
    """The nine, fused, from the plan, with and without CP-SAT's presolve, and with attention whole."""
    columns = []
    for start in ("plan", UNREDUCED):
        rows = [r for r in records if r["start"] == start and r["network"] != "deeplabv3_resnet50"]
        fused = [r for r in rows if r["graph"] == "fused"]
        whole = [r for r in fused if r["network"] != "transformer"]
        whole += [r for r in rows if r["graph"] == "attention"]
        dense = [r["seconds"] for r in fused if r["network"] == "densenet121" and proved(r)]
        if not dense:
            return
        columns.append((f"{max(dense):.1f}", *(_mean_most(some) for some in (fused, whole))))
    for what, plain, unreduced in zip(
        ("DenseNet: most", "the nine: mean, most", "the same, attention whole"), *columns, strict=True
    ):
        yield f"| {what}; without CP-SAT's presolve | | {plain}; {unreduced} | | | |"
    deeplab = [
        r
        for r in records
        if (r["network"], r["graph"], r["tensors"], r["start"])
        == ("deeplabv3_resnet50", "op", "resident", UNREDUCED)
    ]
    for r in sorted(deeplab, key=lambda r: BUDGETS.index(r["at"])):
        theirs = PAPER_DEEPLAB[r["at"]]
        yield f"| DeepLabV3 with parameters at {r['at']}, without presolve | {theirs:g} | | | {told(r)} | |"


def _mean_most(rows: list[Row]) -> str:
    took = [r["seconds"] for r in rows if proved(r)]
    return f"{mean(took):.2f}, {max(took):.1f} ({len(took)} of {len(rows)})"


# -- the command line ------------------------------------------------------------------------------------


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n")[0])
    parser.add_argument("action", choices=("measure", "render"))
    parser.add_argument("data", type=Path)
    parser.add_argument("--only", default="*", metavar="PATTERN", help="of networks")
    parser.add_argument("--graph", nargs="+", default=GRAPHS, choices=GRAPHS)
    parser.add_argument("--tensors", nargs="+", default=TENSORS, choices=TENSORS)
    parser.add_argument("--at", nargs="+", default=BUDGETS, choices=BUDGETS)
    parser.add_argument("--start", nargs="+", default=STARTS, choices=(*STARTS, *OTHERS, UNREDUCED))
    parser.add_argument("--seconds", type=float, default=20.0)
    parser.add_argument("--workers", type=int, default=1, help="threads of CP-SAT")
    parser.add_argument("--into", type=Path, metavar="PAGE")
    parser.add_argument("--summary", type=Path, metavar="PAGE")
    args = parser.parse_args()
    data = json.loads(args.data.read_text()) if args.data.exists() else {"records": []}
    records: list[Row] = data["records"]
    if args.action == "measure":
        import ortools.sat.python.cp_model  # noqa: F401  so that no solve's time has its import in it

        cp_sat.WORKERS = args.workers
        ilp_strategy.MOST_PAIRS = MOST_PAIRS
        machine = f"{platform.machine()}, {args.workers} thread; Python {platform.python_version()}"
        for known in measure(args, records):
            args.data.write_text(json.dumps({"machine": machine, "records": known}, indent=1) + "\n")
            records = known
    else:
        for name, section, page in (
            ("equal", equal, args.into),
            ("solvers", solvers, args.into),
            ("ilp", summary, args.summary),
        ):
            text = "\n".join(section(records))
            if page is None:
                print(text, end="\n\n")
            else:
                page.write_text(put_into(page.read_text("utf-8"), name, text), "utf-8")
    sys.exit(any(proved(r) and r["value"] != r["exact"] for r in records))


if __name__ == "__main__":
    main()
