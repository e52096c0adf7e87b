"""The shape of a convolution's kernel, and its constants in the order in which the kernel reads them."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from onchip.machines.cores import Forms
from onchip.microcontroller.int8.arithmetic import wrapped
from onchip.microcontroller.int8.model import Conv, FullyConnected, Int8
from onchip.microcontroller.kernel_language.intrinsics import signed
from onchip.microcontroller.kernels.scale import HEAD_WORDS, PLAIN, Scale, Scaled, factor_words, scaled_of

__all__ = ["CHUNK", "CONV_HEAD", "WORD", "ConvShape", "by_sixteen", "conv_words", "run_words", "shift_bits"]

CHUNK = 2
"""Output channels of a block of several pixels, and of a step as far as a plan may rely on it."""
WORD = 4
CONV_HEAD = HEAD_WORDS + 1
"""Words of constants in front of the chunks: the head of all layers with weights, and the outputs."""


@dataclass(frozen=True, kw_only=True)
class ConvShape:
    """The parameters that a kernel is specialised on, in bytes and pixels."""

    channels: int
    """Channels of the input."""
    outputs: int = 0
    """Channels of the output, where groups make them part of the code; else they are read when it runs."""
    rest: int = 0
    """Output channels (of a group) beyond the last whole chunk."""
    quads: bool = False
    """True if a block makes four channels of one pixel: where lines are one pixel wide."""
    joined: bool = False
    """True if every window is gathered and is one run, all lines behind one another."""
    kernel: tuple[int, int] = (1, 1)
    """Lines, and taps along a line."""
    stride: int = 1
    """Stride along a line."""
    dilation: int = 1
    """Dilation along a line."""
    before: int = 0
    """Padding in front of a line."""
    groups: int = 1
    padded: bool = False
    """True if any window of the layer extends past an end of the map."""
    in_step: int = 0
    """Bytes from an input pixel of a line to the next; 0: as many as channels."""
    out_step: int = 0
    """Bytes from an output pixel of a line to the next; 0: as many as channels."""
    pixels: int = 3
    unroll: int = 2
    """Words of a run in one turn of its loop."""
    reverse: bool = False
    """Lines run from their end to their start, chunks of channels from the last to the first."""
    scale: Scale = PLAIN
    forms: Forms = "packed"

    @property
    def run(self) -> int:
        """The bytes of a run: one kernel row of one group."""
        return self.kernel[1] * self.channels // self.groups

    @property
    def runs(self) -> tuple[int, int]:
        """The runs of a window as the blocks read it, and the bytes of each."""
        return (1, self.kernel[0] * self.run) if self.joined else (self.kernel[0], self.run)

    @property
    def words(self) -> int:
        """The words of one line's run; the last may overlap the one before."""
        return -(-self.run // WORD)

    @property
    def window_words(self) -> int:
        """The words of all runs of a window."""
        runs, each = self.runs
        return runs * -(-each // WORD)

    @property
    def chunk(self) -> int:
        """The output channels of a block."""
        return 4 if self.quads or self.forms == "vector" else CHUNK

    @property
    def side_by_side(self) -> bool:
        """True if a run is contiguous in its line and at least one word long, and is read there."""
        return self.side_by_side_if_long and self.run >= WORD and not self.joined

    @property
    def side_by_side_if_long(self) -> bool:
        """True if a run is contiguous in its line."""
        together = self.kernel[1] == 1 or (self.dilation == 1 and self.step == self.channels)
        return together and self.groups == 1

    @property
    def gathers(self) -> bool:
        """True if any step needs a patch."""
        return self.padded or not self.side_by_side

    @property
    def line_at_once(self) -> bool:
        """True if a patch is gathered line by line; else tap by tap.

        A core with vectors copies a tap at once, so a cut line costs it more than its taps. It gathers lines
        where every window is gathered, cut or not, and where taps are many and short.
        """
        if not self.side_by_side_if_long or self.kernel[1] == 1:
            return False
        short = self.channels < WORD and self.kernel[1] >= WORD
        return self.forms != "vector" or not self.side_by_side or short

    @property
    def line_bytes(self) -> int:
        """The bytes of one line of a patch."""
        return self.run if self.joined else max(self.run, WORD)

    @property
    def patch_bytes(self) -> int:
        """The bytes of workspace: the windows of a step."""
        return self.pixels * self.kernel[0] * max(self.run, WORD) if self.gathers else 0

    @property
    def step(self) -> int:
        return self.in_step or self.channels

    @property
    def chunk_words(self) -> int:
        """The words of constants of a whole chunk: biases, weights, factors."""
        return self.chunk * (2 + self.window_words) + 1


def run_words(runs: Int8) -> Int8:
    """Return [..., run] weights as [..., words * 4] bytes.

    Words at 0, 4, ... and run - 4 contain each weight once.
    """
    run = runs.shape[-1]
    words = -(-run // WORD)
    packed = np.zeros((*runs.shape[:-1], words * WORD), np.int8)
    if run % WORD == 0 or run < WORD:
        packed[..., :run] = runs
    else:
        whole = run - run % WORD
        packed[..., :whole] = runs[..., :whole]
        packed[..., words * WORD - run % WORD :] = runs[..., whole:]
    return packed


def conv_words(
    layer: Conv | FullyConnected,
    shape: ConvShape | None = None,
    *,
    columns: bool = False,
    any_shift: bool = False,
) -> list[int]:
    """Return the layer's constants in the order in which the kernel reads them: head, then every chunk.

    A chunk is its biases (the input's zero point folded in), for every line and word of a run one word of
    weights a channel, then multiplier and shift of each channel. Without a shape chunks are pairs. With
    `columns` the kernel's lines are columns of the map.
    """
    ready = scaled_of(layer, any_shift=any_shift)
    weights = (
        ready.weights.reshape(len(ready.weights), 1, 1, -1) if ready.weights.ndim == 2 else ready.weights
    )
    if columns:
        weights = weights.transpose(0, 2, 1, 3)
    bias = wrapped(ready.bias + layer.input_offset * weights.astype(np.int64).sum(axis=(1, 2, 3)))
    if shape is not None and shape.forms == "vector":
        return vector_words(ready, weights, bias, shape)
    size = CHUNK if shape is None else shape.chunk
    outputs = weights.shape[0]
    lines = weights.shape[1] if shape is None else shape.runs[0]
    words = run_words(weights.reshape(outputs, lines, -1)).view("<i4").reshape(outputs, -1)
    found = [*ready.head, outputs]
    each = outputs // (layer.groups if isinstance(layer, Conv) else 1)
    for group in range(0, outputs, each):
        for first in range(group, group + each, size):
            chunk = slice(first, min(first + size, group + each))
            found += bias[chunk].tolist() + words[chunk].T.ravel().tolist()
            found += factor_words(ready.multipliers[chunk], ready.shifts[chunk], shift_bits(size))
    return found


def shift_bits(chunk: int) -> int:
    """Return the bits of each shift in the word that holds those of a chunk."""
    return 32 // chunk


def vector_words(ready: Scaled, weights: Int8, bias: NDArray[np.int64], shape: ConvShape) -> list[int]:
    """Return the constants of vectors: head, then every chunk of four channels, zeros for those missing.

    A chunk is for each pass its channels' weights, sixteen bytes a channel in turn; then biases, multipliers
    and the shifts in one word. A pass takes all four channels, or those of even and then of odd number.
    """
    outputs = len(weights)
    each = outputs // shape.groups
    passes = ((0, 1, 2, 3),) if shape.quads else ((0, 2), (1, 3))
    runs = weights.reshape(outputs, shape.runs[0], -1)
    found = [*ready.head, outputs]

    def four(values: NDArray[np.int64], first: int, end: int) -> list[int]:
        return [*values[first:end].tolist(), *[0] * (4 - (end - first))]

    for group in range(0, outputs, each):
        for first in range(group, group + each, 4):
            end = min(first + 4, group + each)
            chunk = np.zeros((4, *runs.shape[1:]), np.int8)
            chunk[: end - first] = runs[first:end]
            for channels in passes:
                found += by_sixteen(chunk[list(channels)])
            found += four(bias, first, end) + four(ready.multipliers, first, end)
            shifts = four(ready.plain_shifts, first, end)
            found.append(signed(sum((s & 0xFF) << (8 * i) for i, s in enumerate(shifts))))
    return found


def by_sixteen(runs: Int8) -> list[int]:
    """Return the words of [channels, lines, run]: line by line sixteen bytes of each channel in turn."""
    found: list[int] = []
    for line in range(runs.shape[1]):
        for begin in range(0, runs.shape[2], 16):
            part = runs[:, line, begin : begin + 16]
            whole = np.pad(part, ((0, 0), (0, -part.shape[1] % WORD)))
            found += np.ascontiguousarray(whole).view("<i4").ravel().tolist()
    return found
