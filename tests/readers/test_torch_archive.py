"""What of a `.pt2` file reaches torch: nothing that was not understood. No torch is needed for that."""

from __future__ import annotations

import copy
import io
import json
import sys
import zipfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
from hostile.archives import FREE, archive, program, with_value
from onchip.base.errors import ModelError
from onchip.readers.torch_archive import clean_archive
from onchip.readers.torch_archive.operators import ATEN
from onchip.readers.torch_archive.words import Senseless, check_expression

CODE = "__import__('os').abort()"
PAYLOADS = (
    CODE,
    f"x); {CODE} #",
    f'x"]; {CODE} #',
    f"x\n    {CODE}",
    "Symbol('s77', positive=True).__class__.__base__.__subclasses__()",
    "Symbol('s77') if __import__('os') else 0",
    "__builtins__",
    "#custom:op",
)
NAMES = ("os.system", "collections.defaultdict", "torch.ops.aten.from_file.default", "_operator.methodcaller")


def refused(path: Path, content: bytes, *words: str) -> str:
    path.write_bytes(content)
    with pytest.raises(ModelError) as problem:
        clean_archive(path, where="net.pt2")
    line = str(problem.value)
    assert line.startswith("net.pt2: ")
    assert "\n" not in line
    for word in words:
        assert word in line
    return line


def handed(path: Path, content: bytes) -> dict[str, bytes]:
    """What torch would be handed."""
    path.write_bytes(content)
    clean = clean_archive(path, where="net.pt2")
    with clean.archive, zipfile.ZipFile(clean.archive) as made:
        return {name: made.read(name) for name in made.namelist()}


def with_weights(kind: str = "weights", **changed: Any) -> bytes:
    """The honest archive with one weight of 4 x 3 floats."""
    meta = copy.deepcopy(program()["graph_module"]["graph"]["tensor_values"]["x"])
    meta["sizes"], meta["strides"] = [{"as_int": 4}, {"as_int": 3}], [{"as_int": 3}, {"as_int": 1}]
    place = {"weights": "weight_0", "constants": "tensor_0"}[kind]
    payload = {"path_name": place, "is_param": True, "use_pickle": False, "tensor_meta": meta}
    meta |= {key: changed.pop(key) for key in list(changed) if key in meta}
    name = changed.pop("name", "features.0.weight")
    payload |= changed
    content = io.BytesIO()
    with zipfile.ZipFile(io.BytesIO(archive(program()))) as old, zipfile.ZipFile(content, "w") as new:
        for entry in old.namelist():
            is_config = entry.endswith(f"model_{kind}_config.json")
            new.writestr(entry, json.dumps({"config": {name: payload}}) if is_config else old.read(entry))
        new.writestr(f"m/data/{kind}/{place}", bytes(48))
    return content.getvalue()


def positions(value: Any, path: tuple[Any, ...] = ()) -> Iterator[tuple[tuple[Any, ...], bool]]:
    """Where strings stand in JSON: the way there, and whether it is a key."""
    if isinstance(value, dict):
        for key, inner in value.items():
            yield (*path, key), True
            yield from positions(inner, (*path, key))
    elif isinstance(value, list):
        for i, inner in enumerate(value):
            yield from positions(inner, (*path, i))
    elif isinstance(value, str):
        yield path, False


def planted(value: Any, path: tuple[Any, ...], is_key: bool, payload: str) -> Any:
    """A copy with the payload there."""
    made = copy.deepcopy(value)
    at = made
    for step in path[:-1]:
        at = at[step]
    if is_key:
        at[payload] = at.pop(path[-1])
    else:
        at[path[-1]] = payload
    return made


def rich() -> dict[str, Any]:
    """A program with something in every place that a string may stand in."""
    made = program(FREE)
    graph = made["graph_module"]["graph"]
    (relu,) = graph["nodes"]
    relu["metadata"] = {
        "stack_trace": "File",
        "nn_module_stack": "L__self__,,m.M;L__self___c,c,torch.nn.modules.activation.ReLU",
        "torch_fn": "relu_1;f.relu",
        "source_fn_stack": "relu,torch.nn.functional.relu",
        "custom": "{}",
        "from_node": "[]",
    }
    relu["inputs"] += [
        {"name": "mode", "arg": {"as_string": "floor"}, "kind": 2},
        {"name": "modes", "arg": {"as_strings": ["floor"]}, "kind": 2},
        {"name": "device", "arg": {"as_device": {"type": "cpu", "index": None}}, "kind": 2},
        {"name": "size", "arg": {"as_sym_int": {"as_name": "s"}}, "kind": 2},
        {"name": "sizes", "arg": {"as_sym_ints": [{"as_name": "s"}, {"as_int": 2}]}, "kind": 2},
        {"name": "others", "arg": {"as_tensors": [{"name": "x"}]}, "kind": 2},
        {"name": "maybe", "arg": {"as_optional_tensors": [{"as_tensor": {"name": "x"}}]}, "kind": 2},
    ]
    graph["sym_int_values"] = {"s": copy.deepcopy(FREE[0])}
    graph["sym_bool_values"] = {"b": {"as_expr": {"expr_str": "Ge(Symbol('s77'), Integer(2))"}}}
    signature = made["graph_module"]["signature"]
    signature["input_specs"] = [
        {"parameter": {"arg": {"name": "p_w"}, "parameter_name": "c.weight"}},
        {"buffer": {"arg": {"name": "b_k"}, "buffer_name": "k", "persistent": True}},
        {"tensor_constant": {"arg": {"name": "c_0"}, "tensor_constant_name": "lifted"}},
        *signature["input_specs"],
        {"constant_input": {"name": "scale", "value": {"as_string": "nearest"}}},
    ]
    (call,) = made["graph_module"]["module_call_graph"]
    leaf = '{"type": null, "context": null, "children_spec": []}'
    call["signature"]["in_spec"] = (
        f'[1, {{"type": "builtins.tuple", "context": "null", "children_spec": ['
        f'{{"type": "builtins.tuple", "context": "null", "children_spec": [{leaf}]}}, '
        f'{{"type": "builtins.dict", "context": "[\\"scale\\"]", "children_spec": [{leaf}]}}]}}]'
    )
    call["signature"]["forward_arg_names"] = ["x", "scale"]
    return made


