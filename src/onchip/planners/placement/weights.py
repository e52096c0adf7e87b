"""The place of weights: in the workspace of their operator, or in a scratchpad of their own."""

from __future__ import annotations

from onchip.base.errors import NegativeAnswer, UsageError
from onchip.machines.chip import Chip
from onchip.network import Network
from onchip.planners.placement.options import PlacementOptions
from onchip.planners.placement.pinning import Pinning

__all__ = ["apart", "as_planned", "pinned_addresses"]


def apart(chip: Chip, options: PlacementOptions) -> bool:
    """Return whether resident weights have a scratchpad of their own on this chip."""
    return options.weights == "resident" and chip.weight_scratchpad_bytes is not None


def as_planned(
    network: Network, chip: Chip, options: PlacementOptions, pinning: Pinning | None = None
) -> Network:
    """Return the network as the searches see it: resident weights in workspaces, except those elsewhere."""
    if options.weights == "streamed" or apart(chip, options):
        return network
    return network.with_resident_weights(but=[v for v, _ in pinning.weights] if pinning else ())


def pinned_addresses(network: Network, chip: Chip, pinning: Pinning) -> dict[int, int]:
    """Return addresses in the weight scratchpad of pinned weights, by operator.

    Those without a requested address go where they fit first. Raises `UsageError` if two requests overlap,
    `NegativeAnswer` if they or the weights of another operator do not fit beside the rest.
    """
    room, unit = chip.weight_scratchpad_bytes or 0, chip.alignment_bytes

    def bytes_of(v: int) -> int:
        return chip.round_up(network.operators[v].weight_bytes)

    def gaps() -> list[tuple[int, int]]:
        taken = sorted((at, at + bytes_of(v)) for v, at in found.items())
        edges = [0, *(edge for pair in taken for edge in pair), room]
        return [(a, b) for a, b in zip(edges[::2], edges[1::2], strict=True) if a < b]

    found: dict[int, int] = {}
    for v, at in pinning.weights:
        if at is None:
            continue
        if at % unit or not any(a <= at and at + bytes_of(v) <= b for a, b in gaps()):
            raise UsageError(
                f"{at} is misaligned, taken or outside the weight scratchpad of {room:,} bytes",
                item=f"--pin weights:{network.operators[v].name}",
            )
        found[v] = at
    for v in sorted((v for v, at in pinning.weights if at is None), key=bytes_of, reverse=True):
        fitting = [a for a, b in gaps() if a + bytes_of(v) <= b]
        if not fitting:
            raise _too_small(network, v, bytes_of(v), room, "beside what else is pinned there")
        found[v] = fitting[0]
    largest = max((b - a for a, b in gaps()), default=0)
    for op in network.operators:
        if op.id not in found and bytes_of(op.id) > largest:
            beside = f"of which {largest:,} are free in one piece" if found else "in all"
            raise _too_small(network, op.id, bytes_of(op.id), room, beside)
    return found


def _too_small(network: Network, v: int, needs: int, room: int, how: str) -> NegativeAnswer:
    return NegativeAnswer(
        f"infeasible: the weights of operator {network.operators[v].name} need {needs:,} bytes, the weight"
        f" scratchpad has {room:,}, {how}"
    )
