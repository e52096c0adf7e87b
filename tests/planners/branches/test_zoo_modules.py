"""The modules of well-known networks are the ones that their papers describe."""

from __future__ import annotations

from pathlib import Path

import pytest

from onchip.network import Network
from onchip.planners.branches.detection import detect
from onchip.planners.branches.modules import Detection, Module
from onchip.readers import ReadOptions, load

COUNTS = {
    "deeplabv3_resnet50": 17,  # and the pyramid of dilated convolutions
    "fcn_resnet50": 16,
    "googlenet": 9,
    "inception_resnet_v2": 43,  # 10 + 20 + 10 residual ones, and three that change the size
    "inception_v3": 11,
    "mnasnet1_0": 10,
    "mobilenet_v1": 0,
    "mobilenet_v2": 10,
    "mobilenet_v3_large": 10,
    "r2plus1d_18": 8,
    "resnet152": 50,
    "resnet18": 8,
    "resnet50": 16,
    "resnext50_32x4d": 16,
    "s3d": 9,
    "shufflenet_v2_x1_0": 16,
    "squeezenet1_0": 8,
    "vit_b_16": 24,
}
"""Modules of networks in which every concat and every sum closes one."""


def zoo(name: str, granularity: str = "fused") -> tuple[Network, Detection]:
    network = load(f"zoo:{name}", ReadOptions(granularity=granularity)).network  # type: ignore[arg-type]
    return network, detect(network)


def nested(module: Module) -> list[Module]:
    found = [step for branch in module.branches for step in branch.steps if isinstance(step, Module)]
    return found + [inner for module in found for inner in nested(module)]


@pytest.mark.parametrize("granularity", ["fused", "op"])
@pytest.mark.parametrize("name", COUNTS)
def test_every_merge_closes_a_module(name: str, granularity: str) -> None:
    _, found = zoo(name, granularity)
    assert len(found.modules) == COUNTS[name]
    assert not found.rejected
    assert not found.long_skips


def test_inception_v3_is_as_the_paper_shows_it() -> None:
    network, found = zoo("inception_v3")
    names = [module.name for module in found.modules]
    assert names == [f"Mixed_{n}" for n in ("5b", "5c", "5d", "6a", "6b", "6c", "6d", "6e", "7a", "7b", "7c")]
    assert [len(module.branches) for module in found.modules] == [4, 4, 4, 3, 4, 4, 4, 4, 3, 4, 4]
    assert [len(nested(module)) for module in found.modules] == [0] * 9 + [2, 2]
    assert len(found.items) == 13  # the stem, eleven modules in a row, the head
    for module in found.modules[-2:]:
        for inner in nested(module):
            assert inner.depth == 2
            assert [len(branch.steps) for branch in inner.branches] == [1, 1]
            assert network.tensors[inner.start].name.startswith(module.name)


def test_inception_resnet_v2_has_a_concat_within_each_residual_module() -> None:
    network, found = zoo("inception_resnet_v2")
    assert len(found.items) == 45
    residual = [m for m in found.modules if network.operators[m.merge].type.startswith("Add")]
    assert len(residual) == 40
    for module in residual:
        [inner] = nested(module)
        assert inner.start == module.start
        assert sorted(len(branch.steps) for branch in module.branches) == [0, 2]
        # Three branches in the first ten, two in the rest.
        assert len(inner.branches) == 2 + (module in residual[:10])


def test_shufflenet_units_keep_half_of_their_input_as_it_is() -> None:
    _, found = zoo("shufflenet_v2_x1_0")
    for module in found.modules:
        first = module.name.endswith(".0")
        assert sorted(len(branch.steps) for branch in module.branches) == ([2, 3] if first else [0, 3])


def test_what_reads_the_encoder_closes_no_module_of_the_transformer() -> None:
    network, found = zoo("transformer")
    assert len(found.modules) == 24
    rejected = [network.operators[r.merge].name for r in found.rejected]
    assert rejected == [f"decoder.layers.{i}.add_1" for i in range(6)]
    assert {r.reason for r in found.rejected} == {
        "no one tensor is passed by all ways to it: they begin at several inputs"
    }


def test_the_far_branch_of_lraspp_is_no_module() -> None:
    network, found = zoo("lraspp_mobilenet_v3_large")
    assert len(found.modules) == 10
    [rejected] = found.rejected
    assert network.operators[rejected.merge].name == "classifier.add"
    assert rejected.reason.endswith("75 layers before it: more than 8")


def test_densenet_has_no_modules_and_skips_over_much() -> None:
    network, found = zoo("densenet121")
    assert not found.modules
    assert len(found.rejected) == 58
    assert found.items[0].operators == network.order  # type: ignore[union-attr]
    # Every layer of a block is read by all later ones: from the third on over two layers of three operators.
    spans = {skip.span % 3 for skip in found.long_skips}
    assert spans == {0, 2}


@pytest.mark.parametrize("model", ["pretrainedResnet_quant", "mcunet_5fps_vww", "kws_ref_model"])
def test_every_sum_of_a_tflite_model_closes_a_module(shared: Path, model: str) -> None:
    network = load(shared / "models" / f"{model}.tflite").network
    found = detect(network)
    sums = {op.id for op in network.operators if op.type.startswith("ADD")}
    assert {module.merge for module in found.modules} == sums
    assert bool(sums) == (model != "kws_ref_model")
