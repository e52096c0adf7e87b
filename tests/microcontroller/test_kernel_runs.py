"""Sums over runs of bytes, and the blocks of vectors: interpreted, against numpy."""

from __future__ import annotations

from typing import get_args

import numpy as np
import pytest

from onchip.machines.cores import Forms
from onchip.microcontroller.int8.model import Int8
from onchip.microcontroller.kernel_language import Fault, Kernel, Kind, Pointer, Ram, c_source, run
from onchip.microcontroller.kernel_language.intrinsics import call
from onchip.microcontroller.kernel_language.ir import Function
from onchip.microcontroller.kernel_language.validate import KernelError
from onchip.microcontroller.kernels.runs import one_sum, one_words, padded_rows, quad_sums, quad_words

RNG = np.random.default_rng(5)


def kernel(forms: Forms, size: int, single: bool) -> Function:
    """Sums over a run, as integers one behind the other."""
    k = Kernel("sums", "Sums over a run.")
    x, out, weights = k.input("x"), k.output("out"), k.flash("weights")
    w = k.RegAlloc("w", weights + 0)
    if single:
        (first,) = k.FlashLoad(w, "first")
        sums = [one_sum(k, forms, x, w, size, first)]
    else:
        sums = quad_sums(k, forms, x, w, size, k.FlashLoad(w, *(f"first{c}" for c in range(4))))
    (end,) = k.FlashLoad(w, "end")
    for i, total in enumerate([*sums, end]):
        k.RAMStore(out, 4 * i, total, Kind.INT)
    return k.finish()


@pytest.mark.parametrize("forms", get_args(Forms))
@pytest.mark.parametrize("single", [False, True])
@pytest.mark.parametrize("size", [1, 3, 4, 7, 16, 19, 33])
def test_runs_are_summed_to_their_end_and_no_further(forms: Forms, single: bool, size: int) -> None:
    rows = 1 if single else 4
    x: Int8 = RNG.integers(-128, 128, size).astype(np.int8)
    weights: Int8 = RNG.integers(-128, 128, (rows, size)).astype(np.int8)
    first = [int(v) for v in RNG.integers(-9999, 9999, rows)]
    words = [*first, *(one_words(weights[0]) if single else quad_words(weights, forms)), 77]
    ram = Ram(size + 4 * (rows + 1))
    ram.put(Pointer("x", 0), x.tobytes())
    out = Pointer("out", size)
    run(kernel(forms, size, single), ram, {"x": Pointer("x", 0), "out": out, "weights": words})
    made = np.frombuffer(ram.get(out, 4 * (rows + 1)), "<i4")
    assert made[:-1].tolist() == (weights.astype(int) @ x.astype(int) + first).tolist()
    assert made[-1] == 77  # the pointer stands behind the weights


def test_rows_are_padded_to_fours() -> None:
    assert padded_rows(np.ones((5, 3), np.int8)).sum(axis=1).tolist() == [3, 3, 3, 3, 3, 0, 0, 0]


def taps(weights: list[int], plus: int | None = None) -> tuple[Function, list[int]]:
    """One or two taps of eight channels, each with one weight; the bytes of the sums of even channels."""
    k = Kernel("taps", "Taps of eight channels.")
    x, out, flash = k.input("x"), k.output("out"), k.flash("weights")
    w = k.RegAlloc("w", flash + 0)
    zero = k.let("zero", call("four", 0))
    even, odd = k.RegAlloc("even", zero), k.RegAlloc("odd", zero)
    places = [k.let(f"x{i}", x + 8 * i) for i in range(len(weights))]
    k.taps((even, odd), places, w, None if plus is None else k.let("plus", plus))
    k.RAMStore(out, 0, even, Kind.LANES)
    words = np.repeat(np.array(weights, np.int8), 8).view("<i4").tolist()
    return k.finish(), words


def test_two_taps_of_the_least_weight_do_not_fit_sixteen_bits() -> None:
    x = np.full(16, -128, np.int8)
    for weights, fits in (([-128, -127], True), ([-128, -128], False)):
        function, words = taps(weights)
        ram = Ram(24)
        ram.put(Pointer("x", 0), x.tobytes())
        given = {"x": Pointer("x", 0), "out": Pointer("out", 16), "weights": words}
        if fits:
            run(function, ram, given)
            continue
        with pytest.raises(Fault, match="sixteen bits"):
            run(function, ram, given)


def test_blocks_are_calls_and_wrong_ones_are_refused() -> None:
    function, _ = taps([3], plus=5)
    assert "taps1_plus(&even, &odd, &w, x0, plus);" in c_source(function)
    with pytest.raises(KernelError, match="no block makes 2 taps"):
        taps([3, 4], plus=5)
    k = Kernel("dots", "A block that there is not.")
    x, weights = k.input("x"), k.flash("weights")
    w, sums = k.RegAlloc("w", weights + 0), [k.RegAlloc(f"sum{c}", 0) for c in range(3)]
    k.dot_run([sums], [x], w, 16, fresh=True)
    with pytest.raises(KernelError, match="no block makes 1 pixels of 16 bytes"):
        k.finish()
