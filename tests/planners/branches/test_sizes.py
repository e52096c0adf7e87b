"""What is stored and what layers take, computed by hand for Inception v3 on the NPU of the paper."""

from __future__ import annotations

from dataclasses import replace

import pytest

from onchip.machines.chip import Chip, PartialWeights, load_chip
from onchip.network import Geometry, Network, OperatorSpec, Patches
from onchip.planners.branches.detection import detect
from onchip.planners.branches.modules import Module
from onchip.planners.branches.reorder import layers, order_of
from onchip.planners.branches.sizes import Sizes
from onchip.planners.branches.stored import stored
from onchip.readers import ReadOptions, load

NPU = load_chip("exynos-npu")
KB = 1024


@pytest.fixture(scope="module")
def inception() -> Network:
    return stored(load("zoo:inception_v3", ReadOptions(dtype="int8")).network, NPU)


def operator(network: Network, name: str) -> int:
    return network.operator_id[name]


def test_maps_are_stored_in_whole_patches_and_vectors_are_not(inception: Network) -> None:
    sizes = {t.name: (t.bytes, t.patches) for t in inception.tensors}
    assert sizes["maxpool2"] == (36 * 36 * 192, Patches(192, 35, 35, 4, 4))
    assert sizes["Mixed_6a.cat"] == (300 * KB, Patches(768, 17, 17, 4, 4))
    assert sizes["x"] == (300 * 300 * 3, Patches(3, 299, 299, 4, 4))
    assert sizes["avgpool"] == (2048, None)


def test_a_chip_without_patches_stores_as_many_bytes_as_the_network_has() -> None:
    network = load("zoo:inception_v3", ReadOptions(dtype="int8")).network
    kept = stored(network, load_chip("optimus"))
    assert [t.bytes for t in kept.tensors] == [t.bytes for t in network.tensors]
    assert kept.tensors[kept.tensor_id["maxpool2"]].patches == Patches(192, 35, 35, 1, 1)


def test_weights_of_32_channels_and_a_copy_of_what_strides_read(inception: Network) -> None:
    sizes = Sizes(inception, NPU)
    conv = operator(inception, "Mixed_6a.branch3x3.conv")  # 288 to 384 channels, 3x3/2, and 4 values a norm
    assert sizes.weights(conv) == 32 * (288 * 9 + 4)
    assert sizes.working(conv) == 36 * 36 * 288
    pool = operator(inception, "Mixed_6a.max_pool2d")
    assert (sizes.weights(pool), sizes.working(pool)) == (0, 36 * 36 * 288)
    unit = operator(inception, "Mixed_5b.branch1x1.conv")  # 192 to 64 channels
    assert (sizes.weights(unit), sizes.working(unit)) == (32 * (192 + 4), 0)


def test_the_pool_of_reduction_a_comes_last_and_takes_1029_kb(inception: Network) -> None:
    sizes = Sizes(inception, NPU)
    module = next(m for m in detect(inception).modules if m.name == "Mixed_6a")
    pool = operator(inception, "Mixed_6a.max_pool2d")
    last = module.branches[order_of(module, sizes)[module.merge][-1]]
    assert last.steps == (pool,)
    needed = sizes.tensor(module.start) + sizes.working(pool) + sizes.tensor(module.output)
    assert needed == 1029 * KB
    counted = order_of(module, sizes, staged_input=True)[module.merge]
    assert module.branches[counted[-1]].steps != (pool,)


def test_orders_are_descending_in_what_the_branches_require(inception: Network) -> None:
    sizes = Sizes(inception, NPU)

    def required(module: Module, branch: int) -> int:
        """Weights, working memory, and maps but those that a module starts or ends with."""
        most = 0
        ends = {t for b in module.branches for t in b.outputs}
        for v in layers(module.branches[branch]):
            op = inception.operators[v]
            ours = module.start not in op.inputs
            maps = sum(sizes.tensor(t) for t in op.inputs if t != module.start)
            maps += sum(sizes.tensor(t) for t in op.outputs if t not in ends)
            most = max(most, maps + sizes.weights(v) + (sizes.working(v) if ours else 0))
        return most

    flat = [
        m
        for m in detect(inception).modules
        if not any(isinstance(s, Module) for b in m.branches for s in b.steps)
    ]
    assert len(flat) == 9
    for module in flat:
        order = order_of(module, sizes)[module.merge]
        needs = [required(module, b) for b in order]
        assert sorted(order) == list(range(len(module.branches)))
        assert needs == sorted(needs, reverse=True)


