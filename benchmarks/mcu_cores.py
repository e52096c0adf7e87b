"""Files of public repositories on every emulated core, beside TensorFlow Lite Micro on the same core.

    .venv/bin/python benchmarks/mcu_cores.py LIST.json FOLDER --results FILE.jsonl [--time-limit 3600]
        [--cores cortex-m4,...] [--most-macs 50e6] [--tflm ... --cmsis ... --third-party ...] [--only TEXT]
        [--only-bytes] [--only-arena] [--into docs/mcu-cores.md]

LIST and FOLDER are those of `mcu_files`. Each file is planned once, as by `onchip mcu`, linked for each core
with no more stack than it needs, and run there on three inputs behind the guard; every output byte is
compared with the reference, which is compared with TensorFlow Lite Micro in `mcu_files`. With the checkouts
that `mcu_tflm` takes, TensorFlow Lite Micro runs the first of the inputs on the same core, from the same
compiler, and its outputs are compared, too; with `--only-arena` it allocates its tensors and runs nothing.
Each result is appended to FILE as soon as it is there; what FILE has is not run again. Without `--time-limit`
the tables are printed from FILE alone, or those of `--sections`. Exit code 1 if any byte was wrong or a ratio
of instructions is above its line.
"""

from __future__ import annotations

import argparse
import json
import math
import sys
import tempfile
import time
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
from mcu_judges import ARENA, Judge
from mcu_tflm import BOARD, Peer, absolute, program
from page_marks import write

from onchip.base.errors import OnchipError, TooLargeToEmulate
from onchip.machines.board import Board
from onchip.machines.cores import CORES, Core, core_names
from onchip.microcontroller.emulator import emulate
from onchip.microcontroller.emulator.verify import (
    inputs_of,
    program_files,
    reckoned_seconds,
    run_tight,
    verify,
)
from onchip.microcontroller.int8.model import Int8, Int8Model
from onchip.microcontroller.int8.onnx_qdq.read import onnx_model_of
from onchip.microcontroller.int8.read import model_of
from onchip.microcontroller.int8.reference import Session
from onchip.microcontroller.int8.shapes import macs
from onchip.microcontroller.network import network_of, states_of
from onchip.microcontroller.project import sources_of
from onchip.microcontroller.result.row_choice import RowPlans, planned_by_method
from onchip.microcontroller.segments import SegmentOptions
from onchip.plans import Plan

RUNS = 3
ARENA_LEAST = 3 << 20
BESIDE_ARENA = 1 << 19
"""Bytes of RAM for all that TensorFlow Lite Micro has beside its arena."""
LINE = {
    core: 0.9 if core in ("cortex-m0plus", "cortex-m3", "cortex-m33", "cortex-m55") else 0.8 for core in CORES
}
"""Instructions, as a share of TensorFlow Lite Micro's, that no file should exceed."""

Result = dict[str, Any]


@dataclass(frozen=True)
class File:
    """A file of the list, read: its entry, and the network; planned and computed when that is asked for."""

    entry: dict[str, str]
    content: bytes
    model: Int8Model

    @property
    def work(self) -> int:
        return sum(macs(layer) for layer in self.model.layers)

    @property
    def widest(self) -> int:
        """The bytes of the tensors of one layer, of that which has the most."""
        sizes = self.model.tensors
        return max(sum(sizes[t].bytes for t in {*layer.inputs, layer.output}) for layer in self.model.layers)

    @property
    def key(self) -> str:
        return f"{self.entry['repository']}/{self.entry['path']}"

    @cached_property
    def plan(self) -> Plan:
        """The plan that `onchip mcu` takes where there is room."""
        model, states = self.model, states_of(self.model)
        options, network = SegmentOptions(), network_of(model)
        return planned_by_method(model, network, BOARD.ram_bytes, options, states, (), RowPlans()).plan

    @cached_property
    def expected(self) -> tuple[bytes, ...]:
        """What the reference makes of the inputs, one after the other."""
        session = Session(self.model)
        return tuple(session.bytes_of(self.model, x) for x in inputs_of(self.model, RUNS, seed=1))


