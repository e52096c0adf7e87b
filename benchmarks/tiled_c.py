"""The C of fused and tiled plans, compiled and run: the bytes that it copies, and what it computes.

    python benchmarks/tiled_c.py [--only NAME ...] [--sanitize] [--file MODEL --kib KIB]

Each network is planned fused, exported as a C99 program, compiled with gcc and every warning an error, and
run on the host from a scratchpad of its own with guard bytes around it. *Planned* are the plan's figures;
groups that the plan has in bands run as nests, which now and then move or take more (docs/nests.md). Outputs
are compared with those of unoptimised onnxruntime. Needs gcc and `pip install 'onchip[run]'`. Networks
without weights get seeded ones.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import onnx
from tiled_c_networks import NETWORKS

import onchip
from onchip.export.loops.c_program import program_of
from onchip.export.loops.lower import book_of

WARNINGS = ("-std=c99", "-Wall", "-Wextra", "-Wconversion", "-pedantic", "-Werror")
CHECKS = ("-O1", "-fsanitize=address,undefined", "-fno-sanitize-recover=all", "-DONCHIP_CHECK")
CASES = (
    ("mobilenet_v2", "zoo:mobilenet_v2@64x64", 128),
    ("mobilenet_v3_large", "zoo:mobilenet_v3_large@64x64", 128),
    ("resnet18", "zoo:resnet18@64x64", 160),
    ("shufflenet_v2", "zoo:shufflenet_v2_x1_0@64x64", 256),
    ("squeezenet1_0", "zoo:squeezenet1_0@64x64", 128),
    ("transformer block", "", 24),
    ("Llama block", "", 24),
    ("U-Net", "", 24),
    ("detector", "", 24),
    ("quantised MobileNet", "", 12),
)
HEAD = (
    "| network | budget, KiB | elements | planned bytes | copied | planned extent | scratchpad | copies"
    " | difference |"
)


def compiled(folder: Path, source: str, *, sanitize: bool) -> Path:
    """Compile a program; any warning is an error."""
    (folder / "program.c").write_text(source)
    flags = CHECKS if sanitize else ("-O2",)
    command = ["gcc", *WARNINGS, *flags, str(folder / "program.c"), "-o", str(folder / "program"), "-lm"]
    subprocess.run(command, check=True, timeout=600)
    return folder / "program"


def difference(found: np.ndarray[Any, Any], wanted: np.ndarray[Any, Any]) -> tuple[float, str]:
    """How far a result is off: relative to the largest magnitude, or the number of other integers."""
    if wanted.dtype.kind == "f":
        off = float(np.abs(found - wanted).max() / max(float(np.abs(wanted).max()), 1e-30))
        return off, f"{off:.1e}"
    other = int((found != wanted).sum())
    return float(other), f"{other} of {wanted.size:,} integers"


def row(name: str, model: str, kib: int, *, sanitize: bool, seconds: float) -> str:
    """Plan, export, compile and run a network; return its row."""
    with tempfile.TemporaryDirectory() as made:
        folder = Path(made)
        if not model:
            model = str(folder / "model.onnx")
            onnx.save(NETWORKS[name](), model)
        source = onchip.load(model, dtype="file")
        plan = onchip.plan(source, budget=kib * 1024, fuse=True, time_limit=seconds)
        program = program_of(plan, source)
        book = book_of(plan, source)
        inputs = book.engine.seeded_inputs(0)
        reference = book.engine.reference(inputs)
        ids = plan.network.tensor_id
        (folder / "constants").write_bytes(program.constants)
        (folder / "inputs").write_bytes(
            b"".join(np.ascontiguousarray(inputs[ids[tensor]]).tobytes() for tensor, _ in program.inputs)
        )
        binary = compiled(folder, program.source, sanitize=sanitize)
        ran = subprocess.run(
            [binary, folder / "constants", folder / "inputs", folder / "outputs"],
            check=True, capture_output=True, text=True, timeout=600,
        )  # fmt: skip
        told: dict[str, int] = json.loads(ran.stdout)
        data, at, worst, words = (folder / "outputs").read_bytes(), 0, 0.0, "0"
        for tensor, size in program.outputs:
            wanted = reference[ids[tensor]]
            found = np.frombuffer(data[at : at + size], wanted.dtype).reshape(wanted.shape)
            at += size
            off, said = difference(found, wanted)
            if off >= worst:
                worst, words = off, said
        kinds = {np.dtype(book.kind(t.id)).name for t in plan.network.tensors}
        assert told["copied_bytes"] == book.plan.result.dram_bytes, told
        assert told["guard_bytes_broken"] == 0, told
        moved = " (as nests)" if book.plan.result.dram_bytes != plan.result.dram_bytes else ""
        grown = " (as nests)" if told["scratchpad_bytes"] != plan.result.extent_bytes else ""
        return (
            f"| {name} | {kib} | {', '.join(sorted(kinds))} | {plan.result.dram_bytes:,}"
            f" | {told['copied_bytes']:,}{moved} | {plan.result.extent_bytes:,}"
            f" | {told['scratchpad_bytes']:,}{grown} | {told['copies']:,} | {words} |"
        )


def rows(asked: argparse.Namespace) -> Iterator[str]:
    """Yield the rows asked for."""
    cases = [(Path(asked.file).stem, asked.file, asked.kib)] if asked.file else CASES
    for name, model, kib in cases:
        if not asked.only or name in asked.only:
            yield row(name, model, kib, sanitize=asked.sanitize, seconds=asked.seconds)


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n")[0])
    parser.add_argument("--only", nargs="+", default=[])
    parser.add_argument("--sanitize", action="store_true", help="with address and undefined-behaviour checks")
    parser.add_argument("--file", help="another model")
    parser.add_argument("--kib", type=int, default=256)
    parser.add_argument("--seconds", type=float, default=20)
    asked = parser.parse_args()
    print(HEAD)
    print("|---|--:|---|--:|--:|--:|--:|--:|---|")
    start = time.perf_counter()
    for line in rows(asked):
        print(line, flush=True)
    print(f"\n{time.perf_counter() - start:.0f} s")


if __name__ == "__main__":
    main()
