"""A page for every chip of today: its memories, its figures with their sources, what each network costs.

    python benchmarks/chip_pages.py --plan [--seconds 1.5] [--rows 50]   # plan rows without an answer
    python benchmarks/chip_pages.py --write                              # write docs/chips/*.md

Answers are kept in benchmarks/chip_pages.jsonl, a line each with the CPU seconds that it took, so that a
run goes on where the last one ended. A row is one call of `onchip.plan` with a limit of `--seconds`; the
limit is on the clock, so a busy machine finds less in it. An answer belongs to the figures of its chip: a row
of a chip that has changed is planned again.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import sys
import time
from collections.abc import Iterable, Iterator
from functools import lru_cache
from typing import Any

import msgspec
from results_pages import ROOT

from onchip import load, plan, zoo
from onchip.base.errors import OnchipError
from onchip.check import certify
from onchip.cli.chip_table import figures_of, source_of
from onchip.machines.chip import RATES, Chip, builtin_chips
from onchip.methods.said import unknown_note
from onchip.plans import Plan
from onchip.report.wording import short_size
from onchip.sweeps.compute import known_of

ANSWERS = ROOT / "benchmarks" / "chip_pages.jsonl"
PAGES = ROOT / "docs" / "chips"
SLOW = 2.0
"""CPU seconds of a row after which the rest of its network waits."""

Row = dict[str, Any]


def chips() -> list[Chip]:
    """Return the chips that have a page: those of today, whose files say what is unknown of them."""
    return sorted(
        (chip for chip in builtin_chips() if chip.unknown), key=lambda chip: (chip.family, chip.name)
    )


def key_of(chip: Chip, network: str) -> str:
    """Return the key of a row: the network's name and all figures of the chip."""
    figures = {k: v for k, v in chip.figures().items() if k not in ("name", "description")}
    text = json.dumps(msgspec.to_builtins(figures), sort_keys=True)
    return f"{network}@{hashlib.sha256(text.encode()).hexdigest()[:16]}"


def answers() -> dict[str, Row]:
    """Return the rows that are kept, by their keys."""
    lines = ANSWERS.read_text("utf-8").splitlines() if ANSWERS.exists() else []
    return {row["key"]: row for row in map(json.loads, lines)}


@lru_cache(maxsize=2)
def read(name: str, dtype: str | None) -> Any:
    """Return a built-in network; it is read once for all chips."""
    return load(f"zoo:{name}", **({} if dtype is None else {"dtype": dtype}))


def problem_of(chip: Chip) -> str:
    """Return what a plan for the fewest bytes depends on: all figures but rates, which only give it times."""
    return str(
        {k: v for k, v in chip.figures().items() if k not in ("name", "description", "clock_hertz", *RATES)}
    )


def planned(chip: Chip, name: str, seconds: float, others: dict[str, Plan]) -> Row:
    """Return the row of a network on a chip; a reason stands where there is no plan.

    A plan of `others`, by their problems, serves every chip with the same problem: the checker proves it
    again with the rates of the other chip.
    """
    dtype = chip.element if chip.element in ("int8", "int16") else None
    source = read(name, dtype)
    began = time.process_time()
    found: Row = {"key": key_of(chip, name), "network": name, "limit": seconds}
    try:
        known = known_of(source.network)
        found |= {"least": known["compulsory_limit_bytes"], "macs": known["macs"]}
        if chip.scratchpad_bytes is None and not chip.memories:
            found["reason"] = "the size of its memory is unknown"
        else:
            problem = problem_of(chip)
            if problem in others:
                made = with_rates_of(chip, others[problem])
            else:
                made = others[problem] = plan(source, chip, time_limit=seconds)
            found |= {
                "status": made.result.status,
                "dram": made.result.dram_bytes,
                "peak": made.result.peak_bytes,
                "picoseconds": made.result.latency_picoseconds,
                "picojoules": made.result.energy_picojoules,
            }
    except OnchipError as no:
        found["reason"] = " ".join(str(no).split())[:300]
    return found | {"cpu": round(time.process_time() - began, 2)}


def with_rates_of(chip: Chip, made: Plan) -> Plan:
    """Return the same plan on a chip with other rates, proved again."""
    return certify(
        made.network,
        chip,
        made.budget,
        made.program,
        status=made.result.status,
        lower_bound_bytes=made.result.lower_bound_bytes,
        seconds=made.result.seconds,
        groups=made.groups,
        options=made.options,
        dram_lower_bound_bytes=made.result.dram_lower_bound_bytes,
        space=made.result.space,
    )


def fill(seconds: float, rows: int) -> None:
    """Plan up to so many rows that have no answer, network by network, and keep each at once.

    A network with a slow row waits until all others have their rows.
    """
    known, made = answers(), 0
    smallest_first = sorted(zoo.names(), key=lambda name: len(zoo.model_bytes(name)))
    for patient in (False, True):
        for name in smallest_first:
            others: dict[str, Plan] = {}
            for chip in chips():
                if key_of(chip, name) in known or made >= rows:
                    continue
                row = planned(chip, name, seconds, others)
                known[row["key"]] = row
                with ANSWERS.open("a", encoding="utf-8") as out:
                    out.write(json.dumps(row) + "\n")
                made += 1
                print(f"{name} on {chip.name}: {row['cpu']:.1f} s", file=sys.stderr, flush=True)
                if row["cpu"] > SLOW and not patient:
                    break


