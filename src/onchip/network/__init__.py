"""A network as planners see it: operators, tensors, views, and the relations derived from them."""

from onchip.network.bitsets import bits, mask
from onchip.network.growth import Growth, Rows, growth_of, rows_of
from onchip.network.network import Network
from onchip.network.operators import (
    ELEMENT_BYTES,
    GATHERED,
    KINDS,
    MOST_SIDES,
    Constant,
    Geometry,
    Operator,
    OperatorSpec,
    Patches,
    Reach,
    Side,
    Tensor,
    TensorKind,
    View,
    most_sides,
)

__all__ = [
    "ELEMENT_BYTES",
    "GATHERED",
    "KINDS",
    "MOST_SIDES",
    "Constant",
    "Geometry",
    "Growth",
    "Network",
    "Operator",
    "OperatorSpec",
    "Patches",
    "Reach",
    "Rows",
    "Side",
    "Tensor",
    "TensorKind",
    "View",
    "bits",
    "growth_of",
    "mask",
    "most_sides",
    "rows_of",
]
