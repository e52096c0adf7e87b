"""The networks of docs/vmcu.md: Table 2's blocks as printed and as they are, and networks scaled."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from functools import cache
from math import prod
from pathlib import Path

from onchip.microcontroller.compare.lives import Lives
from onchip.microcontroller.compare.segments import METHODS
from onchip.microcontroller.int8.read import model_of, read_model
from onchip.microcontroller.made import made_model
from onchip.microcontroller.network import network_of
from onchip.network import Geometry, Network, Operator, OperatorSpec

__all__ = [
    "PRINTED",
    "Block",
    "blocks_of",
    "depthwise",
    "largest",
    "layers_of_blocks",
    "left_out",
    "network",
    "pointwise",
    "scaled",
]

MADE = ("made:mcunet_vww", "made:mcunet_320kb", "made:vww_96", "made:resnet8", "made:kws", "made:ad01")


@dataclass(frozen=True, slots=True)
class Block:
    """An inverted bottleneck: side of its map, channels in, inside and out, depthwise kernel, strides."""

    name: str
    size: int
    channels: int
    inside: int
    outputs: int
    kernel: int
    strides: tuple[int, int, int] = (1, 1, 1)

    @property
    def network(self) -> Network:
        """The block alone; one whose first stride is 2 begins with the network's 3 x 3 stem."""
        first, second, _ = self.strides
        stem = 3 if first == 2 else 1
        expand = _window("conv", (1, self.size, self.size, self.channels), self.inside, stem, first)
        across = _window("depthwise", expand.output, self.inside, self.kernel, second)
        project = _window("conv", across.output, self.outputs, 1, 1)
        layers = [expand, across, project]
        tensors = [("A", prod(expand.input), "input")]
        tensors += [(name, prod(g.output), "activation") for name, g in zip("BCD", layers, strict=True)]
        operators = [
            OperatorSpec(f"layer{i}", g.kind, ["ABCD"[i]], ["ABCD"[i + 1]], geometry=g)
            for i, g in enumerate(layers)
        ]
        if self.strides == (1, 1, 1) and self.channels == self.outputs:
            shape = project.output
            tensors.append(("E", prod(shape), "activation"))
            together = Geometry("elementwise", shape, shape, layout="NHWC")
            operators.append(OperatorSpec("add", "Add", ["D", "A"], ["E"], geometry=together))
        return Network.build(self.name, tensors, operators, [tensors[-1][0]])  # type: ignore[arg-type]

    def grown(self, size: int, channels: float = 1.0) -> Block:
        """The block at another image size, with that many times the channels everywhere."""
        inside, given, made = (round(n * channels) for n in (self.inside, self.channels, self.outputs))
        return replace(self, size=size, channels=given, inside=inside, outputs=made)


