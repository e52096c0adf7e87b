"""Small random networks of maps, with residuals, for groups in rings: NHWC, one byte an element."""

from __future__ import annotations

from math import prod

from hypothesis import strategies as st

from onchip.network import Geometry, Network, OperatorSpec
from onchip.plans import Group, Rings, Stage

__all__ = ["chains", "groups", "whole_stages"]

MAPS = ("conv", "conv", "depthwise", "pool", "pad", "elementwise", "rowwise", "pointwise")


@st.composite
def chains(
    draw: st.DrawFn,
    operators: int = 6,
    side: int = 7,
    channels: int = 4,
    residuals: bool = True,
    heads: bool = True,
    steps: bool = False,
) -> Network:
    """`x` goes through up to `operators` operators; an add or concat may take an earlier tensor as well.

    With `heads` a pool over the whole map and a matrix may end it, with `steps` geometries state several
    pixels and chunks of channels.
    """

    def number(low: int, high: int) -> int:
        return draw(st.integers(low, high))

    shape = (1, number(1, side), number(1, side), number(1, channels))
    shapes = [shape]
    specs: list[OperatorSpec] = []
    branch: int | None = None  # a tensor that an add further on still needs
    for i in range(number(1, operators)):
        given = shapes[-1]
        kind = draw(st.sampled_from(MAPS))
        inputs = [f"t{i}"]
        if branch is not None and branch < i and draw(st.booleans()) and shapes[branch][1:3] == given[1:3]:
            join = "elementwise" if shapes[branch] == given and draw(st.booleans()) else "concat"
            made = given if join == "elementwise" else (*given[:3], given[3] + shapes[branch][3])
            inputs = draw(st.permutations([f"t{i}", f"t{branch}"]))
            first = shapes[int(inputs[0][1:])]
            geometry = Geometry(join, first, made, layout="NHWC")
            branch = None
        else:
            geometry = draw(_geometry(kind, given, channels))
            made = geometry.output
            if residuals and branch is None and draw(st.booleans()):
                branch = i
        if steps:
            geometry = _stepped(geometry, number(1, 3), number(0, 3))
        specs.append(OperatorSpec(f"op{i}", kind, inputs, [f"t{i + 1}"], 0, number(0, 3), geometry))
        shapes.append(made)
    if heads and draw(st.booleans()):
        given, i = shapes[-1], len(specs)
        made = (1, 1, 1, given[3])
        geometry = Geometry("pool", given, made, given[1:3], layout="NHWC")
        specs.append(OperatorSpec(f"op{i}", "Mean", [f"t{i}"], [f"t{i + 1}"], 0, 0, geometry))
        shapes.append(made)
        if draw(st.booleans()):
            geometry = Geometry("fully_connected", (1, given[3]), (1, 3), layout="NHWC")
            specs.append(OperatorSpec(f"op{i + 1}", "FC", [f"t{i + 1}"], [f"t{i + 2}"], 0, 0, geometry))
            shapes.append((1, 1, 1, 3))
    tensors = [(f"t{i}", prod(s), "input" if i == 0 else "activation") for i, s in enumerate(shapes)]
    return Network.build("chain", tensors, specs, [f"t{len(specs)}"])  # type: ignore[arg-type]


@st.composite
def _geometry(draw: st.DrawFn, kind: str, given: tuple[int, ...], channels: int) -> Geometry:
    def number(low: int, high: int) -> int:
        return draw(st.integers(low, high))

    _, height, width, deep = given
    if kind in ("elementwise", "rowwise"):
        return Geometry(kind, given, given, layout="NHWC")
    if kind == "pointwise":
        made = (1, height, width, number(1, channels))
        return Geometry("conv", given, made, (1, 1), (1, 1), (0, 0, 0, 0), (1, 1), 1, "NHWC")
    if kind == "pad":
        padding = tuple(number(0, 2) for _ in range(4))
        made = (1, height + padding[0] + padding[2], width + padding[1] + padding[3], deep)
        return Geometry("pad", given, made, padding=padding, layout="NHWC")
    kernel = (number(1, 4), number(1, 4))
    stride = (number(1, 3), number(1, 2))
    dilation = (number(1, 2), 1) if kind == "conv" else (1, 1)
    padding = [number(0, kernel[i % 2] - 1) for i in range(4)]
    out = []
    for axis in (0, 1):
        span = (kernel[axis] - 1) * dilation[axis] + 1
        room = given[1 + axis] + padding[axis] + padding[axis + 2] - span
        if room < 0:  # with no padding, as no window may read that alone
            kernel = (1, kernel[1]) if axis == 0 else (kernel[0], 1)
            padding[axis] = padding[axis + 2] = 0
            room = given[1 + axis] - 1
        out.append(room // stride[axis] + 1)
    made = (1, *out, deep if kind != "conv" else number(1, channels))
    groups = deep if kind == "depthwise" else 1
    return Geometry(kind, given, made, kernel, stride, tuple(padding), dilation, groups, "NHWC")  # type: ignore[arg-type]


def _stepped(g: Geometry, pixels: int, channels: int) -> Geometry:
    from dataclasses import replace

    return replace(g, pixels=pixels, channels=channels)


def cuts(network: Network) -> list[int]:
    """Numbers of operators after which a stage may end: it hands on no more than its last one's output."""
    found = []
    for end in range(1, len(network.operators) + 1):
        found.append(end)
    return found


def whole_stages(network: Network, ends: list[int]) -> tuple[tuple[str, ...], ...] | None:
    """The operators cut after each of `ends`, or None if a stage would hand on two tensors."""
    stages = []
    for start, end in zip([0, *ends], ends, strict=False):
        inside = set(range(start, end))
        for op in inside:
            (t,) = network.operators[op].outputs
            outside = [o.id for o in network.operators if t in o.inputs and o.id not in inside]
            if op != end - 1 and outside:
                return None
        stages.append(tuple(network.operators[op].name for op in range(start, end)))
    return tuple(stages)


@st.composite
def groups(draw: st.DrawFn, network: Network, *, strips: bool = True) -> Group:
    """The whole network as one group in rings, cut into stages as it comes."""
    count = len(network.operators)
    ends = sorted(draw(st.sets(st.integers(1, count - 1)))) if count > 1 else []
    stages = whole_stages(network, [*ends, count])
    if stages is None:
        # Cut after every operator: each hands on its one output.
        stages = tuple((op.name,) for op in network.operators)
    last = network.operators[-1].geometry
    assert last is not None
    width = last.output[2] if len(last.output) == 4 else 1
    rings = Rings(
        tuple(Stage(names, draw(st.sampled_from((1, 1, 2, 3)))) for names in stages),
        draw(st.integers(1, width)) if strips else 1,
        "rows",
        draw(st.sampled_from(("forward", "reverse"))),
    )
    return Group("g", tuple(op.name for op in network.operators), 1 << 30, tiling=rings)
