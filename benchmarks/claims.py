"""Try to refute what planners claim, on random small networks with odd geometry, and count how they answer.

    .venv/bin/python benchmarks/claims.py --kind joint --first 0 --count 1000 --out refuted
    .venv/bin/python benchmarks/claims.py --all                    # the campaign whose table the docs print
    .venv/bin/python benchmarks/claims.py --all --answers --record before.json     # how planners answer
    .venv/bin/python benchmarks/claims.py --all --before before.json               # and what has changed

The oracles (tests/oracles/claims_*.py) are written from the definitions of the plan program. They share no
code with the planners; what they ask is the checker, which prices tilings and accepts the plans that refute.
One line for each kind: networks, answers by status, the share of plans made without a limit that is
optimal, optimal answers refuted, other bounds refuted, `infeasible` refuted, wrong `needs`, answers later by
10 % and a second than their time limit, cases too large for the oracle, CPU seconds of planner and oracle.
`--record` and `--before` leave out what was asked with a limit.
With `--out` every refutation is written as a pair of plan files (`claimed`, `beaten`) or, where nothing was
planned, as the network and the plan. Exit 1 if anything was refuted.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections import Counter
from collections.abc import Callable
from pathlib import Path

import msgspec

from onchip.network.json import wire_network
from onchip.plans import write_plan

sys.path.append(str(Path(__file__).resolve().parents[1] / "tests"))
from oracles.claims_branch_cases import branches_case
from oracles.claims_joint_cases import fuse_case, joint_case
from oracles.claims_memory_cases import memories_case
from oracles.claims_outcome import Outcome
from oracles.claims_pack_cases import packing_case
from oracles.claims_place_cases import placement_case
from oracles.claims_segment_cases import segments_case

KINDS: dict[str, Callable[..., Outcome]] = {
    "placement": placement_case,
    "packing": packing_case,
    "memories": memories_case,
    "branches": branches_case,
    "fuse": fuse_case,
    "joint": joint_case,
    "segments": segments_case,
}

CAMPAIGN = {
    "placement": 5500,
    "branches": 500,
    "packing": 3000,
    "memories": 2000,
    "fuse": 3000,
    "joint": 4000,
    "segments": 2000,
}
"""Networks of each kind in `--all`: 20,000 together."""


def write(outcome: Outcome, folder: Path) -> None:
    """The pair of files that shows one refutation, and a line in words."""
    folder.mkdir(parents=True, exist_ok=True)
    name = f"{outcome.kind}_{outcome.seed}"
    if outcome.claimed is not None:
        write_plan(outcome.claimed, folder / f"{name}_claimed.json")
    elif outcome.network is not None:
        wire = msgspec.to_builtins(wire_network(outcome.network))
        (folder / f"{name}_network.json").write_text(json.dumps(wire) + "\n", encoding="utf-8")
    if outcome.beaten is not None:
        write_plan(outcome.beaten, folder / f"{name}_beaten.json")
    (folder / f"{name}.txt").write_text(sentence(outcome) + "\n", encoding="utf-8")


def sentence(outcome: Outcome) -> str:
    """What is wrong with one answer."""
    what = outcome.refuted or outcome.needs_wrong
    limited = ", with a limit" if outcome.limited else ""
    return (
        f"{outcome.kind} {outcome.seed}: {outcome.status} within {outcome.budget} bytes{limited}"
        f" {outcome.label}: {what}"
    )


def campaign(
    kind: str, seeds: range, *, judge: bool, out: Path | None, quiet: bool, answers: dict[str, str]
) -> Counter[str]:
    """All cases of one kind, counted; prints the line of the table."""
    counted: Counter[str] = Counter()
    planner = oracle = 0.0
    for seed in seeds:
        outcome = KINDS[kind](seed, judge=judge)
        if not outcome.limited:
            answers[f"{kind} {seed}"] = outcome.status
            counted["whole " + outcome.status] += 1
        planner += outcome.planner_seconds
        oracle += outcome.oracle_seconds
        counted[outcome.status] += 1
        counted["limited"] += outcome.limited
        counted["undecided"] += outcome.undecided
        counted["late"] += outcome.late
        if outcome.refuted:
            counted["refuted " + outcome.status] += 1
        if outcome.needs_wrong:
            counted["needs wrong"] += 1
        if outcome.refuted or outcome.needs_wrong:
            if not quiet:
                print(sentence(outcome), flush=True)
            if out is not None:
                write(outcome, out)
    print(row(kind, len(seeds), counted, planner, oracle), flush=True)
    return counted


HEADER = (
    "| kind | networks | optimal | feasible | infeasible | no answer | optimal % | optimal refuted"
    " | bound refuted | infeasible refuted | needs wrong | late | undecided | planner s | oracle s |\n|---|"
    + "--:|"
    * 13
)


def row(kind: str, count: int, counted: Counter[str], planner: float, oracle: float) -> str:
    """One line of the table."""
    whole = counted["whole optimal"]
    answered = whole + counted["whole feasible"]
    figures = [
        f"{count:,}",
        *(f"{counted[status]:,}" for status in ("optimal", "feasible", "infeasible", "unanswered")),
        f"{100 * whole / answered:.2f}" if answered else "-",
        *(str(counted[f"refuted {status}"]) for status in ("optimal", "feasible", "infeasible")),
        str(counted["needs wrong"]),
        str(counted["late"]),
        str(counted["undecided"]),
        f"{planner:.0f}",
        f"{oracle:.0f}",
    ]
    return f"| {kind} | " + " | ".join(figures) + " |"


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--kind", choices=KINDS, action="append", help="one kind; may be given several times")
    parser.add_argument("--first", type=int, default=0, help="the first seed")
    parser.add_argument("--count", type=int, help="networks of each kind")
    parser.add_argument("--all", action="store_true", help="all kinds, 20,000 networks together")
    parser.add_argument("--answers", action="store_true", help="ask the planners only")
    parser.add_argument("--record", type=Path, help="write every answer's status to this file")
    parser.add_argument(
        "--before", type=Path, help="a file of `--record`: what was optimal there and is not now"
    )
    parser.add_argument("--out", type=Path, help="a folder for refutations")
    parser.add_argument("--quiet", action="store_true", help="no line for each refutation")
    args = parser.parse_args()
    kinds = args.kind or list(KINDS)
    if not (args.kind or args.all):
        parser.error("name a --kind, or --all")
    print(HEADER, flush=True)
    bad, answers = 0, dict[str, str]()
    for kind in kinds:
        seeds = range(args.first, args.first + (args.count or CAMPAIGN[kind]))
        counted = campaign(
            kind, seeds, judge=not args.answers, out=args.out, quiet=args.quiet, answers=answers
        )
        bad += sum(
            n for what, n in counted.items() if what.startswith("refuted") or what in ("needs wrong", "late")
        )
    if args.record is not None:
        args.record.write_text(json.dumps(answers, indent=0) + "\n", encoding="utf-8")
    if args.before is not None:
        compare(json.loads(args.before.read_text(encoding="utf-8")), answers)
    return 1 if bad else 0


def compare(before: dict[str, str], now: dict[str, str]) -> None:
    """Print what answers became of others, and the seeds that are no longer optimal."""
    turned = Counter((case.split()[0], before[case], now[case]) for case in now if case in before)
    for (kind, was, is_), count in sorted(turned.items()):
        if was != is_:
            seeds = [
                case.split()[1] for case in now if case.startswith(f"{kind} ") and before.get(case) == was
            ]
            seeds = [seed for seed in seeds if now[f"{kind} {seed}"] == is_]
            print(f"{kind}: {was} before, {is_} now: {count:,} (seeds {', '.join(seeds[:12])})")


if __name__ == "__main__":
    sys.exit(main())
