"""The kernels of one network: every function once for all its users, and every layer's constants."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field, replace

from onchip.base.errors import ModelError, PlanFormatError
from onchip.machines.cores import Forms
from onchip.microcontroller.int8.model import AveragePool, Int8, Layer, MaxPool, Mean
from onchip.microcontroller.kernel_language import Function
from onchip.microcontroller.kernels import KernelUse, PoolSums, kernel_for, pool_sums_for
from onchip.microcontroller.project.units import Op

__all__ = ["Call", "Library"]


@dataclass(frozen=True, slots=True)
class Call:
    """A call of a layer's kernel: its name in C, its parameters' names in order, its constants' name.

    `operand` is the name of a constant map that is its second operand.
    """

    function: str
    parameters: tuple[str, ...]
    constants: str
    operand: str = ""

    def text(self, arguments: Mapping[str, str]) -> str:
        """Return the call, with those of the arguments that it has."""
        given = {**arguments, "weights": self.constants}
        return f"{self.function}({', '.join(given[name] for name in self.parameters)});"


@dataclass
class Library:
    """Collects kernels and constants under names that begin with `prefix`, or kernels with the `project`.

    The kernels for all shapes make the layers named in `shared`; products have the core's `forms`.
    """

    prefix: str
    shared: Collection[str] = ()
    forms: Forms = "packed"
    project: str = ""
    users: dict[str, set[str]] = field(default_factory=dict)
    """The layers that each function makes, by its name in C."""
    functions: dict[str, Function] = field(default_factory=dict)
    """The functions by the kernel's own name."""
    constants: dict[str, tuple[tuple[int, ...], str]] = field(default_factory=dict)
    """The words of each constant, and the layer that owns them, by name."""
    maps: dict[str, tuple[Int8, str]] = field(default_factory=dict)
    """Constant operands, and the layer that reads them, by name."""

    def kernel(self, op: Op, *, columns: bool, pixels: int) -> Call:
        """Return the call of a layer's kernel; a convolution makes up to `pixels` at a time, also by
        `columns`.

        Raises `ModelError` for a layer that no kernel computes, or whose kernel needs more workspace than the
        plan gives it; `PlanFormatError` where the plan expects another walk than the kernel's.
        """
        number, layer, workspace = op.number, op.layer, op.workspace
        reverse = op.in_place and op.reverse
        shared = layer.name in self.shared
        turned = {"reverse": reverse, "columns": columns}
        use: KernelUse = kernel_for(layer, **turned, pixels=pixels, shared=shared, forms=self.forms)
        while use.workspace > workspace and columns and pixels > 1 and not shared:
            pixels -= 1
            use = kernel_for(layer, **turned, pixels=pixels, forms=self.forms)
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
        """Return a pool over a whole map: the calls that add pixels and finish, and the sums' first bytes."""
        use: PoolSums = pool_sums_for(layer, forms=self.forms)
        add = self._call(use.add, (), number, layer)
        return add, self._call(use.finish, use.words, number, layer), use.fill

    def _call(self, function: Function, words: tuple[int, ...], number: int, layer: Layer) -> Call:
        known = self.functions.setdefault(
            function.name, replace(function, name=f"{self.project or self.prefix}_{function.name}")
        )
        self.users.setdefault(known.name, set()).add(layer.name)
        name = f"{self.prefix}_constants{number}"
        if words:
            held, _ = self.constants.setdefault(name, (words, layer.name))
            if held != words:  # one layer in two forms: each form has its own
                name += "_turned"
                self.constants.setdefault(name, (words, layer.name))
        return Call(known.name, tuple(p.name for p in function.parameters), name if words else "0")
