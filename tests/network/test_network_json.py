"""`onchip.network/1`: nothing is lost on the way through a file, and a bad file is one line."""

from __future__ import annotations

import hashlib
from dataclasses import replace
from pathlib import Path
from typing import Any

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from onchip.base.codec import decode
from onchip.base.errors import ModelError
from onchip.network import Geometry, Network, OperatorSpec, Patches, TensorKind
from onchip.network.json import WireNetwork, network_from_wire, read_network, wire_network
from strategies import hostile_networks, network_of, networks


def encoded(network: Network) -> bytes:
    return msgspec.json.encode(wire_network(network))


def decoded(content: bytes) -> Network:
    wire: WireNetwork = decode(content, WireNetwork, where="f.json", error=ModelError)
    return network_from_wire(wire, where="f.json")


@settings(max_examples=50)
@given(networks())
def test_a_network_survives_its_file(network: Network) -> None:
    assert decoded(encoded(network)) == network


@settings(max_examples=50)
@given(hostile_networks())
def test_hostile_names_survive(network: Network) -> None:
    assert decoded(encoded(network)) == network


def test_patches_survive() -> None:
    plain = network_of({"x": 32, "y": 1}, ["x -> y"], "y")
    network = replace(
        plain, tensors=(replace(plain.tensors[0], patches=Patches(2, 1, 3, 4, 4)), plain.tensors[1])
    )
    assert decoded(encoded(network)) == network
    assert b'"patches":[2,1,3,4,4]' in encoded(network)
    for wrong in (b"[2,1,3,4]", b"[3,1,3,4,4]", b"[2,1,3,4,0]", b'"2 1 3 4 4"', b"[2,1,3,4,4.5]"):
        with pytest.raises(ModelError, match=r"^f\.json: "):
            decoded(encoded(network).replace(b"[2,1,3,4,4]", wrong))


def test_geometry_survives() -> None:
    plain = network_of({"x": 1, "y": 1}, ["x -> y"], "y")
    geometry = Geometry(
        "conv", (1, 3, 8, 8), (1, 4, 4, 4), (3, 3), (2, 2), (1, 1, 0, -1), (1, 1), 1, "NHWC", "reverse"
    )
    network = replace(plain, operators=(replace(plain.operators[0], geometry=geometry),))
    assert decoded(encoded(network)) == network


