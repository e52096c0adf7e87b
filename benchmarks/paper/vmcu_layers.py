"""Single layers: the offset problem's formulas, where the paper is wrong on them, and Fig. 7."""

from __future__ import annotations

from collections.abc import Iterator

from vmcu_networks import pointwise

from onchip.microcontroller.compare.segments import best_order
from onchip.papers.vmcu.affine import Access, Domain, LoopNest, Operand, least_distance, printed_distance
from onchip.papers.vmcu.circular import circular_pool
from onchip.papers.vmcu.nests import matrix_product

__all__ = ["errata", "fig_7", "formulas"]

F411RE = 128 * 1024

NAMED = ((80, 16, 16), (48, 8, 16), (24, 32, 32), (20, 16, 48), (20, 48, 16))
"""Pointwise layers that are known by name: rows and columns, channels in and out."""

OTHERS = ((56, 32, 32), (44, 16, 80), (44, 80, 16), (11, 240, 48))
"""Four more, from MobileNet and MCUNet."""

PRODUCTS = ((2, 2, 3), (1, 10, 10), (6400, 16, 16), (400, 48, 16), (400, 16, 48))
"""M, N, K."""


def formulas() -> Iterator[str]:
    yield "| M, N, K | least distance | footprint | max(MN, MK) + min(N, K) - 1 | the step before it |"
    yield "|---|--:|--:|--:|--:|"
    for m, n, k in PRODUCTS:
        apart = least_distance(matrix_product(m, n, k))
        formula = max(m * n, m * k) + min(n, k) - 1
        step = max(m * n, m * k) + apart
        wrong = "" if step == formula else " (wrong)"
        yield f"| {m}, {n}, {k} | {apart:,} | {max(m * n, m * k + apart):,} | {formula:,} | {step:,}{wrong} |"


def errata() -> Iterator[str]:
    n = 4
    domain = Domain.box(3, n, n)
    backwards = LoopNest(
        domain,
        Operand(domain, Access(((1, 0, 0), (0, 0, 1)), (0, 0)), (n, 1)),
        Operand(domain, Access(((1, 0, 0), (0, -1, 0)), (0, n - 1)), (n, 1)),
    )
    printed, least = printed_distance(backwards), least_distance(backwards)
    row = [circular_pool(pointwise(1, 4, 4), segment).bytes for segment in ("byte", "paper")]
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
        "- **Smaller segments do not always need less** (section 5.3). A pixel of 4 bytes that is read "
        f"whole and then written whole stays in its {row[1]} bytes; by single bytes it takes {row[0]}."
    )
    yield (
        f"- **464.6 KB for B3 under HMCOS** (section 7.3) is three times B: 3 x {b:,} = {3 * b:,}. "
        f"A, B and C of B3, which live together at most, are {b3:,} bytes. "
        f"TinyEngine's 247.8 KB is A + B of B2: {88 * 88 * 8 + 88 * 88 * 24:,} bytes."
    )
    yield (
        "- **S1 is not the bottleneck of MCUNet-5fps-VWW**, as section 7.3 has it: that is the first "
        f"block, at 40 x 40 ({40 * 40 * 8 + 40 * 40 * 48:,} bytes for its A + B), which Table 2 "
        "leaves out with the stem and every other block of stride 2."
    )


def fig_7() -> Iterator[str]:
    yield (
        "| rows x columns, channels | in + out | by the paper's segment | saved | by bytes | saved | "
        "in 128 KB: whole, overlapped |"
    )
    yield "|---|--:|--:|--:|--:|--:|---|"
    for size, channels, outputs in NAMED + OTHERS:
        network = pointwise(size, channels, outputs)
        whole = best_order(network).ram_bytes
        segments, bytes_ = (circular_pool(network, segment).bytes for segment in ("paper", "byte"))
        fits = ", ".join("yes" if n <= F411RE else "no" for n in (whole, bytes_))
        yield (
            f"| {size} x {size}, {channels} > {outputs} | {whole:,} "
            f"| {segments:,} | {1 - segments / whole:.1%} | {bytes_:,} | {1 - bytes_ / whole:.1%} | {fits} |"
        )
