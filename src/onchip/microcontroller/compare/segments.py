"""The methods that segments is compared with on one network: bytes of RAM and multiply-accumulates.

Every method sees the same layers and the same workspaces of kernels; none counts what a runtime keeps beside
the activations. docs/vmcu.md shows them side by side.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

from onchip.microcontroller.compare.in_place import in_place_depthwise
from onchip.microcontroller.compare.lives import Baseline, Lives, greedy_bytes
from onchip.microcontroller.compare.overlapped import overlapped
from onchip.microcontroller.compare.patches import patched
from onchip.microcontroller.compare.window_fused import window_fused
from onchip.microcontroller.segments.options import InputMode, SegmentOptions
from onchip.microcontroller.segments.planning import plan
from onchip.network import Network
from onchip.planners.packing import Buffer
from onchip.planners.placement.problem import Problem
from onchip.planners.placement.search import minimum_peak

__all__ = ["METHODS", "Baseline", "best_order", "ours", "whole_tensors"]

TFLM_ALIGNMENT = 16
EVERYTHING = 1 << 40
"""A RAM limit that no network reaches."""


def whole_tensors(network: Network) -> Baseline:
    """Return whole tensors in the given order, the largest placed first, as TFLM's greedy memory planner
    does.

    Padding that the network's reader has merged into the next layers is no tensor here; the interpreter
    keeps it, and places equal sizes in its file's order: benchmarks/tflm_arena.py measures it.
    """
    lives = Lives.of(network)
    buffers = [
        Buffer(lives.first[t], lives.last[t] + 1, _up(lives.net.maps[t].bytes), TFLM_ALIGNMENT)
        for t in lives.first
    ]
    buffers += [
        Buffer(i, i + 1, _up(layer.workspace), TFLM_ALIGNMENT)
        for i, layer in enumerate(lives.net.layers)
        if layer.workspace
    ]
    return Baseline("whole", greedy_bytes(buffers), lives.macs)


def best_order(network: Network) -> Baseline:
    """Return whole tensors in the order of least peak, nothing in place: HMCOS's problem, solved exactly."""
    return Baseline("order", minimum_peak(Problem.of(network)).value, Lives.of(network).macs)


def ours(network: Network, mode: InputMode = "held") -> Baseline:
    """Return a plan of `onchip.microcontroller.segments` that makes nothing twice: its pool, its work."""
    found = plan(network, EVERYTHING, SegmentOptions(mode, objective="once"))
    name = "onchip" if mode == "held" else f"onchip, input {mode}"
    macs = found.result.macs
    return Baseline(name, found.result.extent_bytes, Lives.of(network).macs if macs is None else macs)


def _up(bytes_: int) -> int:
    return -(-bytes_ // TFLM_ALIGNMENT) * TFLM_ALIGNMENT


METHODS: Mapping[str, Callable[[Network], Baseline]] = {
    "whole": whole_tensors,
    "order": best_order,
    "in place": lambda network: in_place_depthwise(Lives.of(network)),
    "patches": lambda network: patched(Lives.of(network)),
    "overlap": lambda network: overlapped(Lives.of(network)),
    "window": lambda network: window_fused(Lives.of(network)),
    "onchip": ours,
}
"""The methods by name; all of them hold the input image in RAM."""