@pytest.mark.parametrize(
    ("type_", "inputs", "elementwise"),
    [
        ("relu_", "x", True),
        ("Add+Relu", "x w", True),
        ("batch_norm", "x", True),
        ("mul", "s x", True),  # s is broadcast
        ("add", "s", False),
        ("relu", "big", False),
        ("conv2d+relu", "x", False),
        ("layer_norm", "x", False),
        ("softmax", "x", False),
        ("", "x", False),
    ],
)
def test_the_words_of_a_type_may_say_that_it_is_element_wise(
    type_: str, inputs: str, elementwise: bool, tmp_path: Path
) -> None:
    sizes: list[tuple[str, int, TensorKind]] = [("x", 4, "input"), ("w", 4, "input"), ("s", 2, "input")]
    network = Network.build(
        "n",
        [*sizes, ("big", 8, "input"), ("y", 4, "activation")],
        [OperatorSpec("f", type_, inputs.split(), ["y"])],
        ["y"],
    )
    file = tmp_path / "n.json"
    for element, width in (("int8", 1), ("int16", 2), ("odd", None)):
        file.write_bytes(encoded(replace(network, element=element)))
        geometry = read_network(file).operators[0].geometry
        if elementwise and width:
            assert geometry == Geometry("elementwise", (4 // width,), (4 // width,))
        else:
            assert geometry is None
    stated = replace(network, operators=(replace(network.operators[0], geometry=Geometry("opaque")),))
    file.write_bytes(encoded(stated))
    assert read_network(file).operators[0].geometry == Geometry("opaque")


def test_a_file_gives_its_own_path_and_hash(tmp_path: Path) -> None:
    network = network_of({"x": 1, "y": 1}, ["x -> y"], "y")
    file = tmp_path / "n.json"
    file.write_bytes(encoded(replace(network, source="elsewhere", sha256="0")))
    read = read_network(file)
    assert (read.source, read.sha256) == (str(file), hashlib.sha256(file.read_bytes()).hexdigest())
    assert read.fingerprint == network.fingerprint


@pytest.mark.thorough
def test_the_reference_networks_survive(shared: Path) -> None:
    for file in sorted((shared / "bench" / "networks").glob("*.json")):
        network = read_network(file)
        assert decoded(encoded(network)) == network, file.name


GOOD: dict[str, Any] = {
    "format": "onchip.network/1",
    "name": "n",
    "outputs": ["y"],
    "tensors": [{"name": "x", "bytes": 1, "kind": "input"}, {"name": "y", "bytes": 1, "kind": "activation"}],
    "operators": [{"name": "f", "type": "F", "inputs": ["x"], "outputs": ["y"]}],
}


@pytest.mark.parametrize(
    ("changes", "part"),
    [
        ({"format": "onchip.network/2"}, "format"),
        ({"format": 1}, "format"),
        ({"colour": "red"}, "colour"),
        ({"name": None}, "name"),
        ({"outputs": "y"}, "outputs"),
        ({"outputs": [1]}, "outputs[0]"),
        ({"tensors": [{"name": "x", "bytes": 1.5, "kind": "input"}]}, "tensors[0].bytes"),
        ({"tensors": [{"name": "x", "bytes": "1", "kind": "input"}]}, "tensors[0].bytes"),
        ({"tensors": [{"name": "x", "bytes": True, "kind": "input"}]}, "tensors[0].bytes"),
        ({"tensors": [{"name": "x", "bytes": 10**30, "kind": "input"}]}, "tensors[0].bytes"),
        ({"tensors": [{"name": "x", "bytes": 1, "kind": "weight"}]}, "weight"),
        ({"tensors": [{"name": "x", "kind": "input"}]}, "bytes"),
        ({"operators": {}}, "operators"),
        ({"operators": [{"name": "f", "type": "F", "inputs": [], "outputs": ["y"], "x": 1}]}, "x"),
        ({"views": [{"tensor": "y", "of": "x", "offset": None}]}, "offset"),
        ({"views": [{"tensor": "y", "of": "x", "offset": 0}]}, "operator f"),
    ],
)
def test_a_wrong_key_is_named(changes: dict[str, Any], part: str, tmp_path: Path) -> None:
    file = tmp_path / "n.json"
    file.write_bytes(msgspec.json.encode(GOOD))
    assert read_network(file).name == "n"
    file.write_bytes(msgspec.json.encode(GOOD | changes))
    with pytest.raises(ModelError) as caught:
        read_network(file)
    message = str(caught.value)
    assert message.startswith(f"{file}: ")
    assert part in message
    assert message.isprintable()


@pytest.mark.parametrize(
    "content",
    [
        b"",
        b"{",
        b"[]",
        b"null",
        b"\xff\xfe",
        b'{"name": "\xff"}',
        b"\x08\x07\x12\x04onnx",
        b"{" * 100_000,
        b'{"a": ' + b"[" * 100_000,
        msgspec.json.encode(GOOD)[:-10],
        msgspec.json.encode(GOOD) + b"x",
        b'{"name": "a", ' + msgspec.json.encode(GOOD)[1:],
        msgspec.json.encode(GOOD).replace(b'"n"', rb'"\ud800"'),
        msgspec.json.encode(GOOD).replace(b'"bytes":1', b'"bytes":' + b"9" * 5000),
        msgspec.json.encode(GOOD).replace(b'"bytes":1', b'"bytes":NaN'),
    ],
    ids=range(15),
)
def test_what_is_no_network_file_is_one_line(content: bytes) -> None:
    with pytest.raises(ModelError) as caught:
        decoded(content)
    assert str(caught.value).startswith("f.json: ")
    assert str(caught.value).isprintable()
    assert len(str(caught.value)) < 400


@given(st.data())
def test_a_damaged_file_is_a_network_or_refused(data: st.DataObject) -> None:
    content = bytearray(msgspec.json.encode(GOOD))
    for _ in range(data.draw(st.integers(1, 3))):
        at = data.draw(st.integers(0, len(content) - 1))
        content[at] = data.draw(st.integers(0, 255))
    try:
        decoded(bytes(content))
    except ModelError as problem:
        assert str(problem).isprintable()  # noqa: PT017
