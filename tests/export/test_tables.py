"""The tables that leave onchip say what the program does: MiniMalloc's CSV, the JSON table, the C header."""

from __future__ import annotations

import csv
import io
import json
import re
import shutil
import subprocess
from dataclasses import replace
from itertools import pairwise
from pathlib import Path
from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st

import onchip
from onchip.base.errors import IllegalPlan, UsageError
from onchip.check import certify
from onchip.export import export
from onchip.export.layout import places_of
from onchip.machines.chip import Chip
from onchip.network import Geometry, Network, OperatorSpec
from onchip.plans import Alloc, Free, Load, PinnedWeights, Plan, PlanChip, Result, Run, State, Store
from onchip.report.grid import SCREEN
from report.fused_plans import diamond_plan, streamed_plan
from run.planner import random_plan, roomy
from strategies import random_network, rounded

HOSTILE = (
    "*/ int broken; /*", "??/", 'a"b\\', "a\nb", "a,b", "0", "int", "é", "名", "_", "a-b", "a+b", "A+B",
    "a_b", "A_B_2", "x" * 300, "//", "#define X", "\x00",
)  # fmt: skip
"""Every one of them is legal in a model file."""


def some_plan(seed: int) -> Plan:
    """A random legal plan with spills."""
    rng = Random(seed)
    network = random_network(rng)
    return random_plan(network, roomy(network), rng)


def hostile_plan() -> Plan:
    """A chain of tensors with names from nowhere good."""
    names = list(HOSTILE)
    network = Network.build(
        "*/ }",
        [(name, 3, "activation" if i else "input") for i, name in enumerate(names)],
        [OperatorSpec(b, "Any", [a], [b]) for a, b in pairwise(names)],
        names[-1:],
    )
    return random_plan(network, roomy(network), Random(0))


def rows_of(plan: Plan) -> list[dict[str, int]]:
    text = export(plan, "minimalloc").decode()
    return [
        {k: int(v) for k, v in row.items() if k != "id"} | {"row": i}
        for i, row in enumerate(csv.DictReader(io.StringIO(text)))
    ]


@given(st.integers(0, 10**6))
def test_minimalloc_rows_are_a_packing_within_the_budget(seed: int) -> None:
    plan = some_plan(seed)
    rows = rows_of(plan)
    assert max(r["offset"] + r["size"] for r in rows) <= plan.budget
    for a in rows:
        assert 0 <= a["lower"] < a["upper"] <= len(plan.network.operators)
        for b in rows[: a["row"]]:
            apart = a["upper"] <= b["lower"] or b["upper"] <= a["lower"]
            assert apart or a["offset"] + a["size"] <= b["offset"] or b["offset"] + b["size"] <= a["offset"]


@given(st.integers(0, 10**6))
def test_minimalloc_rows_hold_what_every_step_needs(seed: int) -> None:
    plan = some_plan(seed)
    network, rows = plan.network, rows_of(plan)
    order = [network.operators[network.operator_id[i.operator]] for i in plan.program if isinstance(i, Run)]
    for step, op in enumerate(order):
        held = sorted(r["size"] for r in rows if r["lower"] <= step < r["upper"])
        roots = {network.root[t] for t in (*op.inputs, *op.outputs)}
        need = [rounded(network.tensors[t].bytes, plan.chip.alignment_bytes) for t in roots]
        need += [rounded(op.workspace, plan.chip.alignment_bytes)] if op.workspace else []
        for size in need:
            assert size in held
            held.remove(size)


@given(st.integers(0, 10**6))
def test_json_table_moves_what_the_plan_moves_and_names_every_operand(seed: int) -> None:
    plan = some_plan(seed)
    table = json.loads(export(plan, "json"))
    moved = dict.fromkeys(("compulsory", "reload", "spill"), 0)
    for copy in table["copies"]:
        moved[copy["reason"]] += copy["bytes"]
    result = plan.result
    assert moved == {
        "compulsory": result.compulsory_bytes, "reload": result.reload_bytes, "spill": result.spill_bytes,
    }  # fmt: skip
    ops = {op.name: op for op in plan.network.operators}
    root = {t.name: plan.network.tensors[plan.network.root[t.id]].name for t in plan.network.tensors}
    for step, name in enumerate(table["steps"]):
        here = {r.get("tensor") for r in table["residencies"] if r["first_step"] <= step < r["end_step"]}
        for t in (*ops[name].inputs, *ops[name].outputs):
            assert root[plan.network.tensors[t].name] in here


@pytest.mark.parametrize("to", ["minimalloc", "json", "c"])
def test_only_legal_plans_are_written(to: str) -> None:
    plan = some_plan(1)
    broken = Plan(plan.network, plan.chip, plan.budget, plan.program[1:], plan.result)
    with pytest.raises(IllegalPlan):
        export(broken, to)


