"""What segments is compared with: the paper's block by every method, and counts made another way."""

from __future__ import annotations

from functools import cache
from itertools import product
from math import prod

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from onchip.microcontroller.compare.lives import Lives, greedy_bytes
from onchip.microcontroller.compare.patches import patched
from onchip.microcontroller.compare.segments import METHODS
from onchip.microcontroller.compare.window_fused import bottlenecks, window_fused
from onchip.microcontroller.int8.read import model_of
from onchip.microcontroller.made import made_model
from onchip.microcontroller.network import network_of
from onchip.network import Geometry, Network, OperatorSpec
from onchip.papers.vmcu.affine import chain_distance
from onchip.papers.vmcu.nests import bottleneck_ends
from onchip.planners.packing import Buffer, max_load

Shape = tuple[int, int, int, int]


def window(kind: str, read: Shape, channels: int, kernel: int = 1, stride: int = 1) -> Geometry:
    """A layer that keeps its map's size, but for the stride."""
    rows, columns = (-(-n // stride) for n in read[1:3])
    groups = read[3] if kind == "depthwise" else 1
    around = (kernel // 2,) * 4
    made = (1, rows, columns, channels)
    return Geometry(kind, read, made, (kernel,) * 2, (stride,) * 2, around, (1, 1), groups, "NHWC")


def chain(layers: list[Geometry], added: bool = False) -> Network:
    """Layers one behind the other; with `added` the input is added to what the last one makes."""
    tensors = [("t0", prod(layers[0].input), "input")]
    operators = []
    for i, g in enumerate(layers):
        tensors.append((f"t{i + 1}", prod(g.output), "activation"))
        operators.append(OperatorSpec(f"layer{i}", g.kind, [f"t{i}"], [f"t{i + 1}"], geometry=g))
    end = tensors[-1][0]
    if added:
        shape = layers[-1].output
        tensors.append(("sum", prod(shape), "activation"))
        together = Geometry("elementwise", shape, shape, layout="NHWC")
        operators.append(OperatorSpec("add", "Add", [end, "t0"], ["sum"], geometry=together))
        end = "sum"
    return Network.build("chain", tensors, operators, [end])  # type: ignore[arg-type]


def bottleneck(size: int, channels: int, inside: int, outputs: int, kernel: int, stride: int = 1) -> Network:
    expand = window("conv", (1, size, size, channels), inside)
    across = window("depthwise", (1, size, size, inside), inside, kernel, stride)
    project = window("conv", across.output, outputs)  # type: ignore[arg-type]
    return chain([expand, across, project], added=stride == 1 and channels == outputs)


def test_the_papers_first_block_by_every_method() -> None:
    """S1 of MCUNet-5fps-VWW: A and E are 20 x 20 x 16, B and C 20 x 20 x 48."""
    network = bottleneck(20, 16, 48, 16, 3)
    a, b = 6_400, 19_200
    found = {name: method(network).ram_bytes for name, method in METHODS.items()}
    assert found["whole"] == found["order"] == a + b + b
    assert found["in place"] == a + b + a
    assert found["window"] == a + (20 + 1) * 16 + (9 + 1) * 48 + 16
    assert found["onchip"] < 9_400  # rings of three rows, nothing made twice
    assert METHODS["onchip"](network).macs == METHODS["whole"](network).macs < METHODS["window"](network).macs


@pytest.mark.thorough
@given(st.integers(1, 8), st.integers(1, 3), st.integers(1, 3), st.sampled_from([1, 3, 5]), st.integers(1, 2))
def test_the_window_fused_block_is_as_far_ahead_as_equation_2_says(
    size: int, channels: int, outputs: int, kernel: int, stride: int
) -> None:
    if size < kernel or (channels == outputs and stride == 1):
        return
    network = bottleneck(size, channels, 4, outputs, kernel, stride)
    (block,) = bottlenecks(Lives.of(network))
    made = -(-size // stride)
    given_, out = size * size * channels, made * made * outputs
    workspace = (kernel * kernel + 1) * 4 + outputs
    forward = chain_distance(*bottleneck_ends(size, channels, outputs, kernel, stride), 2)
    assert block.bytes <= min(max(given_ + forward, out), given_ + out) + workspace
    if stride == 1:  # forward and reverse are each other's mirror image
        assert block.bytes == min(max(given_ + forward, out), given_ + out) + workspace


@pytest.mark.parametrize(("size", "kernel", "stride"), [(5, 3, 1), (6, 3, 2), (7, 5, 1)])
def test_the_window_fused_block_counts_what_it_makes_anew(size: int, kernel: int, stride: int) -> None:
    network = bottleneck(size, 2, 6, 3, kernel, stride)
    (block,) = bottlenecks(Lives.of(network))
    made = -(-size // stride)
    expanded = 0
    for y, x, r, s in product(range(made), range(made), range(kernel), range(kernel)):
        inside = all(0 <= at * stride - kernel // 2 + step < size for at, step in ((y, r), (x, s)))
        expanded += inside
    assert block.macs == expanded * 2 * 6 + made * made * (kernel * kernel * 6 + 6 * 3)


def test_blocks_that_fit_anyway_are_not_fused() -> None:
    """The paper's kernel pays with work; here only where it saves the RAM that decides."""
    small, large = window("conv", (1, 4, 4, 2), 2, 3), window("conv", (1, 4, 4, 2), 64)
    lives = Lives.of(chain([large, window("conv", (1, 4, 4, 64), 2), small]))
    assert window_fused(lives).macs == lives.macs


@pytest.mark.thorough
@given(st.integers(4, 9), st.integers(1, 3), st.booleans())
@settings(deadline=None)
def test_patches_count_their_halo(size: int, depth: int, held: bool) -> None:
    """The work of the cheapest patches is at least the network's, and its own pixels counted by sets."""
    layers = [window("conv", (1, size, size, 2), 9, 3)]
    layers += [window("conv", (1, size, size, 9), 9, 3) for _ in range(depth - 1)]
    layers += [window("conv", (1, size, size, 9), 1, 1)]
    lives = Lives.of(chain(layers))
    found = patched(lives, held=held)
    counted = {lives.macs}
    for end, n in product(range(1, len(layers) + 1), (2, 3, 4, 5, 6, 8)):
        counted.add(_work_of_patches(layers, end, n, size))
    assert found.macs in counted
    assert found.ram_bytes <= METHODS["in place"](lives.net.network).ram_bytes


def _work_of_patches(layers: list[Geometry], end: int, n: int, size: int) -> int:
    """Layers [0, end) in n x n patches, pixel by pixel."""
    step = -(-size // n)
    total = sum(layer.macs for layer in layers[end:])
    for top, left in product(range(0, size, step), repeat=2):
        need = set(product(range(top, min(top + step, size)), range(left, min(left + step, size))))
        for layer in reversed(layers[:end]):
            total += len(need) * layer.macs // (size * size)
            reach = layer.kernel[0] // 2
            need = {
                (y + dy, x + dx)
                for y, x in need
                for dy, dx in product(range(-reach, reach + 1), repeat=2)
                if 0 <= y + dy < size and 0 <= x + dx < size
            }
    return total


@given(st.lists(st.tuples(st.integers(0, 9), st.integers(1, 5), st.integers(1, 40)), max_size=8))
def test_greedy_offsets_hold_what_lives_together(drawn: list[tuple[int, int, int]]) -> None:
    buffers = [Buffer(first, first + length, size) for first, length, size in drawn]
    assert max_load(buffers) <= greedy_bytes(buffers) <= sum(b.size for b in buffers)


def test_the_largest_goes_first_to_the_lowest_gap() -> None:
    """Two small ones that meet lie over the large one's bytes, one of them behind the other."""
    assert greedy_bytes([Buffer(0, 1, 10), Buffer(1, 3, 6), Buffer(2, 4, 6)]) == 12
    assert greedy_bytes([Buffer(0, 2, 10), Buffer(1, 3, 6, alignment=16)]) == 22


@cache
def network(name: str) -> Network:
    return network_of(model_of(made_model(name), name=name, where=name))


LARGER = [pytest.param(name, marks=pytest.mark.campaign) for name in ("made:vww_96", "made:mcunet_vww")]


@pytest.mark.thorough
@pytest.mark.parametrize("name", ["made:kws", "made:resnet8", *LARGER])
def test_the_methods_are_in_order(name: str) -> None:
    found = {method: make(network(name)) for method, make in METHODS.items()}
    ram = {method: baseline.ram_bytes for method, baseline in found.items()}
    assert ram["onchip"] < ram["overlap"] < ram["order"] <= ram["whole"]
    assert ram["window"] <= ram["overlap"]
    assert ram["patches"] <= ram["in place"] <= ram["whole"]
    once = {found[m].macs for m in ("whole", "order", "in place", "overlap", "onchip")}
    assert len(once) == 1
    assert found["patches"].macs >= found["whole"].macs <= found["window"].macs
