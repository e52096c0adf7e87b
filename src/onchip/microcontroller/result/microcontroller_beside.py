"""Other methods on the same network: RAM and work by method, beside onchip's own plans."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from onchip.base.errors import ModelError
from onchip.microcontroller.compare.segments import METHODS, best_order
from onchip.microcontroller.compare.tflm_arena import Arena, tflm_arena
from onchip.microcontroller.int8.model import Int8Model
from onchip.microcontroller.rows.of_model import row_model
from onchip.microcontroller.rows.planning import plan as plan_rows
from onchip.network import Network
from onchip.planners.limits import NO_LIMITS
from onchip.plans import Plan

__all__ = ["Beside", "Method", "beside"]

ALIGNMENT = 4
"""The alignment of rows: kernels read words."""

SECONDS = 60.0
"""The time for the order of rows and their addresses, where a network is so large that it matters."""

SAYS = {
    "whole": "whole tensors in the file's order, the largest first at the lowest gap",
    "order": "whole tensors in the order of least peak (what HMCOS looks for), exactly",
    "in place": "whole tensors, depthwise layers in place (TinyEngine)",
    "patches": "the first layers in patches, halos made anew (MCUNetV2, msf-CNN)",
    "overlap": "layer by layer, each output over its input (vMCU's single layers)",
    "window": "inverted bottlenecks fused over a window, the expansion made anew (vMCU)",
    "onchip": "rings of rows, nothing made twice (--objective once)",
    "rows": "each row has an address, nothing made twice (--method rows; kernels' workspaces not counted)",
}


@dataclass(frozen=True, slots=True)
class Method:
    """A method: bytes of RAM for activations and workspaces, work as a multiple of making everything once.

    Without bytes it has no answer for this network, and `says` why.
    """

    name: str
    ram_bytes: int | None
    work: float | None
    says: str

    def data(self) -> dict[str, Any]:
        """Return the method as JSON data."""
        return {"name": self.name, "ram_bytes": self.ram_bytes, "work": self.work, "says": self.says}


Beside = tuple[Method, ...]


def beside(
    content: bytes,
    model: Int8Model,
    network: Network,
    plan: Plan,
    progress: Callable[[str], None],
    *,
    held: bool = True,
) -> Beside:
    """Return every method on the network in this `.tflite` file; the last is the requested `plan`.

    All see the same layers and workspaces, except TensorFlow Lite Micro, which reports its arena itself, and
    rows, which count no workspace. `held`: its input lies in memory.
    """
    progress("asking TensorFlow Lite Micro")
    own = max(sum(op.work for op in network.operators), 1)
    found = [*_arena(tflm_arena(content))]
    several = len(network.outputs) > 1 or sum(t.kind == "input" for t in network.tensors) > 1
    for name, method in METHODS.items():
        progress(f"method {name}")
        if several:  # none of them holds all inputs from the start, outputs to the end, and states throughout
            found.append(Method(name, None, None, "is for one input, one output and no state"))
            continue
        try:
            made = best_order(network) if name == "order" else method(network)
        except ModelError as problem:
            found.append(Method(name, None, None, str(problem)))
        else:
            found.append(Method(name, made.ram_bytes, made.macs / own, SAYS[name]))
    progress("method rows")
    try:
        found.append(Method("rows", _by_rows(model, held=held), 1.0, SAYS["rows"]))
    except ModelError as problem:
        found.append(Method("rows", None, None, str(problem)))
    macs = plan.result.macs
    work = 1.0 if macs is None else macs / own
    return (*found, Method("this plan", plan.result.extent_bytes, work, "as printed above"))


def _by_rows(model: Int8Model, *, held: bool) -> int:
    rows = row_model(model)
    graph = rows.graph.held() if held else rows.graph.by_rows()
    return plan_rows(graph, rows.outputs, alignment=ALIGNMENT, limits=NO_LIMITS.patient(SECONDS)).placed.bytes


def _arena(found: Arena | str) -> tuple[Method, ...]:
    if isinstance(found, str):
        return (Method("TFLM", None, None, found),)
    return (
        Method("TFLM", found.total, 1.0, "its whole arena, as its interpreter reports it"),
        Method("TFLM, tensors", found.head, 1.0, "the part of it that holds tensors"),
    )
