"""A small language for kernels: Python that is traced once into a typed program, printed as C or interpreted.

A kernel is a Python function that receives a `Kernel` and calls its methods: the seven verbs of vMCU
section 6.1 (RegAlloc, RAMLoad, FlashLoad, Dot, RAMStore, RAMFree, Broadcast), loops, conditions, pointers
and arithmetic of 32 bits. The calls become a `Function` of frozen dataclasses, which is checked
(`validate`), printed for a core with DSP instructions or for any C compiler (`c_source`), and run byte by
byte in Python (`run`), as the oracle of the printed C.
"""

from __future__ import annotations

from onchip.microcontroller.kernel_language.builder import Kernel
from onchip.microcontroller.kernel_language.c import c_prelude, c_prototype, c_source
from onchip.microcontroller.kernel_language.interpret import Fault, Pointer, Ram, run
from onchip.microcontroller.kernel_language.ir import Function, Kind, Type
from onchip.microcontroller.kernel_language.validate import KernelError, validate

__all__ = [
    "Fault",
    "Function",
    "Kernel",
    "KernelError",
    "Kind",
    "Pointer",
    "Ram",
    "Type",
    "c_prelude",
    "c_prototype",
    "c_source",
    "run",
    "validate",
]
