"""The order in which onnxruntime adds up a product on x86-64, where the last bit of a sum counts.

A sum of floats of which an integer is made decides now and then, by its last bit, to which it is rounded. So
operators that round add up as unoptimised onnxruntime does on one thread of a processor with fused
multiply-adds: element by element in blocks, of which the sums are added (a product of several rows and
columns), or four products at a time (a product of one row). Its order for one column is not known here: such
sums, and all others, are of doubles. Sums of whole numbers times a power of two are exact in any order.
"""

from __future__ import annotations

from dataclasses import dataclass

__all__ = ["Order", "order_of"]


@dataclass(frozen=True)
class Order:
    """Sums in blocks of `block` products; or, with `four`, of four products at a time."""

    block: int = 0
    four: bool = False


def order_of(rows: int, columns: int, inner: int) -> Order | None:
    """Return the order of the sums of a product with so many rows, columns, and products in a sum."""
    if rows == 1:
        return Order(four=True)
    if columns == 1:
        return None
    block, wide = 128, 128
    if columns < inner:
        while wide > 16 and wide // 2 >= columns:
            wide, block = wide // 2, block * 2
    return Order(block)
