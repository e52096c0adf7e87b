"""The paper's own kernels, the fused window and a layer by segments: run, and held to the reference."""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from onchip.base.errors import ModelError
from onchip.microcontroller.int8.model import Add, Conv, Depthwise, Int8, Layer, Shape
from onchip.microcontroller.int8.reference import layer_output
from onchip.microcontroller.kernel_language import Pointer, Ram, run
from onchip.papers.vmcu.segment_kernel import segment_kernel, segment_words
from onchip.papers.vmcu.window_kernel import window_kernel

ROOT = Path(__file__).resolve().parents[2]
sys.path += [str(ROOT / "benchmarks"), str(ROOT / "benchmarks" / "paper")]

needs_gcc = pytest.mark.skipif(shutil.which("gcc") is None, reason="needs gcc")
needs_toolchain = pytest.mark.skipif(
    not all(shutil.which(tool) for tool in ("arm-none-eabi-gcc", "qemu-system-arm", "cc")),
    reason="needs gcc-arm-none-eabi and qemu-system-arm",
)

MAIN = """#include <stdio.h>
#include "block.h"
int main(void)
{
    static int8_t pool[POOL], workspace[WORKSPACE];
    if (fread(pool + INPUT_AT, 1, READ, stdin) != READ) return 1;
    block(pool, workspace);
    return fwrite(pool, 1, MADE, stdout) != MADE;
}
"""


def numbers(rng: np.random.Generator, weights: Int8, outputs: int) -> dict[str, object]:
    """The fields of a layer with weights."""
    return {
        "weights": weights,
        "bias": rng.integers(-3000, 3000, outputs).astype(np.int32),
        "multiplier": rng.integers(1 << 30, (1 << 31) - 1, outputs).astype(np.int32),
        "shift": np.full(outputs, -7, np.int32),
        "input_offset": 5,
        "output_offset": -3,
        "low": -128,
        "high": 127,
    }


def pointwise(read: int, made: int, shape: Shape, outputs: int) -> Conv:
    rng = np.random.default_rng(made)
    weights = rng.integers(-127, 128, (outputs, 1, 1, shape[3])).astype(np.int8)
    return Conv(
        name=f"t{made}",
        inputs=(read,),
        output=made,
        input_shapes=(shape,),
        output_shape=(*shape[:3], outputs),
        **numbers(rng, weights, outputs),  # type: ignore[arg-type]
    )


