"""`onchip pack`."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated, Any

import typer

from onchip.base.errors import InputError, NegativeAnswer
from onchip.base.flags import expand_options
from onchip.base.units import parse_bytes
from onchip.cli.answer import print_data
from onchip.cli.app import app
from onchip.cli.console import Json, progress, stdout, table, writable
from onchip.planners.packing.buffers import Buffer
from onchip.planners.packing.csv_file import BufferFile, read_buffers, write_buffers
from onchip.planners.packing.verdict import PackOptions, Verdict, decide
from onchip.report.wording import visible

SHOWN = 8
"""The most buffers named in an error's line; the table has them all."""


@app.command()
@expand_options
def pack(
    buffers: Annotated[
        Path, typer.Argument(metavar="BUFFERS.csv", help="id,lower,upper,size[,alignment][,gaps][,offset]")
    ],
    options: PackOptions,
    capacity: Annotated[
        str | None,
        typer.Option(
            "--capacity", metavar="SIZE", help="bytes that all buffers must fit in: a size (512KiB)"
        ),
    ] = None,
    output: Annotated[
        Path | None, typer.Option("-o", "--output", help="write the buffers with their offsets as CSV")
    ] = None,
    as_json: Json = False,
) -> None:
    """Find addresses for buffers with fixed live ranges, or prove that there are none."""
    writable(output, buffers)
    room = None if capacity is None else parse_bytes(capacity, option="--capacity")
    given = read_buffers(buffers)
    with progress(as_json) as say:
        try:
            verdict = decide(given.buffers, room, options, progress=lambda n: say(f"packing: {n:,} nodes"))
        except InputError as problem:
            if problem.item != "alignment":
                raise
            raise InputError(problem.reason, where=str(buffers)) from None
    if verdict.status == "packed" and output is not None:
        write_buffers(output, given.buffers, given.ids, verdict.offsets)
    if as_json:
        print_data(json.dumps(_data(given, verdict)))
    else:
        _show(given, verdict, output)
    if verdict.interrupted:
        raise typer.Exit(130)
    if verdict.status != "packed":
        raise NegativeAnswer(_refusal(given, verdict, options))


def _data(given: BufferFile, verdict: Verdict) -> dict[str, Any]:
    conflict = verdict.conflict
    return {
        "status": verdict.status,
        "buffers": len(given.buffers),
        "capacity": verdict.capacity,
        "max_load": verdict.max_load,
        "lower_bound": verdict.lower_bound,
        "extent": verdict.extent,
        "seconds": verdict.seconds,
        "nodes": verdict.nodes,
        "engine": verdict.engine,
        "offsets": [{"id": name, "offset": at} for name, at in zip(given.ids, verdict.offsets, strict=False)],
        "conflict": None
        if conflict is None
        else {
            "buffers": [_row(given, i) for i in conflict.which],
            "minimal": conflict.minimal,
        },
        "needs": verdict.needs,
        "missing": verdict.missing,
        "exact": verdict.exact,
    }


def _row(given: BufferFile, i: int) -> dict[str, Any]:
    b = given.buffers[i]
    return {
        "id": given.ids[i],
        "lower": b.lower,
        "upper": b.upper,
        "size": b.size,
        "alignment": b.alignment,
        "gaps": [list(gap) for gap in b.gaps],
        "offset": b.offset,
    }


def _show(given: BufferFile, verdict: Verdict, output: Path | None) -> None:
    row = {
        "status": verdict.status,
        "buffers": len(given.buffers),
        "capacity": verdict.capacity,
        "max_load": verdict.max_load,
        "extent": verdict.extent,
        "proved_bound": verdict.lower_bound,
        "seconds": round(verdict.seconds, 3),
        "nodes": verdict.nodes,
        "engine": verdict.engine,
    }
    table([row])
    if verdict.conflict is not None:
        rows = [_row(given, i) for i in verdict.conflict.which]
        for shown in rows:
            shown["id"] = visible(shown["id"])
            shown["gaps"] = " ".join(f"{begin}-{end}" for begin, end in shown["gaps"])
        used = [key for key in rows[0] if key in ("id", "lower", "upper", "size") or _matters(rows, key)]
        kind = "an irreducible set" if verdict.conflict.minimal else "a set"
        stdout().print(f"\n{kind} of buffers that does not fit:")
        table([{key: r[key] for key in used} for r in rows])
    if verdict.status == "packed" and output is not None:
        stdout().print(f"offsets written to {output}", markup=False, highlight=False, soft_wrap=True)


def _matters(rows: list[dict[str, Any]], key: str) -> bool:
    return any(row[key] not in (None, "", 1) for row in rows)


def _refusal(given: BufferFile, verdict: Verdict, options: PackOptions) -> str:
    if verdict.status == "unknown":
        return (
            f"not decided in {options.time_limit:g} s: the capacity is {verdict.capacity:,} bytes,"
            f" at least {verdict.lower_bound:,} are needed, a packing in {verdict.extent or 0:,} was found"
        )
    conflict = verdict.conflict
    if conflict is None:
        return "infeasible: fixed buffers overlap, no capacity is enough"
    names = [_named(given.ids[i], given.buffers[i]) for i in conflict.which[:SHOWN]]
    if len(conflict.which) > SHOWN:
        names.append(f"and {len(conflict.which) - SHOWN} more")
    which = f"{len(conflict.which)} buffers do" if len(conflict.which) > 1 else "one buffer does"
    if verdict.needs is None:
        needs = "no capacity is enough"
    else:
        least = "" if verdict.exact else "at least "
        needs = (
            f"the capacity is {verdict.capacity:,} bytes, {least}{verdict.needs:,} are needed"
            f" ({least}{verdict.missing:,} missing)"
        )
    return f"infeasible: {needs}; {which} not fit: {', '.join(names)}"


def _named(name: str, b: Buffer) -> str:
    place = "" if b.offset is None else f" at {b.offset:,}"
    return f"{name} ({b.size:,} B in [{b.lower}, {b.upper}){place})"
