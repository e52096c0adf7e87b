"""The network as a chip stores it: feature maps in patches, whatever layout the model's file has.

Only this reproduces Table 1 of the paper: heights and widths count as multiples of the patch's.
"""

from __future__ import annotations

from dataclasses import replace
from math import prod

from onchip.machines.chip import Chip
from onchip.network import ELEMENT_BYTES, Geometry, Network, Patches, bits

__all__ = ["stored"]


def stored(network: Network, chip: Chip) -> Network:
    """Return `network` with every feature map of more than one pixel in the chip's patches.

    On a chip without patches a patch is one pixel: channel after channel, each row by row. Vectors stay as
    they are, and so does a map whose shape no geometry states, or with a view that is not a run of whole
    channels.
    """
    height, width = (1, 1) if chip.patch is None else (chip.patch.rows, chip.patch.columns)
    found: dict[int, Patches] = {}
    for t in bits(network.roots):
        patches = _patches(network, t, height, width)
        if patches is not None:
            found[t] = patches
    views = [list(v) for v in ((view.tensor, view.of, view.offset) for view in network.views)]
    for tensor, of, offset in views:
        if of in found and _channels(network, tensor, of, offset, found[of]) is None:
            del found[of]
    sizes = {t: _width(network, t, patches) * patches.elements for t, patches in found.items()}
    placed = []
    for view in network.views:
        root = found.get(view.of)
        part = None if root is None else _channels(network, view.tensor, view.of, view.offset, root)
        if root is None or part is None:
            placed.append(view)
            continue
        first, channels = part
        width = _width(network, view.of, root)
        found[view.tensor] = replace(root, channels=channels)
        sizes[view.tensor] = width * root.plane * channels
        placed.append(replace(view, offset=width * root.plane * first))
    return replace(
        network,
        tensors=tuple(
            replace(t, bytes=sizes[t.id], patches=found[t.id]) if t.id in found else t
            for t in network.tensors
        ),
        views=tuple(placed),
    )


def _width(network: Network, t: int, patches: Patches) -> int:
    """Return the bytes of one element of a tensor that is not stored in patches yet."""
    return network.tensors[t].bytes // (patches.channels * patches.rows * patches.columns)


def _channels(network: Network, view: int, of: int, offset: int, root: Patches) -> tuple[int, int] | None:
    """Return (first channel, channels) of a view, or None if it is no run of whole channels."""
    plane = _width(network, of, root) * root.rows * root.columns
    size = network.tensors[view].bytes
    if offset % plane or size % plane:
        return None
    return offset // plane, size // plane


def _patches(network: Network, t: int, height: int, width: int) -> Patches | None:
    shape = _shape(network, t)
    if shape is None:
        return None
    images, channels, rows, columns = shape
    if rows * columns == 1:
        return None
    return Patches(images * channels, rows, columns, height, width)


def _shape(network: Network, t: int) -> tuple[int, int, int, int] | None:
    """Return [images, channels, rows, columns] of a tensor, as its producer or else its readers state it."""
    producer = network.producer[t]
    if producer is not None:
        op = network.operators[producer]
        return _map(op.geometry, "output", network.tensors[t].bytes) if op.outputs == (t,) else None
    for v in bits(network.readers[t]):
        op = network.operators[v]
        if op.inputs and op.inputs[0] == t and op.geometry is not None and op.geometry.promises:
            found = _map(op.geometry, "input", network.tensors[t].bytes)
            if found is not None:
                return found
    return None


def _map(geometry: Geometry | None, side: str, size: int) -> tuple[int, int, int, int] | None:
    shape: tuple[int, ...] = () if geometry is None else getattr(geometry, side)
    if geometry is None or len(shape) != 4 or min(shape) < 1:
        return None
    element, rest = divmod(size, prod(shape))
    if rest or element not in ELEMENT_BYTES:
        return None
    if geometry.layout == "NHWC":
        images, rows, columns, channels = shape
    else:
        images, channels, rows, columns = shape
    return images, channels, rows, columns
