"""The kernels of one network: every function once, whoever uses it, and every layer's constants."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field, replace

from onchip.base.errors import ModelError, PlanFormatError
from onchip.microcontroller.int8.model import AveragePool, Int8, Layer, MaxPool, Mean
from onchip.microcontroller.kernel import Function
from onchip.microcontroller.kernels import KernelUse, PoolSums, kernel_for, pool_sums_for
from onchip.microcontroller.project.units import Op

__all__ = ["Call", "Library"]


@dataclass(frozen=True, slots=True)
class Call:
    """How a layer's kernel is called: its name in C, its parameters' names in order, its constants' name.

    `operand` is the name of a constant map that is its second operand.
    """

    function: str
    parameters: tuple[str, ...]
    constants: str
    operand: str = ""

    def text(self, arguments: Mapping[str, str]) -> str:
        """The call with these arguments, of which it takes those that it has."""
        given = {**arguments, "weights": self.constants}
        return f"{self.function}({', '.join(given[name] for name in self.parameters)});"


@dataclass
class Library:
    """Collects kernels and constants under names that begin with `prefix`.

    Layers named in `shared` are made by the kernels for all shapes.
    """

    prefix: str
    shared: Collection[str] = ()
    users: dict[str, set[str]] = field(default_factory=dict)
    """The layers that each function makes, by its name in C."""
    functions: dict[str, Function] = field(default_factory=dict)
    """By the kernel's own name."""
    constants: dict[str, tuple[tuple[int, ...], str]] = field(default_factory=dict)
    """Words, and the layer that they are of, by name."""
    maps: dict[str, tuple[Int8, str]] = field(default_factory=dict)
    """Constant operands, and the layer that reads them, by name."""

    def kernel(self, op: Op, *, columns: bool, pixels: int) -> Call:
        """The kernel of a layer; a convolution makes up to `pixels` at a time, along columns if so wanted.

        Raises `ModelError` for a layer that no kernel computes, or whose kernel needs more workspace than the
        plan gives it; `PlanFormatError` where the plan counts on another walk than the kernel's.
        """
        number, layer, workspace = op.number, op.layer, op.workspace
        reverse = op.in_place and op.reverse
        shared = layer.name in self.shared
        use: KernelUse = kernel_for(layer, reverse=reverse, columns=columns, pixels=pixels, shared=shared)
        while use.workspace > workspace and columns and pixels > 1 and not shared:
            pixels -= 1
            use = kernel_for(layer, reverse=reverse, columns=columns, pixels=pixels)
        if use.workspace > workspace:
            raise ModelError(
                f"needs {use.workspace} bytes of workspace, the plan gives it {workspace}", item=layer.name
            )
        channels = use.channels or layer.output_shape[3]
        if op.in_place and (use.pixels, channels) != (pixels, op.channels or layer.output_shape[3]):
            raise PlanFormatError(
                f"the plan counts on steps of {pixels} pixels, {op.channels} channels at a time; the kernel"
                f" makes {use.pixels}, {use.channels} at a time",
                item=layer.name,
            )
        operand = ""
        if use.operand is not None:
            operand = f"{self.prefix}_operand{number}"
            self.maps[operand] = use.operand, layer.name
        return replace(self._call(use.function, use.words, number, layer), operand=operand)

    def sums(self, number: int, layer: AveragePool | MaxPool | Mean) -> tuple[Call, Call, int]:
        """A pool over a whole map: what adds pixels up, what makes bytes of sums, the sums' first bytes."""
        use: PoolSums = pool_sums_for(layer)
        add = self._call(use.add, (), number, layer)
        return add, self._call(use.finish, use.words, number, layer), use.fill

    def _call(self, function: Function, words: tuple[int, ...], number: int, layer: Layer) -> Call:
        known = self.functions.setdefault(
            function.name, replace(function, name=f"{self.prefix}_{function.name}")
        )
        self.users.setdefault(known.name, set()).add(layer.name)
        name = f"{self.prefix}_constants{number}"
        if words:
            held, _ = self.constants.setdefault(name, (words, layer.name))
            if held != words:  # one layer in two forms: the other form has its own
                name += "_turned"
                self.constants.setdefault(name, (words, layer.name))
        return Call(known.name, tuple(p.name for p in function.parameters), name if words else "0")
