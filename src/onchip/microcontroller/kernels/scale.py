"""From a sum of products to a byte: the fixed-point scaling of every layer with weights, in few instructions.

TensorFlow Lite scales a sum by a multiplier of 31 bits and a power of two and rounds twice: to the nearest in
the doubled high product, halves away from zero in the division by the power. For a division by 2**right,

    t = SMMULR(sum << 1, multiplier)                          the doubled high product, if |sum| < 2**30
    y = SSAT8((((t + (t >> 31)) >> right - 1) + 1 + 2 * zero_point) >> 1)            SHORT: right > 0
    y = SSAT8((((t >> 31) + (t << 1) >> right) + 1 + 2 * zero_point) >> 1)           LEVEL: right >= 0

are the same byte: halves away from zero are halves up once negative values lost a little, and a half and the
output's zero point may be added one bit before the end. LONG is for what is left: shifts to the left, and
sums that reach 2**30.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum

import numpy as np
from numpy.typing import NDArray

from onchip.microcontroller.int8.arithmetic import scaled
from onchip.microcontroller.int8.model import Conv, Depthwise, FullyConnected, Int8
from onchip.microcontroller.kernel_language import Kernel
from onchip.microcontroller.kernel_language.intrinsics import call, signed
from onchip.microcontroller.kernel_language.ir import Expr, Var

__all__ = [
    "HEAD_WORDS",
    "PLAIN",
    "Form",
    "Scale",
    "Scaled",
    "Scaler",
    "factor_words",
    "scaled_of",
    "shift_of",
]

HEAD_WORDS = 4
"""Words of constants in front of a layer's channels: input offset, output offset, least and greatest byte."""

Weighted = Conv | Depthwise | FullyConnected


class Form(Enum):
    """The form of scaling a sum."""

    SHORT = "short"
    LEVEL = "level"
    LONG = "long"


@dataclass(frozen=True)
class Scale:
    """The scaling of a sum to a byte: its form, and whether the clamp is narrower than int8 itself."""

    form: Form = Form.SHORT
    clamped: bool = False

    def __str__(self) -> str:
        return self.form.value + ("_clamped" if self.clamped else "")


PLAIN = Scale()


@dataclass(frozen=True, eq=False)
class Scaled:
    """A layer's integers as a kernel takes them; channels along the first axis of `weights`."""

    scale: Scale
    weights: Int8
    bias: NDArray[np.int64]
    multipliers: NDArray[np.int64]
    shifts: NDArray[np.int64]
    """The shifts as the form takes them."""
    head: tuple[int, ...]

    @property
    def plain_shifts(self) -> NDArray[np.int64]:
        """The shifts as TensorFlow Lite has them: to the left if positive."""
        form, shifts = self.scale.form, self.shifts
        return shifts if form is Form.LONG else -shifts - (1 if form is Form.SHORT else 0)


