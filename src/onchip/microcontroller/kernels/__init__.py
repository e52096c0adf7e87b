"""The kernels: every layer of an int8 network, line by line, in the kernel language.

A kernel makes output pixels [x0, x1) of one output line from pointers to input lines, so that the same code
walks over whole maps, rings of rows and rings of columns. `kernel_for` returns a layer's function, its
constants and its workspace, and how it walks, which tells a planner the overlaps that are legal.
"""

from __future__ import annotations

from onchip.microcontroller.kernels.use import (
    SHAREABLE,
    KernelUse,
    PoolSums,
    kernel_for,
    pool_sums_for,
    walk_of,
    workspace_bytes,
)

__all__ = [
    "SHAREABLE",
    "KernelUse",
    "PoolSums",
    "kernel_for",
    "pool_sums_for",
    "walk_of",
    "workspace_bytes",
]
