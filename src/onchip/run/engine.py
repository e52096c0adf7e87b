"""The engines that run operators: one for each kind of model, all with the same interface."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Protocol

import numpy as np

from onchip.network import Network, Operator
from onchip.readers.source import Executable, TfliteExecutable
from onchip.run.slots import Slots

__all__ = ["Engine", "engine_of"]

Array = np.ndarray[Any, Any]


class Engine(Protocol):
    """A runtime with one network; values go by tensor id."""

    @property
    def name(self) -> str:
        """The reference of the plan's execution, in messages."""

    @property
    def optimised(self) -> str:
        """The second opinion, in messages."""

    @property
    def notes(self) -> Sequence[str]:
        """Notes for a report about the values used."""

    def seeded_inputs(self, seed: int) -> dict[int, Array]:
        """Return a value for each graph input."""

    def reference(self, inputs: Mapping[int, Array]) -> dict[int, Array]:
        """Return every tensor's value, from one run of the whole network."""

    def kernel(self, op: Operator, operands: Mapping[int, Array]) -> Mapping[int, Array]:
        """Return one operator's outputs, from only its operands and constants."""

    def second_opinion(self, inputs: Mapping[int, Array], reference: Mapping[int, Array]) -> float:
        """Return the largest relative difference of an output from the runtime's optimised kernels.

        Raises `Mismatch` where it is too large to be rounding.
        """


def engine_of(network: Network, slots: Slots, executable: Executable | TfliteExecutable, seed: int) -> Engine:
    """Return the engine for a model; raises `MissingExtra` when its runtime is not installed."""
    if isinstance(executable, TfliteExecutable):
        from onchip.run.tflite_engine import TfliteEngine

        return TfliteEngine(network, slots, executable)
    from onchip.run.onnx_engine import OnnxEngine

    return OnnxEngine.of(network, slots, executable, seed)