def _window(kind: str, read: tuple[int, ...], channels: int, kernel: int, stride: int) -> Geometry:
    rows, columns = (-(-n // stride) for n in read[1:3])
    groups = channels if kind == "depthwise" else 1
    around = (kernel // 2,) * 4
    made = (1, rows, columns, channels)
    return Geometry(kind, read, made, (kernel,) * 2, (stride,) * 2, around, (1, 1), groups, "NHWC")


def pointwise(size: int, channels: int, outputs: int) -> Network:
    """A pointwise convolution alone."""
    return _alone(_window("conv", (1, size, size, channels), outputs, 1, 1))


def depthwise(size: int, channels: int, kernel: int) -> Network:
    """A depthwise convolution of stride 1 alone."""
    return _alone(_window("depthwise", (1, size, size, channels), channels, kernel, 1))


def _alone(g: Geometry) -> Network:
    return Network.build(
        g.kind,
        [("A", prod(g.input), "input"), ("B", prod(g.output), "activation")],
        [OperatorSpec("layer", g.kind, ["A"], ["B"], geometry=g)],
        ["B"],
    )


PRINTED: dict[str, tuple[Block, ...]] = {
    "made:mcunet_vww": (
        Block("S1", 20, 16, 48, 16, 3), Block("S2", 20, 16, 48, 16, 3), Block("S3", 10, 24, 144, 16, 3),
        Block("S4", 10, 24, 120, 24, 3), Block("S5", 5, 40, 240, 40, 3), Block("S6", 5, 48, 192, 48, 3),
        Block("S7", 3, 96, 480, 96, 3), Block("S8", 3, 96, 384, 96, 3),
    ),
    "made:mcunet_320kb": (
        Block("B1", 176, 3, 16, 8, 3, (2, 1, 1)), Block("B2", 88, 8, 24, 16, 7, (1, 2, 1)),
        Block("B3", 44, 16, 80, 16, 3), Block("B4", 44, 16, 80, 16, 7), Block("B5", 44, 16, 64, 24, 5),
        Block("B6", 44, 16, 80, 24, 5, (1, 2, 1)), Block("B7", 22, 24, 120, 24, 5),
        Block("B8", 22, 24, 120, 24, 5), Block("B9", 22, 24, 120, 40, 3, (1, 2, 1)),
        Block("B10", 11, 40, 240, 40, 7), Block("B11", 11, 40, 160, 40, 5),
        Block("B12", 11, 40, 200, 48, 7, (1, 2, 1)), Block("B13", 11, 48, 240, 48, 7),
        Block("B14", 11, 48, 240, 48, 3), Block("B15", 11, 48, 288, 96, 3, (1, 2, 1)),
        Block("B16", 6, 96, 480, 96, 7), Block("B17", 6, 96, 384, 96, 3),
    ),
}  # fmt: skip
"""Table 2 as it is printed."""

_PLACES = {"made:mcunet_vww": (2, 3, 5, 6, 8, 10, 12, 13), "made:mcunet_320kb": tuple(range(17))}
"""Which of a network's blocks, stem first, Table 2 means."""


@cache
def network(name: str) -> Network:
    """A made network, or that of a file."""
    if name.startswith("made:"):
        return network_of(model_of(made_model(name), name=name, where=name))
    return network_of(read_model(Path(name)))


def blocks_of(name: str) -> Iterator[tuple[Block, Block]]:
    """Table 2's blocks of a network: as printed, and as the network's layers have them."""
    net = network(name)
    found = list(_blocks(net))
    for printed, place in zip(PRINTED[name], _PLACES[name], strict=True):
        yield printed, replace(found[place], name=printed.name)


def left_out(name: str) -> tuple[Block, ...]:
    """The network's blocks that Table 2 has not, without the stem."""
    places = _PLACES[name]
    found = enumerate(_blocks(network(name)))
    return tuple(block for i, block in found if i not in places and block.strides[0] == 1)


def layers_of_blocks(name: str) -> Iterator[tuple[str, tuple[str, ...]]]:
    """The layers' names of each of Table 2's blocks."""
    lives = Lives.of(network(name))
    found = list(_all_blocks(lives))
    for printed, place in zip(PRINTED[name], _PLACES[name], strict=True):
        first, end = found[place]
        made = lives.net.layers[end - 1].makes
        readers = [i for i in lives.readers(made) if len(lives.net.layers[i].reads) > 1]
        layers = [*range(first, end), *(i for i in readers if i == end)]
        operators = (lives.net.network.operators[lives.net.layers[i].operator] for i in layers)
        yield printed.name, tuple(op.name for op in operators)


def _blocks(net: Network) -> Iterator[Block]:
    lives = Lives.of(net)
    for first, end in _all_blocks(lives):
        ops = [net.operators[lives.net.layers[i].operator] for i in range(first, end)]
        expand, across, project = (_geometry(op) for op in ops[:3])
        yield Block(
            net.name,
            expand.input[1],
            expand.input[3],
            expand.output[3],
            project.output[3],
            across.kernel[0],
            (expand.stride[0], across.stride[0], project.stride[0]),
        )


def _all_blocks(lives: Lives) -> Iterator[tuple[int, int]]:
    """Every block, those with a window larger than the map included, by the depthwise layers."""
    layers = lives.net.layers
    for i, layer in enumerate(layers):
        if _geometry(lives.net.network.operators[layer.operator]).kind == "depthwise":
            yield i - 1, i + 2


def _geometry(op: Operator) -> Geometry:
    assert op.geometry is not None
    return op.geometry


def scaled(net: Network, size: int, channels: float = 1.0) -> Network:
    """The network for another image size, with that many times the channels, rounded to 8s; classes stay."""
    shapes: dict[int, tuple[int, ...]] = {}
    first = _geometry(net.operators[net.order[0]]).input
    (source,) = (t.id for t in net.tensors if t.kind == "input")
    shapes[source] = (1, size, size * first[2] // first[1], first[3])
    operators = []
    for i in net.order:
        op = net.operators[i]
        g = _scaled(_geometry(op), shapes[op.inputs[0]], channels)
        shapes[op.outputs[0]] = g.output if len(g.output) == 4 else (1, g.output[0], 1, g.output[1])
        names = [[net.tensors[t].name for t in ids] for ids in (op.inputs, op.outputs)]
        more = shapes[op.inputs[0]][3] / max(1, _channels(_geometry(op).input))
        workspace = round(op.workspace * more)
        operators.append(OperatorSpec(op.name, op.type, *names, workspace=workspace, geometry=g))
    return Network.build(
        net.name,
        [(net.tensors[t].name, prod(shape), net.tensors[t].kind) for t, shape in shapes.items()],
        operators,
        [net.tensors[t].name for t in net.outputs],
    )


def _channels(shape: tuple[int, ...]) -> int:
    return shape[-1]


def _scaled(g: Geometry, read: tuple[int, ...], channels: float) -> Geometry:
    match g.kind:
        case "conv" | "depthwise" | "pool":
            if g.kind == "pool":  # one over the whole of an axis stays so
                old = zip(g.kernel, g.stride, g.input[1:3], read[1:3], strict=True)
                axes = [(new, new) if k == size else (k, s) for k, s, size, new in old]
                g = replace(g, kernel=tuple(k for k, _ in axes), stride=tuple(s for _, s in axes))
            around = zip(g.padding[:2], g.padding[2:], strict=True)
            window = zip(read[1:3], around, g.kernel, g.dilation or (1, 1), g.stride, strict=True)
            sides = [(n + sum(more) - (k - 1) * d - 1) // s + 1 for n, more, k, d, s in window]
            made = read[3]
            if g.kind == "conv":
                classes = g.output[1:3] == (1, 1)
                made = g.output[3] if classes else _rounded(g.output[3] * channels)
            groups = read[3] if g.kind == "depthwise" else g.groups
            return replace(g, input=read, output=(1, *sides, made), groups=groups)
        case "fully_connected":
            return replace(g, input=(1, prod(read)), output=(1, g.output[1]))
        case "elementwise" | "rowwise":
            return replace(g, input=read, output=read)
    raise SystemExit(f"{g.kind} cannot be scaled")


def _rounded(channels: float) -> int:
    return max(8, round(channels / 8) * 8)


def largest(network_of_size: Callable[[int], Network], method: str, limit: int, least: int = 1) -> int:
    """The largest n whose network the method fits into `limit` bytes; 0 for none from `least` on."""

    def fits(n: int) -> bool:
        return METHODS[method](network_of_size(n)).ram_bytes <= limit

    if not fits(least):
        return 0
    low, high = least, least + max(1, least // 2)
    while fits(high):
        low, high = high, high + max(1, high // 2)
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (middle, high) if fits(middle) else (low, middle)
    return low
