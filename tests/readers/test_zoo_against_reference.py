"""Built-in networks, read from their ONNX files, against the reference graphs of the same networks.

Operators are compared as (input bytes, output bytes, weight bytes), whatever they are called. Where a graph
differs, the difference is listed here with its reason; anything else is a fault.
"""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import pytest

from onchip import zoo
from onchip.network import Network
from onchip.readers import ReadOptions, load

Row = tuple[str, tuple[int, ...], tuple[int, ...], int]

CAT_OF_ONE = [(f"cat {n}", (n,), (n,), 0) for n in (25_088, 50_176, 100_352, 200_704)]
HEAD = ("Gemm", (768,), (1_000,), 769_000)

EXPLAINED: dict[str, tuple[list[Row], list[Row]]] = {
    # A concat of one tensor, with which every dense block begins, is that tensor.
    "densenet121.op": ([], CAT_OF_ONE),
    # The classifier reads the class token, a view of the last layer norm's output, and not all of that.
    "vit_b_16.op": ([HEAD], [("linear_48", (151_296,), (1_000,), 769_000)]),
    # And the position embedding is a parameter, so that adding it has one activation input and merges.
    "vit_b_16.fused": (
        [HEAD, ("Concat+Add", (150_528,), (151_296,), 152_064)],
        [
            ("linear_48", (151_296,), (1_000,), 769_000),
            ("cat", (150_528,), (151_296,), 768),
            ("add", (151_296,), (151_296,), 151_296),
        ],
    ),
}
"""What only ours and only the reference has, as (operator, input bytes, output bytes, weight bytes)."""

REFERENCES = {
    "amoebanet_d", "darts", "deeplabv3_mobilenet_v3_large", "deeplabv3_resnet50", "densenet121",
    "fcn_resnet50", "googlenet", "inception_v3", "lraspp_mobilenet_v3_large", "nasnetalarge",
    "pnasnet5large", "r2plus1d_18", "resnet50", "resnext50_32x4d", "s3d", "transformer", "vit_b_16",
}  # fmt: skip
NAMES = sorted(REFERENCES & {*zoo.names()})
PAIRS = [(name, granularity) for name in NAMES for granularity in ("fused", "op")]


def operators(network: Network) -> Counter[tuple[object, ...]]:
    """How often each (input bytes, output bytes, weight bytes) occurs."""

    def sizes(ids: tuple[int, ...]) -> tuple[int, ...]:
        return tuple(sorted(network.tensors[t].bytes for t in ids))

    return Counter((sizes(op.inputs), sizes(op.outputs), op.weight_bytes) for op in network.operators)


def required(network: Network) -> int:
    """The least memory any order needs: the largest operator's distinct tensors."""
    size = [t.bytes for t in network.tensors]
    return max(
        sum(size[t] for t in {network.root[i] for i in op.inputs + op.outputs}) for op in network.operators
    )


@pytest.mark.thorough
@pytest.mark.parametrize(("name", "granularity"), PAIRS)
def test_operators_and_tensors_are_those_of_the_reference(name: str, granularity: str, shared: Path) -> None:
    path = shared / "bench" / "networks" / f"{name}.{granularity}.json"
    ours = load(f"zoo:{name}", ReadOptions(granularity=granularity)).network  # type: ignore[arg-type]
    reference = load(path).network
    more, less = EXPLAINED.get(f"{name}.{granularity}", ([], []))
    assert operators(ours) - operators(reference) == Counter(row[1:] for row in more)
    assert operators(reference) - operators(ours) == Counter(row[1:] for row in less)
    assert required(ours) == required(reference)
    assert ours.weight_bytes == reference.weight_bytes
    assert sorted(t.bytes for t in ours.tensors if t.kind == "input") == sorted(
        t.bytes for t in reference.tensors if t.kind == "input"
    )
    if not more and not less:
        assert Counter(t.bytes for t in ours.tensors) == Counter(t.bytes for t in reference.tensors)


@pytest.mark.parametrize("name", ["resnet50", "mobilenet_v2"])
def test_another_size_of_image(name: str) -> None:
    usual, larger = load(f"zoo:{name}").network, load(f"zoo:{name}@448x448").network
    assert len(usual.operators) == len(larger.operators)
    assert larger.weight_bytes == usual.weight_bytes
    assert larger.tensors[0].bytes == 3 * 448 * 448
    assert larger.name == f"{name}@448x448"
    assert required(larger) == 4 * required(usual)
    oblong = load(f"zoo:{name}@64x96").network
    assert oblong.tensors[0].bytes == 3 * 64 * 96