def files_of(entries: list[dict[str, str]], folder: Path) -> Iterator[File]:
    for entry in entries:
        path = folder / entry["repository"].replace("/", "+") / entry["path"]
        content = path.read_bytes()
        try:
            read = onnx_model_of if path.suffix == ".onnx" else model_of
            yield File(entry, content, read(content, name=path.stem, where=path.name))
        except OnchipError as problem:
            print(f"{path}: {problem}", file=sys.stderr)


def ours(file: File, core: Core, folder: Path) -> Result:
    """What the program of the file does on a core."""
    board = Board("bench", core, 1 << 26, 1 << 26)
    model, answers = file.model, iter(file.expected)
    sources = sources_of(file.plan, model, forms=board.core_type.forms)
    try:
        made = verify(sources, model, board, folder, runs=RUNS, seed=1, reference=lambda *_: next(answers))
    except TooLargeToEmulate as problem:
        return {"left": str(problem)}
    image = made.image
    found = {"ram": image.ram_bytes, "stack": image.stack_bytes, "flash": image.flash_bytes}
    found |= {"instructions": made.total.instructions, "runs": made.runs, "bytes": made.output_bytes}
    kinds = {layer.name: type(layer).__name__ for layer in model.layers}
    name, most = max(made.by_layer.items(), key=lambda item: item[1].instructions)
    share = most.instructions / max(made.total.instructions, 1)
    found["layer"] = {"name": name, "kind": kinds[name], "share": share}
    return {**found, "different": made.different, "machines": list(made.machines)}


def only_bytes(file: File, core: Core, folder: Path) -> Result:
    """What the program of the file makes on a core, with no instructions counted."""
    board = Board("bench", core, 1 << 26, 1 << 26)
    model, expected = file.model, b"".join(file.expected)
    sources = sources_of(file.plan, model, forms=board.core_type.forms)
    given = b"".join(x.tobytes() for x in inputs_of(model, RUNS, seed=1))
    files, seconds = program_files(sources, model, marks=False), reckoned_seconds(model, RUNS)
    try:
        image, ran, different, machines = run_tight(
            files, board, folder, given, expected, RUNS, seconds, count=False
        )
    except TooLargeToEmulate as problem:
        return {"left": str(problem)}
    found = {"ram": image.ram_bytes, "stack": ran.stack_bytes, "flash": image.flash_bytes, "runs": RUNS}
    return {**found, "bytes": len(expected), "different": different, "machines": list(machines)}


def theirs(file: File, peer: Peer, folder: Path) -> Result:
    """What TensorFlow Lite Micro does on the core: its arena, stack and instructions."""
    from tflite_micro.python.tflite_micro import runtime

    if file.key.endswith(".onnx"):
        return {"left": "TensorFlow Lite Micro reads no ONNX files"}
    judge = Judge(file.content, file.model)
    if judge.name != "TFLM":
        return {"left": "TensorFlow Lite Micro does not run it"}
    interpreter = runtime.Interpreter.from_bytes(judge.content, arena_size=ARENA)
    x = inputs_of(file.model, 1, seed=1)[0].reshape(-1)
    ends = np.cumsum([file.model.tensors[t].bytes for t in file.model.inputs])[:-1]
    wanted = [interpreter.get_input_details(i) for i in range(len(judge.graph.inputs))]
    given = b"".join(part.tobytes() for part in judge.given(np.split(x, ends), wanted))
    try:
        room = CORES[peer.core].large.usable_ram - BESIDE_ARENA
        image = program(peer, judge.content, folder, min(max(ARENA_LEAST, 2 * file.widest), room))
        seconds = 4 * reckoned_seconds(file.model, 1)
        ran = emulate(image, {"in": given}, outputs=("out",), seconds=seconds)
    except OnchipError as problem:
        return {"left": f"{type(problem).__name__}: {problem}"}
    return {
        "arena": ran.report["arena"],
        "stack": ran.stack_bytes,
        "instructions": ran.by_mark[0].instructions,
        "different": _different(file, judge, interpreter, ran.files["out"]),
    }


