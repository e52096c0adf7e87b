"""A network on a user's inputs: its outputs, its accuracy, and how far the interpreter's outputs are off."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from onchip.microcontroller.compare.interpreter import interpreted, name_of
from onchip.microcontroller.int8.model import Int8, Int8Model
from onchip.microcontroller.int8.reference import Session
from onchip.microcontroller.result.given_inputs import read_inputs, read_labels

__all__ = ["Tried", "tried"]

Array = np.ndarray[Any, Any]


@dataclass(frozen=True, eq=False)
class Tried:
    """The network's `outputs`, a row of numbers an input, and the interpreter's, or why there are none.

    The outputs are those of the reference in numpy; that the program gives the same bytes is what a `run` of
    the same inputs shows. `classes` is the class of each output, `labels` what it should be, where known.
    """

    inputs: Int8
    outputs: Array
    classes: Array
    labels: Array | None
    other: Array | str
    other_classes: Array | None
    interpreter: str = "LiteRT"

    @property
    def right(self) -> int | None:
        """The inputs whose class is their label."""
        return None if self.labels is None else int((self.classes == self.labels).sum())

    @property
    def other_right(self) -> int | None:
        """The same of the interpreter."""
        if self.labels is None or self.other_classes is None:
            return None
        return int((self.other_classes == self.labels).sum())

    def sentences(self) -> list[str]:
        """Return accuracy and differences in words."""
        number = len(self.outputs)
        lines = [f"{number:,} {'input' if number == 1 else 'inputs'} of {self.inputs.shape[1]:,} bytes."]
        counts = np.bincount(self.classes)
        common = sorted(range(len(counts)), key=lambda c: -counts[c])[:6]
        found = ", ".join(f"class {c} for {counts[c]:,}" for c in common if counts[c])
        lines.append(f"Outputs: {found}.")
        if self.right is not None:
            lines.append(f"Accuracy: {self.right:,} of {number:,} right, {100 * self.right / number:.2f} %.")
        if isinstance(self.other, str):
            lines.append(f"Not compared with an interpreter: {self.other}.")
            return lines
        apart = np.abs(self.outputs.astype(np.int32) - self.other.astype(np.int32))
        if not apart.any():
            lines.append(f"{self.interpreter} gives the same {self.outputs.size:,} bytes.")
        else:
            lines.append(
                f"{self.interpreter} differs in {int((apart > 0).sum()):,} of {self.outputs.size:,} bytes, by"
                f" {int(apart.max())} at most; its class is another for"
                f" {int((self.classes != self.other_classes).sum()):,} inputs."
            )
        if self.other_right is not None:
            share = f"{100 * self.other_right / number:.2f} %"
            lines.append(f"{self.interpreter}'s accuracy: {self.other_right:,} right, {share}.")
        return lines

    def data(self) -> dict[str, Any]:
        """Return the outputs and figures as JSON data."""
        there = not isinstance(self.other, str)
        return {
            "inputs": len(self.outputs),
            "outputs": self.outputs.tolist(),
            "classes": self.classes.tolist(),
            "right": self.right,
            "litert": self.other.tolist() if not isinstance(self.other, str) else None,
            "litert_right": self.other_right,
            "litert_different_bytes": int((self.outputs != self.other).sum()) if there else None,
            "litert_missing": None if there else self.other,
        }


def tried(
    model: Int8Model,
    content: bytes,
    inputs: Path,
    labels: Path | None,
    say: Callable[[str], None],
) -> Tried:
    """Return what the network in this `.tflite` file makes of the inputs in a file. Raises `InputError`."""
    given = read_inputs(inputs, model)
    made = model.tensors[model.outputs[0]]
    wanted = None if labels is None else read_labels(labels, len(given), made.bytes // made.width)
    outputs: Array = np.empty((len(given), made.bytes), np.int8)
    session = Session(model)
    for i, x in enumerate(given):
        if i % 10 == 0:
            say(f"input {i + 1:,} of {len(given):,}")
        outputs[i] = session.run([x])[0].reshape(-1)
    say(f"asking {name_of(content)}")
    other: Array | str = interpreted(content, model, given)
    if made.width == 2:
        outputs = outputs.view("<i2")
        other = other if isinstance(other, str) else other.view("<i2")
    classes = _classes(outputs, made.scale, made.zero_point)
    theirs = None if isinstance(other, str) else _classes(other, made.scale, made.zero_point)
    return Tried(given, outputs, classes, wanted, other, theirs, name_of(content))


def _classes(outputs: Array, scale: float, zero_point: int) -> Array:
    """Return the class of each output: the first largest byte; of a single byte, 1 from the real 0.5 on."""
    if outputs.shape[1] == 1:
        return ((outputs[:, 0].astype(np.float64) - zero_point) * scale >= 0.5).astype(np.int64)
    found: Array = outputs.argmax(axis=1)
    return found
