"""The plans that the claims of placement range over: one sentence, made from the options."""

from __future__ import annotations

from onchip.network import Network
from onchip.planners.placement.options import PlacementOptions

__all__ = ["space_of", "space_of_memories"]

_ORDERS = {
    "free": "all orders",
    "given": "the network's own order",
    "minpeak": "one order of least peak",
}


def space_of(
    network: Network,
    options: PlacementOptions,
    *,
    apart: bool = False,
    held: bool = False,
    caches: bool = False,
    order: str = "",
) -> str:
    """Return the plans that `optimal`, the bounds and `infeasible` of a plan in one scratchpad range over.

    `apart`: resident weights have a scratchpad of their own. `held`: some tensors must stay on chip. `order`
    names the order if it is not that of the options.
    """
    orders = order or _ORDERS[options.order]
    moved = "evictions and reloads of whole tensors"
    if options.objective == "peak":
        moved = "no evictions, tensors whole"
    if options.inputs == "literal":
        moved += ", an input's first eviction paid for"
    parts = [orders, moved, "all addresses", _weights(options, apart), _sharing(options.in_place)]
    if held:
        parts.append("what is to stay on chip staying there")
    if caches:
        parts.append("each cache in a buffer of its own throughout")
    return ", ".join([*parts, _whole(network)])


def space_of_memories(network: Network, options: PlacementOptions, *, apart: bool = False) -> str:
    """Return the same for a plan in several memories."""
    moved = "evictions, reloads and moves between memories" if options.moves else "evictions and reloads"
    parts = [
        _ORDERS[options.order],
        f"{moved} of whole tensors",
        "all addresses",
        _weights(options, apart),
        _sharing(False),
    ]
    return ", ".join([*parts, _whole(network)])


def _weights(options: PlacementOptions, apart: bool) -> str:
    if options.weights == "streamed":
        return "weights streamed"
    return "weights in their own scratchpad" if apart else "weights resident while their operator runs"


def _sharing(in_place: bool) -> str:
    if in_place:
        return "element-wise outputs over inputs that die, else no bytes shared"
    return "no bytes shared by two tensors"


def _whole(network: Network) -> str:
    return f"no operator tiled or fused beyond granularity {network.granularity}"