def test_a_module_inside_counts_neither_its_input_nor_its_output() -> None:
    """Branch 0 needs b, 2 bytes, or the 4 of c's weights; with b beside them, or c, more than the 5 of g."""
    maps = {"b": 2, "c": 10, "d": 10, "m": 20, "g": 5, "h": 1, "o": 21}
    joined = {
        name: Geometry("concat", (1, of, 1, 1), (1, maps[name], 1, 1)) for name, of in (("m", 10), ("o", 20))
    }
    lines = [
        ("b", "x", 0), ("c", "b", 4), ("d", "b", 0), ("m", "c d", 0),
        ("g", "x", 0), ("h", "g", 0), ("o", "m h", 0),
    ]  # fmt: skip
    network = Network.build(
        "n",
        [("x", 1, "input"), *((name, size, "activation") for name, size in maps.items())],
        [
            OperatorSpec(made, "Concat" if made in joined else "Conv", read.split(), [made], weights, 0,
                         joined.get(made))
            for made, read, weights in lines
        ],
        ["o"],
    )  # fmt: skip
    [module] = detect(network).modules
    sizes = Sizes(network, Chip("plain", 1, partial_weights=PartialWeights(16)))
    assert order_of(module, sizes)[module.merge] == (1, 0)


def convolution(kernel: int, stride: int, rows: int, channels: int = 8, out: int = 8) -> Network:
    """One convolution without padding."""
    after = (rows - kernel) // stride + 1
    geometry = Geometry(
        "conv",
        (1, channels, rows, rows),
        (1, out, after, after),
        (kernel, kernel),
        (stride, stride),
        (0,) * 4,
    )
    return Network.build(
        "n",
        [("x", channels * rows * rows, "input"), ("y", out * after * after, "activation")],
        [
            OperatorSpec(
                "c", "Conv", ["x"], ["y"], weight_bytes=out * channels * kernel * kernel, geometry=geometry
            )
        ],
        ["y"],
    )


@pytest.mark.parametrize(
    ("kernel", "stride", "rows", "staged"),
    [
        (3, 1, 35, 0),
        (3, 2, 35, 36 * 36),
        (1, 2, 35, 20 * 20),
        (2, 2, 34, 36 * 36),
        (1, 3, 10, 4 * 4),
        (3, 3, 10, 12 * 12),
    ],
)
def test_what_a_strided_layer_stages(kernel: int, stride: int, rows: int, staged: int) -> None:
    network = stored(convolution(kernel, stride, rows), NPU)
    assert Sizes(network, NPU).working(0) == 8 * staged
    assert Sizes(network, replace(NPU, stages_strided=False)).working(0) == 0


def test_a_streamed_layer_takes_the_least_of_its_ways() -> None:
    network = stored(convolution(3, 1, 40), NPU)
    x, y = network.operators[0].inputs[0], network.operators[0].outputs[0]
    sizes = Sizes(network, replace(NPU, partial_weights=PartialWeights(2, 2)))
    weights, partial, piece = 8 * 8 * 9, 2 * 2 * 8 * 9, 2 * 2 * 16
    line = 8 * 2 * 4 * 40  # two rows of patches of 8 channels
    assert sizes.streaming(0, (), ()) == partial
    assert sizes.streaming(0, (), (y,)) == partial + piece
    assert sizes.streaming(0, (x,), ()) == weights + line
    assert sizes.streaming(0, (x,), (y,)) == weights + line + piece
    small = stored(convolution(3, 1, 4), NPU)
    assert (
        Sizes(small, NPU).streaming(0, (0,), (1,)) == 8 * 8 * 9 + 2 * 8 * 16
    )  # whole, or in pieces: the same


def test_a_chip_that_states_nothing_keeps_no_weights() -> None:
    network = convolution(3, 2, 35)
    assert Sizes(network, Chip("plain", 1)).resident(0) == 0
