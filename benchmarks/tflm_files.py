"""TFLM's arena with its own planner and with onchip's offsets, on every file that `onchip mcu` accepts.

    .venv/bin/python benchmarks/tflm_files.py benchmarks/mcu_files.json FOLDER [--only TEXT]
        [--into docs/export.md]
    .venv/bin/python benchmarks/tflm_files.py benchmarks/mcu_files_more.json FOLDER --into docs/export.md

A list and FOLDER are those of benchmarks/mcu_files.py; each list has a table of its own on the page. A file
that the reader of `onchip mcu` takes gets a copy with offsets (`onchip export FILE.tflite --to tflm`), and
both run in the interpreter of PyPI's `tflite-micro`: three inferences of the same random inputs, one after
the other, so that states go on. `head` holds tensors and scratch buffers, `total` all that the interpreter
takes. The exit code says whether all outputs are the same and no head and no total is larger.
"""

from __future__ import annotations

import argparse
import json
import re
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from page_marks import write
from tflm_arena import stderr_of

from onchip.base.errors import OnchipError
from onchip.export.tflm_model import packed
from onchip.microcontroller.int8.read import read_model

ARENA = 1 << 24
INFERENCES = 3


@dataclass(frozen=True)
class Row:
    """A file, and what TFLM reports with and without the offsets."""

    repository: str
    path: str
    head: int
    packed: int
    total: int
    packed_total: int
    same: bool
    subgraphs: int
    outputs: int


def inferences(content: bytes) -> tuple[list[Any], int, int]:
    """Return the outputs of some inferences in turn, and head and total of the arena in bytes."""
    import tflite
    from tflite_micro.python.tflite_micro import runtime

    graph = tflite.Model.GetRootAs(content, 0).Subgraphs(0)
    interpreter = runtime.Interpreter.from_bytes(content, arena_size=ARENA)
    rng = np.random.default_rng(0)
    outputs = []
    for _ in range(INFERENCES):
        for i in range(graph.InputsLength()):
            of = interpreter.get_input_details(i)
            kind = np.dtype(of["dtype"])
            if kind.kind == "f":
                given = rng.normal(size=of["shape"]).astype(kind)
            else:
                given = rng.integers(-100, 100, of["shape"]).astype(kind)
            interpreter.set_input(given, i)
        interpreter.invoke()
        outputs += [np.array(interpreter.get_output(i)) for i in range(graph.OutputsLength())]
    printed = stderr_of(interpreter.print_allocations)
    sizes = [re.search(rf"allocation {what} (\d+)", printed) for what in ("head", "total")]
    head, total = (-1 if found is None else int(found[1]) for found in sizes)
    return outputs, head, total


def row_of(repository: str, path: str, file: Path) -> Row | str:
    """Return the row of a file, or the reason why there is none."""
    import tflite

    content = file.read_bytes()
    try:
        read_model(file)
    except OnchipError as refused:
        return f"onchip mcu: {refused}"
    model = tflite.Model.GetRootAs(content, 0)
    try:
        before, head, total = inferences(content)
    except Exception as problem:  # TFLM's own refusals are runtime errors of several kinds
        return f"TFLM: {str(problem)[:200]}"
    after, packed_head, packed_total = inferences(packed(content, str(file), time_limit=20.0))
    same = all(np.array_equal(a, b) for a, b in zip(before, after, strict=True))
    return Row(
        repository, path, head, packed_head, total, packed_total, same,
        model.SubgraphsLength(), model.Subgraphs(0).OutputsLength(),
    )  # fmt: skip


def lines(rows: list[Row], refused: int) -> list[str]:
    """Return the table: a row for each file whose arena shrinks, one for all others of a repository."""
    out = [
        "| file | repository | subgraphs | outputs | TFLM head | with the offsets | less | results |",
        "|---|---|--:|--:|--:|--:|--:|---|",
    ]
    for r in rows:
        if r.packed != r.head or r.subgraphs > 1:
            out.append(
                f"| {r.path} | {r.repository} | {r.subgraphs} | {r.outputs} | {r.head:,} | {r.packed:,} |"
                f" {1 - r.packed / max(r.head, 1):.1%} | {'the same' if r.same else 'DIFFER'} |"
            )
    for repository in dict.fromkeys(r.repository for r in rows):
        rest = [r for r in rows if r.repository == repository and r.packed == r.head and r.subgraphs == 1]
        if rest:
            same = "the same" if all(r.same for r in rest) else "DIFFER"
            out.append(
                f"| {len(rest)} more | {repository} | 1 | 1 to {max(r.outputs for r in rest)} |"
                f" {min(r.head for r in rest):,} to {max(r.head for r in rest):,} | equal | 0.0% | {same} |"
            )
    less = sum(r.packed < r.head for r in rows)
    more = sum(r.packed > r.head or r.packed_total > r.total for r in rows)
    also = f"; {refused} more that TFLM does not run, with or without offsets" if refused else ""
    out += ["", f"{len(rows)} files; a smaller head in {less}, a larger head or total in {more}{also}."]
    return out


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n")[0])
    parser.add_argument("list", type=Path)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--only", default="")
    parser.add_argument("--into", type=Path)
    args = parser.parse_args()
    rows, right, refused = [], True, 0
    for entry in json.loads(args.list.read_text()):
        repository, path = entry["repository"], entry["path"]
        if not path.endswith(".tflite") or args.only not in f"{repository}/{path}":
            continue
        file = args.folder / repository.replace("/", "+") / path
        found = row_of(repository, path, file) if file.exists() else "not there"
        if isinstance(found, str):
            print(f"{path}: {found}", file=sys.stderr)
            refused += found.startswith("TFLM:")
            continue
        rows.append(found)
        right = right and found.same and found.packed <= found.head and found.packed_total <= found.total
        print(f"{path}: {found.head} -> {found.packed}, {found.total} -> {found.packed_total}, {found.same}",
              file=sys.stderr, flush=True)  # fmt: skip
    write({f"tflm {args.list.stem}": lambda: iter(lines(rows, refused))}, args.into)
    return 0 if right else 1


if __name__ == "__main__":
    raise SystemExit(main())
