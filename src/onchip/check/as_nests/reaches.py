"""Reaches of operators that state none, by their access relation: what bands and blocks know of them.

A nest needs the axes of every operator, in the order of its tensors' elements. The law of bands and blocks
knows images, channels, rows and columns of a map, whoever states it: that is a reach, too.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

from onchip.network import Network, Operator, Reach, Side
from onchip.network.access import Access, Operand, access_of
from onchip.network.axes import axes_of
from onchip.network.maps import Maps
from onchip.network.operators import Constant
from onchip.network.windows import Window
from onchip.plans import Blocks, Group, Tiling

__all__ = ["with_reaches"]

WHOLE = Side(1, span=1)
"""All that there is of a side of one element."""


def with_reaches(network: Network, groups: Iterable[Group]) -> Network:
    """Return the network with a reach for every operator of groups in bands and blocks that has no axes.

    Their workspace is that of their weights, which a nest counts itself. Everything else is as it was; an
    operator of which nothing says a reach stays without.
    """
    maps, found = Maps(network), dict[int, Operator]()
    for group in groups:
        if not isinstance(group.tiling, Tiling | Blocks):
            continue
        for op in (network.operators[network.operator_id[name]] for name in group.operators):
            plain = replace(op, workspace=0)
            if plain == op and not isinstance(axes_of(network, [op.id]), str):
                continue
            access = access_of(maps, op.id)
            if not isinstance(access, str) and len(op.outputs) == 1:
                alone = replace(plain, reach=op.reach or reach_by(maps, access))
                found[op.id] = alone
    if not found:
        return network
    return replace(network, operators=tuple(found.get(op.id, op) for op in network.operators))


def reach_by(maps: Maps, access: Access) -> Reach:
    """Return the reach that an access relation states: the axes of the output's map, and what is summed."""
    [y] = access.writes
    sizes: list[int] = []
    axes: dict[str, tuple[int, ...]] = {}
    for letter, size in maps.dimensions(y):
        grouped = letter == "c" and access.form == "reduce" and access.groups > 1
        parts = [n for n in (access.groups, size // access.groups) if n > 1] if grouped else [size]
        axes[letter] = tuple(range(len(sizes), len(sizes) + len(parts)))
        sizes += parts
    sums = (access.kernel.inputs,) if access.form == "reduce" else ()
    reads = tuple(_sides(maps, access, operand, axes, len(sizes)) for operand in access.operands)
    return Reach(tuple(sizes), reads, _weights(access, sizes, axes), sums)


def _sides(
    maps: Maps, access: Access, operand: Operand, axes: dict[str, tuple[int, ...]], summed: int
) -> tuple[Side, ...]:
    """Return the sides of an operand in the order of its elements."""
    found: list[Side] = []
    for letter, size in maps.dimensions(operand.tensor):
        if letter == "n":
            found.append(Side(size, axes["n"][0]) if "n" in axes else WHOLE)
        elif letter == "c":
            found += _channels(maps, access, operand, size, axes, summed)
        else:
            found.append(_side(operand.rows if letter == "h" else operand.columns, axes.get(letter)))
    return tuple(found)


def _channels(
    maps: Maps, access: Access, operand: Operand, size: int, axes: dict[str, tuple[int, ...]], summed: int
) -> list[Side]:
    out = maps.of(access.writes[0])
    assert out is not None
    if access.form == "reduce":
        grouped = [Side(access.groups, axes["c"][0])] if access.groups > 1 else []
        return [*grouped, Side(access.kernel.inputs, summed)]
    if access.form == "rowwise":
        return [Side(size, span=size)]
    if "c" not in axes or (access.form == "elementwise" and size != out.channels):
        return [WHOLE]
    return [Side(size, axes["c"][0], before=operand.channel)]


def _side(window: Window, axes: tuple[int, ...] | None) -> Side:
    """Return the side of an operand that a window slides over."""
    if not window.stride or axes is None:
        return Side(window.size, span=window.size)
    return Side(window.size, axes[0], window.stride, window.before, window.span)


def _weights(access: Access, sizes: list[int], axes: dict[str, tuple[int, ...]]) -> tuple[Constant, ...]:
    """Return the kernel, and what remains of the weights: that of output channels comes late."""
    if not access.weights:
        return ()
    kernel, deep = access.kernel, axes.get("c", ())
    outputs = tuple(Side(sizes[axis], axis) for axis in deep)
    elements = kernel.taps * kernel.inputs * kernel.outputs
    width = access.weights // elements if elements else 0
    found = []
    if width:
        inputs = Side(kernel.inputs, len(sizes)) if access.form == "reduce" else WHOLE
        taps = Side(kernel.taps, span=kernel.taps)
        found.append(Constant(f"{access.name}.kernel", width * elements, (*outputs, inputs, taps)))
    if rest := access.weights - width * elements:
        sides = outputs if outputs and rest % kernel.outputs == 0 else ()
        found.append(Constant(f"{access.name}.rest", rest, sides, late=access.form == "reduce"))
    return tuple(found)
