"""The options of readers, and their results."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from onchip.base.options import group, option, options
from onchip.network import Network
from onchip.readers.elements import value_bytes

if TYPE_CHECKING:
    import onnx

    from onchip.readers.tflite_graph import TfliteGraph

__all__ = ["MAX_BATCH", "Executable", "ReadOptions", "Source", "TfliteExecutable"]


MAX_BATCH = 1 << 16
"""The most images at once; more are a mistake."""


@group("Reading the model")
@options
@dataclass(frozen=True)
class ReadOptions:
    """The options for turning a model file into a network. The fields are also the command line's flags."""

    granularity: Literal["fused", "op"] = option(
        "fused",
        "`op`: one operator for each node that computes; `fused`: element-wise and batch-norm operators "
        "with one activation input merge into the producer of that input.",
    )

    dtype: Literal["file", "int8", "int16"] | None = option(
        None,
        "Element size of floating-point tensors and parameters; without it int8 for the zoo, else as in the "
        "file.",
    )

    dims: str = option(
        "",
        "Values for symbolic dimensions, `batch=1,height=224`; an unnamed one is `INPUT.AXIS`, as in "
        "`x.0=1`.",
    )

    batch: int | None = option(
        None,
        "Images at once, for a model of one image or with a free first axis; refused where it is not proved "
        "that the images stay apart. Without it as the model is.",
    )

    attention: Literal["whole", "parts"] = option(
        "whole",
        "`whole`: an attention is one operator; `parts`: its products, mask and softmax are operators.",
    )

    cache: str = option(
        "",
        "`INPUT=OUTPUT,...`: an output of an .onnx file that is the input with new elements behind it, as a "
        "cache of keys and values. The input stays where it lies, and only what is new is written. A `*` in "
        "both names stands for the same text.",
    )

    float_boundary: bool = option(
        False,
        "An .onnx input that is only quantised and an output that is only dequantised are floats, and the "
        "conversions operators, as at granularity `op`. Else they are the integers, and the caller converts.",
    )


@dataclass(frozen=True)
class Executable:
    """The original nodes behind a `Network`, which an executor runs, operator by operator.

    A tensor's bytes are those of the ONNX value `value[id]`; a view's are read at its offset in its parent.
    The nodes of operator `i`, with the values of its input tensors as inputs and those of its output tensors
    as outputs, are a model of their own: everything else they read is an initializer of `model`, or is
    computed by them from constants. `Shape` and `Size` of known shapes are `Constant` nodes in `model`, and
    nodes that no output depends on are left out.
    """

    model: onnx.ModelProto
    """Nodes in topological order with static shapes; large weights possibly without data."""

    folder: Path | None
    """The folder of external data, never left; None if the model did not come from a file."""

    nodes: tuple[tuple[int, ...], ...]
    """For each operator id, indices into `model.graph.node`, ascending: merged and layout nodes included."""

    dtype: tuple[int, ...]
    """For each tensor id, the ONNX element type."""

    shape: tuple[tuple[int, ...], ...]
    """For each tensor id, the shape of `value`."""

    value: tuple[str, ...]
    """For each tensor id, the ONNX value name whose bytes it holds."""

    weights: Mapping[str, Any] = field(default_factory=dict)
    """Arrays for initializers that have no data in `model`, if the reader knows them."""


@dataclass(frozen=True)
class TfliteExecutable:
    """The original nodes behind a `Network` read from a `.tflite` file; tensors go by their index in it.

    The nodes of operator `i`, with its input tensors as inputs and its output tensors as outputs, are a model
    of their own. Nodes that no output depends on are left out.
    """

    graph: TfliteGraph
    """The file, with its bytes."""

    nodes: tuple[tuple[int, ...], ...]
    """For each operator id, indices of the file's operators, ascending: reshapes it reads through too."""

    dtype: tuple[int, ...]
    """For each tensor id, the ONNX element type."""

    shape: tuple[tuple[int, ...], ...]
    """For each tensor id, its shape."""

    value: tuple[int, ...]
    """For each tensor id, its index in the file."""

    places: Mapping[int, tuple[int, int]]
    """For every computed tensor of the file, the tensor with its bytes (mostly itself) and the offset."""

    @property
    def file_bytes(self) -> tuple[int, ...]:
        """For each tensor id, its bytes in the file's own element type."""
        return tuple(
            value_bytes(element, shape, "file") for element, shape in zip(self.dtype, self.shape, strict=True)
        )


@dataclass(frozen=True)
class Source:
    """A network and, if there is something to execute, its original nodes."""

    network: Network
    executable: Executable | TfliteExecutable | None
    options: ReadOptions = ReadOptions()
    notes: tuple[str, ...] = ()
    """Decisions of the reader that the file does not say, a line each."""
