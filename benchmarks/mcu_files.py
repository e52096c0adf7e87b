"""Files of public repositories: whether `onchip mcu` takes them, in what RAM, and whether numbers are right.

    .venv/bin/python benchmarks/mcu_files.py LIST.json FOLDER [--inputs 1000] [--seconds 30] [--only TEXT]
        [--method chains] [--into docs/mcu-files.md] [--keep ROWS.jsonl]

LIST names for each file its repository, commit, path and SHA-256 (benchmarks/mcu_files.json is that of the
docs); FOLDER/OWNER+NAME/PATH is the file. Each is planned as by `onchip mcu` (the tables of the docs: with
`--method chains`), written as C, built for this machine, and run on random inputs, one process for all of
them, so that states go from one to the next; every output byte is compared with TensorFlow Lite Micro's, or
with LiteRT's reference kernels where that does not run it. Of an ONNX file every byte is compared with the
reference of the docs, and how far onnxruntime's numbers are off is told. `--write FOLDER` makes the list of
all that lies there and has bytes between its operators. `--keep` adds every row to a file as it is made; a
row that is there with as many seconds of its interpreter is not made again. Prints the tables in Markdown, or
puts them into a page. The exit code says whether every byte was right.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterable, Iterator
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import get_args

import numpy as np
from mcu_judges import Array, Judge, OnnxJudge
from page_marks import write

from onchip.base.errors import OnchipError
from onchip.machines.board import Board
from onchip.microcontroller.emulator.verify import inputs_of
from onchip.microcontroller.int8.model import Int8Model
from onchip.microcontroller.int8.onnx_qdq.read import onnx_model_of
from onchip.microcontroller.int8.read import model_of
from onchip.microcontroller.int8.reference import Session
from onchip.microcontroller.network import network_of, states_of
from onchip.microcontroller.project import sources_of
from onchip.microcontroller.project.write import project_files, write_project
from onchip.microcontroller.result.row_choice import RowPlans, planned_by_method
from onchip.microcontroller.segments import SegmentOptions
from onchip.microcontroller.segments.options import Method
from onchip.readers.tflite_graph import parse

ROOM = 1 << 26


@dataclass(frozen=True)
class Row:
    """A file, and what became of it."""

    repository: str
    commit: str
    path: str
    reason: str = ""
    ram: int = 0
    held: int = 0
    inputs: int = 0
    bytes: int = 0
    different: int = 0
    judge: str = ""
    left: str = ""
    apart: int = 0
    most: int = 0
    same_class: int = 0


def outputs_by_c(
    model: Int8Model, inputs: list[Array], folder: Path, method: Method
) -> tuple[int, int, bytes]:
    """(RAM of the plan, of them states, what the C makes of the inputs)."""
    options, states = SegmentOptions(method=method), states_of(model)
    found = planned_by_method(model, network_of(model), ROOM, options, states, (), RowPlans())
    sources = sources_of(found.plan, model)
    board = Board("bench", "cortex-m4", ROOM, ROOM)
    write_project(project_files(sources, model, board), folder / "net")
    subprocess.run(["make", "-s", "CC=gcc", "OPTIMISE=-O2", "example"], cwd=folder / "net", check=True)
    given = b"".join(x.tobytes() for x in inputs)
    made = subprocess.run(
        ["./example"], cwd=folder / "net", input=given, capture_output=True, check=True
    ).stdout
    held = sum(len(state.initial) for state in model.states)
    return found.plan.result.extent_bytes, held, made


def judged(entry: dict[str, str], folder: Path, asked: argparse.Namespace) -> Row:
    path = folder / entry["repository"].replace("/", "+") / entry["path"]
    content = path.read_bytes()
    if hashlib.sha256(content).hexdigest() != entry["sha256"]:
        raise SystemExit(f"{path}: is another file than the list's")
    where = entry["repository"], entry["commit"], entry["path"]
    try:
        read = onnx_model_of if path.suffix == ".onnx" else model_of
        model = read(content, name=path.stem, where=path.name)
        with tempfile.TemporaryDirectory() as there:
            return _compared(where, content, model, Path(there), asked)
    except OnchipError as problem:
        reason = str(problem).removeprefix(f"{path.name}: ").partition("; supported are")[0]
        return Row(*where, reason=reason)


def _compared(
    where: tuple[str, str, str], content: bytes, model: Int8Model, folder: Path, asked: argparse.Namespace
) -> Row:
    judge = OnnxJudge(content, model) if where[2].endswith(".onnx") else Judge(content, model)
    inputs = inputs_of(model, asked.inputs, seed=1)
    expected: list[list[Array]] = []
    sizes = [model.tensors[t].bytes for t in model.inputs]
    began = time.perf_counter()
    for x in inputs:
        expected.append([y.copy() for y in judge.invoke(np.split(x.reshape(-1), np.cumsum(sizes)[:-1]))])
        if time.perf_counter() - began > asked.seconds and len(expected) >= asked.least:
            break
    inputs = inputs[: len(expected)]
    ram, held, made = outputs_by_c(model, inputs, folder, asked.method)
    outputs = list(dict.fromkeys(model.outputs))
    each = [model.tensors[t].bytes for t in outputs]
    assert len(made) == sum(each) * len(inputs)
    parts = np.frombuffer(made, np.int8).reshape(len(inputs), -1)
    different = 0
    for ours, theirs in zip(parts, expected, strict=True):
        found = dict(zip(outputs, np.split(ours, np.cumsum(each)[:-1]), strict=True))
        different += sum(judge.expected(t, found[t], y) for t, y in zip(model.outputs, theirs, strict=True))
    if different:
        session = Session(model)
        wrong = sum(
            session.bytes_of(model, x) != ours.tobytes() for x, ours in zip(inputs, parts, strict=True)
        )
        print(f"{model.name}: {different} different; {wrong} outputs not the reference's", file=sys.stderr)
    left = [label for original in model.originals.values() for label in original.through]
    return Row(
        *where,
        ram=ram,
        held=held,
        inputs=len(inputs),
        bytes=len(made),
        different=different,
        judge=judge.name,
        left=", ".join(dict.fromkeys(left)),
        **(
            {"apart": judge.apart, "most": judge.most, "same_class": judge.same_class}
            if isinstance(judge, OnnxJudge)
            else {}
        ),
    )


def grouped(rows: Iterable[Row]) -> Iterator[Row]:
    """The rows, those of a folder of more than a dozen files as one: the most RAM, the fewest inputs."""
    by: dict[tuple[str, Path], list[Row]] = {}
    for row in rows:
        by.setdefault((row.repository, Path(row.path).parent), []).append(row)
    for (_, folder), same in by.items():
        if len(same) < 5 or "integration_tests" not in str(folder):
            yield from same
            continue
        yield replace(
            same[0],
            path=f"{folder}/*.tflite ({len(same)} files)",
            ram=max(row.ram for row in same),
            inputs=min(row.inputs for row in same),
            bytes=sum(row.bytes for row in same),
            different=sum(row.different for row in same),
        )


class Tables:
    def __init__(self, asked: argparse.Namespace) -> None:
        self.asked = asked
        self.rows: list[Row] = []

    def all_rows(self) -> list[Row]:
        if not self.rows:
            entries = json.loads(self.asked.list.read_text())
            for entry in entries:
                if self.asked.only in entry["path"]:
                    self.rows.append(self.row(entry))
        return self.rows

    def row(self, entry: dict[str, str]) -> Row:
        """The row of a file: one that is kept, of as long a run, or a new one."""
        keep: Path | None = self.asked.keep
        lines = keep.read_text().splitlines() if keep is not None and keep.exists() else []
        kept = [(float(line["seconds"]), Row(**line["row"])) for line in map(json.loads, lines)]
        of = [
            (seconds, row)
            for seconds, row in kept
            if (row.repository, row.path) == (entry["repository"], entry["path"])
            and (seconds >= self.asked.seconds or row.inputs >= self.asked.inputs or row.reason)
        ]
        if of:
            return of[-1][1]
        made = judged(entry, self.asked.folder, self.asked)
        print(made, file=sys.stderr, flush=True)
        if keep is not None:
            with keep.open("a") as file:
                file.write(json.dumps({"seconds": self.asked.seconds, "row": asdict(made)}) + "\n")
        return made

    def accepted(self) -> Iterator[str]:
        yield "| file | repository | RAM | inputs | bytes | different | judge |"
        yield "|---|---|--:|--:|--:|--:|---|"
        for row in grouped(row for row in self.all_rows() if not row.reason and row.judge != OnnxJudge.name):
            left = f" (left to the caller: {row.left})" if row.left else ""
            cells = " | ".join(f"{n:,}" for n in (row.ram, row.inputs, row.bytes, row.different))
            yield f"| {row.path}{left} | {row.repository} | {cells} | {row.judge} |"

    def onnx(self) -> Iterator[str]:
        yield (
            "| file | repository | RAM | inputs | bytes | not the reference's | not onnxruntime's"
            " | by at most | same greatest |"
        )
        yield "|---|---|--:|--:|--:|--:|--:|--:|--:|"
        for row in self.all_rows():
            if row.judge == OnnxJudge.name:
                left = f" (left to the caller: {row.left})" if row.left else ""
                counts = (row.ram, row.inputs, row.bytes, row.different, row.apart, row.most, row.same_class)
                cells = " | ".join(f"{n:,}" for n in counts)
                yield f"| {row.path}{left} | {row.repository} | {cells} |"

    def refused(self) -> Iterator[str]:
        yield "| file | repository | reason |"
        yield "|---|---|---|"
        for row in self.all_rows():
            if row.reason:
                yield f"| {row.path} | {row.repository} | {row.reason} |"

    def repositories(self) -> Iterator[str]:
        yield (
            "| repository | commit | files | accepted | refused | with 1,000 inputs | bytes compared"
            " | different |"
        )
        yield "|---|---|--:|--:|--:|--:|--:|--:|"
        rows = self.all_rows()
        for repository, commit in dict.fromkeys((row.repository, row.commit) for row in rows):
            of = [row for row in rows if (row.repository, row.commit) == (repository, commit)]
            yield f"| {repository} | {commit[:12]} | {_inputs(of)} |"
        yield f"| all | | {_inputs(rows)} |"

    def summary(self) -> Iterator[str]:
        rows = self.all_rows()
        yield "| repository | commit | files | accepted | bytes compared | different |"
        yield "|---|---|--:|--:|--:|--:|"
        for repository in dict.fromkeys(row.repository for row in rows):
            of = [row for row in rows if row.repository == repository]
            commits = {row.commit[:12] for row in of}
            at = commits.pop() if len(commits) == 1 else f"{len(commits)} commits"
            yield f"| {repository} | {at} | {_counts(of)} |"
        yield f"| all | | {_counts(rows)} |"


def _inputs(rows: list[Row]) -> str:
    """Files, accepted, refused, with a thousand inputs and more, bytes compared, and different ones."""
    good = [row for row in rows if not row.reason]
    many = sum(row.inputs >= 1000 for row in good)
    made, different = sum(row.bytes for row in good), sum(row.different for row in good)
    return f"{len(rows)} | {len(good)} | {len(rows) - len(good)} | {many} | {made:,} | {different:,}"


def _counts(rows: list[Row]) -> str:
    good = [row for row in rows if not row.reason]
    made, different = sum(row.bytes for row in good), sum(row.different for row in good)
    return f"{len(rows)} | {len(good)} | {made:,} | {different:,}"


def listed(folder: Path, commits: dict[str, str]) -> list[dict[str, str]]:
    """Every different file of the folder with int8 or uint8 between its operators."""
    found: dict[str, dict[str, str]] = {}
    for path in sorted(folder.rglob("*.tflite")):
        repository, _, inside = path.relative_to(folder).as_posix().partition("/")
        content = path.read_bytes()
        try:
            graph = parse(content, where=path.name, states=True)
        except OnchipError as problem:
            print(problem, file=sys.stderr)
            continue
        made = {graph.tensors[t].element for node in graph.nodes for t in node.outputs}
        if repository in commits and made & {2, 3, 5}:
            digest = hashlib.sha256(content).hexdigest()
            row = {"repository": repository.replace("+", "/"), "commit": commits[repository]}
            found.setdefault(digest, {**row, "path": inside, "sha256": digest})
    return list(found.values())


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("list", type=Path)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--inputs", type=int, default=1000)
    parser.add_argument("--least", type=int, default=50, help="inputs, however long they take")
    parser.add_argument("--seconds", type=float, default=30.0, help="of the interpreter, for each file")
    parser.add_argument("--keep", type=Path, help="a file of rows that were made before")
    parser.add_argument("--method", choices=get_args(Method), default="best", help="as of onchip mcu")
    parser.add_argument("--only", default="", help="files with this text in their paths")
    parser.add_argument("--write", type=Path, help="commits by folder; writes the list instead")
    parser.add_argument(
        "--summary", action="store_true", help="only a table of repositories, of the list's name"
    )
    parser.add_argument("--into", type=Path)
    asked = parser.parse_args()
    if asked.write:
        rows = listed(asked.folder, json.loads(asked.write.read_text()))
        asked.list.write_text(json.dumps(rows, indent=1) + "\n")
        return 0
    tables = Tables(asked)
    sections = {
        "repositories": tables.repositories,
        "accepted": tables.accepted,
        "onnx": tables.onnx,
        "refused": tables.refused,
    }
    if asked.summary:
        sections = {asked.list.stem.removeprefix("mcu_files_"): tables.summary}
    write(sections, asked.into)
    return int(any(row.different for row in tables.all_rows()))


if __name__ == "__main__":
    sys.exit(main())
