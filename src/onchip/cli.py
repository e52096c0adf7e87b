"""The command line: one verb per function. Results go to stdout, progress and errors to stderr.

Exit codes: 0 yes; 1 the answer is no (infeasible, illegal, mismatch); 2 wrong usage or input;
130 interrupted.
"""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, NoReturn

import typer

from onchip import api
from onchip.errors import OnchipError, UsageError
from onchip.files import write_atomically
from onchip.flags import expand_options
from onchip.placement import PlacementOptions
from onchip.readers.source import ReadOptions

if TYPE_CHECKING:
    from rich.console import Console

__all__ = ["app", "main"]

app = typer.Typer(
    name="onchip",
    help="Plan a neural network onto a chip's memory, prove the plan, run it, show it.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)

Model = Annotated[str, typer.Argument(help="zoo:NAME, FILE.onnx, or a network as FILE.json")]
ChipName = Annotated[str, typer.Option("--chip", help="a built-in chip's name, or the path of a .toml file")]
PlanFile = Annotated[Path, typer.Argument(metavar="PLAN", help="a plan file, JSON or text")]
Json = Annotated[bool, typer.Option("--json", help="print data instead of a table")]


def _version(wanted: bool) -> None:
    if wanted:
        from importlib.metadata import version

        print(f"onchip {version('onchip')}")
        raise typer.Exit


@app.callback()
def _top(
    version: Annotated[
        bool, typer.Option("--version", callback=_version, is_eager=True, help="print the version")
    ] = False,
) -> None:
    pass


@app.command()
@expand_options
def plan(
    model: Model,
    read: ReadOptions,
    placement: PlacementOptions,
    chip: ChipName = "generic",
    budget: Annotated[
        str | None,
        typer.Option(
            "--budget", help="scratchpad bytes: a size (512KiB), MR, MH or MP [default: what the chip states]"
        ),
    ] = None,
    output: Annotated[
        Path | None,
        typer.Option("-o", "--output", help="write the plan: JSON for FILE.json, else the text form"),
    ] = None,
    report: Annotated[
        Path | None, typer.Option("--report", help="write the report as one self-contained HTML page")
    ] = None,
    as_json: Json = False,
) -> None:
    """Decide order, addresses, spills and reloads of a network, with the least traffic to DRAM."""
    _writable(output, Path(model))
    _writable(report, Path(model), output)
    with _progress(as_json) as say:
        source = api.load(model, **{name: getattr(read, name) for name in read.__dataclass_fields__})
        made = api.plan(
            source,
            chip,
            budget,
            progress=say,
            **{name: getattr(placement, name) for name in placement.__dataclass_fields__},
        )
    if output is not None:
        made.save(output)
    if report is not None:
        made.report(report)
    if as_json:
        sys.stdout.write(made.to_json())
    else:
        from onchip.report import summary

        console = _stdout()
        console.print(summary(made))
        for target, what in ((output, "plan"), (report, "report")):
            if target is not None:
                console.print(f"{what} written to {target}", markup=False, highlight=False, soft_wrap=True)


@app.command()
def check(plan: PlanFile, as_json: Json = False) -> None:
    """Prove a plan legal and recompute every figure in it."""
    import msgspec

    made = api.read(plan)
    result = made.check()
    if as_json:
        print(json.dumps(msgspec.to_builtins(result)))
        return
    operators, instructions = len(made.network.operators), len(made.program)
    claim = "" if result.status == "optimal" else f", claimed lower bound {result.lower_bound_bytes:,} B"
    print(f"legal: {operators:,} operators in {instructions:,} instructions; every figure holds")
    print(f"  {result.status}: traffic {result.traffic_bytes:,} B{claim}")
    print(f"  spill {result.spill_bytes:,} B, reload {result.reload_bytes:,} B")
    print(f"  DRAM {result.dram_bytes:,} B with compulsory bytes and weights")
    print(f"  peak {result.peak_bytes:,} B, extent {result.extent_bytes:,} B, budget {made.budget:,} B")


@app.command()
def run(
    plan: PlanFile,
    model: Annotated[
        str | None,
        typer.Option("--model", help="where the model is now, if it has moved since it was planned"),
    ] = None,
    seed: Annotated[int, typer.Option(help="seed of the input, and of weights that the model lacks")] = 0,
    checked: Annotated[
        bool, typer.Option("--check/--no-check", help="prove the plan legal before executing it")
    ] = True,
    as_json: Json = False,
) -> None:
    """Execute a plan in a byte array of its budget and compare every tensor with onnxruntime, bit for bit."""
    import msgspec

    from onchip.run import run as execute

    made = api.read(plan)
    with _progress(as_json) as say:
        report = execute(made, model, seed=seed, checked=checked, progress=say)
    if as_json:
        print(json.dumps(msgspec.to_builtins(report)))
    else:
        for line in report.lines():
            print(line)


@app.command()
def report(
    plan: PlanFile,
    output: Annotated[
        Path | None, typer.Option("-o", "--output", help="write one self-contained HTML page")
    ] = None,
) -> None:
    """Show a plan: a summary here, the memory map as an HTML page with -o."""
    _writable(output, plan)
    made = api.read(plan)
    made.check()
    if output is not None:
        write_atomically(output, made.report())
    from onchip.report import summary

    console = _stdout()
    console.print(summary(made))
    if output is not None:
        console.print(f"report written to {output}", markup=False, highlight=False, soft_wrap=True)


@app.command()
def zoo(
    names: Annotated[list[str] | None, typer.Argument(help="only these networks")] = None,
    as_json: Json = False,
) -> None:
    """List the built-in networks: operators, tensors, bytes, and the least memory they can be planned in."""
    from onchip.zoo_table import rows

    with _progress(as_json) as say:
        table = list(rows(names, say))
    if as_json:
        print(json.dumps(table))
        return
    _table(table, title="8-bit, fused, bytes; MR: least budget of any plan, MP: least peak of any order")


@app.command()
def chips(as_json: Json = False) -> None:
    """List the built-in chips. A file of your own is given by its path: --chip ./mine.toml."""
    import msgspec

    from onchip.chip import builtin_chips

    table = [msgspec.to_builtins(c) for c in builtin_chips()]
    if as_json:
        print(json.dumps(table))
        return
    for row in table:
        row["description"] = row.pop("description")  # the long column goes last
    _table(table)


def _table(rows: list[dict[str, Any]], title: str | None = None) -> None:
    from rich.table import Table

    table = Table(title=title, title_justify="left", title_style="", box=None, pad_edge=False)
    for key in rows[0]:
        number = any(isinstance(row[key], int | float) for row in rows)
        table.add_column(key.replace("_", " "), justify="right" if number else "left", overflow="fold")
    for row in rows:
        table.add_row(
            *("-" if v is None else f"{v:,.12g}" if isinstance(v, int | float) else v for v in row.values())
        )
    _stdout().print(table, markup=False)


def _stdout() -> Console:
    from rich.console import Console

    # Redirected output has no width of its own: wide enough not to fold the tables.
    return Console(width=None if sys.stdout.isatty() or "COLUMNS" in os.environ else 110, highlight=False)


@contextmanager
def _progress(quiet: bool) -> Iterator[api.Progress]:
    """A line on a terminal's stderr that says how far a long search is; nothing when it is redirected."""
    if quiet or not sys.stderr.isatty():
        yield lambda _: None
        return
    from rich.console import Console

    with Console(stderr=True).status("working") as status:
        from rich.text import Text

        yield lambda line: status.update(Text(line))


def _writable(path: Path | None, *others: Path | None) -> None:
    """Refuse, before the long work, an output that cannot be written or is another file of the command."""
    if path is None:
        return
    if path.is_dir():
        raise UsageError("is a directory", where=str(path))
    if not path.parent.is_dir():
        raise UsageError("its folder does not exist", where=str(path))
    if not os.access(path.parent, os.W_OK):
        raise UsageError("its folder cannot be written", where=str(path))
    for other in others:
        if other is not None and os.path.realpath(path) == os.path.realpath(other):
            raise UsageError(
                "would be written over, and this command uses it for something else", where=str(path)
            )


def main() -> NoReturn:
    """Run the command line; every expected failure is one line on stderr and an exit code."""
    stdout = sys.stdout
    try:
        code = app(standalone_mode=False)
        stdout.flush()
    except OnchipError as problem:
        print(f"onchip: {problem}", file=sys.stderr)
        code = problem.exit_code
    except (KeyboardInterrupt, typer.Abort):
        code = 130
    except (BrokenPipeError, SystemExit):
        # The reader of our output has gone (typer and rich turn that into SystemExit): no error of ours.
        # What is still buffered goes nowhere; else the interpreter would complain at its end.
        os.dup2(os.open(os.devnull, os.O_WRONLY), stdout.fileno())
        code = 0
    except OSError as problem:
        print(f"onchip: {problem.filename or 'output'}: {problem.strerror}", file=sys.stderr)
        code = 2
    except Exception as problem:
        if not hasattr(problem, "format_message"):
            raise
        lines = problem.format_message().split("\n")
        print(f"onchip: {' '.join(line.strip() for line in lines)} (see onchip --help)", file=sys.stderr)
        code = 2
    if code == 130:
        print("onchip: interrupted", file=sys.stderr)
    sys.exit(code if isinstance(code, int) else 0)


if __name__ == "__main__":
    main()
