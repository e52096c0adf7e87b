"""`onchip mcu`."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated

import typer

from onchip import api
from onchip.base.errors import DoesNotFitBoard, Mismatch, UsageError
from onchip.base.flags import expand_options
from onchip.cli import complete
from onchip.cli.answer import print_data
from onchip.cli.app import app
from onchip.cli.console import Json, progress, stdout, writable
from onchip.microcontroller.result.microcontroller import Kernels
from onchip.microcontroller.segments.options import SegmentOptions


@app.command()
@expand_options
def mcu(
    model: Annotated[
        str,
        typer.Argument(
            help="FILE.tflite, int8, or made:NAME for one made from a seed",
            autocompletion=complete.int8_models,
        ),
    ],
    options: SegmentOptions,
    board: Annotated[
        str,
        typer.Option(
            "--board",
            help="a built-in board's name, or the path of a .toml file",
            autocompletion=complete.boards,
        ),
    ] = "nucleo-f411re",
    ram: Annotated[
        str | None,
        typer.Option("--ram", help="bytes of RAM, stack and all: a size (24KiB) [default: the board's]"),
    ] = None,
    run: Annotated[
        bool, typer.Option("--run", help="build it, run it on the emulated core, compare every byte")
    ] = False,
    run_limit: Annotated[
        float | None,
        typer.Option(
            "--run-limit",
            help="seconds after which the emulator is stopped [default: ample for the network's work]",
        ),
    ] = None,
    output: Annotated[
        Path | None, typer.Option("-o", "--output", help="write the C project: a folder")
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
        ),
    ] = "auto",
    compare: Annotated[
        bool,
        typer.Option(
            "--compare", help="print beside it what other methods need, TFLM's real arena among them"
        ),
    ] = False,
    front: Annotated[
        bool,
        typer.Option(
            "--front",
            help="print RAM against work, every plan that none beats in both, and which of them --ram takes",
        ),
    ] = False,
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

    writable(plan, Path(model), use)
    writable(report, Path(model), use, plan)
    if front:
        for given, flag in (
            (run, "--run"),
            (output, "--output"),
            (use, "--use"),
            (compare, "--compare"),
            (report, "--report"),
        ):
            if given:
                raise UsageError("is not for --front: take a point's plan with --ram and -p", item=flag)
        _front(model, options, ram, plan, as_json=as_json)
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

        console = stdout()
        console.print(table(made))
        for target, what in ((plan, "plan"), (output, "project"), (report, "report")):
            if target is not None:
                console.print(f"{what} written to {target}", markup=False, highlight=False, soft_wrap=True)
    if made.short:
        raise DoesNotFitBoard(made.board.name, made.short)
    if made.run is not None and not made.run.match:
        raise Mismatch(f"{made.run.different:,} of {made.run.output_bytes:,} output bytes differ")


def _front(model: str, options: SegmentOptions, ram: str | None, plan: Path | None, *, as_json: bool) -> None:
    """Print the curve, and write the plan of the point that fits."""
    from onchip.base.units import parse_bytes
    from onchip.microcontroller.load import int8_model
    from onchip.microcontroller.network import network_of
    from onchip.microcontroller.result.microcontroller_front import data, table
    from onchip.microcontroller.segments.frontier import front
    from onchip.microcontroller.segments.planning import plan_of, too_little
    from onchip.planners.limits import Limits
    from onchip.plans import write_plan

    limit = None if ram is None else parse_bytes(ram, option="--ram")
    network = network_of(int8_model(model))
    with progress(as_json) as say:
        found = front(network, options, limits=Limits.of(options, say))
    taken = found.points[0] if limit is None else found.within(limit)
    marked = None if limit is None else taken
    if as_json:
        print_data(json.dumps(data(found, network.name, options, marked)))
    else:
        stdout().print(table(found, network.name, options, marked))
    if taken is None:
        assert limit is not None
        raise too_little(found.chain, found.points[-1].choice, limit)
    if plan is not None:
        write_plan(plan_of(found.chain, taken.choice, taken.ram_bytes, options), plan)
