"""`onchip contest solve` and `onchip contest check`."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated, Any

import typer

from onchip.base.flags import expand_options
from onchip.cli import complete
from onchip.cli.answer import print_data
from onchip.cli.app import app
from onchip.cli.console import Json, stdout, table
from onchip.contest import Priced, Step, law_named, read_problem, read_solution, verify
from onchip.contest.options import LawOptions

contest = typer.Typer(
    help="The graphs of the MLSys 2026 contest: schedule one, check a schedule, each under a named law.",
    no_args_is_help=True,
    context_settings={"help_option_names": ["-h", "--help"]},
)
app.add_typer(contest, name="contest")

ProblemFile = Annotated[
    Path,
    typer.Argument(
        metavar="PROBLEM.json", help="a problem of the contest", autocompletion=complete.files(".json")
    ),
]


@contest.command()
@expand_options
def check(
    problem: ProblemFile,
    solution: Annotated[
        Path,
        typer.Argument(
            metavar="SOLUTION.json", help="a schedule for it", autocompletion=complete.files(".json")
        ),
    ],
    law: LawOptions,
    as_json: Json = False,
) -> None:
    """Price a schedule step by step, or refuse it by the number of the rule that it breaks."""
    steps = read_solution(solution)
    priced = verify(read_problem(problem), steps, law_named(law.law))
    if as_json:
        print_data(json.dumps({"law": law_named(law.law).data(), "legal": True, **_data(steps, priced)}))
        return
    _show(steps, priced)
    stdout().print(f"legal under the law {law.law}: latency {priced.latency:,.12g}, peak {priced.peak:,}")


def _data(steps: tuple[Step, ...], priced: Priced) -> dict[str, Any]:
    rows = [
        {
            "operators": list(step.operators),
            "granularity": [step.width, step.height, step.depth],
            "retained": list(step.retained),
            "latency": latency,
            "peak": peak,
        }
        for step, latency, peak in zip(steps, priced.latencies, priced.peaks, strict=True)
    ]
    return {"latency": priced.latency, "peak": priced.peak, "subgraphs": rows}


def _show(steps: tuple[Step, ...], priced: Priced) -> None:
    rows = [
        {
            "subgraph": at,
            "operators": " ".join(map(str, step.operators)),
            "w,h,k": f"{step.width},{step.height},{step.depth}",
            "retains": " ".join(map(str, step.retained)),
            "latency": latency,
            "peak": peak,
        }
        for at, (step, latency, peak) in enumerate(zip(steps, priced.latencies, priced.peaks, strict=True))
    ]
    table(rows)