def arena_of(file: File, peer: Peer, folder: Path) -> Result:
    """The arena of TensorFlow Lite Micro on the core once its tensors are allocated, or why there is none."""
    if file.key.endswith(".onnx"):
        return {"left": "TensorFlow Lite Micro reads no ONNX files"}
    room = CORES[peer.core].large.usable_ram - BESIDE_ARENA
    try:
        image = program(peer, Judge(file.content, file.model).content, folder, room, invoke=False)
        return {"bytes": emulate(image, count=False).report["arena"]}
    except OnchipError as problem:
        return {"left": f"{type(problem).__name__}: {problem}"}


def skips_scales(model: Int8Model) -> bool:
    """Tell whether a map is read at its own height after smaller ones were made, as in a U-Net.

    Networks with states are none: what they keep is read late at any height.
    """
    made = {layer.output: i for i, layer in enumerate(model.layers)}
    rows = [layer.output_shape[1] for layer in model.layers]
    return not model.states and any(
        1 < least < shape[1] <= rows[j]
        for j, layer in enumerate(model.layers)
        for t, shape in zip(layer.inputs, layer.input_shapes, strict=True)
        if t in made and (least := min((r for r in rows[made[t] + 1 : j] if r > 1), default=0))
    )


def _different(file: File, judge: Judge, interpreter: Any, made: bytes) -> int:
    """The elements of TensorFlow Lite Micro's outputs on the core that are not the reference's."""
    model, wrong, at, start = file.model, 0, 0, 0
    expected = np.frombuffer(file.expected[0], np.int8)
    places: dict[int, Int8] = {}
    for t in dict.fromkeys(model.outputs):
        places[t] = expected[start : start + model.tensors[t].bytes]
        start += model.tensors[t].bytes
    for i, t in enumerate(model.outputs):
        kind = np.dtype(interpreter.get_output_details(i)["dtype"])
        size = model.tensors[t].bytes * kind.itemsize
        wrong += judge.expected(t, places[t], np.frombuffer(made[at : at + size], kind))
        at += size
    return wrong