def test_unknown_formats_and_models_nobody_reads_are_refused() -> None:
    with pytest.raises(UsageError, match="--to: 'tar' is none of minimalloc"):
        export(some_plan(1), "tar")
    with pytest.raises(UsageError, match="--model: the format c reads no model"):
        export(some_plan(1), "c", model="x.tflite")


def in_place() -> Plan:
    network = Network.build(
        "n",
        [("x", 4, "input"), ("y", 4, "activation")],
        [OperatorSpec("op", "Relu", ["x"], ["y"], geometry=Geometry("elementwise", (4,), (4,)))],
        ["y"],
    )
    program = (Load("x", 0), Alloc("y", 0, "x", 0), Run("op"), Store("y"), Free("y"))
    return Plan(network, PlanChip("test", 1), 4, program, Result("optimal", 0, 0, 0, 8, 0, 8, 0, 4, 4, 0.0))


def test_an_output_over_its_input_is_said_in_json_and_refused_for_minimalloc() -> None:
    with pytest.raises(UsageError, match="y over x: minimalloc's rows cannot share bytes"):
        export(in_place(), "minimalloc")
    rows = json.loads(export(in_place(), "json"))["residencies"]
    assert [(r["tensor"], r["first_step"], r["end_step"], r.get("over")) for r in rows] == [
        ("x", 0, 1, None), ("y", 0, 1, "x"),
    ]  # fmt: skip


def test_minimalloc_ids_are_plain_and_unique() -> None:
    lines = export(hostile_plan(), "minimalloc").decode().splitlines()
    assert all(line.count(",") == 4 and line.isascii() and line.isprintable() for line in lines)
    ids = [line.partition(",")[0] for line in lines]
    assert len(set(ids)) == len(ids) >= len(HOSTILE)


# -- the header, compiled and asked --------------------------------------------------------------------------

PRINT = """
#include "layout.h"
#include <inttypes.h>
#include <stdio.h>
int main(void) {
  unsigned i;
  printf("%" PRIu64 " %u\\n", (uint64_t)UP_ARENA_BYTES, UP_STEPS);
  for (i = 0; i < UP_RESIDENCIES; i++) {
    const low_residency_t *r = &low_residencies[i];
    printf("%d %" PRIu64 " %" PRIu64 " %u %u\\n", (int)r->tensor, (uint64_t)r->offset, (uint64_t)r->bytes,
           (unsigned)r->first_step, (unsigned)r->end_step);
  }
  for (i = 0; i < UP_COPIES; i++) {
    const low_copy_t *c = &low_copies[i];
    printf("%u %u %d %" PRIu64 " %" PRIu64 "\\n", (unsigned)c->before_step, (unsigned)c->store,
           (int)c->tensor, (uint64_t)c->offset, (uint64_t)c->bytes);
  }
  return 0;
}
"""


def compiled(plan: Plan, low: str, folder: Path) -> list[list[int]]:
    """What a C program that includes the header sees in it."""
    if shutil.which("cc") is None:
        pytest.skip("no C compiler")
    (folder / "layout.h").write_bytes(export(plan, "c"))
    program = PRINT.replace("UP_", low.upper() + "_").replace("low_", low + "_")
    (folder / "main.c").write_text(program)
    flags = ["-Wall", "-Wextra", "-Werror", "-pedantic", "-std=c99"]
    subprocess.run(["cc", *flags, "main.c", "-o", "main"], cwd=folder, check=True)
    out = subprocess.run([folder / "main"], check=True, capture_output=True, text=True).stdout
    return [[int(word) for word in line.split()] for line in out.splitlines()]


def expected(plan: Plan) -> list[list[int]]:
    """The same from the JSON table."""
    table = json.loads(export(plan, "json"))
    index = {t["name"]: i for i, t in enumerate(table["tensors"])}
    rows = [[plan.result.extent_bytes, len(table["steps"])]]
    for r in table["residencies"]:
        tensor = index[r["tensor"]] if "tensor" in r else -1
        rows.append([tensor, r["offset"], r["bytes"], r["first_step"], r["end_step"]])
    for c in table["copies"]:
        rows.append(
            [c["before_step"], int(c["direction"] == "store"), index[c["tensor"]], c["offset"], c["bytes"]]
        )
    return rows


def test_the_header_compiles_without_a_warning_and_holds_the_tables(tmp_path: Path) -> None:
    plan = some_plan(7)
    assert compiled(plan, "onchip_random", tmp_path) == expected(plan)


def test_hostile_names_reach_no_compiler(tmp_path: Path) -> None:
    assert compiled(hostile_plan(), "onchip_unnamed", tmp_path) == expected(hostile_plan())


def test_sizes_beyond_four_gigabytes_are_wide(tmp_path: Path) -> None:
    network = Network.build(
        "wide",
        [("x", 5 << 30, "input"), ("y", 1, "activation")],
        [OperatorSpec("op", "Any", ["x"], ["y"])],
        ["y"],
    )
    plan = random_plan(network, roomy(network), Random(0))
    assert compiled(plan, "onchip_wide", tmp_path) == expected(plan)


