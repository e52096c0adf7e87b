"""`onchip check`, `run` and `report`: the commands on a plan file."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from onchip import api
from onchip.base.errors import LINE, InputError, Mismatch, NegativeAnswer, UsageError
from onchip.base.files import write_atomically
from onchip.by_length.judge import is_session, is_table
from onchip.check import Standing, standing, why_derived
from onchip.cli.answer import print_data
from onchip.cli.app import app
from onchip.cli.console import Json, PlanFile, progress, stdout, writable
from onchip.multi_dnn.schedule_file import is_schedule
from onchip.plans import Result
from onchip.report.bounds import bounds_of
from onchip.report.findings import repeats_sentence
from onchip.report.wording import SENTENCE, short_time, visible

if TYPE_CHECKING:
    from onchip.results.proving import Proof

MICROCONTROLLER = "mcu"
"""The chip that plans of `onchip mcu` name."""

EMULATED_BYTES = 4 << 20
"""RAM and flash of the emulated board."""


@app.command()
def check(
    plan: PlanFile,
    prove: Annotated[
        bool, typer.Option("--prove", help="solve the plan's problem again and compare what it claims")
    ] = False,
    time_limit: Annotated[
        float | None,
        typer.Option("--time-limit", metavar="SECONDS", help="for --prove: seconds for the search", min=0),
    ] = None,
    chip: Annotated[
        str | None,
        typer.Option(
            "--chip", metavar="FILE", help="for --prove: the .toml file of a chip that is not built in"
        ),
    ] = None,
    output: Annotated[
        Path | None,
        typer.Option("-o", "--output", help="for --prove: write the better plan, if it finds one"),
    ] = None,
    as_json: Json = False,
) -> None:
    """Prove a plan legal and recompute every figure in it; a schedule of several networks likewise.

    That no plan is better is the planner's claim: `--prove` solves again with the options in the file.
    """
    import msgspec

    if not prove and (time_limit is not None or chip is not None or output is not None):
        raise UsageError("goes with --prove only", item="--time-limit, --chip and -o")
    writable(output, plan)
    if is_schedule(plan):
        if prove:
            raise UsageError("is for plans: of a schedule the bound is derived", item="--prove")
        _check_schedule(plan, as_json)
        return
    if is_table(plan) or is_session(plan):
        if prove:
            raise UsageError("is for plans: prove those of the rows", item="--prove")
        _check_lengths(plan, as_json)
        return
    made = api.read(plan)
    result = made.check()
    worth, proof = standing(made), None
    if prove and worth == "claimed":
        from onchip.results.proving import prove as solve_again

        with progress(as_json) as say:
            on = None if chip is None else api.chip(chip)
            proof = solve_again(made, chip=on, time_limit=time_limit, progress=say)
        worth = "proved" if proof.outcome == "proved" else worth
        if proof.better is not None and output is not None:
            api.Plan.of(proof.better).save(output)
    if as_json:
        found = {**msgspec.to_builtins(result), "claim": worth, **_as_nests(made)}
        print_data(json.dumps(found if proof is None else {**found, "proof": proof.data()}))
    else:
        _show_check(made, result, worth, proof)
        if prove and (line := _left_out(made, worth, proof)):
            print(f"  {line}")
        _show_as_nests(made)
    if proof is not None and proof.outcome != "proved":
        raise NegativeAnswer(_unproved(proof))


def _check_lengths(path: Path, as_json: bool) -> None:
    """Check a table of plans by length, or a session, whose models must be where they were."""
    from onchip.by_length.judge import check_session, check_table
    from onchip.replanning import network_at

    session = check_session(path, network_at) if is_session(path) else None
    table = check_table(path, network_at) if session is None else session["steps"]
    if as_json:
        print_data(json.dumps({"rows": len(table["rows"]), "from": table["from"], "to": table["to"]}))
        return
    if session is not None:
        print(f"legal: the prompt and all steps in one arena, {len(session['caches']):,} caches at one place")
    shown = f"{visible(table['dimension'])} from {table['from']:,} to {table['to']:,}"
    plans = "1 plan" if len(table["rows"]) == 1 else f"{len(table['rows']):,} plans"
    print(f"legal: {plans} for {shown}, each at both ends of its row; every figure holds")
    for row in table["rows"]:
        proof = visible(str(row.get("proof", "")), LINE)
        print(f"  {row['from']:,} to {row['to']:,}: {visible(row['plan'])}, {proof}")


def _unproved(proof: Proof) -> str:
    """Return the reason why a claim was not proved, in a line."""
    if proof.outcome == "refuted":
        assert proof.best is not None
        less = proof.claimed - proof.best
        return (
            f"refuted: {proof.what} of {proof.claimed:,} is claimed to be the least, and a plan of the same"
            f" problem has {proof.best:,} ({less:,} fewer)"
        )
    known = "" if proof.bound is None else f"; {proof.what} of at least {proof.bound:,} is proved"
    return f"not decided: {proof.reason}{known}, and {proof.claimed:,} is claimed"


def _left_out(made: api.Plan, worth: Standing, proof: Proof | None) -> str:
    """Return the bounds in a plan that `--prove` has not proved."""
    from onchip.results.proving import stated_bounds

    unproved = stated_bounds(made) if proof is None else proof.unproved
    if not unproved or (proof is not None and worth != "proved"):
        return ""
    return "stands in the file, not proved: " + ", ".join(
        f"{key} of {getattr(made.result, key):,}" for key in unproved
    )


def _show_check(made: api.Plan, result: Result, worth: Standing, proof: Proof | None) -> None:
    """Print the answer of `check`, and of a requested proof."""
    searched = "" if proof is None else proof.space
    operators, instructions = len(made.network.operators), len(made.program)
    goal = str(made.options.get("objective", "traffic"))
    sought = "" if goal == "traffic" else f" by {goal}"
    what, moved, least_moved = "traffic", result.traffic_bytes, result.lower_bound_bytes
    if goal == "dram":
        what, moved, least_moved = "DRAM", result.dram_bytes, result.dram_lower_bound_bytes or 0
    claim = "" if moved == least_moved else f", claimed lower bound {least_moved:,} B"
    said = f"claimed {result.status}" if worth == "claimed" and result.status == "optimal" else result.status
    print(f"legal: {operators:,} operators in {instructions:,} instructions; every figure holds")
    print(f"  {said}{sought}: {what} {moved:,} B{claim}")
    if again := repeats_sentence(made):
        print(f"  {again}")
    if space := result.space or (searched if worth == "proved" else ""):
        print(f"  among: {visible(space, SENTENCE)}")
    if line := _worth(made, worth, proof):
        print(f"  {line}")
    if what != "traffic":
        print(f"  traffic {result.traffic_bytes:,} B")
    print(f"  spill {result.spill_bytes:,} B, reload {result.reload_bytes:,} B")
    print(f"  DRAM {result.dram_bytes:,} B with compulsory bytes and weights")
    if made.chip.name != MICROCONTROLLER:
        found = bounds_of(made)
        space = "not known" if found.space is None else f"{found.space:,} B"
        print(f"  every schedule moves {found.every:,} B; least of the stated space: {space}")
    if made.sections:
        from onchip.planners.modules.table import module_table, sections_in_words

        for line in sections_in_words(module_table(made)):
            print(f"  {line}")
    print(f"  peak {result.peak_bytes:,} B, extent {result.extent_bytes:,} B, budget {made.budget:,} B")
    latency, least = result.latency_picoseconds, result.latency_lower_bound_picoseconds
    if latency is not None:
        bound = "" if least is None else f", claimed lower bound {short_time(least)}"
        print(f"  latency {short_time(latency)}{bound}; {len(made.timing):,} times hold")
    spent, least = result.energy_picojoules, result.energy_lower_bound_picojoules
    if spent is not None:
        bound = "" if least is None else f", claimed lower bound {least:,} pJ"
        print(f"  energy {spent:,} pJ{bound}")


def _as_nests(made: api.Plan) -> dict[str, Any]:
    """Return what a plan's groups in bands, blocks and boxes cost as nests of loops; nothing without any."""
    from onchip.check.as_nests import plan_as_nests
    from onchip.report.as_nests import as_nests_data

    found = plan_as_nests(made)
    return {} if found is None else {"as_nests": as_nests_data(found)}


