"""Steps by themselves: programs of one operator in one step, run by two threads, for the rates of a chip.

The operators are none of those of `time_real.py`. Every program is compiled so that each step notes when it
begins and ends; the least time of many runs is taken. Of products the law counts cycles, of other operators
vector operations for each element.
"""

from __future__ import annotations

import json
import math
import statistics
import subprocess
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import onnx
from tiled_c_networks import Graph
from time_known_values import program_of

import onchip
from onchip.check import certify
from onchip.check.nest_clock import work_of_axes
from onchip.export.loops.lower import book_of
from onchip.export.threads.c_threads import MadeThreads, threads_of
from onchip.export.threads.lanes import VECTORS
from onchip.export.threads.operands import ROWS_HIGH
from onchip.machines.tile_rates import ArraySide, Channel, TileRates
from onchip.network.axes import axes_of
from onchip.plans import Group, Leaf, Nest, Plan, PlanChip
from onchip.readers.source import Source

__all__ = [
    "ELEMENTS",
    "PRODUCTS",
    "TINY",
    "Alone",
    "Step",
    "built",
    "fitted_array",
    "noted",
    "ran",
    "sides_here",
]

FLAGS = ("-std=gnu11", "-O3", "-march=native", "-pthread", "-Wall", "-Wextra", "-Wno-psabi", "-Werror")
MOST_BLOCK = 64
"""Cycles of a block that are tried."""
ANY = TileRates(10**9, (Channel(10**10),), 0, (ArraySide("out", 8), ArraySide("out", 8)), own_operands=True)
"""Any chip: a plan of one step is the same on all."""


@dataclass(frozen=True)
class Step:
    """A step alone: by the law the cycles of its products, its blocks of outputs and its vector operations.

    It takes so many nanoseconds at least.
    """

    name: str
    cycles: int
    blocks: int
    full: bool
    """True if what is loaded for all lanes serves all rows of a block: not of one row, or depthwise."""
    vector: int
    nanoseconds: float


def matmul(rows: int, columns: int, inner: int) -> onnx.ModelProto:
    g = Graph(20)
    return g.model([rows, inner], g.add("MatMul", ["x", g.weight(inner, columns)]))


def conv(
    channels: int, filters: int, height: int, width: int, kernel: int, groups: int = 1
) -> onnx.ModelProto:
    g = Graph(21)
    made = g.conv("x", channels, filters, kernel, groups=groups)
    return g.model([1, channels, height, width], made)


def element(kind: str, rows: int, columns: int) -> onnx.ModelProto:
    g = Graph(22)
    if kind == "norm":
        return g.model([rows, columns], g.norm("x", columns))
    if kind == "softmax":
        return g.model([rows, columns], g.add("Softmax", ["x"], axis=-1))
    return g.model(
        [rows, columns], g.add("Mul", ["x", g.add("Sigmoid", ["x"])] if kind == "silu" else ["x", "x"])
    )


PRODUCTS = {
    **{
        f"product {m} x {n} x {k}": matmul(m, n, k)
        for m, n, k in (
            (32, 48, 72), (56, 64, 88), (80, 80, 104), (48, 112, 144), (72, 32, 168), (112, 64, 56),
            (16, 96, 200), (1, 176, 152), (1, 96, 112), (64, 48, 20), (40, 64, 12), (48, 32, 32),
        )
    },
    **{
        f"convolution {o} of {c}, {h} x {w}, {k} x {k}": conv(c, o, h, w, k)
        for c, o, h, w, k in (
            (24, 40, 6, 24, 3), (8, 56, 9, 30, 3), (40, 16, 5, 16, 3), (56, 72, 4, 30, 1),
            (104, 24, 6, 24, 1), (12, 48, 4, 24, 1), (24, 32, 5, 16, 1),
        )
    },
    **{
        f"depthwise {c}, {h} x {w}": conv(c, c, h, w, 3, c)
        for c, h, w in ((40, 6, 30), (24, 9, 24), (56, 4, 16))
    },
}  # fmt: skip
ELEMENTS = {
    f"{kind} {m} x {n}": element(kind, m, n)
    for kind, m, n in (
        ("product with itself", 24, 80), ("product with itself", 48, 112), ("silu", 24, 144),
        ("softmax", 40, 80),        ("softmax", 24, 176), ("norm", 40, 112), ("norm", 24, 176),
    )
}  # fmt: skip
TINY = element("product with itself", 1, 16)


def sides_here() -> tuple[ArraySide, ArraySide]:
    """Return the sides of this machine's array: a block's rows, and the lanes of programs compiled here."""
    asked = f"{VECTORS}\nLANES"
    done = subprocess.run(
        ["gcc", *FLAGS, "-E", "-P", "-x", "c", "-"], input=asked, capture_output=True, text=True, check=True
    )
    return ArraySide("out", ROWS_HIGH), ArraySide("out", int(done.stdout.split()[-1]))


def one_step(source: Source) -> Plan:
    """Return the plan of a network of one operator, all of it in one step."""
    network = source.network
    chip = PlanChip("step", 64, tiles=ANY)
    [op] = network.operators
    names = [network.tensors[t].name for t in dict.fromkeys((*op.inputs, *op.outputs))]
    group = Group("g", (op.name,), 0, tiling=Nest((Leaf(op.name),)))
    program, groups = program_of(network, [group], [names], [[]], chip)
    return certify(
        network, chip, 1 << 30, program, groups=groups, status="feasible", lower_bound_bytes=0, seconds=0.0
    )


