"""Blocks of one operator: what the staircase says at any budget is the best of all blocks, one by one."""

from __future__ import annotations

from collections.abc import Iterator
from random import Random

from hypothesis import example, given, settings
from hypothesis import strategies as st

from onchip.machines.chip import Chip
from onchip.network import Geometry, Network, OperatorSpec
from onchip.planners.fusion import FusionOptions, FusionProblem
from onchip.planners.fusion.blocks import best_blocks


def convolution(random: Random) -> Network:
    """One convolution, plain, grouped or depthwise, of int8 maps of two images."""
    groups = random.choice((1, 1, 2, 4))
    channels, outputs = groups * random.randint(1, 3), groups * random.randint(1, 3)
    if groups == 4:
        outputs = channels = 4
    rows, columns = random.randint(1, 6), random.randint(1, 6)
    kernel, stride = random.choice((1, 2, 3)), random.choice((1, 2))
    pad = kernel // 2
    high, wide = ((size + 2 * pad - kernel) // stride + 1 for size in (rows, columns))
    shape, made = (2, channels, rows, columns), (2, outputs, max(1, high), max(1, wide))
    geometry = Geometry("conv", shape, made, (kernel, kernel), (stride, stride), (pad,) * 4, (1, 1), groups)
    weights = outputs * (channels // groups) * kernel * kernel
    return Network.build(
        "convolution",
        [("x", 2 * channels * rows * columns, "input"), ("y", 2 * outputs * made[2] * made[3], "activation")],
        [OperatorSpec("c", "Conv", ["x"], ["y"], weights, geometry=geometry)],
        ["y"],
    )


def every_block(geometry: Geometry, tile: int) -> Iterator[tuple[int, int]]:
    """(scratch, bytes moved) of all blocks there are."""
    images, channels, rows, columns = geometry.input
    _, outputs, high, wide = geometry.output
    k, s, p = geometry.kernel[0], geometry.stride[0], geometry.padding[0]
    within, deep = outputs // geometry.groups, channels // geometry.groups

    def reads(first: int, count: int, size: int) -> int:
        begin, end = first * s - p, (first + count - 1) * s - p + k
        return max(0, min(end, size) - min(max(begin, 0), size))

    def cuts(total: int, part: int) -> list[tuple[int, int]]:
        return [(at, min(part, total - at)) for at in range(0, total, part)]

    for r in range(1, high + 1):
        heights = [reads(at, n, rows) for at, n in cuts(high, r)]
        for c in range(1, wide + 1):
            widths = [reads(at, n, columns) for at, n in cuts(wide, c)]
            for d in range(1, outputs + 1):
                touched = [len({v // within for v in range(at, at + n)}) * deep for at, n in cuts(outputs, d)]
                area = images * sum(heights) * sum(widths) * sum(touched)
                slice_ = min(tile, max(touched))
                while slice_:
                    for keep in (True, False):
                        held = min(d, outputs) * min(deep if keep else slice_, deep) * k * k
                        scratch = d * r * c + slice_ * max(heights) * max(widths) + held
                        weights = outputs * deep * k * k
                        fetched = weights * (1 if keep else images * len(heights) * len(widths))
                        yield scratch, area + fetched
                    slice_ //= 2


@settings(max_examples=60)
@given(st.integers(0, 10**9), st.integers(4, 400), st.integers(1, 4))
@example(8201503, 68, 4)  # four of six channels reach into one more group than six
def test_the_best_blocks_at_any_budget(seed: int, budget: int, tile: int) -> None:
    network = convolution(Random(seed))
    geometry = network.operators[0].geometry
    assert geometry is not None
    problem = FusionProblem.of(network, Chip("test", 1), FusionOptions(channel_tile=tile), budget)
    fitting = [moved for need, moved in every_block(geometry, tile) if need <= budget]
    found = best_blocks(problem, 0)
    if not fitting:
        assert found is None
        return
    assert found is not None
    assert found.input_bytes + found.weight_bytes == min(fitting)
    assert found.scratch_bytes <= budget