def scaled_of(layer: Weighted, *, any_shift: bool = False) -> Scaled:
    """Return the layer in the shortest form that is exact on every input; with `any_shift` never SHORT.

    A channel that makes the same byte of every input (training can leave such) gets no weights and small
    factors that make that byte: its own factors may be extreme.
    """
    depthwise = isinstance(layer, Depthwise)
    weights = layer.weights.transpose(2, 0, 1) if depthwise else layer.weights
    channels = len(weights)
    flat = weights.reshape(channels, -1).astype(np.int64)
    bias = layer.bias.astype(np.int64)
    multiplier = np.broadcast_to(np.asarray(layer.multiplier, np.int64), (channels,)).copy()
    shift = np.broadcast_to(np.asarray(layer.shift, np.int64), (channels,)).copy()
    ends = flat[:, :, None] * (np.array([-128, 127]) + layer.input_offset)
    least, greatest = bias + ends.min(axis=2).sum(axis=1), bias + ends.max(axis=2).sum(axis=1)
    fits = (np.abs(least) < 1 << 31) & (np.abs(greatest) < 1 << 31)
    made = [
        np.clip(
            scaled(np.clip(s, -(1 << 31), (1 << 31) - 1), multiplier, shift) + layer.output_offset,
            layer.low,
            layer.high,
        )
        for s in (least, greatest)
    ]
    fixed = fits & (made[0] == made[1]) & (shift <= 0)
    weights = np.where(fixed.reshape(-1, *[1] * (weights.ndim - 1)), 0, weights).astype(np.int8)
    bias[fixed] = 4 * (made[0] - layer.output_offset)[fixed]
    multiplier[fixed], shift[fixed] = 1 << 30, -1
    bound = np.where(fixed, 1024, np.maximum(np.abs(least), np.abs(greatest)))
    form = Form.LONG
    if (bound < 1 << 30).all() and (shift <= 0).all():
        form = Form.LEVEL if any_shift or (shift == 0).any() else Form.SHORT
    moved = {Form.SHORT: -shift - 1, Form.LEVEL: -shift, Form.LONG: shift}[form]
    offset = layer.output_offset if form is Form.LONG else 1 + 2 * layer.output_offset
    return Scaled(
        Scale(form, (layer.low, layer.high) != (-128, 127)),
        weights,
        bias,
        multiplier,
        moved,
        (layer.input_offset, offset, layer.low, layer.high),
    )


def factor_words(multipliers: NDArray[np.int64], shifts: NDArray[np.int64], bits: int) -> list[int]:
    """Return a chunk's factors: the channels' multipliers, then their shifts in one word, `bits` each."""
    word = sum((int(shift) & ((1 << bits) - 1)) << (bits * i) for i, shift in enumerate(shifts))
    return [*(int(m) for m in multipliers), signed(word)]


def shift_of(word: Expr, lane: Expr | int, bits: int) -> Expr:
    """Return the shift of one channel of `factor_words`."""
    return (word << (32 - bits - lane * bits)) >> (32 - bits)


class Scaler:
    """Reads a layer's head once, then makes bytes of sums."""

    def __init__(self, k: Kernel, scale: Scale, weights: Var) -> None:
        self.k, self.scale = k, scale
        names = ("input_offset", "output_offset", "low", "high")
        self.input_offset, self.offset, self.low, self.high = (
            k.constant(weights, i, name) for i, name in enumerate(names)
        )

    def byte(self, total: Expr, multiplier: Expr, shift: Expr) -> Expr:
        """Return the output byte of a sum."""
        k = self.k
        if self.scale.form is Form.LONG:
            y = call("scaled", total, multiplier, shift) + self.offset
            return k.least(k.most(k.let("y", y), self.low), self.high)
        name = "narrowed" if self.scale.form is Form.SHORT else "narrowed_level"
        y = call(name, total, multiplier, shift, self.offset)
        return k.least(k.most(k.let("y", y), self.low), self.high) if self.scale.clamped else y

    def zero_point(self) -> Expr:
        """Return the output's zero point."""
        return self.offset if self.scale.form is Form.LONG else (self.offset - 1) >> 1

    def scaled(self, total: Expr, multipliers: Expr, shifts: Expr) -> Expr:
        """Return four sums scaled, lane by lane, by shifts as TensorFlow Lite has them."""
        return call(f"scaled_{self.scale.form.value}4", total, multipliers, shifts)

    def lanes(self, total: Expr, multipliers: Expr, shifts: Expr) -> Expr:
        """Return the output bytes of four sums, each in the lowest byte of its lane."""
        k = self.k
        y = call("plus4", self.scaled(total, multipliers, shifts), self.zero_point())
        if not self.scale.clamped:
            return call("bytes4", y)
        low, high = call("four", self.low), call("four", self.high)
        return call("least4", call("most4", k.let("y", y), low), high)

    def eight(self, even: Expr, odd: Expr) -> Expr:
        """Return the output bytes of eight scaled sums, those of even and those of odd number."""
        if not self.scale.clamped:
            return call("bytes8", even, odd, self.zero_point())
        return call("clamped8", even, odd, self.zero_point(), self.low, self.high)