def block(size: int, channels: int, inside: int, outputs: int, kernel: int, stride: int = 1) -> list[Layer]:
    """An inverted bottleneck, its input added where shapes allow it."""
    made = -(-size // stride)
    shape, out = (1, size, size, channels), (1, made, made, inside)
    rng = np.random.default_rng(9)
    weights = rng.integers(-127, 128, (kernel, kernel, inside)).astype(np.int8)
    across = Depthwise(
        name="across",
        inputs=(1,),
        output=2,
        input_shapes=((1, size, size, inside),),
        output_shape=out,
        stride=(stride, stride),
        padding=(kernel // 2,) * 4,
        **numbers(rng, weights, inside),  # type: ignore[arg-type]
    )
    layers: list[Layer] = [pointwise(0, 1, shape, inside), across, pointwise(2, 3, out, outputs)]
    if stride == 1 and channels == outputs:
        layers.append(
            Add(
                name="add",
                inputs=(3, 0),
                output=4,
                input_shapes=(shape, shape),
                output_shape=shape,
                input_offsets=(3, 7),
                multipliers=(1 << 30, 1500000000),
                shifts=(0, -1),
                left_shift=20,
                multiplier=1 << 30,
                shift=-18,
                output_offset=2,
                low=-128,
                high=127,
            )
        )
    return layers


def wanted(layers: list[Layer], x: Int8) -> bytes:
    values = {0: x}
    for layer in layers:
        values[layer.output] = layer_output(layer, [values[t] for t in layer.inputs])
    return values[layers[-1].output].tobytes()


@pytest.mark.thorough
@needs_gcc
@pytest.mark.parametrize(
    ("shape", "keep_columns"),
    [
        ((6, 8, 12, 8, 3, 1), False),
        ((6, 8, 12, 8, 3, 1), True),
        ((5, 4, 8, 12, 5, 1), True),
        ((7, 8, 16, 4, 3, 2), False),
        ((7, 8, 16, 4, 3, 2), True),
    ],
    ids=["added", "added, columns kept", "5 x 5, columns kept", "stride 2", "stride 2, columns kept"],
)
def test_the_window_kernel_gives_the_blocks_bytes(
    shape: tuple[int, ...], keep_columns: bool, tmp_path: Path
) -> None:
    layers = block(*shape)
    made = window_kernel(layers, keep_columns=keep_columns)
    x = np.random.default_rng(1).integers(-128, 128, layers[0].input_shapes[0]).astype(np.int8)
    sizes = {
        "POOL": made.pool_bytes,
        "WORKSPACE": made.workspace_bytes,
        "INPUT_AT": made.input_at,
        "READ": x.size,
        "MADE": int(np.prod(layers[-1].output_shape)),
    }
    for name, text in {**made.sources, "main.c": MAIN}.items():
        (tmp_path / name).write_text(text)
    built = subprocess.run(
        [
            *("gcc", "-O1", "-fsanitize=address", *(f"-D{k}={v}" for k, v in sizes.items())),
            *("-o", "program", "main.c", "block.c", "kernels.c"),
        ],
        cwd=tmp_path,
        capture_output=True,
        text=True,
    )
    assert built.returncode == 0, built.stderr[:2000]
    ran = subprocess.run([tmp_path / "program"], input=x.tobytes(), capture_output=True)
    assert ran.returncode == 0, ran.stderr[:2000]
    assert ran.stdout == wanted(layers, x)


def test_the_window_kernel_takes_the_papers_segments() -> None:
    """3 x 3 + 1 + 1 segments, and A with the distance of 6 + 1 pixels."""
    made = window_kernel(block(6, 8, 12, 8, 3))
    assert made.segments == 11
    assert made.workspace_bytes == 9 * 12 + 12 + 8
    assert (made.input_at, made.pool_bytes) == ((6 + 1) * 8, 6 * 6 * 8 + (6 + 1) * 8)


def test_what_is_no_such_block_is_refused() -> None:
    layers = block(6, 8, 12, 8, 3)
    for wrong, why in (
        (layers[1:], "no inverted bottleneck"),
        (block(4, 8, 12, 4, 5), "larger than its map"),
        ([*layers[:3], layers[3], layers[3]], "no sum"),
    ):
        with pytest.raises(ModelError, match=why):
            window_kernel(wrong)


@pytest.mark.parametrize("segment", [1, 2, 4, 8])
def test_a_segment_kernel_gives_the_layers_bytes_over_the_pools_end(segment: int) -> None:
    layer = pointwise(0, 1, (1, 1, 3, 8), 16)
    x = np.random.default_rng(2).integers(-128, 128, layer.input_shapes[0]).astype(np.int8)
    size, rows, start = 80, 24, 64  # the input goes on at the pool's start; the output begins behind it
    ram, pool = Ram(size), Pointer("pool", 0)
    ram.put(pool, np.roll(np.pad(x.ravel(), (0, size - rows)), start).tobytes())
    arguments = {"pool": pool, "size": size, "source": start, "target": size + 8, "rows": 3}
    run(segment_kernel(layer, segment), ram, {**arguments, "weights": segment_words(layer)})
    assert ram.get(pool, size)[8 : 8 + 48] == layer_output(layer, [x]).tobytes()


def test_segments_must_divide_rows() -> None:
    layer = pointwise(0, 1, (1, 1, 3, 8), 16)
    for segment, why in ((16, "do not divide"), (3, "do not divide"), (6, "do not divide")):
        with pytest.raises(ValueError, match=why):
            segment_kernel(layer, segment)


@pytest.mark.thorough
@needs_toolchain
def test_the_modulo_costs_more_by_smaller_segments() -> None:
    from vmcu_modulo import SEGMENTS, overheads

    more = overheads((6, 16, 16))
    assert [more[n] for n in SEGMENTS] == sorted(more.values(), reverse=True)
    assert more[1] > 0.2 > more[4] > more[16] > 0
