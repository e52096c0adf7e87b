"""The arena that TensorFlow Lite Micro allocates for a file, from its interpreter (PyPI `tflite-micro`).

The interpreter runs in a separate process: it prints to the process's stderr, and a damaged file may crash
it.
"""

from __future__ import annotations

import re
import subprocess
from dataclasses import dataclass

from onchip.base.child import environment, interpreter
from onchip.base.guard import dies_with_us

__all__ = ["Arena", "tflm_arena"]

SECONDS = 120.0

_ASK = """
import sys
from tflite_micro.python.tflite_micro import runtime
interpreter = runtime.Interpreter.from_bytes(sys.stdin.buffer.read())
interpreter.invoke()
interpreter.print_allocations()
"""


@dataclass(frozen=True, slots=True)
class Arena:
    """The bytes of the whole arena, and of its head, which holds the tensors."""

    total: int
    head: int


def tflm_arena(content: bytes) -> Arena | str:
    """Return the arena of the `.tflite` file with these bytes, or a sentence why there is none."""
    try:
        ran = subprocess.run(
            [*interpreter(), "-c", _ASK],
            env=environment(),
            input=content,
            capture_output=True,
            timeout=SECONDS,
            check=False,
            preexec_fn=dies_with_us(),
        )
    except subprocess.TimeoutExpired:
        return f"the interpreter did not answer within {SECONDS:.0f} s"
    printed = ran.stderr.decode(errors="replace")
    if "No module named 'tflite_micro" in printed:
        return "tflite-micro is not installed: pip install tflite-micro"
    found = [re.search(rf"allocation {what} (\d+)", printed) for what in ("total", "head")]
    if ran.returncode or None in found:
        lines = [line for line in printed.splitlines() if line.strip()]
        return f"the interpreter refuses the file: {lines[0] if lines else 'no reason given'}"
    total, head = (int(match[1]) for match in found if match is not None)
    return Arena(total, head)
