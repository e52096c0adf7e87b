"""A program of `torch.export` as ONNX: one node per ATen operator, named after the module that called it.

`torch.export` gives the graph as the definition's author wrote it (nothing folded, decomposed or fused); each
ATen operator has one ONNX counterpart here, a few have two or three. That keeps batch normalisation,
attention and the paddings as the operators they are, and makes names and bytes independent of any exporter's
passes. Unlisted operators are refused by name. Needs torch; nothing else of onchip imports this at its top.

`exporter` walks the graph, `program` makes a model of the result; the rules are in one module per family:
`layers` (convolution, linear, norms, pooling, resizing), `pointwise`, `layout` (views, slices, concatenation,
padding), `indexing`, `recurrent`, `reduce` and `attention`.
"""

from onchip.readers.torch_export import (  # noqa: F401  register
    attention,
    indexing,
    layers,
    layout,
    pointwise,
    recurrent,
    reduce,
)
from onchip.readers.torch_export.program import Exported, export

__all__ = ["Exported", "export"]
