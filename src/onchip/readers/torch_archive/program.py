"""A program of a `.pt2` archive: checked part by part, and rewritten with numbers for sizes."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import msgspec

from onchip.base.limits import limits
from onchip.readers.torch_archive.schema import (
    Argument,
    Device,
    Graph,
    InputSpec,
    Node,
    OptionalTensor,
    OutputSpec,
    Program,
    SymArgument,
    SymValue,
    TensorName,
)
from onchip.readers.torch_archive.tensors import cleaned, cleaned_device, decoded, is_free, number
from onchip.readers.torch_archive.trees import flat, leaves
from onchip.readers.torch_archive.words import (
    Senseless,
    check_expression,
    check_name,
    check_operator,
    check_path,
    check_word,
    shown,
)

__all__ = ["CleanProgram", "Leaf", "clean_program"]

MAJOR = 8
"""The version of the schema that is known."""

MOST_CALLS = 5_000
"""The most calls of a program: torch takes milliseconds for each."""

_VERIFIERS = {"TRAINING", "ATEN"}
_STEP = re.compile(r"(?P<key>[A-Za-z0-9_@.]{1,999}),(?P<path>[A-Za-z0-9_@.]{0,999}),[^;]*")


@dataclass(frozen=True)
class Leaf:
    """An input of the program: a tensor with these sizes and strides, or `value`."""

    sizes: tuple[int, ...] | None
    strides: tuple[int, ...] = ()
    dtype: int = 0
    value: Any = None


@dataclass(frozen=True)
class CleanProgram:
    """The program in the form for torch; `free` if its sizes were symbols, with the example's inputs."""

    content: bytes
    free: bool
    inputs: tuple[Leaf, ...]


def clean_program(content: bytes) -> CleanProgram:
    """Return the program in a `models/*.json`; raises `Senseless` naming the part that is not known."""
    given = decoded(content, Program, "program")
    if given.schema_version.major != MAJOR:
        raise Senseless(f"is of schema {given.schema_version.major}, and only {MAJOR} is known", "program")
    if given.guards_code:
        raise Senseless(f"is code: {shown(given.guards_code[0])}", "guards")
    for verifier in given.verifiers:
        if verifier not in _VERIFIERS:
            raise Senseless(f"is of the dialect {shown(verifier)}, which is not known", "program")
    for symbol, bounds in given.range_constraints.items():
        check_expression(check_name(symbol, "a size"))
        if None not in (bounds.min_val, bounds.max_val) and bounds.min_val > bounds.max_val:  # type: ignore[operator]
            raise Senseless("has no number in its range", f"size {symbol}")
    graph, signature = given.graph_module.graph, given.graph_module.signature
    if graph.custom_obj_values:
        raise Senseless("has objects of classes: only tensors are loaded", "program")
    most = min(MOST_CALLS, limits().operators)
    if len(graph.nodes) > most:
        raise Senseless(f"has {len(graph.nodes):,} calls, more than {most:,}", "program")
    inputs = [_input_spec(spec) for spec in signature.input_specs]
    outputs = [_output_spec(spec) for spec in signature.output_specs]
    taken = [spec for spec in inputs if spec.kind()[0] in ("user_input", "constant_input")]
    results = [spec for spec in outputs if spec.kind()[0] == "user_output"]
    _check_calls(given, len(taken), len(results))
    clean = _graph(graph)
    program = {
        "graph_module": {
            "graph": clean,
            "signature": {"input_specs": inputs, "output_specs": outputs},
            "module_call_graph": [
                {
                    "fqn": "",
                    "signature": {
                        "inputs": [],
                        "outputs": [],
                        "in_spec": flat(inputs=len(taken)),
                        "out_spec": flat(outputs=len(results)),
                        "forward_arg_names": None,
                    },
                }
            ],
            "metadata": {},
            "treespec_namedtuple_fields": {},
        },
        "opset_version": {"aten": given.opset_version.get("aten", 10)},
        "range_constraints": {},
        "schema_version": {"major": MAJOR, "minor": 0},
        "verifiers": given.verifiers,
        "torch_version": "",
        "guards_code": [],
    }
    free = bool(graph.sym_int_values) or any(is_free(meta) for meta in graph.tensor_values.values())
    return CleanProgram(msgspec.json.encode(program), free, tuple(_leaf(spec, clean) for spec in taken))


def _check_calls(given: Program, inputs: int, outputs: int) -> None:
    """Refuse a nesting without the program's inputs and outputs; torch receives them side by side."""
    whole = [call for call in given.graph_module.module_call_graph if not call.fqn]
    if len(whole) != 1 or whole[0].signature is None:
        raise Senseless("does not say how it is called", "program")
    for call in given.graph_module.module_call_graph:
        if call.signature is None:
            continue
        counts = leaves(call.signature.in_spec), leaves(call.signature.out_spec)
        if not call.fqn and counts != (inputs, outputs):
            raise Senseless(f"has {inputs} inputs and {outputs} outputs, and nests {counts}", "program")
        for name in call.signature.forward_arg_names or ():
            check_name(name, "an input")


def _graph(graph: Graph) -> dict[str, Any]:
    tensors = {}
    for name, meta in graph.tensor_values.items():
        check_name(name, "a tensor")
        try:
            tensors[name] = cleaned(meta)
        except Senseless as problem:
            raise Senseless(problem.reason, problem.item or f"tensor {name}") from None
    return {
        "inputs": [_argument(given, "an input") for given in graph.inputs],
        "outputs": [_argument(given, "an output") for given in graph.outputs],
        "nodes": [_node(node) for node in graph.nodes],
        "tensor_values": tensors,
        "sym_int_values": _values(graph.sym_int_values, lambda given: SymValue(as_int=number(given))),
        "sym_bool_values": _values(graph.sym_bool_values, lambda given: _of("as_bool", given, True)),
        "sym_float_values": _values(graph.sym_float_values, lambda given: _of("as_float", given, 0.0)),
        "is_single_tensor_return": False,
        "custom_obj_values": {},
    }


