"""The shape of a depthwise convolution's kernel, and its constants in the order in which it reads them."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from onchip.machines.cores import Forms
from onchip.microcontroller.int8.arithmetic import wrapped
from onchip.microcontroller.int8.model import Depthwise, Int8
from onchip.microcontroller.kernel_language.intrinsics import signed
from onchip.microcontroller.kernels.scale import HEAD_WORDS, PLAIN, Scale, Scaled, factor_words, scaled_of

__all__ = ["CHUNK", "DEPTHWISE_HEAD", "SHIFT_BITS", "VECTOR_CHUNK", "DepthwiseShape", "depthwise_words"]

CHUNK = 4
"""Output channels of a block: a word."""
VECTOR_CHUNK = 8
"""Output channels of a block of vectors."""
SHIFT_BITS = 8
DEPTHWISE_HEAD = HEAD_WORDS + 1
"""Words of constants in front of the chunks: the head of all layers with weights, and the outputs."""


@dataclass(frozen=True, kw_only=True)
class DepthwiseShape:
    """The parameters that a kernel is specialised on, in bytes and pixels."""

    outputs: int = 0
    """Channels of the output, where several read one input channel; else they are read when it runs."""
    rest: int = 0
    """Channels beyond the last whole chunk: a word, or the eight channels of vectors."""
    lone: bool = False
    """True if two taps may not fit sixteen bits, so that vectors take them one by one."""
    multiplier: int = 1
    """Outputs that read the same input channel."""
    kernel: tuple[int, int]
    """Lines, and taps along a line."""
    stride: int = 1
    """Stride along a line."""
    dilation: int = 1
    """Dilation along a line."""
    before: int = 0
    """Padding in front of a line."""
    in_step: int = 0
    """Bytes from an input pixel of a line to the next; 0: as many as channels."""
    out_step: int = 0
    """Bytes from an output pixel of a line to the next; 0: as many as channels."""
    reverse: bool = False
    """Lines run from their end to their start, chunks of channels from the last to the first."""
    scale: Scale = PLAIN
    forms: Forms = "packed"

    @property
    def taps(self) -> int:
        return self.kernel[0] * self.kernel[1]

    @property
    def chunk_words(self) -> int:
        """The words of constants of a whole chunk: biases, weights, factors."""
        return 2 * (3 * CHUNK + 1 + self.taps) if self.forms == "vector" else 2 * CHUNK + 1 + self.taps


def depthwise_words(
    layer: Depthwise, shape: DepthwiseShape | None = None, *, columns: bool = False, any_shift: bool = False
) -> list[int]:
    """Return the layer's constants in the order in which the kernel reads them: head, then every chunk.

    A chunk is its biases, one word of weights a tap, the channels' multipliers, and their shifts in one word.
    Those of vectors are other ones: see `depthwise_vector`.
    """
    ready = scaled_of(layer, any_shift=any_shift)
    weights = ready.weights.transpose(2, 1, 0) if columns else ready.weights.transpose(1, 2, 0)
    outputs = weights.shape[2]
    taps = weights.reshape(-1, outputs)
    if shape is not None and shape.forms == "vector":
        return vector_words(ready, taps, layer.input_offset)
    found = [*ready.head, outputs]
    for first in range(0, outputs, CHUNK):
        chunk = slice(first, min(first + CHUNK, outputs))
        words = np.zeros((len(taps), CHUNK), np.int8)
        words[:, : chunk.stop - first] = taps[:, chunk]
        found += ready.bias[chunk].tolist() + words.view("<i4")[:, 0].tolist()
        found += factor_words(ready.multipliers[chunk], ready.shifts[chunk], SHIFT_BITS)
    return found


def vector_words(ready: Scaled, taps: Int8, input_offset: int) -> list[int]:
    """Return the constants of vectors: head, then every eight channels; the last eight again if four remain.

    Integers of four channels of even number come before those of odd number: biases, biases of whole windows
    (the input's zero point folded in), then two words of weights a tap, multipliers, and shifts as bytes.
    """
    outputs = taps.shape[1]
    whole = wrapped(ready.bias + input_offset * taps.astype(np.int64).sum(axis=0))
    starts = list(range(0, outputs - VECTOR_CHUNK + 1, VECTOR_CHUNK))
    found = [*ready.head, outputs]
    for first in starts + ([outputs - VECTOR_CHUNK] if outputs % VECTOR_CHUNK else []):
        halves = [np.arange(first + odd, first + VECTOR_CHUNK, 2) for odd in (0, 1)]
        weights = np.ascontiguousarray(taps[:, first : first + VECTOR_CHUNK])
        found += [int(v) for values in (ready.bias, whole) for half in halves for v in values[half]]
        found += weights.view("<i4").ravel().tolist()
        found += [int(v) for half in halves for v in ready.multipliers[half]]
        shifts = [[int(v) & 0xFF for v in ready.plain_shifts[half]] for half in halves]
        found += [signed(int.from_bytes(bytes(four), "little")) for four in shifts]
    return found