def test_honest_archives_are_handed_on(tmp_path: Path) -> None:
    for model in (program(), program(FREE), rich()):
        made = handed(tmp_path / "net.pt2", archive(model))
        again = json.loads(made["m/models/model.json"])
        sizes = again["graph_module"]["graph"]["tensor_values"]["x"]["sizes"]
        assert sizes == [{"as_int": n} for n in (2, 3, 8, 8)]
        assert made["m/data/sample_inputs/model.pt"] == b""
        assert again["guards_code"] == []
        assert again["range_constraints"] == {}


@pytest.mark.thorough
@pytest.mark.parametrize("payload", PAYLOADS)
def test_no_string_of_the_file_that_is_code_reaches_torch(payload: str, tmp_path: Path) -> None:
    """In every place of a program, keys included: refused, or dropped."""
    model = rich()
    for path, is_key in positions(model):
        content = archive(planted(model, path, is_key, payload))
        try:
            made = handed(tmp_path / "net.pt2", content)
        except ModelError:
            continue
        words = json.dumps(payload)[1:-1].encode()
        for name, part in made.items():
            assert words not in part, (path, name)


@pytest.mark.thorough
@pytest.mark.parametrize("name", NAMES)
def test_names_of_python_objects_stay_names_of_parameters(name: str, tmp_path: Path) -> None:
    """What looks like the path of a parameter may name one, or be the text of an argument: nothing else."""
    model = rich()
    for path, is_key in positions(model):
        try:
            made = handed(tmp_path / "net.pt2", archive(planted(model, path, is_key, name)))
        except ModelError:
            continue
        if name.encode() in made["m/models/model.json"]:
            assert path[-1] in ("parameter_name", "buffer_name", "tensor_constant_name", "as_string", 0), path


@pytest.mark.parametrize("payload", PAYLOADS)
def test_no_name_of_a_weight_that_is_code_reaches_torch(payload: str, tmp_path: Path) -> None:
    refused(tmp_path / "net.pt2", with_weights(name=payload))
    refused(tmp_path / "net.pt2", with_weights(path_name=payload))
    refused(tmp_path / "net.pt2", with_weights(device={"type": payload, "index": None}))


@pytest.mark.thorough
@given(st.text(max_size=60))
@settings(max_examples=300)
def test_what_is_accepted_as_a_size_has_no_attributes_and_calls_nothing_else(text: str) -> None:
    try:
        check_expression(text)
    except Senseless:
        return
    assert "__" not in text
    assert not set(text) & set("[]{}:;@!%&|~`$?#")


@pytest.mark.parametrize(
    "text",
    [
        "s77", "4", "Symbol('s77', positive=True, integer=True)", "Mul(Integer(3), Symbol('s0'))",
        "Add(FloorDiv(Add(Symbol('s53', positive=True, integer=True), Integer(-1)), Integer(2)), Integer(1))",
    ],
)  # fmt: skip
def test_sizes_that_torch_writes_are_accepted(text: str) -> None:
    check_expression(text)


@pytest.mark.parametrize(
    "text",
    [
        "", "s77.func", "eval(s77)", "Symbol('a b')", "Symbol('s77').__class__", "(lambda: 0)()", "s[0]",
        "exec('1')", "Symbol(\"s\")", "a__b", "f'{s}'",
        "s77(1)", "Integer(9)(1)\n.x", "é",
    ],
)  # fmt: skip
def test_sizes_that_could_be_more_are_refused(text: str) -> None:
    with pytest.raises(Senseless):
        check_expression(text)


