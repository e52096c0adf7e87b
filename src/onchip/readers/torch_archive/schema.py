"""The known parts of a program in a `.pt2` archive: schema version 8 of `torch.export`.

`Closed` parts admit no other key; unknown keys of the others are dropped, as torch itself does.
"""

from __future__ import annotations

from typing import Annotated, Any

import msgspec
from msgspec import UNSET, Meta, UnsetType

__all__ = [
    "Argument", "Device", "Graph", "Hint", "InputSpec", "NamedArgument", "Node", "OutputSpec", "Payload",
    "Payloads", "Program", "Signature", "SymArgument", "SymValue", "TensorMeta", "TensorName",
]  # fmt: skip

Whole = Annotated[int, Meta(ge=-(2**63), le=2**63 - 1)]
Real = float | Annotated[str, Meta(pattern=r"^(Infinity|-Infinity|NaN)$")]


class Open(msgspec.Struct, frozen=True):
    """A part whose unknown keys are dropped."""


class Closed(msgspec.Struct, frozen=True, forbid_unknown_fields=True, omit_defaults=True):
    """One of several kinds: exactly one key, and a known one."""

    def kind(self) -> tuple[str, Any]:
        """Return the key and its value; raises `ValueError` unless there is exactly one."""
        found = [
            (name, value) for name in self.__struct_fields__ if (value := getattr(self, name)) is not UNSET
        ]
        if len(found) != 1:
            raise ValueError(f"{type(self).__name__} has {len(found)} kinds, not one")
        return found[0]


class Device(Open, frozen=True):
    type: str
    index: int | None = None


class Hint(Closed, frozen=True):
    as_int: Whole | UnsetType = UNSET
    as_bool: bool | UnsetType = UNSET
    as_float: Real | UnsetType = UNSET


class Expression(Open, frozen=True):
    expr_str: str
    hint: Hint | None = None


class SymValue(Closed, frozen=True):
    """A size, or another number computed from sizes."""

    as_expr: Expression | UnsetType = UNSET
    as_int: Whole | UnsetType = UNSET
    as_bool: bool | UnsetType = UNSET
    as_float: Real | UnsetType = UNSET


class TensorMeta(Open, frozen=True):
    dtype: int
    sizes: list[SymValue]
    requires_grad: bool
    device: Device
    strides: list[SymValue]
    storage_offset: SymValue
    layout: int


class TensorName(Open, frozen=True):
    name: str


class SymArgument(Closed, frozen=True):
    as_name: str | UnsetType = UNSET
    as_int: Whole | UnsetType = UNSET
    as_bool: bool | UnsetType = UNSET
    as_float: Real | UnsetType = UNSET


class OptionalTensor(Closed, frozen=True):
    as_tensor: TensorName | UnsetType = UNSET
    as_none: bool | UnsetType | None = UNSET


class Argument(Closed, frozen=True):
    """An argument, or a result. Graphs, objects of classes and operators as arguments are not known."""

    as_none: bool | UnsetType | None = UNSET
    as_tensor: TensorName | UnsetType = UNSET
    as_tensors: list[TensorName] | UnsetType = UNSET
    as_int: Whole | UnsetType = UNSET
    as_ints: list[Whole] | UnsetType = UNSET
    as_float: Real | UnsetType = UNSET
    as_floats: list[Real] | UnsetType = UNSET
    as_string: str | UnsetType = UNSET
    as_strings: list[str] | UnsetType = UNSET
    as_sym_int: SymArgument | UnsetType = UNSET
    as_sym_ints: list[SymArgument] | UnsetType = UNSET
    as_scalar_type: int | UnsetType = UNSET
    as_memory_format: int | UnsetType = UNSET
    as_layout: int | UnsetType = UNSET
    as_device: Device | UnsetType = UNSET
    as_bool: bool | UnsetType = UNSET
    as_bools: list[bool] | UnsetType = UNSET
    as_sym_bool: SymArgument | UnsetType = UNSET
    as_sym_bools: list[SymArgument] | UnsetType = UNSET
    as_optional_tensors: list[OptionalTensor] | UnsetType = UNSET
    as_optional_tensor: OptionalTensor | UnsetType = UNSET
    as_sym_float: SymArgument | UnsetType = UNSET
    as_sym_floats: list[SymArgument] | UnsetType = UNSET


class NamedArgument(Open, frozen=True):
    name: str
    arg: Argument
    kind: int | None = None


class Node(Open, frozen=True):
    target: str
    inputs: list[NamedArgument]
    outputs: list[Argument]
    metadata: dict[str, str]
    name: str | None = None


class Graph(Open, frozen=True):
    inputs: list[Argument]
    outputs: list[Argument]
    nodes: list[Node]
    tensor_values: dict[str, TensorMeta]
    sym_int_values: dict[str, SymValue]
    sym_bool_values: dict[str, SymValue]
    sym_float_values: dict[str, SymValue] = {}
    custom_obj_values: dict[str, msgspec.Raw] = {}


class UserValue(Open, frozen=True):
    arg: Argument


class Constant(Closed, frozen=True):
    as_none: bool | UnsetType | None = UNSET
    as_int: Whole | UnsetType = UNSET
    as_float: Real | UnsetType = UNSET
    as_string: str | UnsetType = UNSET
    as_bool: bool | UnsetType = UNSET


class ConstantInput(Open, frozen=True):
    name: str
    value: Constant


class Parameter(Open, frozen=True):
    arg: TensorName
    parameter_name: str


class Buffer(Open, frozen=True):
    arg: TensorName
    buffer_name: str
    persistent: bool


class TensorConstant(Open, frozen=True):
    arg: TensorName
    tensor_constant_name: str


class InputSpec(Closed, frozen=True):
    """The kind of an input of the graph."""

    user_input: UserValue | UnsetType = UNSET
    parameter: Parameter | UnsetType = UNSET
    buffer: Buffer | UnsetType = UNSET
    tensor_constant: TensorConstant | UnsetType = UNSET
    constant_input: ConstantInput | UnsetType = UNSET


class BufferMutation(Open, frozen=True):
    arg: TensorName
    buffer_name: str


class InputMutation(Open, frozen=True):
    arg: TensorName
    user_input_name: str


class OutputSpec(Closed, frozen=True):
    """The kind of an output of the graph."""

    user_output: UserValue | UnsetType = UNSET
    buffer_mutation: BufferMutation | UnsetType = UNSET
    user_input_mutation: InputMutation | UnsetType = UNSET


class Signature(Open, frozen=True):
    input_specs: list[InputSpec]
    output_specs: list[OutputSpec]


class CallSignature(Open, frozen=True):
    in_spec: str
    out_spec: str
    forward_arg_names: list[str] | None = None


class Call(Open, frozen=True):
    fqn: str
    signature: CallSignature | None = None


class GraphModule(Open, frozen=True):
    graph: Graph
    signature: Signature
    module_call_graph: list[Call]


class Range(Open, frozen=True):
    min_val: Whole | None
    max_val: Whole | None


class SchemaVersion(Open, frozen=True):
    major: int
    minor: int


class Program(Open, frozen=True):
    """A `models/*.json`."""

    graph_module: GraphModule
    opset_version: dict[str, Whole]
    range_constraints: dict[str, Range]
    schema_version: SchemaVersion
    verifiers: list[str] = []
    guards_code: list[str] = []


class Payload(Open, frozen=True):
    path_name: str
    is_param: bool
    use_pickle: bool
    tensor_meta: TensorMeta | None


class Payloads(Open, frozen=True):
    """A `*_config.json`: the places of the bytes of weights or constants."""

    config: dict[str, Payload]
