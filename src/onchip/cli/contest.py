"""`onchip contest solve` and `onchip contest check`."""

from __future__ import annotations

import json
from math import isfinite
from pathlib import Path
from typing import Annotated, Any

import typer

from onchip.base.flags import expand_options
from onchip.cli import complete
from onchip.cli.answer import print_data
from onchip.cli.app import App, app
from onchip.cli.console import Json, progress, stdout, table, writable
from onchip.cli.help import Group
from onchip.contest.law import law_named
from onchip.contest.options import LawOptions, SolveOptions
from onchip.contest.problem import read_problem
from onchip.contest.solution import Step, read_solution, write_solution
from onchip.contest.verify import Priced, verify

contest = App(
    cls=Group,
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
def solve(
    problem: ProblemFile,
    options: SolveOptions,
    output: Annotated[
        Path | None, typer.Option("-o", "--output", help="write the schedule as the contest's JSON")
    ] = None,
    as_json: Json = False,
) -> None:
    """Find a schedule, and a bound that no schedule under the same law is below."""
    from onchip.contest.solve import solve as found

    writable(output, problem)
    given = read_problem(problem)
    with progress(as_json) as say:
        solved = found(given, options, say)
    if output is not None:
        write_solution(output, solved.steps)
    if as_json:
        figures = {
            "law": solved.law.data(),
            "status": "optimal" if solved.optimal else "feasible",
            "claim": solved.claim,
            "bound": solved.bound,
            "proof": solved.proof,
            "gap": solved.gap if isfinite(solved.gap) else None,
            "seconds": solved.seconds,
        }
        print_data(json.dumps({**figures, **_data(solved.steps, solved.priced)}))
        return
    _show(solved.steps, solved.priced)
    say_line = f"latency {solved.latency:,.12g}, bound {solved.bound:,.12g}: {solved.claim}"
    stdout().print(say_line, markup=False, highlight=False)
    if output is not None:
        stdout().print(f"schedule written to {output}", markup=False, highlight=False, soft_wrap=True)


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