class Campaign:
    """The results in a file, and what is still to be run."""

    def __init__(self, asked: argparse.Namespace) -> None:
        self.asked = asked
        self.results: dict[tuple[str, str], Result] = {}
        if asked.results.exists():
            for line in asked.results.read_text().splitlines():
                row = json.loads(line)
                self.results[row["file"], row["core"]] = row

    def run(self) -> None:
        """Run what is missing, least work first, until the time is over."""
        asked, end = self.asked, time.monotonic() + self.asked.time_limit
        chosen = [e for e in json.loads(asked.list.read_text()) if asked.only in e["path"]]
        files = sorted(files_of(chosen, asked.folder), key=lambda file: file.work)
        for file in files:
            for core in asked.cores.split(","):
                row = self.results.get((file.key, core))
                if self.done(row) or file.work > asked.most_macs:
                    continue
                if time.monotonic() > end:
                    return
                with tempfile.TemporaryDirectory() as folder:
                    if row is None or not (asked.only_arena or "instructions" in row):
                        made = (only_bytes if asked.only_bytes or asked.only_arena else ours)(
                            file, core, Path(folder)
                        )
                        row = {"file": file.key, "core": core, **made}
                if asked.tflm and "left" not in row:
                    optimise = "-O1" if asked.only_arena else "-O3"
                    objects = asked.objects / optimise
                    objects.mkdir(parents=True, exist_ok=True)
                    peer = Peer(asked.tflm, asked.third_party, asked.cmsis, core, objects, optimise)
                    with tempfile.TemporaryDirectory() as folder:
                        if asked.only_arena:
                            row = {**row, "arena": arena_of(file, peer, Path(folder))}
                        else:
                            row["tflm"] = theirs(file, peer, Path(folder))
                            if "arena" in row["tflm"]:
                                row["arena"] = {"bytes": row["tflm"]["arena"]}
                    row["skips"] = skips_scales(file.model)
                self.results[file.key, core] = row
                with asked.results.open("a") as out:
                    out.write(json.dumps(row) + "\n")
                print(json.dumps(row), file=sys.stderr, flush=True)

    def done(self, row: Result | None) -> bool:
        """Tell whether a result has all that is asked for."""
        if row is None or "left" in row:
            return row is not None
        if self.asked.only_arena:
            return "arena" in row
        return self.asked.only_bytes or ("instructions" in row and ("tflm" in row or not self.asked.tflm))

    # -- tables

    def cores(self) -> list[str]:
        found = {core for _, core in self.results}
        return [core for core in core_names() if core in found]

    def rows(self, core: str) -> list[Result]:
        return [row for (_, c), row in self.results.items() if c == core and "left" not in row]

    def beside(self, core: str) -> list[tuple[Result, float, float]]:
        """(result, instructions and RAM as shares of TensorFlow Lite Micro's)."""
        found = []
        for row in self.rows(core):
            peer = row.get("tflm", {"left": ""})
            if "left" not in peer:
                ram = row["ram"] / (peer["arena"] + peer["stack"])
                found.append((row, row["instructions"] / peer["instructions"], ram))
        return found

    def summary(self) -> Iterator[str]:
        yield (
            "| core | files | inferences | bytes | different | beside TFLM | instructions: geometric mean"
            " | worst | line | above it | RAM: worst |"
        )
        yield "|---|--:|--:|--:|--:|--:|--:|--:|--:|--:|--:|"
        for core in self.cores():
            rows, beside = self.rows(core), self.beside(core)
            cells = [len(rows), *(sum(r[k] for r in rows) for k in ("runs", "bytes", "different"))]
            ratios = [ratio for _, ratio, _ in beside]
            mean = math.exp(sum(map(math.log, ratios)) / len(ratios)) if ratios else math.nan
            above = sum(ratio > LINE[core] for ratio in ratios)  # type: ignore[index]
            shares = f"{mean:.2f} | {max(ratios, default=math.nan):.2f} | {LINE[core]:.2f} | {above}"  # type: ignore[index]
            worst = max((ram for *_, ram in beside), default=math.nan)
            yield (
                f"| {CORES[core].title} | {' | '.join(f'{n:,}' for n in cells)}"  # type: ignore[index]
                f" | {len(beside)} | {shares} | {worst:.2f} |"
            )

    def bytes_compared(self) -> Iterator[str]:
        """Every file that ran, with and without TensorFlow Lite Micro beside it."""
        cores = self.cores()
        titles = " | ".join(CORES[core].title for core in cores)  # type: ignore[index]
        yield f"| repository | files | {titles} | bytes | different |"
        yield f"|---|--:|{'--:|' * (len(cores) + 2)}"
        rows = [row for core in cores for row in self.rows(core)]
        by: dict[str, list[Result]] = {}
        for row in rows:
            by.setdefault("/".join(row["file"].split("/")[:2]), []).append(row)
        for repository, of in [*by.items(), ("all", rows)]:
            ran = [f"{sum(row['core'] == core for row in of):,}" for core in cores]
            counts = (sum(row["bytes"] for row in of), sum(row["different"] for row in of))
            files = len({row["file"] for row in of})
            yield f"| {repository} | {files:,} | {' | '.join(ran)} | {counts[0]:,} | {counts[1]:,} |"

    def matrix(self) -> Iterator[str]:
        cores = self.cores()
        yield f"| file | {' | '.join(CORES[core].title for core in cores)} | RAM |"  # type: ignore[index]
        yield f"|---|{'--:|' * (len(cores) + 1)}"
        found: dict[str, dict[str, list[tuple[float, float]]]] = {}
        counts: dict[str, set[str]] = {}
        for core in cores:
            for row, instructions, ram in self.beside(core):
                name = _short(row["file"], grouped=True)
                found.setdefault(name, {}).setdefault(core, []).append((instructions, ram))
                counts.setdefault(name, set()).add(row["file"])
        for name in dict.fromkeys(_short(name, grouped=True) for name, _ in self.results):
            if name not in found:
                continue
            cells = [f"{max(of)[0]:.2f}" if (of := found[name].get(core)) else "" for core in cores]
            most = max(ram for of in found[name].values() for _, ram in of)
            many = f" ({len(counts[name])} files)" if len(counts[name]) > 1 else ""
            yield f"| {name}{many} | {' | '.join(cells)} | {most:.2f} |"

    def above(self) -> Iterator[str]:
        yield "| file | core | instructions | line | layer with the most | its share |"
        yield "|---|---|--:|--:|---|--:|"
        for core in self.cores():
            for row, ratio, _ in self.beside(core):
                if ratio > LINE[core]:  # type: ignore[index]
                    layer = row.get("layer", {"name": "-", "kind": "-", "share": math.nan})
                    yield (
                        f"| {_short(row['file'])} | {CORES[core].title} | {ratio:.2f} | {LINE[core]:.2f}"  # type: ignore[index]
                        f" | `{layer['name']}` ({layer['kind']}) | {layer['share']:.0%} |"
                    )

    def left(self) -> Iterator[str]:
        yield "| file | core | reason |"
        yield "|---|---|---|"
        reasons: dict[tuple[str, str], list[str]] = {}
        for (name, core), row in self.results.items():
            peer = row.get("tflm", {})
            reason = row.get("left") or ("TFLM: " + peer["left"] if "left" in peer else "")
            if reason:
                reasons.setdefault((name, reason), []).append(CORES[core].title)  # type: ignore[index]
        for (name, reason), cores in reasons.items():
            yield f"| {_short(name)} | {', '.join(cores)} | {reason} |"

    def ram(self) -> Iterator[str]:
        """Linked RAM, stack and all, against TensorFlow Lite Micro's arena, whose stack comes on top."""
        yield (
            "| core | files | below the arena | geometric mean | worst | | with a skip across scales"
            " | below half | worst | |"
        )
        yield "|---|--:|--:|--:|--:|---|--:|--:|--:|---|"
        for core in self.cores():
            found = [
                (row["ram"] / row["arena"]["bytes"], row)
                for row in self.rows(core)
                if "bytes" in row.get("arena", ())
            ]
            if not found:
                continue
            across = [(share, row) for share, row in found if row["skips"]]
            mean = math.exp(sum(math.log(share) for share, _ in found) / len(found))
            cells = f"{len(found)} | {sum(share < 1 for share, _ in found)} | {mean:.2f} | {_worst(found)}"
            cells += f" | {len(across)} | {sum(share < 0.5 for share, _ in across)} | {_worst(across)}"
            yield f"| {CORES[core].title} | {cells} |"  # type: ignore[index]

    def across(self) -> Iterator[str]:
        """The files with a skip across scales, whose RAM is to be below half of the arena."""
        cores = self.cores()
        yield f"| file | {' | '.join(CORES[core].title for core in cores)} | RAM | TFLM's arena |"  # type: ignore[index]
        yield f"|---|{'--:|' * (len(cores) + 2)}"
        files = {row["file"] for core in cores for row in self.rows(core) if row.get("skips")}
        for name in sorted(files):
            found = [self.results.get((name, core), {}) for core in cores]
            pairs = [
                (r["ram"], r["arena"]["bytes"]) if "bytes" in r.get("arena", ()) else None for r in found
            ]
            cells = " | ".join(f"{pair[0] / pair[1]:.2f}" if pair else "" for pair in pairs)
            most = max((pair for pair in pairs if pair), key=lambda pair: pair[0] / pair[1], default=None)
            last = f"{most[0]:,} | {most[1]:,}" if most else " | "
            yield f"| {_short(name)} | {cells} | {last} |"

    def not_run(self) -> Iterator[str]:
        """The files of the list that are accepted and have no result on some core."""
        yield "| file | multiply-accumulates, M | not on |"
        yield "|---|--:|---|"
        entries = json.loads(self.asked.list.read_text())
        for file in sorted(files_of(entries, self.asked.folder), key=lambda file: file.work):
            cores = [core for core in core_names() if (file.key, core) not in self.results]
            if cores:
                where = "any" if len(cores) == len(CORES) else ", ".join(CORES[core].title for core in cores)
                yield f"| {_short(file.key)} | {file.work / 1e6:,.1f} | {where} |"

    @property
    def good(self) -> bool:
        return not any(row["different"] for core in self.cores() for row in self.rows(core)) and not any(
            ratio > LINE[core]  # type: ignore[index]
            for core in self.cores()
            for _, ratio, _ in self.beside(core)
        )


