"""What is read at most: sizes, counts and overflows are refused with the file, the key and the variable."""

from __future__ import annotations

import io
import json
import zipfile
from dataclasses import fields
from pathlib import Path

import onnx
import pytest

import onchip
from onchip.base.errors import ChipError, InputError, ModelError, PlanFormatError, UsageError
from onchip.base.limits import Limits, limits
from onchip.network import Network
from test_cli import NETWORK


def network(tmp_path: Path, **changes: object) -> str:
    path = tmp_path / "n.json"
    path.write_text(json.dumps({**NETWORK, **changes}))
    return str(path)


def test_without_variables_the_defaults_hold(monkeypatch: pytest.MonkeyPatch) -> None:
    for field in fields(Limits):
        monkeypatch.delenv(f"ONCHIP_MAX_{field.name.upper()}", raising=False)
    assert limits() == Limits()


@pytest.mark.parametrize("field", [field.name for field in fields(Limits)])
@pytest.mark.parametrize("text", ["0", "-1", "many", "1e9", "1.5", "9" * 40])
def test_a_variable_that_makes_no_sense_is_named(
    field: str, text: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    name = f"ONCHIP_MAX_{field.upper()}"
    monkeypatch.setenv(name, text)
    with pytest.raises(UsageError, match=name):
        limits()


@pytest.mark.parametrize(
    ("variable", "value", "item"),
    [
        ("OPERATORS", "2", "3 operators"),
        ("TENSORS", "3", "tensor c"),
        ("TENSOR_BYTES", "29", "tensor b"),
        ("TENSOR_BYTES", "99", "operator A"),
        ("TEXT_BYTES", "64", "larger than 64"),
    ],
)
def test_each_limit_holds_and_names_file_key_and_variable(
    variable: str, value: str, item: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = network(tmp_path)
    assert isinstance(onchip.load(path).network, Network)
    monkeypatch.setenv(f"ONCHIP_MAX_{variable}", value)
    with pytest.raises(ModelError) as caught:
        onchip.load(path)
    for word in (path, item, f"ONCHIP_MAX_{variable}"):
        assert word in str(caught.value)


def test_limits_of_files_hold_for_every_kind(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ONCHIP_MAX_TEXT_BYTES", "10")
    monkeypatch.setenv("ONCHIP_MAX_MODEL_BYTES", "20B")
    path = tmp_path / "file.onnx"
    path.write_bytes(b"x" * 21)
    with pytest.raises(ModelError, match=r"larger than 20 bytes .ONCHIP_MAX_MODEL_BYTES"):
        onchip.load(path)
    for name, read, error in (
        ("p.json", onchip.read, PlanFormatError),
        ("c.toml", onchip.chip, ChipError),
        ("m.json", onchip.load, ModelError),
    ):
        (tmp_path / name).write_bytes(b" " * 11)
        with pytest.raises(error, match=r"larger than 10 bytes .ONCHIP_MAX_TEXT_BYTES"):
            read(str(tmp_path / name))
    assert issubclass(ChipError, InputError)


def test_nodes_of_an_onnx_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    nodes = "".join(f"v{i + 1} = Relu(v{i}) " for i in range(9))
    text = f'<ir_version: 8, opset_import: ["" : 18]> g (float[4] v0) => (float[4] v9) {{ {nodes} }}'
    path = tmp_path / "n.onnx"
    path.write_bytes(onnx.parser.parse_model(text).SerializeToString())
    assert len(onchip.load(path, granularity="op").network.operators) == 9
    monkeypatch.setenv("ONCHIP_MAX_OPERATORS", "2")
    with pytest.raises(ModelError, match=r"n.onnx: has 9 nodes; at most 8 are read .ONCHIP_MAX_OPERATORS"):
        onchip.load(path)


@pytest.mark.parametrize("sides", [(2**62, 4), (2**31, 2**31, 2**31), (2**20, 2**20, 2)])
def test_sizes_that_overflow(sides: tuple[int, ...], tmp_path: Path) -> None:
    shape = ",".join(map(str, sides))
    text = '<ir_version: 8, opset_import: ["" : 18]> g '
    text += f"(float[{shape}] x) => (float[{shape}] y) {{ y = Relu(x) }}"
    path = tmp_path / "n.onnx"
    path.write_bytes(onnx.parser.parse_model(text).SerializeToString())
    with pytest.raises(ModelError, match=r"tensor x: has .* bytes, not between 1 and 1 TiB"):
        onchip.load(path)


def test_an_archive_that_unpacks_to_more_than_it_is(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("torch")
    made = io.BytesIO()
    with zipfile.ZipFile(made, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("n/data/weights/weight_0", bytes(1 << 20))
    (tmp_path / "n.pt2").write_bytes(made.getvalue())
    assert len(made.getvalue()) < 1 << 12
    monkeypatch.setenv("ONCHIP_MAX_MODEL_BYTES", "1MB")
    with pytest.raises(ModelError, match=r"n.pt2: unpacks to 1,048,576 bytes, more than 1,000,000"):
        onchip.load(tmp_path / "n.pt2")
