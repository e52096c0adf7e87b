"""Single layers: the offset problem's formulas, and where the paper is wrong on them."""

from __future__ import annotations

import math
from collections.abc import Iterator

from vmcu_networks import PRINTED, left_out, pointwise

from onchip.papers.vmcu.affine import Access, Domain, LoopNest, Operand, least_distance, printed_distance
from onchip.papers.vmcu.circular import circular_pool
from onchip.papers.vmcu.nests import matrix_product

__all__ = ["errata", "formulas", "pixel", "products"]

PRODUCTS = ((2, 2, 3), (1, 10, 10), (6400, 16, 16), (400, 48, 16), (400, 16, 48))
"""M, N, K."""


def products() -> Iterator[tuple[int, int, int, int]]:
    """Yield M, N, K and the least distance of the matrix products, solved from their loop nests."""
    for m, n, k in PRODUCTS:
        yield m, n, k, least_distance(matrix_product(m, n, k))


def formulas() -> Iterator[str]:
    yield "| M, N, K | least distance | footprint | max(MN, MK) + min(N, K) - 1 | the step before it |"
    yield "|---|--:|--:|--:|--:|"
    for m, n, k, apart in products():
        formula = max(m * n, m * k) + min(n, k) - 1
        step = max(m * n, m * k) + apart
        wrong = "" if step == formula else " (wrong)"
        yield f"| {m}, {n}, {k} | {apart:,} | {max(m * n, m * k + apart):,} | {formula:,} | {step:,}{wrong} |"


def pixel() -> tuple[int, int]:
    """Bytes of a pixel of 4 channels that becomes another: by segments of a byte, and by one of the pixel."""
    by_bytes, whole = (circular_pool(pointwise(1, 4, 4), segment).bytes for segment in ("byte", "paper"))
    return by_bytes, whole


def errata() -> Iterator[str]:
    n = 4
    domain = Domain.box(3, n, n)
    backwards = LoopNest(
        domain,
        Operand(domain, Access(((1, 0, 0), (0, 0, 1)), (0, 0)), (n, 1)),
        Operand(domain, Access(((1, 0, 0), (0, -1, 0)), (0, n - 1)), (n, 1)),
    )
    printed, least = printed_distance(backwards), least_distance(backwards)
    by_bytes, whole = pixel()
    m, n_, k = 400, 48, 16
    apart = least_distance(matrix_product(m, n_, k))
    b3, b = 44 * 44 * 16 + 2 * 44 * 44 * 80, 44 * 44 * 80
    yield (
        "- **The step before the final formula** (section 4) adds the distance to the larger tensor, which "
        f"for N > K is too much: M, N, K = {m}, {n_}, {k} would give {max(m * n_, m * k) + apart:,} for "
        f"{max(m * n_, m * k + apart):,}. It should be max(MN, MK + d); the final formula is right."
    )
    yield (
        "- **The constraint is strict for earlier iterations.** Equation 1 lets a read meet the address "
        "of an earlier write. Its own loops lose nothing by it, because every instance is taken to write; "
        f"but a product of 3 x {n} x {n} whose rows are written from their end would be given {printed} "
        f"where {least} is the least that is safe."
    )
    yield (
        "- **Smaller segments do not always need less** (section 5.3). By its own formula they need "
        "more wherever the larger one divides both rows. A pixel of 4 bytes that is read "
        f"whole and then written whole stays in its {whole} bytes; by single bytes it takes {by_bytes}."
    )
    yield (
        f"- **464.6 KB for B3 under HMCOS** (section 7.3) is three times B: 3 x {b:,} = {3 * b:,}. "
        f"A, B and C of B3, which live together at most, are {b3:,} bytes. "
        f"TinyEngine's 247.8 KB is A + B of B2: {88 * 88 * 8 + 88 * 88 * 24:,} bytes."
    )
    out = left_out("made:mcunet_vww")
    strided = sum(2 in block.strides for block in out)
    yield (
        "- **S1 is not the bottleneck of MCUNet-5fps-VWW**, as section 7.3 has it: that is the first "
        f"block, at 40 x 40 ({40 * 40 * 8 + 40 * 40 * 48:,} bytes for its A + B), which Table 2 "
        f"leaves out with the stem and every other block without a sum, {strided} of stride 2 in all and "
        f"{len(out) - strided} of stride 1 that change their channels."
    )
    b16 = next(block for block in PRINTED["made:mcunet_320kb"] if block.name == "B16")
    window, side = b16.kernel, b16.size
    yield (
        "- **The block that was left out** (section 7.3). The text leaves out the last block of "
        f"MCUNet-320KB-ImageNet because its window, {window} x {window}, is larger than its map, "
        f"{side} x {side}. So is that of B16, which Table 2 has."
    )
    orders = [math.log10(gigabytes * (1 << 30) / (128 << 10)) for gigabytes in (40, 8)]
    yield (
        "- **How much smaller** (section 1). By the memories of Table 1, 128 KB are "
        f"{orders[0]:.1f} orders of magnitude below an A100, where the text has 4-5, and {orders[1]:.1f} "
        "below a Kirin 990, where it has 2-3. Its 401.4 KB are right: a layer of ResNet-50 with 64 channels"
        f" of 56 x 56 in and out has {2 * 64 * 56 * 56:,} bytes."
    )