def _worst(found: list[tuple[float, Result]]) -> str:
    """The greatest share and its file, as two cells."""
    if not found:
        return " | "
    share, row = max(found, key=lambda item: item[0])
    return f"{share:.2f} | {_short(row['file'])}"


def _short(name: str, grouped: bool = False) -> str:
    """A file by its repository and its own name; with `grouped` those of one operator by their folder."""
    _, repository, *rest = name.split("/")
    if grouped and "integration_tests" in rest:
        return f"{repository}: {'/'.join(rest[-3:-1])}"
    return f"{repository}: {rest[-1]}"


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("list", type=Path)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--results", type=Path, required=True)
    parser.add_argument("--time-limit", type=float, default=0.0)
    parser.add_argument("--cores", default=",".join(core_names()))
    parser.add_argument("--most-macs", type=float, default=math.inf, help="leave out files of more work")
    parser.add_argument("--only", default="", help="files with this text in their paths")
    parser.add_argument(
        "--only-bytes",
        action="store_true",
        help="compare bytes and count no instructions: several times faster",
    )
    parser.add_argument(
        "--only-arena",
        action="store_true",
        help="beside --tflm: allocate its tensors and run nothing; adds to what ran with --only-bytes",
    )
    parser.add_argument("--tflm", type=absolute, help="a checkout of tflite-micro")
    parser.add_argument("--third-party", type=absolute, help="a folder with flatbuffers, gemmlowp, ruy")
    parser.add_argument("--cmsis", type=absolute, help="a checkout of CMSIS-NN")
    parser.add_argument("--objects", type=Path, help="a folder that keeps what is compiled of them")
    parser.add_argument(
        "--sections",
        default="cores,bytes,ram,ram across scales,beside,above,left out",
        help="tables to print; `not run`, too",
    )
    parser.add_argument("--into", type=Path)
    asked = parser.parse_args()
    if asked.tflm and asked.only_bytes:
        parser.error("--tflm is beside counted instructions, --only-bytes counts none")
    if asked.tflm and not (asked.third_party and asked.cmsis and asked.objects):
        parser.error("--tflm needs --third-party, --cmsis and --objects")
    campaign = Campaign(asked)
    if asked.time_limit:
        campaign.run()
    sections = {
        "cores": campaign.summary,
        "bytes": campaign.bytes_compared,
        "ram": campaign.ram,
        "ram across scales": campaign.across,
        "beside": campaign.matrix,
        "above": campaign.above,
        "left out": campaign.left,
        "not run": campaign.not_run,
    }
    write({name: sections[name] for name in asked.sections.split(",")}, asked.into)
    return 0 if campaign.good else 1


if __name__ == "__main__":
    sys.exit(main())
