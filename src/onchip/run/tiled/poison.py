"""What stands for the elements of an operand that are not in the scratch.

An operator runs on a whole operand of which only a part is there. Everything else is poison, so that a result
for which too little is there is poison, too.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    import onnx

__all__ = ["poison_of"]

_POISON = {"MaxPool": np.inf, "Resize": 1e30}
"""By node what is used instead of not-a-number: the largest of a window passes over that, and a resize
multiplies with 0 what it reads along a side that it leaves as it is."""


def poison_of(nodes: Iterable[onnx.NodeProto], dtype: np.dtype[Any]) -> float:
    """Return the poison for operands of these nodes: of whole numbers one that no model counts to."""
    if dtype.kind in "iu":
        return int(np.iinfo(dtype).max) - 1
    if dtype.kind == "b":
        return 1
    return next((_POISON[node.op_type] for node in nodes if node.op_type in _POISON), np.nan)