def test_entries(tmp_path: Path) -> None:
    path = tmp_path / "net.pt2"
    honest = program()
    refused(path, archive(honest, honest, models_as=("model", "other")), "2 programs")
    refused(path, archive(honest, honest, models_as=("model", "model")), "twice")
    refused(path, archive(honest, honest, models_as=("model", "MODEL")), "twice")
    for name in ("extra/../../x", "extra//x", "extra/./x", "data/aotinductor/model/a.so", "code.py"):
        refused(path, archive(honest, extra=((name, "x"),)), "entry")
    refused(path, archive(honest, sample=b"cos\nsystem\n(S'true'\ntR."), "example inputs")
    refused(path, archive(honest)[:700])
    content = archive(honest)
    at = content.index(b"m/models/model.json")
    refused(path, content[:at] + b"m/models/model.jsoM" + content[at + 19 :], "two ways")
    squeezed = io.BytesIO()
    with (
        zipfile.ZipFile(io.BytesIO(content)) as old,
        zipfile.ZipFile(squeezed, "w", zipfile.ZIP_DEFLATED) as new,
    ):
        for name in old.namelist():
            new.writestr(name, old.read(name))
    refused(path, squeezed.getvalue(), "compressed")
    path.unlink()
    with pytest.raises(ModelError, match="no such file"):
        clean_archive(path, where="net.pt2")


def test_programs(tmp_path: Path) -> None:
    path = tmp_path / "net.pt2"
    refused(path, archive(with_value("sizes", "x")), "tensor relu", "size")
    changes: list[tuple[str, Any, str]] = [
        ("guards_code", ["x is None"], "guards"),
        ("verifiers", ["EDGE_CODE"], "dialect"),
        ("schema_version", {"major": 9, "minor": 0}, "schema"),
        ("range_constraints", {"s77": {"min_val": "1", "max_val": 2}}, "program"),
        ("range_constraints", {"s77": {"min_val": 3, "max_val": 2}}, "s77"),
        ("opset_version", {"aten": CODE}, "program"),
    ]
    for key, value, word in changes:
        refused(path, archive(program() | {key: value}), word)
    deep = json.loads("[" * 900 + "]" * 900)
    refused(path, archive(program() | {"verifiers": deep}))
    for target in (*NAMES, "torch.ops.higher_order.cond", "torch.hub.load"):
        made = program()
        made["graph_module"]["graph"]["nodes"][0]["target"] = target
        refused(path, archive(made), "node relu", "cannot be read")


def test_weights(tmp_path: Path) -> None:
    path = tmp_path / "net.pt2"
    assert handed(path, with_weights())["m/data/weights/weight_0"] == bytes(48)
    assert handed(path, with_weights("constants"))["m/data/constants/tensor_0"] == bytes(48)
    refused(path, with_weights(use_pickle=True), "pickled")
    refused(path, with_weights(path_name="custom_obj_0"), "no place")
    refused(path, with_weights(sizes=[{"as_int": 5}, {"as_int": 3}]), "needs 60 bytes")
    refused(path, with_weights(storage_offset={"as_int": 1}), "needs 52 bytes")
    refused(path, with_weights(strides=[{"as_int": -3}, {"as_int": 1}]), "negative")
    refused(path, with_weights(sizes=FREE[:2]), "no number")
    zero = [{"as_int": 0}, {"as_int": 0}]
    assert handed(path, with_weights(strides=zero))
    refused(path, with_weights(strides=zero, sizes=[{"as_int": 1 << 14}] * 2), "larger than what is stored")
    refused(path, with_weights(dtype=99), "element type")


def test_every_operator_that_has_a_rule_is_known() -> None:
    pytest.importorskip("torch")
    from onchip.readers import torch_export  # noqa: F401  the rules
    from onchip.readers.torch_export.exporter import RULES

    assert {name.rstrip("_") for name in RULES} <= ATEN


@pytest.mark.slow
def test_what_a_program_is_read_from_needs_no_bytes_of_the_file(tmp_path: Path) -> None:
    """A call on constants whose stated size is small and whose real one is not is refused, not computed."""
    pytest.importorskip("torch")
    from onchip.readers.load import load

    made = program()
    graph = made["graph_module"]["graph"]
    full = {
        "target": "torch.ops.aten.full.default",
        "inputs": [
            {"name": "size", "arg": {"as_ints": [1 << 30, 1 << 4]}, "kind": 1},
            {"name": "fill_value", "arg": {"as_int": 1}, "kind": 1},
        ],
        "outputs": [{"as_tensor": {"name": "full"}}],
        "metadata": {},
        "name": "full",
    }
    add = copy.deepcopy(graph["nodes"][0])
    add |= {"target": "torch.ops.aten.add.Tensor"}
    add["inputs"].append({"name": "other", "arg": {"as_tensor": {"name": "full"}}, "kind": 1})
    graph["nodes"] = [full, add]
    graph["tensor_values"]["full"] = copy.deepcopy(graph["tensor_values"]["x"])
    path = tmp_path / "net.pt2"
    path.write_bytes(archive(made))
    with pytest.raises(ModelError, match="makes a constant of more than"):
        load(path)
