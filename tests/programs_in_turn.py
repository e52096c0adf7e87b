"""Programs of plans, compiled and run beside onnxruntime; those of two threads one after the other, too.

Where a step and a transfer may overlap, real threads run them in one of the two orders, and mostly in the
same one. A program in turn has no threads: the channel's transfers come as late as the steps let them, or as
early. What one of these does too soon the other one overtakes, and a wrong number of what is waited for
gives wrong outputs every time.
"""

from __future__ import annotations

import json
import os
import subprocess
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from onchip.export.loops.c_program import Made, program_of
from onchip.export.loops.lower import book_of
from onchip.export.threads.c_threads import threads_of
from onchip.plans import Plan
from onchip.readers.source import Source

__all__ = ["compared", "in_turn", "loops_ran", "turns_ran"]

SERVE = """
/* The transfers that may come, up to so many of all. */
static uint32_t piece_now;
static void serve(uint32_t most)
{
    while (piece_now < PIECES && atomic_load(&transfers_over) < most) {
        const struct pieces *p = &all_pieces[piece_now];
        if (atomic_load(&steps_over) < p->steps) return;
        for (uint32_t j = 0; j < p->n1; ++j) {
            unsigned char *there = dram + p->dram + j * p->far1, *here = pad + p->pad + j * (ix)p->near1;
            for (uint32_t i = 0; i < p->n0; ++i, there += p->far0, here += p->near0) {
                if (p->stored) store_piece(there, here, p->bytes); else load_piece(here, there, p->bytes);
            }
        }
        copied += (uint64_t)p->bytes * p->n0 * p->n1;
        ++piece_now;
        if (p->ends) atomic_fetch_add(&transfers_over, 1);
    }
}
static void serve_all(void) {}

"""
WAIT = """static void serve(uint32_t most);
static inline void wait_for(_Atomic uint32_t *over, uint32_t count)
{
    if (over != &transfers_over) return;
    serve(getenv("EARLY") != NULL ? UINT32_MAX : count);
    if (atomic_load(over) < count) { puts("steps and transfers wait for each other"); exit(9); }
}
"""


def in_turn(text: str) -> str:
    """Return a program of two threads as one of one thread; DRAM begins with bytes that are no numbers."""
    begin = text.index("static inline void wait_for(")
    end = text.index("\n}\n", begin) + 3
    text = text[:begin] + WAIT + text[end:]
    begin, end = text.index("/* The channel: every transfer"), text.index("static void pin(int core)")
    text = text[:begin] + SERVE + text[end:]
    assert text.count("memset(dram, 0, room);") == 1
    return text.replace("memset(dram, 0, room);", "memset(dram, 0xFF, room);")


def compared(made: Made, wanted: Mapping[str, np.ndarray[Any, Any]], data: bytes) -> float:
    """Return the largest difference of outputs over their magnitude, infinite with one that is no number."""
    at, most = 0, 0.0
    for name, size in made.outputs:
        one = wanted[name].reshape(-1)
        found = np.frombuffer(data[at : at + size], one.dtype)
        at += size
        off = np.abs(found - one).max() / (np.abs(one).max() or 1)
        most = max(most, float(off)) if np.isfinite(found).all() else float("inf")
    return most


def _files(folder: Path, made: Made, plan: Plan, model: Source) -> dict[str, np.ndarray[Any, Any]]:
    """Write constants and inputs of seed 3; return the outputs of onnxruntime."""
    book = book_of(plan, model)
    inputs, ids = book.engine.seeded_inputs(3), plan.network.tensor_id
    (folder / "constants").write_bytes(made.constants)
    (folder / "inputs").write_bytes(b"".join(inputs[ids[name]].tobytes() for name, _ in made.inputs))
    reference = book.engine.reference(inputs)
    return {name: reference[ids[name]] for name, _ in made.outputs}


def _told(folder: Path, more: Mapping[str, str]) -> dict[str, int]:
    done = subprocess.run(
        ["./program", "constants", "inputs", "outputs"],
        cwd=folder, capture_output=True, text=True, timeout=300, env=dict(os.environ) | dict(more),
    )  # fmt: skip
    assert done.returncode == 0, done.stdout + done.stderr
    told: dict[str, int] = json.loads(done.stdout)
    return told


def loops_ran(folder: Path, plan: Plan, model: Source, *flags: str) -> None:
    """Compile and run a plan's C of one thread; hold its outputs and bytes against onnxruntime's, the plan's.

    It stops at an element that is read or written outside of its place.
    """
    made = program_of(plan, model)
    (folder / "program.c").write_text(made.source)
    wanted = _files(folder, made, plan, model)
    command = ["gcc", "-std=c99", "-w", "-DONCHIP_CHECK", *flags, "program.c", "-o", "program", "-lm"]
    subprocess.run(command, cwd=folder, check=True, timeout=300)
    told = _told(folder, {})
    off = compared(made, wanted, (folder / "outputs").read_bytes())
    assert off <= 1e-4, f"C of one thread: {off:.1e}"
    assert told["copied_bytes"] == book_of(plan, model).plan.result.dram_bytes


def turns_ran(folder: Path, plan: Plan, model: Source, *flags: str) -> None:
    """Compile a plan's program of two threads as one in turn, and run it with a late and an early channel."""
    made = threads_of(plan, model)
    (folder / "program.c").write_text(in_turn(made.source))
    wanted = _files(folder, made, plan, model)
    command = ["gcc", "-std=gnu11", "-w", "-march=native", "-pthread", "-Wno-psabi", *flags]
    subprocess.run([*command, "program.c", "-o", "program", "-lm"], cwd=folder, check=True, timeout=300)
    for name, more in (("late", {}), ("early", {"EARLY": "1"})):
        told = _told(folder, more)
        off = compared(made, wanted, (folder / "outputs").read_bytes())
        assert off <= 1e-4, f"the channel {name}: {off:.1e}"
        assert told["copied_bytes"] == plan.result.dram_bytes
        assert told["transfers"] == len(made.order.transfers)
        assert told["steps"] == len(made.order.steps)