def _values(given: dict[str, SymValue], clean: Any) -> dict[str, SymValue]:
    return {check_name(name, "a number"): clean(value) for name, value in given.items()}


def _of(kind: str, given: SymValue, otherwise: Any) -> SymValue:
    """Return a truth or a fraction computed from sizes; torch computes it again from the example's sizes."""
    found, value = given.kind()
    if found == "as_expr":
        check_expression(value.expr_str)
        value = otherwise
    elif found != kind:
        raise Senseless(f"a number is {found}, not {kind}")
    return SymValue(**{kind: value})


def _node(node: Node) -> Node:
    name = node.name if node.name is not None else _result(node.outputs)
    item = f"node {_printable(name)} ({_printable(node.target.removeprefix('torch.ops.'))})"
    try:
        inputs = [
            msgspec.structs.replace(
                given, name=_argument_name(given.name), arg=_argument(given.arg, "an argument")
            )
            for given in node.inputs
        ]
        if any(given.kind not in (None, 0, 1, 2) for given in node.inputs):
            raise Senseless("has an argument of no known kind")
        return Node(
            target=check_operator(node.target),
            inputs=inputs,
            outputs=[_argument(given, "a result") for given in node.outputs],
            metadata=_metadata(node.metadata),
            name=None if node.name is None else check_name(node.name, "a call"),
        )
    except Senseless as problem:
        raise Senseless(problem.reason, problem.item or item) from None


def _result(outputs: Iterable[Argument]) -> str:
    for output in outputs:
        kind, value = output.kind()
        return value.name if kind == "as_tensor" else kind
    return ""


def _printable(given: str) -> str:
    return "".join(c if c.isprintable() else "?" for c in given)[:80]


def _argument_name(given: str) -> str:
    """Return the name of an argument in its operator's schema, which may be a keyword such as `from`."""
    return given if not given else check_name(given.removesuffix("_") + "_", "an argument") and given


def _metadata(given: dict[str, str]) -> dict[str, str]:
    """Return the modules that a call belongs to; drop the rest."""
    steps = [_STEP.fullmatch(step) for step in given.get("nn_module_stack", "").split(";")]
    if not all(steps):
        return {}
    kept = [f"{step['key']},{step['path']},torch.nn.Module" for step in steps if step]
    return {"nn_module_stack": ";".join(kept)}


def _argument(given: Argument, of: str) -> Argument:
    """Return the argument after a check of every name and word in it."""
    kind, value = given.kind()
    if isinstance(value, Device):
        return Argument(as_device=cleaned_device(value))
    if kind in ("as_layout", "as_memory_format", "as_scalar_type") and not 0 <= value < 64:
        raise Senseless(f"{of} is {kind} {value}")
    for part in value if isinstance(value, list) else [value]:
        if isinstance(part, str) and kind in ("as_string", "as_strings"):
            check_word(part, of)
        elif isinstance(part, TensorName):
            check_name(part.name, of)
        elif isinstance(part, OptionalTensor) and isinstance(part.kind()[1], TensorName):
            check_name(part.kind()[1].name, of)
        elif isinstance(part, SymArgument) and part.kind()[0] == "as_name":
            check_name(str(part.kind()[1]), of)
    return given


def _input_spec(given: InputSpec) -> InputSpec:
    kind, value = given.kind()
    if kind == "user_input":
        _argument(value.arg, "an input")
    elif kind == "constant_input":
        check_name(value.name, "an input")
        found, constant = value.value.kind()
        if found == "as_string":
            check_word(constant, "an input")
    else:
        check_name(value.arg.name, "an input")
        path = {
            "parameter": "parameter_name",
            "buffer": "buffer_name",
            "tensor_constant": "tensor_constant_name",
        }
        check_path(getattr(value, path[kind]), "a parameter")
    return given


def _output_spec(given: OutputSpec) -> OutputSpec:
    kind, value = given.kind()
    if kind == "user_output":
        _argument(value.arg, "an output")
    else:
        check_name(value.arg.name, "an output")
        if kind == "buffer_mutation":
            check_path(value.buffer_name, "a buffer")
        else:
            check_name(value.user_input_name, "an input")
    return given


def _leaf(spec: InputSpec, graph: dict[str, Any]) -> Leaf:
    """Return an input of the program at the example's size."""
    kind, value = spec.kind()
    if kind == "constant_input":
        return Leaf(None, value=_plain(*value.value.kind()))
    kind, value = value.arg.kind()
    if kind == "as_tensor":
        meta = graph["tensor_values"].get(value.name)
        if meta is None:
            raise Senseless("has no sizes", f"input {value.name}")
        return Leaf(
            tuple(number(size) for size in meta.sizes),
            tuple(number(stride) for stride in meta.strides),
            meta.dtype,
        )
    if kind == "as_sym_int" and value.kind()[0] == "as_name":
        found = graph["sym_int_values"].get(value.kind()[1])
        if found is None:
            raise Senseless("has no value", f"input {value.kind()[1]}")
        return Leaf(None, value=number(found))
    if kind in ("as_none", "as_int", "as_float", "as_bool", "as_string"):
        return Leaf(None, value=_plain(kind, value))
    raise Senseless(f"an input is {kind}, and only tensors and numbers are read")


def _plain(kind: str, value: Any) -> Any:
    if kind == "as_none":
        return None
    return float(value.replace("Infinity", "inf")) if kind == "as_float" and isinstance(value, str) else value
