"""The rows of `onchip zoo`."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any

from onchip import zoo
from onchip.machines.chip import load_chip
from onchip.planners import placement
from onchip.readers import load

__all__ = ["rows"]


def rows(
    names: Sequence[str] | None,
    progress: Callable[[str], None],
) -> Iterator[dict[str, Any]]:
    """Yield one row per built-in network; figures at 8 bits and `fused`, in bytes. Raises `ModelError`."""
    chip = load_chip("generic")
    for name in names or zoo.names():
        progress(f"zoo:{name}")
        network = load(f"zoo:{name.removeprefix('zoo:')}").network
        budgets = placement.budgets(network, chip)
        yield {
            "name": name.removeprefix("zoo:"),
            "operators": len(network.operators),
            "tensors": len(network.tensors),
            "activation_bytes": sum(t.bytes for t in network.tensors if network.root[t.id] == t.id),
            "weight_bytes": network.weight_bytes,
            "MR": budgets.mr,
            "MP": budgets.mp,
        }