def _show_as_nests(made: api.Plan) -> None:
    """Print the same."""
    from rich.padding import Padding

    from onchip.check.as_nests import plan_as_nests
    from onchip.report.as_nests import as_nests_sentence, as_nests_table, why_lines

    found = plan_as_nests(made)
    if found is None:
        return
    sentence = as_nests_sentence(made, found)
    print(f"  {sentence[0].lower()}{sentence[1:]}")
    table = as_nests_table(found)
    if table is not None:
        stdout().print(Padding(table, (0, 0, 0, 4)))
        for line in why_lines(found):
            print(f"    {line}")


def _worth(made: api.Plan, worth: Standing, proof: Proof | None) -> str:
    """Return the standing of the plan's optimality claim."""
    what = "optimal" if made.result.status == "optimal" else "the bound"
    if worth == "derived":
        return f"{what} is derived here: {visible(why_derived(made))}"
    if worth == "proved" and proof is not None:
        held = ", ".join(f"{key} of {getattr(made.result, key):,}" for key in proof.holds)
        return f"{what} is proved: solved again, with the options in the file; {held or 'nothing to bound'}"
    if worth == "claimed":
        return f"{what} is claimed, not proved here: `onchip check --prove` solves again"
    return "nothing is claimed of how good it is"


@app.command()
def run(
    plan: PlanFile,
    model: Annotated[
        list[str] | None,
        typer.Option(
            "--model",
            help="where the model is now, if it has moved since it was planned; for a schedule NETWORK=MODEL",
        ),
    ] = None,
    seed: Annotated[int, typer.Option(help="seed of the input, and of weights that the model lacks")] = 0,
    checked: Annotated[
        bool, typer.Option("--check/--no-check", help="prove the plan legal before executing it")
    ] = True,
    rounds: Annotated[int, typer.Option(help="how often a schedule runs; the best time counts")] = 10,
    steps: Annotated[
        int | None, typer.Option(help="of a session: steps behind the prompt [default: all]", min=0)
    ] = None,
    as_json: Json = False,
) -> None:
    """Execute a plan in a byte array of its budget and compare every tensor with its runtime, bit for bit.

    A plan for a microcontroller is written as C and runs on an emulated Cortex-M4. A schedule of several
    networks runs on the cores of this machine, if it was made for them (--soc local). A session runs in turn.
    """
    if is_session(plan):
        _run_session(plan, model, seed, checked, steps, as_json)
        return
    if steps is not None:
        raise UsageError("is for a session", item="--steps")
    if is_schedule(plan):
        _run_schedule(plan, model or [], seed, checked, rounds, as_json)
        return
    import msgspec

    from onchip.run import run as execute

    if model is not None and len(model) > 1:
        raise UsageError("a plan has one model", item="--model")
    made = api.read(plan)
    if made.chip.name == MICROCONTROLLER:
        _run_firmware(made, model[0] if model else None, seed, as_json)
        return
    with progress(as_json) as say:
        report = execute(made, model[0] if model else None, seed=seed, checked=checked, progress=say)
    if as_json:
        print_data(json.dumps(msgspec.to_builtins(report)))
    else:
        for line in report.lines():
            print(line)


