"""A function of two bytes, looked up: floats between bytes that depend on two tensors.

A table holds a result for each of 65,536 pairs. Its rows, one for each byte of the operand that may be
spread, are often the same: where that operand's scale is fine, as that of a mean is beside what it is
subtracted from. Equal rows are kept once.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from onchip.microcontroller.int8.model import Int8, Own, frozen_array
from onchip.microcontroller.int8.read_site import INT8, Site

__all__ = ["LookupTwo", "lookup_two"]

BYTES = 256


@dataclass(frozen=True, kw_only=True, eq=False)
class LookupTwo(Own):
    """y = rows[row_of[b + 128], a + 128] of bytes a and b; b is a map, a pixel or a byte for all.

    `rows` is [number, 256], `row_of` [256] the number of each byte's row, less 128.
    """

    rows: Int8
    row_of: Int8

    def compute(self, seen: Sequence[Int8]) -> Int8:
        a, b = (x.astype(np.int64) + 128 for x in seen)
        found: Int8 = self.rows[self.row_of[b].astype(np.int64) + 128, a]
        return found


def lookup_two(site: Site) -> LookupTwo:
    """Return floats between bytes, whose table `read_islands` has made, as a layer."""
    table, made = site.constant(2, INT8, "results"), site.made()
    if table.size != BYTES * BYTES:
        raise site.refuse(f"has {table.size} results, not one for each of 65,536 pairs of bytes")
    table = table.reshape(BYTES, BYTES)
    first = 0 if site.seen(0) == made else 1
    small = site.seen(1 - first)
    if site.seen(first) != made or small not in (made, (1, 1, 1, made[3]), (1, 1, 1, 1)):
        raise site.refuse(f"makes {list(made)} of {list(site.seen(0))} and {list(site.seen(1))}")
    # Of each byte of the second operand, a row over those of the first.
    rows, row_of = np.unique(table.T if first == 0 else table, axis=0, return_inverse=True)
    return LookupTwo(
        name=site.node.label,
        inputs=(site.value(first).tensor, site.value(1 - first).tensor),
        output=site.output,
        input_shapes=(made, small),
        output_shape=made,
        rows=frozen_array(rows, np.int8),
        row_of=frozen_array(row_of.reshape(-1) - 128, np.int8),
    )
