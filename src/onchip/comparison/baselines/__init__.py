"""The baselines of placement: the schemes of the COSMA paper, and those of today's runtimes.

The four schemes of COSMA's section V-A fix an order (the network's own, or the one of least peak), keep
tensors in TFLite's linear arena and, when the next one finds no gap, evict by a rule (Belady's, or the
least traffic each time). TFLM and ExecuTorch place whole lives once and evict nothing: their plan exists only
where everything fits. Every answer is a plan program, certified like any other. docs/compare.md explains how
to read it.
"""

from typing import TYPE_CHECKING

from onchip.base.lazy import exports

if TYPE_CHECKING:
    from onchip.comparison.baselines.schemes import SCHEMES, DoesNotFit, Scheme, solve
else:
    __getattr__, __dir__ = exports(__name__, schemes="SCHEMES DoesNotFit Scheme solve")

__all__ = ["SCHEMES", "DoesNotFit", "Scheme", "solve"]
