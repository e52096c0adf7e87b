"""The choice of a layer's kernel, with its constants, its workspace and its walk."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import MISSING, dataclass, fields
from enum import Enum
from functools import cache
from typing import Any

from onchip.base.errors import ModelError
from onchip.machines.cores import Forms
from onchip.microcontroller.int8.model import (
    AveragePool,
    Concat,
    Conv,
    Depthwise,
    FullyConnected,
    Int8,
    Layer,
    MaxPool,
    Mean,
    Own,
    Pad,
    Pairwise,
    PReLU,
    Resize,
    Softmax,
    Table,
)
from onchip.microcontroller.kernel_language import Function
from onchip.microcontroller.kernel_language.intrinsics import signed
from onchip.microcontroller.kernels.conv import CHUNK as CONV_CHUNK
from onchip.microcontroller.kernels.conv import ConvShape, conv, conv_words
from onchip.microcontroller.kernels.depthwise import CHUNK as DEPTHWISE_CHUNK
from onchip.microcontroller.kernels.depthwise import depthwise, depthwise_words
from onchip.microcontroller.kernels.elements import element_shape, element_words, elements
from onchip.microcontroller.kernels.library import PIXELS as LIBRARY_PIXELS
from onchip.microcontroller.kernels.library import library_for, library_workspace
from onchip.microcontroller.kernels.moves import (
    concat,
    concat_shape,
    pad,
    pad_shape,
    pad_words,
    resize,
    resize_shape,
    resize_words,
)
from onchip.microcontroller.kernels.own import OWN
from onchip.microcontroller.kernels.pools import add_line, finish_sums, pool, pool_shape, pool_words
from onchip.microcontroller.kernels.scale import Scale
from onchip.microcontroller.kernels.softmax import SoftmaxShape, softmax_kernel, softmax_words
from onchip.microcontroller.kernels.windows import conv_shape, depthwise_shape

__all__ = ["SHAREABLE", "KernelUse", "PoolSums", "kernel_for", "pool_sums_for", "walk_of", "workspace_bytes"]


SHAREABLE = (Conv, Depthwise, FullyConnected)
"""Layers for which the library has a kernel, besides one for their shape."""


@dataclass(frozen=True, eq=False)
class KernelUse:
    """A layer's kernel: the function (equal name, equal code), its constants, bytes of workspace (`patch`).

    A step makes `pixels` pixels, `channels` (0: all) channels of each at a time. `operand` is a constant map
    that is the layer's second operand: it lies in flash, and `lines[1]` is its line.
    """

    function: Function
    words: tuple[int, ...]
    workspace: int
    pixels: int
    channels: int
    operand: Int8 | None = None


@dataclass(frozen=True, eq=False)
class PoolSums:
    """A pool over a whole map, line by line; `sums`, an integer a channel, begin as bytes of `fill`."""

    add: Function
    finish: Function
    words: tuple[int, ...]
    fill: int


def kernel_for(
    layer: Layer,
    *,
    reverse: bool = False,
    columns: bool = False,
    in_step: int = 0,
    out_step: int = 0,
    pixels: int = 0,
    shared: bool = False,
    forms: Forms = "packed",
) -> KernelUse:
    """Return the kernel of a layer; raises `ModelError` if there is none.

    A `shared` kernel is the library's, if the layer is one of `SHAREABLE`: the same for layers of any shape.
    With `columns` its lines are columns of the map. `in_step` and `out_step` are bytes from a pixel of a line
    to the next, 0 where pixels are contiguous; `pixels` of a step are chosen where 0 is given. `forms` are
    the core's; the walk, the workspace and the constants are the same in all of them.
    """
    steps = {"in_step": in_step, "out_step": out_step}
    turned: dict[str, Any] = {"reverse": reverse, "columns": columns, **steps}
    straight: dict[str, Any] = {"reverse": reverse, **steps}
    if shared and isinstance(layer, SHAREABLE) and not in_step and not out_step:
        use = library_for(layer, reverse=reverse, columns=columns, forms=forms)
        most = min(use.pixels, pixels or use.pixels)  # a call for one pixel makes one
        return KernelUse(use.function, _signed(use.words), use.workspace, most, use.channels)
    match layer:
        case Conv() | FullyConnected():
            shape = conv_shape(layer, pixels=pixels, forms=forms, **turned)
            words = conv_words(layer, shape, columns=columns)
            return _use("conv", conv, shape, words, shape.patch_bytes, shape.pixels, _conv_chunk(shape))
        case Depthwise():
            deep = depthwise_shape(layer, forms=forms, **turned)
            words = depthwise_words(layer, deep, columns=columns)
            return _use("depthwise", depthwise, deep, words, 0, 1, DEPTHWISE_CHUNK)
        case AveragePool() | MaxPool() | Mean():
            pooled = pool_shape(layer, forms=forms, **turned)
            return _use("pool", pool, pooled, pool_words(layer), workspace_bytes(layer))
        case Pairwise() | Table() | PReLU():
            element = element_shape(layer, forms=forms, **straight)
            operand = layer.constant if isinstance(layer, Pairwise) and element.second == "map" else None
            return _use("elements", elements, element, element_words(layer), operand=operand)
        case Softmax():
            softmax = SoftmaxShape(channels=layer.output_shape[3], **straight)
            return _use("softmax", softmax_kernel, softmax, softmax_words(layer))
        case Pad():
            return _use(
                "pad", pad, pad_shape(layer, forms=forms, **turned), pad_words(layer), workspace_bytes(layer)
            )
        case Concat():
            if in_step:
                raise ModelError(
                    "a concatenation reads pixels that lie one behind the other", item=layer.name
                )
            shape_ = concat_shape(layer, reverse=reverse, columns=columns, out_step=out_step, forms=forms)
            return _use("concat", concat, shape_, [], workspace_bytes(layer))
        case Resize():
            if columns:
                raise ModelError("a resizing is made row by row", item=layer.name)
            return _use(
                "resize",
                resize,
                resize_shape(layer, forms=forms, **straight),
                resize_words(layer),
                workspace_bytes(layer),
            )
        case Own():
            if columns or in_step or out_step:
                raise ModelError("is made row by row, of whole pixels", item=layer.name)
            own = OWN[type(layer)](layer)
            own = own.by_forms(forms) if own.by_forms else own
            return _use(own.kind, own.make, own.shape, own.words, own.workspace)
    raise ModelError(f"no kernel makes {type(layer).__name__}", item=layer.name)


def pool_sums_for(
    layer: AveragePool | MaxPool | Mean, *, in_step: int = 0, forms: Forms = "packed"
) -> PoolSums:
    """Return the two kernels of a pool over a whole map that takes each line as it is made."""
    shape = pool_shape(layer, in_step=in_step, forms=forms)
    fill = 0x80 if shape.does == "greatest" else 0
    name = _name("pool", shape)
    return PoolSums(
        add_line(f"{name}_add", shape), finish_sums(f"{name}_finish", shape), tuple(pool_words(layer)), fill
    )


def walk_of(layer: Layer, *, shared: bool = False) -> tuple[int, int]:
    """Return the pixels of a step and the channels of a chunk of the layer's kernel (0: all)."""
    if shared and isinstance(layer, Conv | FullyConnected):
        return LIBRARY_PIXELS, _conv_chunk(conv_shape(layer))
    match layer:
        case Conv() | FullyConnected():
            shape = conv_shape(layer)
            return shape.pixels, _conv_chunk(shape)
        case Depthwise():
            return 1, DEPTHWISE_CHUNK
    return 1, 0


