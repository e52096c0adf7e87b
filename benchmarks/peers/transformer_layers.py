"""Layers of known transformers as products over named axes: onchip's network and the peer's workload of each.

One spelling serves both, so both plan the same operators on the same shapes. Activations, positions, biases,
norms and residuals are left out, a softmax is an operator of its own, and a decode step reads a cache of keys
and values that its own are not part of: all as in AccelForge's examples (examples/workloads/transformers),
from whose shapes the layers are.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from math import prod
from typing import Any

import onchip
from onchip.network import Constant, OperatorSpec, Reach, Side


@dataclass(frozen=True)
class Use:
    """A tensor and the letters of the axes along its sides, outermost first; of `*p` all positions count."""

    tensor: str
    sides: tuple[str, ...]

    @property
    def axes(self) -> tuple[str, ...]:
        """The letters without stars."""
        return tuple(side.lstrip("*") for side in self.sides)


@dataclass(frozen=True)
class Step:
    """One operator: every element it makes is a sum, over the axes it does not have, of products of reads."""

    name: str
    made: Use
    reads: tuple[Use, ...]

    @property
    def sums(self) -> tuple[str, ...]:
        """The axes that are summed over, in the order in which they are read."""
        seen = dict.fromkeys(side for use in self.reads for side in use.sides if side[0] != "*")
        return tuple(axis for axis in seen if axis not in self.made.sides)


@dataclass(frozen=True)
class Layer:
    """A layer: sizes of axes by letter, operators in order, bytes of an element.

    `inputs` and `outputs` are tensors; whatever else nothing makes is a weight.
    """

    name: str
    sizes: Mapping[str, int]
    steps: tuple[Step, ...]
    inputs: tuple[str, ...]
    outputs: tuple[str, ...]
    element: int = 2

    def bytes(self, use: Use) -> int:
        """Return the bytes of the tensor of a use."""
        return prod(self.sizes[axis] for axis in use.axes) * self.element

    def given(self) -> dict[str, Use]:
        """Return the tensors that no operator makes, each as its first reader sees it."""
        made = {step.made.tensor for step in self.steps}
        uses = [use for step in self.steps for use in step.reads if use.tensor not in made]
        return {use.tensor: use for use in reversed(uses)}

    def least(self) -> int:
        """Return what every plan moves: inputs, weights and outputs once."""
        out = [step.made for step in self.steps if step.made.tensor in self.outputs]
        return sum(map(self.bytes, (*self.given().values(), *out)))


# -- onchip ------------------------------------------------------------------------------------------------


def network_of(layer: Layer) -> onchip.Network:
    """Return the layer as onchip's network, each operator with its reach."""
    given = layer.given()
    tensors: list[tuple[str, int, Any]] = [(t, layer.bytes(given[t]), "input") for t in layer.inputs]
    tensors += [(step.made.tensor, layer.bytes(step.made), "activation") for step in layer.steps]
    here = {name for name, _, _ in tensors}
    operators = []
    for step in layer.steps:
        weights = [use for use in step.reads if use.tensor not in here]
        operands = [use for use in step.reads if use.tensor in here]
        operators.append(
            OperatorSpec(
                step.name,
                "Product",
                [use.tensor for use in operands],
                [step.made.tensor],
                sum(map(layer.bytes, weights)),
                reach=_reach(layer, step, operands, weights),
            )
        )
    return onchip.Network.build(
        layer.name, tensors, operators, layer.outputs, element=f"int{8 * layer.element}"
    )


def lines_of(layer: Layer) -> tuple[str, ...]:
    """Return the operators as lines for `nest_known_values.Joint`, with the axes that are not cut."""
    lines = []
    for step in layer.steps:
        made, *reads = (f"{use.tensor}({','.join(use.sides)})" for use in (step.made, *step.reads))
        rows = sorted({side[1:] for use in step.reads for side in use.sides if side[0] == "*"})
        lines.append(f"{step.name}: {made} = {' '.join(reads)}{' | ' if rows else ''}{' '.join(rows)}")
    return tuple(lines)


def _reach(layer: Layer, step: Step, operands: list[Use], weights: list[Use]) -> Reach:
    """Return the reach of an operator, over as few axes as say it.

    Neighbouring axes of the output, or of the sums, that lie side by side in every use are one: heads and
    what is in a head are the features of a projection. onchip parts them again where another operator does.
    """
    uses = (step.made, *step.reads)
    outputs = _runs(step.made.sides, uses)
    axes = [*outputs, *_runs(step.sums, uses)]
    sizes = [prod(layer.sizes[axis] for axis in run) for run in axes]

    def sides(use: Use) -> tuple[Side, ...]:
        made, at = [], 0
        while at < len(use.sides):
            if use.sides[at][0] == "*":
                size = layer.sizes[use.axes[at]]
                made.append(Side(size, span=size))
                at += 1
                continue
            axis = next(i for i, run in enumerate(axes) if run[0] == use.sides[at])
            made.append(Side(sizes[axis], axis))
            at += len(axes[axis])
        return tuple(made)

    return Reach(
        tuple(sizes[: len(outputs)]),
        tuple(map(sides, operands)),
        tuple(Constant(use.tensor, layer.bytes(use), sides(use)) for use in weights),
        tuple(sizes[len(outputs) :]),
    )


def _runs(axes: tuple[str, ...], uses: tuple[Use, ...]) -> list[tuple[str, ...]]:
    """Part axes into runs that every use has side by side, or not at all."""
    runs: list[tuple[str, ...]] = []
    for axis in axes:
        if runs and all(_follows(use.sides, runs[-1][-1], axis) for use in uses):
            runs[-1] += (axis,)
        else:
            runs.append((axis,))
    return runs


