"""`onchip mcu`."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated

import typer

from onchip import api
from onchip.base.errors import Infeasible, NegativeAnswer, UsageError
from onchip.base.flags import expand_options
from onchip.cli import complete
from onchip.cli.answer import print_data
from onchip.cli.app import app
from onchip.cli.console import Json, progress, stdout, writable
from onchip.microcontroller.result.microcontroller import Kernels
from onchip.microcontroller.segments.options import SegmentOptions

PROJECT, RUN, ANSWERS = "The C project", "Running it", "Other answers"
"""The headings of options in the help."""


@app.command()
@expand_options
def mcu(
    models: Annotated[
        list[str],
        typer.Argument(
            help="FILE.tflite or FILE.onnx, quantised, or made:NAME for one made from a seed; several run "
            "one behind the other in one array",
            metavar="MODEL",
            autocompletion=complete.int8_models,
        ),
    ],
    options: SegmentOptions,
    board: Annotated[
        str,
        typer.Option(
            "--board",
            metavar="NAME|FILE",
            help="a built-in board (`onchip boards` lists them), or the path of a .toml file",
            autocompletion=complete.boards,
        ),
    ] = "nucleo-f411re",
    ram: Annotated[
        str | None,
        typer.Option(
            "--ram", metavar="SIZE", help="bytes of RAM, stack and all: a size (24KiB) [default: the board's]"
        ),
    ] = None,
    run: Annotated[
        bool,
        typer.Option(
            "--run", help="build it, run it on the emulated core, compare every byte", rich_help_panel=RUN
        ),
    ] = False,
    run_limit: Annotated[
        float | None,
        typer.Option(
            "--run-limit",
            metavar="SECONDS",
            help="seconds after which the emulator is stopped [default: ample for the network's work]",
            rich_help_panel=RUN,
        ),
    ] = None,
    output: Annotated[
        Path | None,
        typer.Option(
            "-o", "--output", metavar="FOLDER", help="write the C project: a folder", rich_help_panel=PROJECT
        ),
    ] = None,
    plan: Annotated[
        Path | None,
        typer.Option("-p", "--plan", help="write the plan: JSON for FILE.json, else the text form"),
    ] = None,
    use: Annotated[
        Path | None, typer.Option("--use", help="a plan file for this network, instead of a new plan")
    ] = None,
    kernels: Annotated[
        Kernels,
        typer.Option(
            "--kernels",
            help="specialised on each layer's shape; shared by layers of all shapes: less flash, more "
            "instructions; auto: specialised but for those that must be shared to fit the flash",
            rich_help_panel=PROJECT,
        ),
    ] = "auto",
    compare: Annotated[
        bool,
        typer.Option(
            "--compare",
            help="print beside it what other methods need, TFLM's real arena among them",
            rich_help_panel=ANSWERS,
        ),
    ] = False,
    front: Annotated[
        bool,
        typer.Option(
            "--front",
            help="print RAM against work, every plan that none beats in both, and which of them --ram takes",
            rich_help_panel=ANSWERS,
        ),
    ] = False,
    reentrant: Annotated[
        bool,
        typer.Option(
            "--reentrant",
            help="C that writes no variables: the caller has memory for each instance, and several may run",
            rich_help_panel=PROJECT,
        ),
    ] = False,
    fit: Annotated[
        bool,
        typer.Option(
            "--fit",
            help="print RAM, flash and time on every board instead: linked and counted, where it can be",
            rich_help_panel=ANSWERS,
        ),
    ] = False,
    inputs: Annotated[
        Path | None,
        typer.Option(
            "--inputs",
            help="inputs to compute, with --run to run: a .npy file, one a row",
            rich_help_panel=RUN,
        ),
    ] = None,
    labels: Annotated[
        Path | None,
        typer.Option(
            "--labels", help="the classes of --inputs, for the accuracy: a .npy file", rich_help_panel=RUN
        ),
    ] = None,
    report: Annotated[
        Path | None,
        typer.Option(
            "--report", help="write RAM step by step, flash and instructions by layer as one HTML page"
        ),
    ] = None,
    as_json: Json = False,
) -> None:
    """Plan an int8 network onto a microcontroller, write its C, run it on the emulated core."""
    from onchip.microcontroller.project.write import replaceable

    model = models[0]
    writable(plan, Path(model), use)
    writable(report, Path(model), use, plan)
    if len(models) > 1:
        _alone(
            "several networks",
            {
                "--front": front,
                "--fit": fit,
                "--plan": plan,
                "--use": use,
                "--compare": compare,
                "--inputs": inputs,
                "--labels": labels,
                "--report": report,
            },
        )
        if output is not None:
            replaceable(output)
        _several(
            models,
            options,
            board,
            ram,
            kernels,
            output,
            run=run,
            run_limit=run_limit,
            reentrant=reentrant,
            as_json=as_json,
        )
        return
    if front or fit:
        _alone(
            "--front" if front else "--fit",
            {
                "--run": run,
                "--output": output,
                "--use": use,
                "--compare": compare,
                "--inputs": inputs,
                "--labels": labels,
                "--report": report if front else None,
                "--fit": front and fit,
                "--ram": ram if fit else None,
                "--plan": plan if fit else None,
                "--reentrant": reentrant,
            },
        )
    if front:
        _front(model, options, board, ram, plan, as_json=as_json)
        return
    if fit:
        _fit(model, options, board, kernels, report, as_json=as_json)
        return
    if output is not None:
        replaceable(output)
    with progress(as_json) as say:
        made = api.mcu(
            model,
            board,
            ram,
            plan=use,
            kernels=kernels,
            compare=compare,
            run=run,
            run_limit=run_limit,
            inputs=inputs,
            labels=labels,
            reentrant=reentrant,
            progress=say,
            **{name: getattr(options, name) for name in options.__dataclass_fields__},
        )
        if report is not None:
            from onchip.microcontroller.result.report import report as write_report

            write_report(made, report, progress=say)
    if plan is not None:
        made.plan.save(plan)
    if output is not None:
        made.save(output)
    if as_json:
        print_data(json.dumps(made.data()))
    else:
        from onchip.microcontroller.result.microcontroller_table import table
        from onchip.microcontroller.result.next_step import after_plan
        from onchip.report.wording import SENTENCE, visible

        console = stdout()
        console.print(table(made))
        for target, what in ((plan, "plan"), (output, "project"), (report, "report")):
            if target is not None:
                console.print(f"{what} written to {target}", markup=False, highlight=False, soft_wrap=True)
        step = after_plan(model, board, made, None if output is None else str(output))
        console.print(visible(step, SENTENCE), markup=False, highlight=False, soft_wrap=True)
    made.raise_what_is_wrong()


def _alone(mode: str, given: Mapping[str, object]) -> None:
    """Refuse options that a mode has no use for."""
    for flag, value in given.items():
        if value:
            raise UsageError(f"is not for {mode}", item=flag)


def _several(
    models: list[str],
    options: SegmentOptions,
    board: str,
    ram: str | None,
    kernels: Kernels,
    output: Path | None,
    *,
    run: bool,
    run_limit: float | None,
    reentrant: bool,
    as_json: bool,
) -> None:
    """Print the networks that share an array, and write them as one project."""
    from onchip.microcontroller.result.microcontroller_several import several_table
    from onchip.microcontroller.result.next_step import after_several
    from onchip.report.wording import SENTENCE, visible

    with progress(as_json) as say:
        made = api.mcu_several(
            models,
            board,
            ram,
            name="networks" if output is None else output.absolute().name,
            kernels=kernels,
            run=run,
            run_limit=run_limit,
            reentrant=reentrant,
            progress=say,
            **{name: getattr(options, name) for name in options.__dataclass_fields__},
        )
    if output is not None:
        made.save(output)
    if as_json:
        print_data(json.dumps(made.data()))
    else:
        console = stdout()
        console.print(several_table(made))
        if output is not None:
            console.print(f"project written to {output}", markup=False, highlight=False, soft_wrap=True)
        step = after_several(models, board, made, None if output is None else str(output))
        console.print(visible(step, SENTENCE), markup=False, highlight=False, soft_wrap=True)
    made.raise_what_is_wrong()


def _fit(
    model: str, options: SegmentOptions, board: str, kernels: Kernels, report: Path | None, *, as_json: bool
) -> None:
    """Print the network on every board, the given one among them."""
    from onchip.machines.board import builtin_boards, load_board
    from onchip.microcontroller.result.board_fits_table import fits_table
    from onchip.microcontroller.result.next_step import after_fit
    from onchip.microcontroller.result.report import report as write_report
    from onchip.report.wording import SENTENCE, visible

    chosen, known = load_board(board), builtin_boards()
    boards = known if chosen in known else (chosen, *known)
    given = {name: getattr(options, name) for name in options.__dataclass_fields__}
    with progress(as_json) as say:
        rows = api.mcu_fit(model, boards, kernels=kernels, progress=say, **given)
        if report is not None:
            made = api.mcu(model, chosen, kernels=kernels, progress=say, **given)
            write_report(made, report, boards=rows, progress=say)
    if as_json:
        print_data(json.dumps({"network": model, "boards": [row.data() for row in rows]}))
    else:
        console = stdout()
        console.print(fits_table(model, rows))
        if report is not None:
            console.print(f"report written to {report}", markup=False, highlight=False, soft_wrap=True)
        step = visible(after_fit(model, rows), SENTENCE)
        console.print(step, markup=False, highlight=False, soft_wrap=True)
    if not any(row.fits for row in rows):
        raise NegativeAnswer("fits none of these boards")


def _front(
    model: str, options: SegmentOptions, board: str, ram: str | None, plan: Path | None, *, as_json: bool
) -> None:
    """Print the curve, and write the plan of the point that fits."""
    from onchip.base.units import parse_bytes
    from onchip.machines.board import load_board
    from onchip.microcontroller.load import int8_model
    from onchip.microcontroller.result.front_linked import Taken, point_within
    from onchip.microcontroller.result.microcontroller_front import data, table
    from onchip.microcontroller.result.ram_front import ram_front
    from onchip.planners.limits import Limits
    from onchip.plans import write_plan

    limit = None if ram is None else parse_bytes(ram, option="--ram")
    on, read = load_board(board), int8_model(model)
    refused: Infeasible | None = None
    with progress(as_json) as say:
        found = ram_front(read, options, limits=Limits.of(options, say))
        taken = Taken(found.points[0], None)
        if limit is not None:
            try:
                taken = point_within(found, read, on, limit, options, say)
            except Infeasible as no:
                refused = no
    marked = None if limit is None or refused is not None else taken
    if as_json:
        print_data(json.dumps(data(found, read.name, options, marked)))
    else:
        stdout().print(table(found, read.name, options, marked))
    if refused is not None:
        raise refused
    if plan is not None:
        write_plan(taken.point.program(), plan)
