"""Loads and stores of numbers of one or two bytes, the lower byte first, at any address."""

from __future__ import annotations

from onchip.microcontroller.kernel_language import Kernel, Kind
from onchip.microcontroller.kernel_language.builder import Value
from onchip.microcontroller.kernel_language.ir import Expr, Var

__all__ = ["number_at", "put_number"]

_KIND = {1: Kind.BYTE, 2: Kind.HALF}


def number_at(k: Kernel, pointer: Expr, index: Value, width: int = 2, name: str = "number") -> Var:
    """Load the number at an index that counts numbers."""
    return k.RAMLoad(pointer, index * width, _KIND[width], name=name)


def put_number(k: Kernel, pointer: Expr, index: Value, value: Value, width: int = 2) -> None:
    """Store a number at an index that counts numbers."""
    k.RAMStore(pointer, index * width, value, _KIND[width])
