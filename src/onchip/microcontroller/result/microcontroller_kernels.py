"""The layers that share the library's kernels, so that a network's code fits: the fewest instructions.

A kernel made for a shape is faster and costs its own code; the library's two kernels make every shape. The
size of a kernel's code and the cost of its layers when they are shared are measured: linked and counted.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import combinations
from typing import TYPE_CHECKING, Literal

from onchip.base.errors import TooLargeToEmulate
from onchip.base.files import temporary_folder
from onchip.machines.board import MOST_BYTES
from onchip.microcontroller.int8.model import Depthwise
from onchip.microcontroller.kernels import SHAREABLE
from onchip.microcontroller.network import network_of
from onchip.network import Network

if TYPE_CHECKING:
    from onchip.machines.board import Board
    from onchip.microcontroller.emulator.verify import Verified
    from onchip.microcontroller.int8.model import Int8Model
    from onchip.microcontroller.project import Sources
    from onchip.microcontroller.result.microcontroller import Microcontroller

__all__ = ["Saving", "fewest_instructions", "shareable", "shared_in", "sharing_what_is_needed"]

Kind = Literal["conv", "depthwise"]

TRIES = 4
"""The most links until the code fits: the saving of sharing is known only up to alignment and calls."""


@dataclass(frozen=True, slots=True)
class Saving:
    """Layers that share the library's kernel of a kind: bytes of flash saved, instructions added."""

    layers: frozenset[str]
    kind: Kind
    bytes: int
    instructions: int


def shareable(model: Int8Model) -> frozenset[str]:
    """Return the layers that the library's kernels make."""
    return frozenset(layer.name for layer in model.layers if isinstance(layer, SHAREABLE))


def shared_in(network: Network, model: Int8Model) -> frozenset[str]:
    """Return the layers for which a plan expects the library's kernels: those that walk as only these do."""
    every = shareable(model)
    forms = network_of(model), network_of(model, every)

    def walk(of: Network, layer: str) -> tuple[int, int, int] | None:
        number = of.operator_id.get(layer)
        if number is None:
            return None
        op = of.operators[number]
        return None if op.geometry is None else (op.geometry.pixels, op.geometry.channels, op.workspace)

    return frozenset(
        layer for layer in every if walk(network, layer) == walk(forms[1], layer) != walk(forms[0], layer)
    )


def fewest_instructions(
    savings: Sequence[Saving], needed: int, library: Mapping[Kind, int]
) -> frozenset[str] | None:
    """Return the layers to share for `needed` bytes less of flash at the fewest instructions; None if none.

    `library` are the bytes of the library's kernels, which count where any layer of their kind is shared.
    The method is exact: it keeps all sums of bytes and instructions that no other dominates.
    """
    best: tuple[int, frozenset[str]] | None = None
    for size in range(1, len(library) + 1):
        for kinds in combinations(library, size):
            room = needed + sum(library[kind] for kind in kinds)
            found = _cheapest([s for s in savings if s.kind in kinds], room)
            if found is not None and (best is None or found[0] < best[0]):
                best = found
    return None if best is None else best[1]


def _cheapest(savings: Iterable[Saving], needed: int) -> tuple[int, frozenset[str]] | None:
    """Return the least instructions that save so many bytes, and the layers; dominated sums are dropped."""
    sums: list[tuple[int, int, frozenset[str]]] = [(0, 0, frozenset())]
    for saving in savings:
        more = [
            (cost + saving.instructions, min(saved + saving.bytes, needed), layers | saving.layers)
            for cost, saved, layers in sums
        ]
        kept: list[tuple[int, int, frozenset[str]]] = []
        for new in sorted(sums + more, key=lambda s: (s[0], -s[1])):
            if not kept or new[1] > kept[-1][1]:
                kept.append(new)
        sums = kept
    return next(((cost, layers) for cost, saved, layers in sums if saved >= needed), None)


def sharing_what_is_needed(
    made: Microcontroller,
    sources_for: Callable[[Collection[str]], Sources],
    build: Callable[[Collection[str]], Microcontroller],
) -> Microcontroller:
    """Return the network with as many kernels shared as the flash demands; `made` where none suffices.

    In that case its `shared_flash` is the flash with all of them shared. `sources_for` and `build` plan and
    write the network with these layers shared, `build` for its board.
    """
    short = next(((needs, has) for memory, needs, has in made.short if memory == "flash"), None)
    if short is None or made.constant_bytes > made.board.flash_bytes:
        return made
    model, needed = made.model, short[0] - short[1]
    every = shareable(model)
    if not every:
        return made
    try:
        alone, shared = (_measured(model, made.board, of) for of in (made.sources, sources_for(every)))
    except TooLargeToEmulate:
        return made
    savings = _savings(model, made.sources, alone, shared)
    library, without = _library(shared), replace(made, shared_flash=shared.image.flash_bytes)
    for _ in range(TRIES):
        layers = fewest_instructions(savings, needed, library)
        if layers is None:
            break
        found = build(layers)
        missing = next((needs - has for memory, needs, has in found.short if memory == "flash"), 0)
        if not missing:
            return found
        needed += missing
    if shared.image.flash_bytes > made.board.flash_bytes:
        return without
    return build(every)


def _measured(model: Int8Model, board: Board, sources: Sources) -> Verified:
    from onchip.microcontroller.emulator.verify import verify

    roomy = replace(board, ram_bytes=MOST_BYTES, flash_bytes=MOST_BYTES)
    with temporary_folder() as folder:
        return verify(sources, model, roomy, folder, runs=1)


def _savings(model: Int8Model, sources: Sources, alone: Verified, shared: Verified) -> list[Saving]:
    """Return the bytes saved and instructions added by sharing; layers with common kernels go together."""
    size = {function.name: function.bytes for function in alone.image.functions}
    every, found = shareable(model), []
    left = {name: layers for name, layers in sources.users.items() if layers <= every}
    while left:
        name, layers = left.popitem()
        together, code = set(layers), size.get(name, 0)
        while joined := [other for other, users in left.items() if users & together]:
            for other in joined:
                together |= left.pop(other)
                code += size.get(other, 0)
        (kind,) = {_kind(model, layer) for layer in together}
        more = sum(
            shared.by_layer[layer].instructions - alone.by_layer[layer].instructions for layer in together
        )
        found.append(Saving(frozenset(together), kind, code - HEAD_BYTES * len(together), max(more, 0)))
    return sorted(found, key=lambda s: sorted(s.layers))


HEAD_BYTES = 4 * 13
"""The most words of the shape in front of a shared layer's constants."""


def _kind(model: Int8Model, layer: str) -> Kind:
    return "depthwise" if isinstance(model.layer[layer], Depthwise) else "conv"


def _library(shared: Verified) -> dict[Kind, int]:
    ends: dict[Kind, str] = {"conv": "_any_conv", "depthwise": "_any_depthwise"}
    return {
        kind: f.bytes for kind, end in ends.items() for f in shared.image.functions if f.name.endswith(end)
    }