def _run_session(
    path: Path, model: list[str] | None, seed: int, checked: bool, steps: int | None, as_json: bool
) -> None:
    """Run a prompt and the steps behind it in one arena."""
    import msgspec

    from onchip.by_length.judge import check_session
    from onchip.replanning import network_at, session_in_turn
    from onchip.run.sequence import run_in_turn

    if model is not None:
        raise UsageError("a session's models must be where they were", item="--model")
    if checked:
        check_session(path, network_at)
    with progress(as_json) as say:
        report = run_in_turn(session_in_turn(path, steps), seed=seed, progress=say)
    if as_json:
        print_data(json.dumps(msgspec.to_builtins(report)))
        return
    for line in report.lines():
        print(line)


def _run_firmware(plan: api.Plan, model: str | None, seed: int, as_json: bool) -> None:
    """Run a plan of `onchip mcu` as C on the emulated core, in memory of any size; compare its outputs."""
    from onchip.machines.board import Board
    from onchip.microcontroller.load import MADE, int8_model

    named = model or plan.network.source
    if model is None and not named.startswith(MADE) and not Path(named).exists():
        raise UsageError("the planned model is not there; say where it is with --model", where=named)
    network = int8_model(named)
    if plan.network.sha256 and plan.network.sha256 != network.sha256:
        raise InputError("the model changed since it was planned", where=named)
    board = Board("emulated", "cortex-m4", EMULATED_BYTES, EMULATED_BYTES)
    with progress(as_json) as say:
        made = api.mcu(network, board, plan=plan, run=True, seed=seed, progress=say)
    ran = made.run
    assert ran is not None
    if as_json:
        print_data(json.dumps(made.data()))
    elif ran.match:
        total = ran.total
        print(f"{network.name}: {ran.runs} inputs on an emulated {board.core}, every output byte is right")
        print(f"  {made.arena_bytes:,} bytes as planned; {made.ram_bytes:,} of RAM with statics and stack")
        print(
            f"  {total.instructions:,} instructions, {total.loads:,} loads, {total.stores:,} stores an input"
        )
    if not ran.match:
        raise Mismatch(f"{ran.different:,} of {ran.output_bytes:,} output bytes differ")