def workspace_bytes(layer: Layer, *, shared: bool = False) -> int:
    """Return the bytes of RAM that the layer's kernel needs beside its input and output."""
    if shared and isinstance(layer, SHAREABLE):
        return library_workspace(layer)
    match layer:
        case Conv() | FullyConnected():
            # A kernel may need a patch along columns but none along rows; a pixel of it is enough.
            turned = conv_shape(layer, columns=True, pixels=1)
            return max(conv_shape(layer).patch_bytes, turned.patch_bytes)
        case AveragePool() | MaxPool() | Mean() | Pad() | Concat() | Resize():
            return layer.output_shape[3]
        case Own():
            return OWN[type(layer)](layer).workspace
    return 0


def _conv_chunk(shape: ConvShape) -> int:
    # Chunks restart in every group: with an odd number of channels each, no multiple of two is kept.
    return 1 if shape.groups > 1 and shape.outputs // shape.groups % 2 else CONV_CHUNK


def _use(
    kind: str,
    make: Callable[[str, Any], Function],
    shape: Any,
    words: list[int],
    workspace: int = 0,
    pixels: int = 1,
    channels: int = 0,
    operand: Int8 | None = None,
) -> KernelUse:
    function = _traced(kind, make, shape)
    return KernelUse(function, _signed(words), workspace, pixels, channels, operand)


def _signed(words: Iterable[int]) -> tuple[int, ...]:
    return tuple(signed(int(word)) for word in words)


@cache
def _traced(kind: str, make: Callable[[str, Any], Function], shape: Any) -> Function:
    return make(_name(kind, shape), shape)


def _name(kind: str, shape: Any) -> str:
    """Return a name that states the shape: every field that differs from its usual value."""
    parts = [kind]
    for field in fields(shape):
        value = getattr(shape, field.name)
        if value == field.default or (value is False and field.default is MISSING):
            continue
        if isinstance(value, bool):
            parts.append(field.name)
        elif isinstance(value, tuple):
            parts.append(field.name[0] + "x".join(map(str, value)))
        elif isinstance(value, str | Scale | Enum):
            parts.append(str(value).replace(" ", "_"))
        else:
            parts.append(f"{_SHORT.get(field.name, field.name)}{value}")
    return "_".join(parts)


_SHORT = {
    "channels": "c",
    "outputs": "o",
    "stride": "s",
    "dilation": "d",
    "before": "b",
    "pixels": "p",
    "groups": "g",
}
