"""The bytes of a layer on chip besides whole feature maps: partial weights, working memory, streamed pieces.

The paper names these sizes (Algorithms 3 and 6) and leaves them to the hardware: step 2 of Algorithm 1. Here
they follow from the chip file: weights of `parallel_channels` output channels at a time, `weight_buffers`
times; a copy of the part that a strided layer reads; a row of patches of a streamed map.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import replace
from math import prod

from onchip.machines.chip import Chip
from onchip.network import Geometry, Network, Patches
from onchip.network.windows import window_of

__all__ = ["Sizes"]

WINDOWED = ("conv", "depthwise", "pool")


class Sizes:
    """Bytes of the layers of a stored network on a chip."""

    def __init__(self, network: Network, chip: Chip) -> None:
        self.network, self.chip = network, chip
        held = chip.partial_weights
        self.channels = None if held is None else held.channels
        self.buffers = 1 if held is None else held.buffers or 1

    def tensor(self, t: int) -> int:
        """Return the bytes that a whole tensor occupies (IFM.Full, OFM.Full, MIFM, a part of MOFM)."""
        return self.chip.round_up(self.network.tensors[t].bytes)

    def weights(self, v: int) -> int:
        """Return W.Partial: the weights of the channels computed at a time, and of those being fetched.

        A chip that does not state their number takes its weights from DRAM as they are used.
        """
        op = self.network.operators[v]
        if self.channels is None:
            return 0
        outputs = _output_channels(op.geometry)
        if outputs is None:
            return op.weight_bytes
        return -(-op.weight_bytes * min(outputs, self.channels * self.buffers) // outputs)

    def working(self, v: int) -> int:
        """Return WM: the part of its input that a strided layer copies; 0 for others, and on other chips."""
        read = self._staged(v)
        return 0 if read is None else read[0] * read[1] * read[2] * self._width(v)

    def resident(self, v: int) -> int:
        """Return the workspace of a layer whose operands are all on chip: W.Partial + WM."""
        return self.weights(v) + self.working(v)

    def streaming(self, v: int, read: Collection[int], written: Collection[int]) -> int:
        """Return the workspace of a layer that streams the tensors `read` and `written`: its least way.

        Either the whole tensors are in it for the run; or the output leaves in patches, 16 channels at a time
        (OFM.Partial); or input and output pass in rows of patches (IFM.Partial), for which all weights that
        every such row needs must be present.
        """
        if not read and not written:
            return self.resident(v)
        ways = [self.resident(v) + sum(self.network.tensors[t].bytes for t in {*read, *written})]
        if all(self.network.tensors[t].patches is not None for t in {*read, *written}):
            piece = sum(self._piece(t) for t in written)
            if not read:
                ways.append(self.resident(v) + piece)
            rows = self._rows(v, read)
            if rows is not None:
                ways.append(rows + piece)
            patch = self._elements(v, read, written)
            if patch is not None:
                ways.append(self.resident(v) + patch)
        return min(ways)

    # -- parts -------------------------------------------------------------------------------------------

    def _piece(self, t: int) -> int:
        """Return OFM.Partial: a patch of every channel computed at a time, and of those being stored."""
        tensor = self.network.tensors[t]
        assert tensor.patches is not None
        p = tensor.patches
        at_once = min(p.channels, (self.channels or 1) * self.buffers)
        return at_once * p.height * p.width * (tensor.bytes // p.elements)

    def _rows(self, v: int, read: Collection[int]) -> int | None:
        """Return line buffer, staging and all weights of a group, for windows over one streamed input."""
        op = self.network.operators[v]
        g = op.geometry
        if g is None or g.kind not in (*WINDOWED, "pad") or tuple(read) != op.inputs[:1]:
            return None
        source, made = (self.network.tensors[t].patches for t in (op.inputs[0], op.outputs[0]))
        channels, outputs = _input_channels(g), _output_channels(g)
        if source is None or made is None or not channels or not outputs:
            return None
        per_channel = g.kind != "conv"
        groups = channels if per_channel else max(1, g.groups)
        line = _rows_of_patches(g, source, made) * source.height * source.grid[1] * source.width
        at_once = channels // groups
        if per_channel:  # as many channels side by side as the chip computes
            at_once = min(channels, self.channels or 1)
        taken = at_once * line * self._width(v)
        staged = self._staged(v)
        if staged is not None:
            taken += -(-taken * staged[1] * staged[2] // source.plane)
        weights = -(-op.weight_bytes // groups) * (at_once if per_channel else 1)
        return taken + (max(weights, self.weights(v)) if per_channel else weights)

    def _elements(self, v: int, read: Collection[int], written: Collection[int]) -> int | None:
        """Return a patch of every operand that an element-wise operator, or a concat of channels, streams."""
        op = self.network.operators[v]
        if op.geometry is None or op.geometry.kind not in ("elementwise", "concat") or len(op.outputs) != 1:
            return None
        made = self.network.tensors[op.outputs[0]].patches
        for patches in (self.network.tensors[t].patches for t in {*read, *written}):
            if made is None or patches is None:
                return None
            alike = patches if op.geometry.kind == "elementwise" else replace(patches, channels=made.channels)
            if alike != made:
                return None
        return sum(self._piece(t) for t in {*read, *written})

    def _staged(self, v: int) -> tuple[int, int, int] | None:
        """Return (channels, rows, columns) of a strided layer's copy of its input, in whole patches."""
        op = self.network.operators[v]
        g = op.geometry
        if not self.chip.stages_strided or g is None or len(op.inputs) != 1:
            return None
        if len(g.stride) != 2 or len(g.kernel) != 2 or max(g.stride) <= 1 or len(g.input) != 4:
            return None
        source = self.network.tensors[op.inputs[0]].patches
        height, width = (1, 1) if source is None else (source.height, source.width)
        n, c, h, w = g.input if g.layout == "NCHW" else (g.input[0], g.input[3], g.input[1], g.input[2])
        rows, columns = (
            min(size, min(k, s) * -(-size // s))
            for size, k, s in zip((h, w), g.kernel, g.stride, strict=True)
        )
        return n * c, -(-rows // height) * height, -(-columns // width) * width

    def _width(self, v: int) -> int:
        """Return the bytes of an element of a layer's first input."""
        op = self.network.operators[v]
        tensor = self.network.tensors[op.inputs[0]]
        if tensor.patches is not None:
            return tensor.bytes // tensor.patches.elements
        g = op.geometry
        if g is not None and g.promises and prod(g.input) > 0:
            return max(1, tensor.bytes // prod(g.input))
        output = 0 if g is None else prod(g.output)  # a gathered operand's shape is a part of the input's
        return max(1, self.network.tensors[op.outputs[0]].bytes // output) if output else 1


def _rows_of_patches(g: Geometry, source: Patches, made: Patches) -> int:
    """Return the most rows of input patches that the windows of one row of output patches span."""
    window = window_of(g, 0, source.rows, made.rows)
    most = 0
    for first in range(0, made.rows, made.height):
        last = min(first + made.height, made.rows) - 1
        low = min(window.start(first), source.rows - 1)
        high = min(max(last * window.stride - window.before + window.span - 1, low), source.rows - 1)
        most = max(most, high // source.height - low // source.height + 1)
    return most


def _output_channels(g: Geometry | None) -> int | None:
    if g is None or not g.output:
        return None
    channels = g.output[1] if len(g.output) == 4 and g.layout == "NCHW" else g.output[-1]
    return channels if channels > 0 else None


def _input_channels(g: Geometry) -> int:
    return (g.input[1] if g.layout == "NCHW" else g.input[-1]) if len(g.input) == 4 else 0