def _follows(sides: tuple[str, ...], first: str, second: str) -> bool:
    """Return whether the second axis comes right behind the first, or neither is there."""
    if first not in sides or second not in sides:
        return first not in sides and second not in sides
    return sides.index(second) == sides.index(first) + 1


# -- the peer ----------------------------------------------------------------------------------------------


def workload_of(layer: Layer) -> dict[str, Any]:
    """Return the layer as a workload of AccelForge, one einsum for every operator.

    A rank is the axis along which a tensor is made, or first read. An input that several operators read is
    copied by an einsum of its own first, or the mapper would fetch it for each of them.
    """
    ranks = {name: use.axes for name, use in layer.given().items()}
    ranks.update((step.made.tensor, step.made.axes) for step in layer.steps)
    readers = Counter(use.tensor for step in layer.steps for use in step.reads)
    einsums: list[dict[str, Any]] = []
    for name in layer.inputs:
        if readers[name] > 1:
            sides = ", ".join(ranks[name])
            einsums.append({"einsum": f"{name}[{sides}] = {name}_in[{sides}]", "is_copy_operation": True})

    def spelled(use: Use) -> str:
        sides = zip(use.axes, ranks[use.tensor], strict=True)
        return f"{use.tensor}[{', '.join(a if a == r else f'{r.upper()}: {a}' for a, r in sides)}]"

    for step in layer.steps:
        einsums.append({"einsum": f"{spelled(step.made)} = {' * '.join(map(spelled, step.reads))}"})
    return {
        "rank_sizes": {axis.upper(): size for axis, size in layer.sizes.items()},
        "bits_per_value": {"All": 8 * layer.element},
        "einsums": einsums,
    }


# -- the layers --------------------------------------------------------------------------------------------


def _use(word: str) -> Use:
    tensor, _, sides = word.rstrip(")").partition("(")
    return Use(tensor, tuple(sides.split(",")))


def _layer(name: str, sizes: str, lines: str, inputs: str, outputs: str) -> Layer:
    """Return a layer from lines such as `K: k(m,h,e) = I(m,d) WK(d,h,e)`."""
    steps = []
    for line in lines.strip().splitlines():
        what, _, text = line.strip().partition(": ")
        made, _, reads = text.partition(" = ")
        steps.append(Step(what, _use(made), tuple(map(_use, reads.split()))))
    extents = {axis: int(n) for axis, _, n in (word.partition("=") for word in sizes.split())}
    return Layer(name, extents, tuple(steps), tuple(inputs.split()), tuple(outputs.split()))


def gpt3_67b(tokens: int = 2048) -> Layer:
    """GPT-3 6.7B: attention of 32 heads, two products forward."""
    return _layer(
        f"GPT-3 6.7B, {tokens:,} tokens",
        f"m={tokens} p={tokens} d=4096 h=32 e=128 f=128 g=4096 c=16384 j=4096",
        """
        K: k(m,h,e) = I(m,d) WK(d,h,e)
        V: v(m,h,e) = I(m,d) WV(d,h,e)
        Q: q(m,h,e) = I(m,d) WQ(d,h,e)
        QK: s(h,m,p) = q(m,h,e) k(p,h,e)
        SM: t(h,m,p) = s(h,m,*p)
        AV: a(m,h,f) = t(h,m,p) v(p,h,f)
        Z: z(m,g) = a(m,h,f) WZ(h,f,g)
        FFA: b(m,c) = z(m,g) WA(g,c)
        FFB: y(m,j) = b(m,c) WB(c,j)
        """,
        "I",
        "y",
    )


def grouped(name: str, tokens: int, forward: int, cached: int = 0) -> Layer:
    """A layer of 4,096 features, 8 heads of keys and values with 4 of queries each, and a gated unit.

    With `cached` it is a decode step of `tokens` new ones, which attend to the cached.
    """
    keys, values, of = ("kc", "vc", "p") if cached else ("k", "v", "p")
    what = f"decode {tokens:,} behind {cached:,}" if cached else f"prefill {tokens:,}"
    return _layer(
        f"{name}, {what}",
        f"m={tokens} p={cached or tokens} d=4096 h=8 n=4 e=128 f=128 g=4096 c={forward} j=4096",
        f"""
        V: v(m,h,e) = I(m,d) WV(h,e,d)
        K: k(m,h,e) = I(m,d) WK(h,e,d)
        Q: q(m,h,n,e) = I(m,d) WQ(h,n,e,d)
        QK: s(h,n,m,p) = q(m,h,n,e) {keys}({of},h,e)
        SM: t(h,n,m,p) = s(h,n,m,*p)
        AV: a(m,h,n,f) = t(h,n,m,p) {values}({of},h,f)
        Z: z(m,g) = a(m,h,n,f) WZ(h,n,f,g)
        FFG: u(m,c) = z(m,g) WG(g,c)
        FFU: w(m,c) = z(m,g) WU(g,c)
        FFH: x(m,c) = u(m,c) w(m,c)
        FFB: y(m,j) = x(m,c) WD(c,j)
        """,
        "I kc vc" if cached else "I",
        "v k y" if cached else "y",
    )


def llama3_8b(tokens: int, cached: int = 0) -> Layer:
    """Llama 3 8B, prefill or a decode step."""
    return grouped("Llama 3 8B", tokens, 14336, cached)


def qwen3_8b(tokens: int, cached: int = 0) -> Layer:
    """Qwen 3 8B, prefill or a decode step."""
    return grouped("Qwen 3 8B", tokens, 12288, cached)