def built(folder: Path, plan: Plan, source: Source, *, noting: bool) -> tuple[Path, MadeThreads]:
    """Compile a plan's program of two threads; write its constants and seeded inputs beside it."""
    made = threads_of(plan, source)
    book = book_of(plan, source)
    inputs, ids = book.engine.seeded_inputs(0), plan.network.tensor_id
    (folder / "constants").write_bytes(made.constants)
    (folder / "inputs").write_bytes(
        b"".join(np.ascontiguousarray(inputs[ids[tensor]]).tobytes() for tensor, _ in made.inputs)
    )
    (folder / "program.c").write_text(made.source)
    binary = folder / ("noting" if noting else "program")
    flags = [*FLAGS, *(["-DONCHIP_TIMES"] if noting else [])]
    subprocess.run(
        ["gcc", *flags, str(folder / "program.c"), "-o", str(binary), "-lm"], check=True, timeout=300
    )
    return binary, made


def ran(folder: Path, binary: Path, runs: int, cores: Sequence[int]) -> tuple[dict[str, int], str]:
    """Run a program; return what it tells, and what it notes."""
    command = [binary, folder / "constants", folder / "inputs", folder / "outputs", runs, *cores]
    done = subprocess.run(list(map(str, command)), check=True, capture_output=True, text=True, timeout=600)
    told: dict[str, int] = json.loads(done.stdout)
    return told, done.stderr


def noted(text: str) -> dict[str, list[tuple[float, float, float]]]:
    """Return of steps and of transfers the begin and end in the quickest run, and the least time of all runs,
    in nanoseconds."""
    found: dict[str, list[tuple[float, float, float]]] = {"step": [], "transfer": []}
    for line in text.splitlines():
        kind, _, begin, end, least = line.split()
        found[kind].append((float(begin), float(end), float(least)))
    return found


def fitted_array(steps: Sequence[Step], begun: float) -> tuple[float, int]:
    """Return the clock in hertz and the cycles of a block that are nearest to steps with full blocks.

    A step begins in `begun` nanoseconds. For so many cycles of a block the clock is the median of what the
    steps say; the cycles are those with the least sum of the logarithms of predicted over measured.
    """
    kept = [one for one in steps if one.full]

    def clock(block: int) -> float:
        taken = [(one.cycles + block * one.blocks) / (one.nanoseconds - begun) for one in kept]
        return 1e9 * statistics.median(taken)

    def off(block: int) -> float:
        hertz = clock(block)
        law = [begun + (one.cycles + block * one.blocks) * 1e9 / hertz for one in kept]
        return sum(abs(math.log(of / one.nanoseconds)) for of, one in zip(law, kept, strict=True))

    block = min(range(MOST_BLOCK), key=off)
    return clock(block), block


def counted(plan: Plan, made: MadeThreads, sides: Sequence[ArraySide]) -> tuple[int, int, bool, int]:
    """Return of a plan of one step, by the law, the cycles of its products, its blocks of outputs, whether
    its blocks are full, and its vector operations."""
    axes = axes_of(plan.network, [0])
    assert not isinstance(axes, str)
    [work], [cut] = work_of_axes(plan.network, axes), axes.operators
    cycles, blocks, full = 0, 0, False
    if work.products:
        array = made.arrays[cut.name]
        rows, lanes = array
        on = {axis for side in array for axis in side}
        free = [n if axis not in on else 1 for axis, n in enumerate(cut.axes)]
        blocks = math.prod(free[: cut.outputs])
        for side, size in zip(array, sides, strict=True):
            blocks *= -(-math.prod(cut.axes[axis] for axis in side) // size.size)
        both = {*rows, *lanes}
        full = math.prod(cut.axes[axis] for axis in rows) >= ROWS_HIGH and not any(
            both <= {*use.axes, *(side.axis for side in use.slides if side is not None)} for use in cut.reads
        )
        cycles = blocks * work.products * math.prod(free[cut.outputs :])
    return cycles, blocks, full, work.vector * int(np.prod(cut.axes[: cut.outputs], dtype=int))


class Alone:
    """Programs of one step each, built once and measured as often as asked."""

    def __init__(self, folder: Path, models: dict[str, onnx.ModelProto]) -> None:
        self.programs: list[tuple[str, int, int, bool, int, Path]] = []
        self.sides = sides_here()
        for name, model in models.items():
            own = folder / f"step{len(self.programs)}"
            own.mkdir()
            onnx.save(model, str(own / "model.onnx"))
            source = onchip.load(str(own / "model.onnx"), dtype="file")
            plan = one_step(source)
            binary, made = built(own, plan, source, noting=True)
            self.programs.append((name, *counted(plan, made, self.sides), binary))

    def step(self, number: int, runs: int, cores: Sequence[int]) -> Step:
        """Run one of them; return its step."""
        name, cycles, blocks, full, vector, binary = self.programs[number]
        _, text = ran(binary.parent, binary, runs, cores)
        return Step(name, cycles, blocks, full, vector, noted(text)["step"][0][2])