def memories(chip: Chip) -> Iterator[str]:
    """Yield the drawing of a chip's memories: what lies nearer to the multipliers stands lower."""
    bandwidth, inner = chip.rates.dram_bytes_per_second, chip.rates.scratchpad_bytes_per_second
    levels = [("DRAM", "", bandwidth)]
    levels += [(m.name, short_size(m.bytes), m.bytes_per_second) for m in reversed(chip.memories)]
    if not chip.memories:
        size = "size unknown" if chip.scratchpad_bytes is None else short_size(chip.scratchpad_bytes)
        levels.append(("scratchpad", size, inner))
    if chip.weight_scratchpad_bytes is not None:
        levels.append(("weights", short_size(chip.weight_scratchpad_bytes), None))
    array = "multipliers" if chip.array is None else f"{chip.array.rows} x {chip.array.columns} multipliers"
    yield "```text"
    for name, size, rate in levels:
        speed = "rate unknown" if rate is None else f"{rate / 1e9:,.4g} GB/s"
        yield f"[ {name:<10} {size:>14} ]  {speed}"
    rate = chip.rates.macs_per_second
    yield f"[ {array:<25} ]  " + ("rate unknown" if rate is None else f"{rate / 1e9:,.4g} GMAC/s")
    yield "```"


def duration(picoseconds: float) -> str:
    """Return a time in ms."""
    return f"{picoseconds / 1e9:,.3f}"


def time_cell(chip: Chip, row: Row) -> str:
    """Return the time of a plan; a lower bound where some rate is unknown."""
    if row.get("picoseconds") is not None:
        return duration(row["picoseconds"])
    bandwidth, rate = chip.rates.dram_bytes_per_second, chip.rates.macs_per_second
    least = [row["dram"] / bandwidth] if bandwidth else []
    least += [row["macs"] / rate] if rate else []
    return f"≥ {duration(max(least) * 1e12)}" if least else "unknown"


def cells(chip: Chip, row: Row | None, name: str) -> str:
    """Return the table's row of a network."""
    if row is None:
        return (
            f"| {name} | not planned: the run of benchmarks/chip_pages.py ended before this row | | | | | | |"
        )
    if "dram" not in row:
        least = short_size(row["least"]) if "least" in row else ""
        return f"| {name} | {row['reason'].replace('|', '/')} | {least} | | | | | |"
    energy = "unknown" if row["picojoules"] is None else f"{row['picojoules'] / 1e9:,.3f}"
    return (
        f"| {name} | {short_size(row['dram'])} | {short_size(row['least'])}"
        f" | {row['dram'] / row['least']:.2f} | {short_size(row['peak'])}"
        f" | {time_cell(chip, row)} | {energy} | {row['status']} |"
    )


def page(chip: Chip, known: dict[str, Row]) -> str:
    """Return the page of a chip."""
    assert chip.origin is not None
    rows = [known.get(key_of(chip, name)) for name in zoo.names()]
    lines = [
        f"# {chip.name}",
        "",
        "<!-- benchmarks/chip_pages.py --write makes this page -->",
        "",
        f"[{chip.family}](../chips.md): {chip.description}. `--chip {chip.name}`",
        "",
        *([chip.origin.caveat, ""] if chip.origin.caveat else []),
        *memories(chip),
        "",
        "## Figures",
        "",
        "| key | value | source |",
        "|---|---:|---|",
        *(f"| `{key}` | {value} | {source_of(chip, key)} |" for key, value in figures_of(chip)),
        *(f"| `{key}` | unknown | in no document that its file names |" for key in chip.unknown),
        "",
        *(f"- {name}: {document}" for name, document in chip.origin.documents),
        "",
        *(f"{note[0].upper()}{note[1:]}.\n" for note in unknown_note(chip)),
        "## What the built-in networks cost",
        "",
        *explained(chip, rows),
        "",
        "| network | crosses | least | x least | peak | ms | mJ | answer |",
        "|---|---:|---:|---:|---:|---:|---:|---|",
        *(cells(chip, row, name) for name, row in zip(zoo.names(), rows, strict=True)),
    ]
    return "\n".join(lines) + "\n"


def explained(chip: Chip, rows: Iterable[Row | None]) -> Iterator[str]:
    """Yield what the table shows, and what made it."""
    made = [row for row in rows if row is not None]
    limits = {row["limit"] for row in made} or {0}
    yield "*crosses*: bytes to and from DRAM in an inference, weights included, by `onchip plan`;"
    yield "*least*: inputs, outputs and weights, each once, which no schedule goes below; *peak*: the"
    yield "most that lies on chip. *ms* and *mJ* come from the figures above; *≥* is a bound by known rates."
    yield "*optimal* is proved in the planner's space, *feasible* is the best found in the time. Elements"
    yield f"have {'16' if chip.element == 'int16' else '8'} bits."
    yield ""
    yield f"`benchmarks/chip_pages.py`, at most {max(limits):g} s on the clock a row; this page took"
    yield f"{sum(row['cpu'] for row in made):,.0f} CPU seconds."


def write() -> None:
    """Write the page of every chip, and the list of them."""
    known = answers()
    PAGES.mkdir(exist_ok=True)
    for chip in chips():
        (PAGES / f"{chip.name}.md").write_text(page(chip, known), encoding="utf-8")
    have = sum(key_of(chip, name) in known for chip in chips() for name in zoo.names())
    print(f"{len(chips())} pages, {have} of {len(chips()) * len(zoo.names())} rows planned", file=sys.stderr)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--plan", action="store_true", help="plan rows that have no answer")
    parser.add_argument("--write", action="store_true", help="write the pages")
    parser.add_argument("--seconds", type=float, default=1.5, help="the limit of a row")
    parser.add_argument("--rows", type=int, default=sys.maxsize, help="the most rows of this run")
    asked = parser.parse_args()
    if asked.plan:
        fill(asked.seconds, asked.rows)
    if asked.write:
        write()


if __name__ == "__main__":
    main()
