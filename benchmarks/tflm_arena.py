"""TFLM's arena with its own planner, and with onchip's offsets in the model.

    python benchmarks/tflm_arena.py MODEL.tflite ...

Both columns are what TFLM's recording allocator reports after an inference in the real interpreter (PyPI
`tflite-micro`): `head` holds the tensors, `total` everything. Outputs are compared on random inputs; the last
columns say what executing the plan operator by operator in its own bytes found.
"""

from __future__ import annotations

import argparse
import os
import re
import sys
import tempfile
from pathlib import Path
from typing import Any

import numpy as np

import onchip


def inference(content: bytes, seed: int) -> tuple[list[Any], int, int]:
    """Outputs, and the head and all of the arena in bytes."""
    import tflite
    from tflite_micro.python.tflite_micro import runtime

    graph = tflite.Model.GetRootAs(content, 0).Subgraphs(0)
    interpreter = runtime.Interpreter.from_bytes(content)
    rng = np.random.default_rng(seed)
    for i in range(graph.InputsLength()):
        of = interpreter.get_input_details(i)
        interpreter.set_input(rng.integers(-128, 128, of["shape"]).astype(of["dtype"]), i)
    interpreter.invoke()
    printed = stderr_of(interpreter.print_allocations)
    head, total = (
        int(found[1]) if (found := re.search(rf"allocation {what} (\d+)", printed)) else -1
        for what in ("head", "total")
    )
    return [interpreter.get_output(i) for i in range(graph.OutputsLength())], head, total


def stderr_of(call: Any) -> str:
    """What native code writes to the process's stderr."""
    sys.stderr.flush()
    with tempfile.TemporaryFile() as sink:
        kept = os.dup(2)
        os.dup2(sink.fileno(), 2)
        try:
            call()
        finally:
            os.dup2(kept, 2)
            os.close(kept)
        sink.seek(0)
        return sink.read().decode()


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("models", nargs="+", type=Path)
    parser.add_argument("--in-place", action="store_true", help="plan with --in-place")
    options = parser.parse_args()
    print(
        "| model | TFLM head | with the plan | less | TFLM total | with the plan | same outputs | executed |"
    )
    print("|---|--:|--:|--:|--:|--:|---|---|")
    for path in options.models:
        extra = {"in_place": True} if options.in_place else {}
        plan = onchip.plan(path, "tflm", "MP", fuse=False, **extra)
        before, head, total = inference(path.read_bytes(), 0)
        after, new_head, new_total = inference(plan.export("tflm"), 0)
        same = all(np.array_equal(a, b) for a, b in zip(before, after, strict=True))
        report = plan.run()
        print(
            f"| {path.stem} | {head:,} | {new_head:,} | {1 - new_head / head:.1%} | {total:,} | {new_total:,}"
            f" | {'yes' if same else 'NO'} | {report.tensors} tensors, "
            f"{'bit for bit' if report.bit_exact else 'differ'} |",
            flush=True,
        )


if __name__ == "__main__":
    main()
