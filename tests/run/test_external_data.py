"""What `run` reads of external data: from the model's folder, as far as type and shape say, by one loader."""

from __future__ import annotations

import os
import warnings
from pathlib import Path

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper

import onchip
from onchip.base.errors import ModelError

VALUES = np.array([[1, 2, 3, 4]], np.float32)


def tensor(name: str, entries: dict[str, str], element: int = TensorProto.FLOAT) -> onnx.TensorProto:
    made = TensorProto(name=name, dims=[1, 4], data_type=element, data_location=TensorProto.EXTERNAL)
    for key, value in entries.items():
        made.external_data.add(key=key, value=value)
    return made


def saved(folder: Path, entries: dict[str, str], *, constant: bool) -> Path:
    """A model that adds four numbers which lie in another file, as an initializer or as a node's value."""
    value = tensor("w", entries)
    nodes = [helper.make_node("Add", ["x", "w"], ["y"], name="add")]
    if constant:
        nodes.insert(0, helper.make_node("Constant", [], ["w"], value=value))
    ends = [helper.make_tensor_value_info(name, TensorProto.FLOAT, [1, 4]) for name in "xy"]
    graph = helper.make_graph(nodes, "g", ends[:1], ends[1:], [] if constant else [value])
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)
    path = folder / "model.onnx"
    path.write_bytes(model.SerializeToString())
    return path


def runs(path: Path) -> bool:
    """Whether the model's plan computes what the whole network does, bit for bit."""
    return onchip.plan(str(path), budget=1 << 20).run().bit_exact


@pytest.mark.parametrize("constant", [False, True], ids=["initializer", "constant"])
@pytest.mark.parametrize(
    "entries",
    [
        {"location": "w.bin", "offset": "5", "length": "16"},
        {"location": "w.bin", "offset": "5"},
        {"location": "hole.bin"},
        {"location": "w.bin", "offset": "5", "checksum": "00", "Location": "/etc/passwd", "basepath": "/"},
    ],
    ids=lambda entries: " ".join(entries),
)
def test_as_far_as_type_and_shape_say(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, entries: dict[str, str], constant: bool
) -> None:
    folder, elsewhere = tmp_path / "model", tmp_path / "elsewhere"
    for place in (folder, elsewhere):
        place.mkdir()
    (folder / "w.bin").write_bytes(b"....." + VALUES.tobytes() + b"more")
    with (folder / "hole.bin").open("wb") as file:
        file.write(VALUES.tobytes())
        file.truncate(64 << 30)
    (elsewhere / "w.bin").write_bytes(b"!" * 40)
    path = saved(folder, entries, constant=constant)
    from onchip.readers import load
    from onchip.run.weights import seeded_weights

    monkeypatch.chdir(elsewhere)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        executable = load(str(path)).executable
        weights = seeded_weights(executable.model, 0, executable.folder)  # type: ignore[union-attr, arg-type]
        assert np.array_equal(weights.values["w"], VALUES)
        assert runs(path)
    monkeypatch.chdir(folder)
    assert runs(path)


@pytest.mark.parametrize("constant", [False, True], ids=["initializer", "constant"])
@pytest.mark.parametrize(
    ("entries", "says"),
    [
        ({"location": "here.bin"}, "No such file"),
        ({"location": "pipe"}, "not a regular file"),
        ({"location": "d"}, "not a regular file"),
        ({"location": "w.bin", "offset": "12"}, "ends 12 bytes too early"),
        ({"location": "w.bin", "length": "4"}, "stated to have 4 bytes; the tensor has 16"),
    ],
    ids=lambda row: " ".join(row.values()) if isinstance(row, dict) else "",
)
def test_one_line_for_what_is_not_there(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, entries: dict[str, str], says: str, constant: bool
) -> None:
    folder, here = tmp_path / "model", tmp_path / "here"
    folder.mkdir()
    here.mkdir()
    (here / "here.bin").write_bytes(VALUES.tobytes())
    (folder / "w.bin").write_bytes(VALUES.tobytes())
    os.mkfifo(folder / "pipe")
    (folder / "d").mkdir()
    path = saved(folder, entries, constant=constant)
    for place in (here, folder):
        monkeypatch.chdir(place)
        with pytest.raises(ModelError, match=says) as no:
            runs(path)
        assert "model.onnx" in str(no.value)
        assert "tensor w" in str(no.value)


def test_other_attributes_have_their_data_with_them(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    value = tensor("v", {"location": "w.bin"})
    del value.dims[:]
    value.dims.append(1)
    sparse = onnx.SparseTensorProto(dims=[4], values=value, indices=tensor("i", {"location": "w.bin"}))
    (tmp_path / "w.bin").write_bytes(VALUES.tobytes())
    monkeypatch.chdir(tmp_path)
    shape = helper.make_tensor("s", TensorProto.INT64, [2], [1, 4])
    ends = [helper.make_tensor_value_info(name, TensorProto.FLOAT, [1, 4]) for name in "xy"]
    add = helper.make_node("Add", ["x", "w"], ["y"])
    for node in (
        helper.make_node("ConstantOfShape", ["s"], ["w"], value=value),
        helper.make_node("Constant", [], ["w"], sparse_value=sparse),
    ):
        graph = helper.make_graph([node, add], "g", ends[:1], ends[1:], [shape])
        model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)
        (tmp_path / "model.onnx").write_bytes(model.SerializeToString())
        with pytest.raises(ModelError, match="has external data; only a constant's value may"):
            onchip.load(str(tmp_path / "model.onnx"))


@pytest.mark.parametrize("data", [b"", b"\0" * 12])
def test_a_constant_with_too_little_data_is_refused(tmp_path: Path, data: bytes) -> None:
    path = saved(tmp_path, {}, constant=True)
    model = onnx.load_model_from_string(path.read_bytes())
    value = model.graph.node[0].attribute[0].t
    value.dims[0], value.raw_data, value.data_location = 5_000, data, TensorProto.DEFAULT
    value.ClearField("external_data")
    for end in (*model.graph.input, *model.graph.output):
        end.type.tensor_type.shape.dim[0].dim_value = 5_000
    path.write_bytes(model.SerializeToString())
    with pytest.raises(ModelError):
        runs(path)
