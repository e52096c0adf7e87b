"""Sums over runs of bytes in the form of a core: four rows of weights times one run, or one row."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from onchip.machines.cores import Forms
from onchip.microcontroller.int8.model import Int8
from onchip.microcontroller.kernel_language import Kernel, Kind
from onchip.microcontroller.kernel_language.intrinsics import call
from onchip.microcontroller.kernel_language.ir import Expr, Var
from onchip.microcontroller.kernels.conv_constants import WORD, by_sixteen, run_words
from onchip.microcontroller.kernels.products import by_bytes, four_taps
from onchip.microcontroller.kernels.windows import unroll_of

__all__ = ["QUAD", "one_sum", "one_words", "padded_rows", "quad_sums", "quad_words"]

QUAD = 4


def quad_words(rows: Int8, forms: Forms) -> list[int]:
    """Return the words of four rows of weights [four, run], as `quad_sums` reads them."""
    if forms == "vector":
        return by_sixteen(rows.reshape(QUAD, 1, -1))
    return [int(word) for word in run_words(rows).view("<i4").T.ravel()]


def quad_sums(
    k: Kernel, forms: Forms, x: Expr, w: Var, run: int, first: Sequence[Expr] | None = None
) -> list[Var]:
    """Emit four sums over a run at `x`, which begin at `first` or zero; `w` moves past their weights."""
    sums = [k.RegAlloc(f"sum{c}", first[c] if first else 0) for c in range(QUAD)]
    if forms == "vector":
        k.dot_run([sums], [x], w, run, fresh=first is None)
    elif by_bytes(forms) and run >= WORD:
        at = k.let("at", x)
        k.dot_run([sums], [at], w, run // WORD * WORD, piece=WORD)
        if run % WORD:
            four_taps(k, forms, [sums], at, [run - WORD], w)
    else:
        _taps(k, forms, sums, x, w, run)
    return sums


def one_words(row: Int8) -> list[int]:
    """Return the words of a row of weights, as `one_sum` reads them."""
    return [int(word) for word in run_words(row[None]).view("<i4").ravel()]


def one_sum(k: Kernel, forms: Forms, x: Expr, w: Var, run: int, first: Expr) -> Var:
    """Emit the sum over a run at `x`, which begins at `first`; `w` moves past its weights."""
    total = k.RegAlloc("total", first)
    _taps(k, "packed" if forms == "vector" else forms, [total], x, w, run)
    return total


def _taps(k: Kernel, forms: Forms, sums: Sequence[Var], x: Expr, w: Var, run: int) -> None:
    """Emit the products of a run, four at a time; the last four may overlap those before."""
    at = k.RegAlloc("at", x)
    if run < WORD:
        for tap in range(run):
            byte = k.RAMLoad(at, tap, Kind.BYTE, name="byte")
            for c, total in enumerate(sums):
                k.set(total, call("mla", byte, k.constant_byte(w, WORD * c + tap), total))
        k.set(w, w + len(sums))
        return
    for _ in k.loop(0, run // WORD, name="word", unroll=unroll_of(True, forms)):
        four_taps(k, forms, [sums], at, [0], w)
        k.set(at, at + WORD)
    if run % WORD:
        four_taps(k, forms, [sums], at, [run % WORD - WORD], w)


def padded_rows(rows: Int8) -> Int8:
    """Return rows of weights with rows of zeros behind them, to a multiple of four."""
    found: Int8 = np.pad(rows, ((0, -len(rows) % QUAD), (0, 0)))
    return found