@app.command()
def report(
    plan: PlanFile,
    output: Annotated[
        Path | None, typer.Option("-o", "--output", help="write one self-contained HTML page")
    ] = None,
    what_if: Annotated[
        bool, typer.Option("--what-if", help="plan the network for other budgets, too, and show the curve")
    ] = False,
    model: Annotated[
        str | None, typer.Option("--model", help="for --what-if: where the model is now, if it has moved")
    ] = None,
    chip: Annotated[
        str | None,
        typer.Option(
            "--chip", metavar="FILE", help="for --what-if: the .toml file of a chip that is not built in"
        ),
    ] = None,
    time_limit: Annotated[
        float | None,
        typer.Option("--time-limit", metavar="SECONDS", help="for --what-if: seconds for each plan", min=0),
    ] = None,
    as_json: Json = False,
) -> None:
    """Show a plan or a schedule: a summary here, the memory map or the timeline as an HTML page with -o."""
    writable(output, plan)
    if is_schedule(plan):
        if as_json:
            raise UsageError("is for plans: `onchip check --json` prints a schedule's figures", item="--json")
        if what_if:
            raise UsageError("a schedule has no budget", item="--what-if")
        _report_schedule(plan, output)
        return
    if what_if and output is None:
        raise UsageError("draws into a page: give -o FILE.html", item="--what-if")
    made = api.read(plan)
    made.check()
    if output is not None:
        beyond = None
        if what_if:
            from onchip import replanning

            with progress(False) as say:
                beyond = replanning.what_if(made, model=model, chip=chip, time_limit=time_limit, progress=say)
        write_atomically(output, made.report(what_if=beyond))
    from onchip.report import data, summary

    if as_json:
        print_data(json.dumps(data(made)))
        return
    console = stdout()
    console.print(summary(made))
    if output is not None:
        console.print(f"report written to {output}", markup=False, highlight=False, soft_wrap=True)


def _run_schedule(
    path: Path, models: list[str], seed: int, checked: bool, rounds: int, as_json: bool
) -> None:
    """Run a schedule's networks in a process for each unit."""
    from onchip.multi_dnn.local.scheduled import run_file

    with progress(as_json) as say:
        report = run_file(path, models, rounds=rounds, seed=seed, checked=checked, progress=say)
    if as_json:
        print_data(json.dumps(report.data()))
        return
    for line in report.lines():
        print(line)


def _check_schedule(path: Path, as_json: bool) -> None:
    """Print the judge's answer on a schedule file, whose figures it has verified."""
    from onchip.multi_dnn.judged import judged_file

    made = judged_file(path)
    if as_json:
        from onchip.multi_dnn.check import CLAIMED, DERIVED
        from onchip.multi_dnn.result.corunned_data import judged_data

        print_data(
            json.dumps(
                {**judged_data(made), "re_derived": DERIVED, "claimed": CLAIMED, "claim": made.standing}
            )
        )
        return
    from onchip.multi_dnn.report.verdict import verdict_lines

    for line in verdict_lines(made):
        print(line)


def _report_schedule(path: Path, output: Path | None) -> None:
    """Print the tables of a schedule file, and write its page."""
    from onchip.multi_dnn.judged import judged_file
    from onchip.multi_dnn.report import html
    from onchip.multi_dnn.result.corunned_table import table

    made = judged_file(path)
    if output is not None:
        write_atomically(output, html(made))
    console = stdout()
    console.print(table(made, console.width))
    if output is not None:
        console.print(f"report written to {output}", markup=False, highlight=False, soft_wrap=True)
