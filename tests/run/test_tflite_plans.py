"""`.tflite` plans, executed operator by operator in the plan's bytes."""

from __future__ import annotations

from pathlib import Path
from random import Random

import numpy as np
import pytest

from onchip.base.errors import IllegalPlan, InputError, Mismatch, ModelError
from onchip.plans import Alloc, Plan
from onchip.readers import Source, load
from onchip.readers.tflite_rewrite import rewritten
from onchip.run import run
from readers.tflite_build import Op, T, branching, model
from run.planner import random_plan, roomy


def read(content: bytes, folder: Path) -> Source:
    path = folder / "net.tflite"
    path.write_bytes(content)
    return load(path)


def awkward() -> bytes:
    """Floats, views, aliases, an operand computed from constants, two outputs, and an input that is one."""
    rng = np.random.default_rng(1)
    return model(
        [
            T((4, 6), name="x"), T((), "int32", 0), T((2, 6), name="top"), T((2, 6), name="bottom"),
            T((6, 2), name="tall"), T((2,), "int32", [6, 2]), T((6, 2), name="e"),
            T((2,), "float32", rng.standard_normal(2)), T((2,), name="folded"), T((6, 2), name="m"),
            T((2, 6), name="s"), T((4, 6), name="both"), T((24,), name="flat"), T((1,), "int32", [24]),
        ],
        [
            Op("SPLIT", [1, 0], [2, 3], ("SplitOptions", {"NumSplits": 2})),
            Op("RESHAPE", [3, 5], [4], ("ReshapeOptions", {})),
            Op("EXP", [4], [6]),
            Op("NEG", [7], [8]),
            Op("MUL", [6, 8], [9], ("MulOptions", {})),
            Op("SUB", [2, 3], [10], ("SubOptions", {})),
            Op("CONCATENATION", [10, 2], [11], ("ConcatenationOptions", {"Axis": 0})),
            Op("RESHAPE", [11, 13], [12], ("ReshapeOptions", {})),
        ],
        [0],
        [9, 12],
    )  # fmt: skip


@pytest.mark.thorough
@pytest.mark.parametrize("content", [branching(), awkward()], ids=["branching", "awkward"])
def test_random_plans_execute_bit_for_bit(content: bytes, tmp_path: Path) -> None:
    source = read(content, tmp_path)
    for seed in range(2):
        plan = random_plan(source.network, roomy(source.network), Random(seed))
        report = run(plan, source, seed=seed)
        assert report.bit_exact
        named = {t for op in source.network.operators for t in (*op.inputs, *op.outputs)}
        assert set(report.digests) == {source.network.tensors[t].name for t in named}
        assert report.moved.traffic == plan.result.traffic_bytes
        assert report.engine in report.lines()[0]


@pytest.mark.thorough
def test_another_input_gives_other_tensors(tmp_path: Path) -> None:
    source = read(branching(), tmp_path)
    plan = random_plan(source.network, roomy(source.network), Random(0))
    one, other = (run(plan, source, input_seed=i).digests for i in (1, 2))
    assert not set(one.items()) & set(other.items())


@pytest.mark.thorough
def test_overlapping_tensors_are_noticed(tmp_path: Path) -> None:
    source = read(branching(), tmp_path)
    plan = random_plan(source.network, 10**4, Random(0))
    clash = next(i.address for i in plan.program if isinstance(i, Alloc) and i.tensor == "left")
    moved = tuple(
        Alloc("right", clash) if isinstance(i, Alloc) and i.tensor == "right" else i for i in plan.program
    )
    wrong = Plan(plan.network, plan.chip, plan.budget, moved, plan.result)
    with pytest.raises(IllegalPlan):
        run(wrong, source)
    with pytest.raises(Mismatch, match="left"):
        run(wrong, source, checked=False)


def test_another_file_is_refused(tmp_path: Path) -> None:
    source = read(branching(), tmp_path)
    plan = random_plan(source.network, roomy(source.network), Random(0))
    with pytest.raises(InputError, match="changed since it was planned"):
        run(plan, read(branching() + b"\0", tmp_path))


@pytest.mark.thorough
def test_custom_operators_cannot_be_executed(tmp_path: Path) -> None:
    content = model([T((4,)), T((9,))], [Op("CUSTOM", [0], [1], custom="Mine")], [0], [1])
    source = read(content, tmp_path)
    with pytest.raises(ModelError, match="LiteRT cannot run it"):
        run(random_plan(source.network, roomy(source.network), Random(0)), source)


def test_a_rewritten_file_is_the_old_one_behind_a_head(tmp_path: Path) -> None:
    source = read(branching(), tmp_path)
    graph = source.executable.graph  # type: ignore[union-attr]
    new = rewritten(graph, operators=[1, 0, 2, 3, 4], metadata=("mine", b"1234"))
    assert new.endswith(graph.content)
    assert (len(new) - len(graph.content)) % 64 == 0
    (tmp_path / "two").mkdir()
    again = read(new, tmp_path / "two")
    assert [op.name for op in again.network.operators][:2] == ["CONV_2D.0", "CONV_2D.1"]
    assert [again.network.tensors[op.outputs[0]].name for op in again.network.operators][:2] == [
        "right",
        "left",
    ]
    assert again.network.weight_bytes == source.network.weight_bytes


MODELS = [
    "ad01_int8", "kws_ref_model", "pretrainedResnet_quant", "vww_96_int8",
    pytest.param("mcunet_5fps_vww", marks=pytest.mark.slow),
    pytest.param("mcunet_320kb_imagenet", marks=pytest.mark.slow),
]  # fmt: skip


@pytest.mark.thorough
@pytest.mark.parametrize("name", MODELS)
def test_real_models_execute_with_spills(shared: Path, name: str) -> None:
    source = load(shared / "models" / f"{name}.tflite")
    plan = random_plan(source.network, roomy(source.network), Random(0))
    report = run(plan, source)
    assert report.bit_exact
    assert report.operators == len(source.network.operators)
    assert report.tensors == len(source.network.tensors)
