"""`.pt2` archives as torch 2.13 writes them for relu(x), made by hand: no torch is needed."""

from __future__ import annotations

import copy
import io
import json
import warnings
import zipfile
from typing import Any

from hostile.case import touch

FIXED = [{"as_int": n} for n in (2, 3, 8, 8)]
STRIDES = [{"as_int": n} for n in (192, 64, 8, 1)]
SYMBOL = {"expr_str": "Symbol('s77', positive=True, integer=True)", "hint": {"as_int": 2}}
FREE = [{"as_expr": SYMBOL}, *FIXED[1:]]
# The pickle of ((a float tensor of 2x3x8x8,), {}) as torch.save writes it.
SAMPLE = (
    b"\x80\x02ctorch._utils\n_rebuild_tensor_v2\n((X\x07\x00\x00\x00storagectorch\nFloatStorage\n"
    b"X\x01\x00\x00\x000X\x03\x00\x00\x00cpuM\x80\x01tQK\x00(K\x02K\x03K\x08K\x08t(K\xc0K@K\x08K\x01t\x89"
    b"ccollections\nOrderedDict\n)RtR\x85}\x86."
)


def program(sizes: list[Any] = FIXED) -> dict[str, Any]:
    """relu(x) as torch 2.13 writes it."""
    tensor = {
        "dtype": 7,
        "sizes": sizes,
        "requires_grad": False,
        "device": {"type": "cpu", "index": None},
        "strides": STRIDES,
        "storage_offset": {"as_int": 0},
        "layout": 7,
    }
    x, y = {"as_tensor": {"name": "x"}}, {"as_tensor": {"name": "relu"}}
    relu = {
        "target": "torch.ops.aten.relu.default",
        "inputs": [{"name": "self", "arg": x, "kind": 1}],
        "outputs": [y],
        "metadata": {},
        "is_hop_single_tensor_return": None,
        "name": "relu",
    }
    leaf = '{"type": null, "context": null, "children_spec": []}'
    args = f'{{"type": "builtins.tuple", "context": "null", "children_spec": [{leaf}]}}'
    kwargs = '{"type": "builtins.dict", "context": "[]", "children_spec": []}'
    tree = f'[1, {{"type": "builtins.tuple", "context": "null", "children_spec": [{args}, {kwargs}]}}]'
    graph = {
        "inputs": [x],
        "outputs": [y],
        "nodes": [relu],
        "tensor_values": {"x": tensor, "relu": copy.deepcopy(tensor)},
        "sym_int_values": {},
        "sym_bool_values": {},
        "sym_float_values": {},
        "is_single_tensor_return": False,
        "custom_obj_values": {},
    }
    called = {
        "inputs": [],
        "outputs": [],
        "in_spec": tree,
        "out_spec": f"[1, {leaf}]",
        "forward_arg_names": ["x"],
    }
    module = {
        "graph": graph,
        "signature": {
            "input_specs": [{"user_input": {"arg": x}}],
            "output_specs": [{"user_output": {"arg": y}}],
        },
        "module_call_graph": [{"fqn": "", "signature": called}],
        "metadata": {},
        "treespec_namedtuple_fields": {},
    }
    return {
        "graph_module": module,
        "opset_version": {"aten": 10},
        "range_constraints": {"s77": {"min_val": 1, "max_val": 9}} if sizes is FREE else {},
        "schema_version": {"major": 8, "minor": 20},
        "verifiers": ["TRAINING"],
        "torch_version": "2.13.0+cpu",
        "guards_code": [],
    }


def archive(
    *models: dict[str, Any],
    sample: bytes = SAMPLE,
    models_as: tuple[str, ...] = ("model",),
    extra: tuple[tuple[str, str | bytes], ...] = (),
) -> bytes:
    """An archive with these programs under these names; `sample` is the pickle of its example inputs."""
    entries: list[tuple[str, str | bytes]] = [
        ("archive_format", "pt2"),
        ("archive_version", "0"),
        (".data/version", "6\n"),
        ("byteorder", "little"),
    ]
    example = _zip(("data.pkl", sample), ("version", "3\n"), ("byteorder", "little"), ("data/0", bytes(1536)))
    for label in dict.fromkeys(models_as):
        entries += [
            (f"data/weights/{label}_weights_config.json", '{"config": {}}'),
            (f"data/constants/{label}_constants_config.json", '{"config": {}}'),
            (f"data/sample_inputs/{label}.pt", example),
        ]
    entries += [
        (f"models/{label}.json", json.dumps(model)) for label, model in zip(models_as, models, strict=True)
    ]
    return _zip(*entries, *extra)


def _zip(*entries: tuple[str, str | bytes]) -> bytes:
    made = io.BytesIO()
    with warnings.catch_warnings(), zipfile.ZipFile(made, "w") as z:
        warnings.simplefilter("ignore")  # of a name twice
        for name, content in entries:
            z.writestr("m/" + name, content)
    return made.getvalue()


def with_value(field: str, name: str) -> dict[str, Any]:
    """A program in whose `field` of a tensor stands code."""
    made = program()
    code = {"as_expr": {"expr_str": touch(name) + " or Integer(2)", "hint": {"as_int": 2}}}
    values = copy.deepcopy(made["graph_module"]["graph"]["tensor_values"]["relu"][field])
    made["graph_module"]["graph"]["tensor_values"]["relu"][field] = [code, *values[1:]]
    return made
