"""Local response normalisation, whole: one `LRN` for the nine calls that torch makes of it."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import Any

from onchip.readers.torch_export.exporter import Exporter, Node, arguments, kind_of

__all__ = ["find_response_norms"]

_CHAIN = ("pow", "add", "mul", "view", "squeeze", "avg_pool3d", "pad", "view", "mul")
"""From the divisor of `torch.nn.functional.local_response_norm` back to its input's square."""

_DIV = "div"


@dataclass(frozen=True)
class ResponseNorm:
    """x / (bias + alpha / size * the sum of x's squares over `size` channels) ** beta."""

    size: int
    alpha: float
    beta: float
    bias: float


def find_response_norms(to: Exporter) -> None:
    """Record every local response normalisation of images, and the calls that ONNX does not need.

    Only over an odd number of channels: with an even one torch and ONNX centre the window differently.
    """
    for node in to.graph.nodes:
        if node.op == "call_function" and kind_of(node) == _DIV:
            chain = _chain(node)
            norm = None if chain is None else _read(node, chain)
            if chain is not None and norm is not None:
                to.whole[node] = partial(_emit, to, node, norm)
                to.skipped.update(chain)


def _chain(node: Node) -> list[Node] | None:
    """Return the calls that make the divisor, each read by the next alone, from the last to the first."""
    chain: list[Node] = []
    at: Any = node.args[1]
    for kind in _CHAIN:
        if not isinstance(at, Node) or at.op != "call_function" or kind_of(at) != kind or len(at.users) != 1:
            return None
        chain.append(at)
        at = at.args[0]
    return chain if at is node.args[0] and chain[-1].args[1] is at else None


def _read(node: Node, chain: list[Node]) -> ResponseNorm | None:
    """Return the normalisation's settings, or None if one of the calls does something else."""
    power, plus, scale, back, squeeze, pool, pad, apart, _ = chain
    source = node.args[0]
    assert isinstance(source, Node)
    numbers = [power.args[1], plus.args[1], scale.args[1]]
    if any(isinstance(n, Node) for n in numbers) or arguments(plus).get("alpha", 1) != 1:
        return None
    sizes = [*source.meta["val"].shape]
    pooled = arguments(pool)
    size = pooled["kernel_size"][0]
    if len(sizes) != 4 or not isinstance(size, int) or size % 2 == 0:
        return None
    padded = arguments(pad)
    usual = (
        [*apart.meta["val"].shape][:4] == [sizes[0], 1, *sizes[1:3]]
        and [*back.meta["val"].shape] == sizes
        and [*padded["pad"]] == [0, 0, 0, 0, size // 2, size // 2]
        and padded.get("mode", "constant") == "constant"
        and not padded.get("value")
        and [*pooled["kernel_size"]] == [size, 1, 1]
        and {*pooled["stride"]} == {1}
        and not any(pooled["padding"])
        and pooled["count_include_pad"]
        and pooled.get("divisor_override") is None
        and squeeze.args[1] == 1
    )
    beta, bias, alpha = (float(n) for n in numbers)
    return ResponseNorm(size, alpha, beta, bias) if usual else None


def _emit(to: Exporter, node: Node, norm: ResponseNorm) -> None:
    """Append the one `LRN` that replaces the calls."""
    source = node.args[0]
    assert isinstance(source, Node)
    name = to.path(node).removesuffix(f".{_DIV}")
    settings = {"size": norm.size, "alpha": norm.alpha, "beta": norm.beta, "bias": norm.bias}
    to.values[node] = to.emit("LRN", name, [to.value(source)], **settings)
