"""Pieces of C: numbers, types, and the index along sides of what is indexed along other dimensions."""

from __future__ import annotations

from collections.abc import Sequence
from math import prod
from typing import Any

import numpy as np

from onchip.base.errors import UsageError
from onchip.export.loops.steps import Fixed, Named, Range

__all__ = ["bounds", "ctype", "flat", "literal", "regrouped"]

TYPES = {
    "float32": "float", "float64": "double", "int8": "int8_t", "uint8": "uint8_t", "int16": "int16_t",
    "uint16": "uint16_t", "int32": "int32_t", "int64": "int64_t", "bool": "uint8_t",
}  # fmt: skip


def ctype(kind: np.dtype[Any]) -> str:
    """Return the C type of elements; raises `UsageError` for those that have none here."""
    if kind.name not in TYPES:
        raise UsageError(f"elements of type {kind.name} have no C here")
    return TYPES[kind.name]


def literal(value: Any, kind: np.dtype[Any]) -> str:
    """Return a number as C."""
    if kind.kind == "f":
        number = float(value)
        if np.isnan(number):
            return "NAN"
        if np.isinf(number):
            return "INFINITY" if number > 0 else "-INFINITY"
        text = number.hex() + ("f" if kind.itemsize == 4 else "")
        return f"({text})" if number < 0 else text
    whole = int(value)
    if whole == -(1 << 63):
        return "INT64_MIN"
    if kind.itemsize == 8:
        return f"INT64_C({whole})" if whole >= 0 else f"(-INT64_C({-whole}))"
    return f"({ctype(kind)})({whole})"


def flat(indices: Sequence[str], sizes: Sequence[int]) -> str:
    """Return the position of an element in the order of the elements of these sizes."""
    found = ""
    for index, size in zip(indices, sizes, strict=True):
        if size == 1 and index == "0":
            continue
        found = index if not found or found == "0" else f"({found}) * {size} + {index}"
    return found or "0"


def regrouped(indices: Sequence[str], sizes: Sequence[int], wanted: Sequence[int]) -> list[str]:
    """Return the indices along dimensions `wanted` of the element at these indices along others.

    Both have as many elements, in the same order.
    """
    assert prod(sizes) == prod(wanted), (sizes, wanted)
    found: list[str] = []
    at = 0
    here: list[int] = []
    there: list[int] = []
    take: list[str] = []

    def finish() -> None:
        nonlocal here, there, take
        if len(there) == 1:
            found.append(flat(take, here))
        else:
            index, rest = flat(take, here), prod(there)
            for n, size in enumerate(there):
                if size == 1:
                    found.append("0")
                    continue
                rest //= size
                inner = f"({index}) / {rest}" if rest > 1 else f"({index})"
                found.append(inner if n == 0 or prod(there[:n]) == 1 else f"({inner}) % {size}")
        here, there, take = [], [], []

    for size in wanted:
        if size == 1 and not there:
            found.append("0")
            continue
        there.append(size)
        while prod(here) < prod(there) and at < len(sizes):
            here.append(sizes[at])
            take.append(indices[at])
            at += 1
        if prod(here) == prod(there):
            finish()
    assert not there
    return found


def bounds(some: Range) -> tuple[str, str]:
    """Return the first index of a range, and one past its last."""
    if isinstance(some, Fixed):
        return str(some.low), str(some.high)
    if isinstance(some, Named):
        return f"{some.name}_lo", f"{some.name}_hi"
    numbers = f"{some.stride}, {some.before}, {some.per}"
    low, high = f"{some.of}_lo", f"{some.of}_hi"
    return (
        f"window_low({low}, {numbers}, {some.size})",
        f"window_high({low}, {high}, {numbers}, {some.span}, {some.size})",
    )
