"""The substitute for the elements of an operand that are not in the scratch.

An operator runs on a whole operand of which the scratch has a part. All other elements are poison, so that a
result that needs one of them is poison, too.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    import onnx

__all__ = ["poison_of"]

_POISON = {"MaxPool": np.inf, "Resize": 1e30}
"""The poison by node type, instead of not-a-number: the largest of a window ignores that, and a resize
multiplies it with 0 along a side that the resize leaves unchanged."""

_INDEXED = frozenset({"Gather", "GatherElements", "GatherND", "ScatterElements", "ScatterND"})


def poison_of(nodes: Iterable[onnx.NodeProto], dtype: np.dtype[Any]) -> float:
    """Return the poison for operands of these nodes; for whole numbers the largest but one of their type.

    Indices into a table are 0: it has no other row for certain.
    """
    if dtype.kind in "iu":
        if dtype.itemsize > 1 and any(node.op_type in _INDEXED for node in nodes):
            return 0
        return int(np.iinfo(dtype).max) - 1
    if dtype.kind == "b":
        return 1
    return next((_POISON[node.op_type] for node in nodes if node.op_type in _POISON), np.nan)