def test_state_and_pinned_weights_lie_there_from_the_start() -> None:
    network = Network.build(
        "rnn",
        [("x", 4, "input"), ("h", 4, "input"), ("next", 4, "activation"), ("y", 4, "activation")],
        [OperatorSpec("cell", "Any", ["x", "h"], ["next"], 8), OperatorSpec("head", "Any", ["next"], ["y"])],
        ["next", "y"],
    )
    plan = certify(
        network, Chip("test", 1), 32,
        [Load("x", 4), Alloc("next", 8), Run("cell"), Free("x"), Free("h"), Alloc("y", 4), Run("head"),
         Store("y"), Store("next"), Free("next"), Load("next", 0)],
        status="feasible", lower_bound_bytes=0, seconds=0.0,
        pins=[PinnedWeights("cell", 16)], state=[State("h", "next", 0)],
    )  # fmt: skip
    table = json.loads(export(plan, "json"))
    rows = {
        r.get("tensor") or r["weights_of"]: (r["offset"], r["first_step"], r["end_step"])
        for r in table["residencies"]
    }
    assert rows["cell"] == (16, 0, 2)
    assert rows["h"] == (0, 0, 1)
    moved = [(c["tensor"], c["direction"], c["reason"]) for c in table["copies"]]
    assert moved == [
        ("x", "load", "compulsory"), ("y", "store", "compulsory"), ("next", "store", "spill"),
        ("next", "load", "reload"),
    ]  # fmt: skip
    assert "weights_cell,0,2,8,16" in export(plan, "minimalloc").decode().splitlines()


@pytest.mark.parametrize("plan", [streamed_plan(), diamond_plan()], ids=["streamed", "diamond"])
def test_tables_of_tiles_say_what_passes_through_a_scratch(plan: Plan, tmp_path: Path) -> None:
    """Copies and streams together are every byte that crosses, weights aside; a stream has a scratch."""
    table = json.loads(export(plan, "json"))
    result, crossing = plan.result, {"compulsory": 0, "reload": 0, "spill": 0}
    for row in (*table["copies"], *table["streams"]):
        crossing[row["reason"]] += row["bytes"]
    assert sum(crossing.values()) == result.compulsory_bytes + result.reload_bytes + result.spill_bytes
    assert sum(crossing.values()) + result.weight_bytes == result.dram_bytes
    scratch = {r["first_step"] for r in table["residencies"] if "scratch_of" in r}
    assert {s["step"] for s in table["streams"]} <= scratch
    header = tmp_path / "layout.h"
    header.write_bytes(export(plan, "c"))
    assert f"_STREAMS {len(table['streams'])}u" in header.read_text()
    if shutil.which("gcc") is not None:
        flags = ("-std=c99", "-Wall", "-Wextra", "-pedantic", "-Werror", "-fsyntax-only", "-x", "c")
        subprocess.run(["gcc", *flags, str(header)], check=True)


@given(st.integers(0, 10**6))
def test_every_operand_has_a_place_while_its_operator_runs(seed: int) -> None:
    plan = some_plan(seed)
    network, places = plan.network, places_of(plan)
    assert set(places) == {t.name for t in network.tensors}
    order = [network.operators[network.operator_id[i.operator]] for i in plan.program if isinstance(i, Run)]
    for step, op in enumerate(order):
        for t in (*op.inputs, *op.outputs):
            tensor = network.tensors[t]
            (there,) = [p for p in places[tensor.name] if p.first <= step < p.end]
            assert there.memory == "scratchpad"
            assert 0 <= there.address <= plan.budget - tensor.bytes


def test_the_representation_of_an_answer_fits_one_screen() -> None:
    plan = onchip.plan("zoo:squeezenet1_0", budget="MR")
    lines, whole = repr(plan).splitlines(), str(plan).splitlines()
    assert len(lines) == SCREEN < len(whole)
    assert lines[:-1] == whole[: SCREEN - 1]
    assert lines[-1].startswith(f"… {len(whole) - SCREEN + 1} more lines")
    broken = onchip.Plan.of(replace(plan, program=plan.program[1:]))
    assert repr(broken).startswith("squeezenet1_0 on generic: ")
    assert "\n" not in repr(broken)


def test_the_repr_of_a_network_and_of_a_layout_is_one_line() -> None:
    plan = onchip.plan("zoo:squeezenet1_0", budget="MR", fuse=False)
    assert re.fullmatch(r"Network\('squeezenet1_0': 38 operators, 39 tensors .*\)", repr(plan.network))
    assert re.fullmatch(r"Layout\(\d+ steps, \d+ residencies, \d+ copies, 0 streams\)", repr(plan.layout()))
