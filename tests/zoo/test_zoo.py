"""The built-in networks: readable, structure only, and of the shapes that the reference networks have."""

from __future__ import annotations

import lzma
from pathlib import Path

import onnx
import pytest

from onchip import zoo
from onchip.base.errors import ModelError
from onchip.readers import load

FOLDER = Path(zoo.__file__).parent / "models"


@pytest.fixture(scope="module", params=zoo.names())
def name(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture(scope="module")
def model(name: str) -> onnx.ModelProto:
    return onnx.load_model_from_string(zoo.model_bytes(name))


def is_weight(tensor: onnx.TensorProto) -> bool:
    return not tensor.HasField("raw_data")


def test_every_file_is_in_the_catalogue() -> None:
    files = {f"{name}.onnx.xz" for name in zoo.names()}
    files |= {f"{n}@{h}x{w}.onnx.xz" for n in zoo.names() for h, w in zoo.describe(n).sizes}
    assert {path.name for path in FOLDER.iterdir()} == files


def test_checker_and_shape_inference_accept_it(name: str, model: onnx.ModelProto) -> None:
    # The checker refuses an initializer without data, so the weights stand as inputs for it.
    open_model = onnx.ModelProto()
    open_model.CopyFrom(model)
    weights = [tensor for tensor in open_model.graph.initializer if is_weight(tensor)]
    for tensor in weights:
        open_model.graph.initializer.remove(tensor)
        open_model.graph.input.append(
            onnx.helper.make_tensor_value_info(tensor.name, tensor.data_type, list(tensor.dims))
        )
    onnx.checker.check_model(open_model, full_check=True)
    inferred = onnx.shape_inference.infer_shapes(model, check_type=True, strict_mode=True, data_prop=True)
    known = {value.name: value for value in [*inferred.graph.value_info, *inferred.graph.output]}
    for node in model.graph.node:
        for output in node.output:
            assert all(axis.dim_value > 0 for axis in known[output].type.tensor_type.shape.dim), output


def test_weights_have_no_data_and_nothing_else_is_large(name: str, model: onnx.ModelProto) -> None:
    for tensor in model.graph.initializer:
        if is_weight(tensor):
            assert tensor.data_type == onnx.TensorProto.FLOAT
            assert not tensor.float_data
            assert not tensor.external_data
        else:
            assert len(tensor.raw_data) <= 64
    assert len(zoo.model_bytes(name)) < 1_000_000
    assert (FOLDER / f"{name}.onnx.xz").stat().st_size < 400_000


def test_nothing_says_where_it_was_made(name: str, model: onnx.ModelProto) -> None:
    assert not model.metadata_props
    assert not model.doc_string
    assert not model.graph.doc_string
    for node in model.graph.node:
        assert not node.doc_string
        assert not node.metadata_props
    content = zoo.model_bytes(name)
    for trace in (b"/home", b"/root", b"/tmp", b"/work", b"site-packages", b".py", b"pkg."):
        assert trace not in content


def test_names_are_unique(model: onnx.ModelProto) -> None:
    nodes = [node.name for node in model.graph.node]
    assert all(nodes)
    assert len(set(nodes)) == len(nodes)
    values = [output for node in model.graph.node for output in node.output]
    values += [value.name for value in [*model.graph.input, *model.graph.initializer]]
    assert len(set(values)) == len(values)


def test_batch_normalisation_is_not_folded(name: str, model: onnx.ModelProto) -> None:
    without = ("alexnet", "caffenet", "transformer", "vit_b_16", "squeezenet1_0", "vgg16", "vgg19")
    assert any(node.op_type == "BatchNormalization" for node in model.graph.node) != (name in without)


def test_described_as_it_is(name: str, model: onnx.ModelProto) -> None:
    entry = zoo.describe(name)
    given = [tuple(a.dim_value for a in i.type.tensor_type.shape.dim) for i in model.graph.input]
    assert given == [entry.input, *entry.also]
    assert [opset.version for opset in model.opset_import] == [entry.opset]
    assert entry.title
    assert entry.licence in ("BSD-3-Clause", "Apache-2.0")
    assert entry.source.startswith(entry.library)


@pytest.mark.thorough
@pytest.mark.parametrize("name", [name for name in zoo.names() if zoo.describe(name).sizes])
def test_a_size_with_a_file_of_its_own_is_the_same_network(name: str) -> None:
    usual = load(f"zoo:{name}").network
    for height, width in zoo.describe(name).sizes:
        other = load(f"zoo:{name}@{height}x{width}")
        assert other.executable is not None
        assert other.executable.shape[0] == (*zoo.describe(name).input[:-2], height, width)
        assert [(op.name, op.type, op.weight_bytes) for op in other.network.operators] == [
            (op.name, op.type, op.weight_bytes) for op in usual.operators
        ]
        assert sum(t.bytes for t in other.network.tensors) > sum(t.bytes for t in usual.tensors)


def test_unknown_name_lists_close_ones() -> None:
    with pytest.raises(ModelError, match=r"zoo:ResNet-50: .*did you mean resnet50"):
        zoo.model_bytes("ResNet-50")
    with pytest.raises(ModelError, match=r"there are .*resnet50"):
        zoo.describe("../../etc/passwd")


def test_a_damaged_file_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    whole = (FOLDER / "resnet50.onnx.xz").read_bytes()
    content = bytearray(whole)
    content[len(content) // 2] ^= 1
    for damaged in (bytes(content), whole[:-40], b""):
        monkeypatch.setattr(Path, "read_bytes", lambda path, damaged=damaged: damaged)
        with pytest.raises(ModelError, match="zoo:resnet50: damaged installation"):
            zoo.model_bytes("resnet50")
    assert lzma.decompress(whole)
