"""Deeploy's own `Tiler.minimalloc` with onchip's drop-in in MiniMalloc's place.

    cmake -S native -B build/native && cmake --build build/native --target minimalloc
    git clone https://github.com/pulp-platform/Deeploy
    .venv/bin/python benchmarks/peers/deeploy_minimalloc.py --deeploy Deeploy --programs build/native

The method is taken out of Deeploy's source file as it is, and gets objects with the fields that it reads:
memory blocks with a name and a lifetime, buffers with a shape and a type, a context that looks them up. It
writes its table, starts `$MINIMALLOC_INSTALL_DIR/minimalloc` and reads the addresses back, on the live ranges
of built-in networks and at random. Every answer is validated, and what cannot fit has to be reported.
"""

from __future__ import annotations

import argparse
import ast
import csv
import os
import random
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np

import onchip
from onchip.comparison.baselines.whole_life import lives
from onchip.planners.packing import Buffer, fault, minimise
from onchip.planners.placement import Problem

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
from page_marks import write

SOURCE = "Deeploy/TilingExtension/TilerExtension.py"
NETWORKS = ("squeezenet1_0", "mobilenet_v2", "googlenet", "resnet50", "densenet121", "inception_v3")


class TransientBuffer(SimpleNamespace):
    """A buffer of known bytes, as Deeploy's class of that name."""


def method_of(checkout: Path) -> Callable[..., Any]:
    """Return `Tiler.minimalloc`, compiled from Deeploy's file alone."""
    tree = ast.parse((checkout / SOURCE).read_text())
    found = next(
        node for node in ast.walk(tree) if isinstance(node, ast.FunctionDef) and node.name == "minimalloc"
    )
    names: dict[str, Any] = {
        "csv": csv, "os": os, "np": np, "subprocess": subprocess, "TransientBuffer": TransientBuffer,
        "log": SimpleNamespace(error=lambda line: None),
    }  # fmt: skip
    exec(compile(ast.Module([found], []), SOURCE, "exec"), names)
    return names["minimalloc"]  # type: ignore[no-any-return]


def asked(method: Callable[..., Any], buffers: list[Buffer], capacity: int, folder: str) -> list[int] | None:
    """Return the addresses that Deeploy ends up with, None if it reports that there are none."""
    blocks = [
        SimpleNamespace(name=f"block_{i}", lifetime=(b.lower, b.upper - 1), _addrSpace=None)
        for i, b in enumerate(buffers)
    ]
    kinds = [TransientBuffer(size=b.size) for b in buffers]
    tensors = [
        SimpleNamespace(shape=(b.size,), _type=SimpleNamespace(referencedType=SimpleNamespace(typeWidth=8)))
        for b in buffers
    ]
    known = {block.name: kinds[i] if i % 3 == 0 else tensors[i] for i, block in enumerate(blocks)}
    tiler = SimpleNamespace(_minimalloc_input=f"{folder}/input", _minimalloc_output=f"{folder}/output")
    context = SimpleNamespace(lookup=known.__getitem__)
    try:
        made = method(tiler, blocks, context, None, capacity, "L1")
    except subprocess.CalledProcessError:
        return None
    return [int(block._addrSpace[0]) for block in made]


def table(method: Callable[..., Any]) -> Iterator[str]:
    """Yield the lines of the table."""
    rng = random.Random(0)
    cases: dict[str, Sequence[Buffer]] = {}
    for name in NETWORKS:
        network = onchip.load(f"zoo:{name}").network
        cases[name] = lives(Problem.of(network), network.order)[0]
    for count in (10, 40, 120):
        cases[f"{count} at random"] = [
            Buffer(t := rng.randrange(count), t + rng.randrange(1, 1 + count // 2), rng.randrange(1, 999))
            for _ in range(count)
        ]
    yield "| live ranges | buffers | capacity | addresses in Deeploy | one byte less |"
    yield "|---|--:|--:|---|---|"
    for name, buffers in cases.items():
        least = minimise(buffers, time_limit=20.0)
        with tempfile.TemporaryDirectory() as folder:
            found = asked(method, list(buffers), least.bytes, folder)
            less = asked(method, list(buffers), least.lower_bound - 1, folder)
        wrong = "none" if found is None else fault(buffers, found, least.bytes) or "valid"
        refused = "reported" if less is None else "PACKED"
        yield f"| {name} | {len(buffers)} | {least.bytes:,} | {wrong} | {refused} |"


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n")[0])
    parser.add_argument("--deeploy", required=True, type=Path)
    parser.add_argument("--programs", required=True, type=Path)
    parser.add_argument("--into", type=Path)
    args = parser.parse_args()
    os.environ["MINIMALLOC_INSTALL_DIR"] = str(args.programs)
    method = method_of(args.deeploy)
    write({"deeploy": lambda: table(method)}, args.into)


if __name__ == "__main__":
    main()
