"""What cannot be read is refused in one line that names the file and the node, tensor or input to blame."""

from __future__ import annotations

import os
import random
from pathlib import Path

import numpy as np
import onnx
import pytest
from build import graph, read, save, weighted
from onnx import TensorProto, helper

from onchip.base.errors import InputError, ModelError, OnchipError, UsageError
from onchip.readers import ReadOptions, load

RELU = "(float[1,4] x) => (float[1,4] y) { y = Relu(x) }"


def refusal(folder: Path, model: onnx.ModelProto | str, **options: object) -> str:
    with pytest.raises(InputError) as caught:
        read(model, folder, **options)
    message = str(caught.value)
    assert caught.value.exit_code == 2
    assert "\n" not in message
    assert message.startswith(str(folder / "net.onnx")) or isinstance(caught.value, UsageError)
    return message


def with_node(op: str, **attributes: object) -> onnx.ModelProto:
    model = graph(RELU)
    model.graph.node[0].CopyFrom(helper.make_node(op, ["x"], ["y"], name="the node", **attributes))
    return model


# -- files ---------------------------------------------------------------------------------------------


def test_no_such_file(tmp_path: Path) -> None:
    with pytest.raises(ModelError, match="no such file"):
        load(tmp_path / "missing.onnx")


def test_a_folder(tmp_path: Path) -> None:
    (tmp_path / "net.onnx").mkdir()
    with pytest.raises(ModelError, match="not a regular file"):
        load(tmp_path / "net.onnx")


@pytest.mark.parametrize("content", [b"", b"hello, this is text\n" * 40, b"{}", b"\x00" * 100, b"\xff" * 100])
def test_no_onnx_file(tmp_path: Path, content: bytes) -> None:
    (tmp_path / "net.onnx").write_bytes(content)
    with pytest.raises(ModelError, match="is no ONNX model"):
        load(tmp_path / "net.onnx")


def test_every_truncation_is_refused_or_read(tmp_path: Path) -> None:
    content = graph(RELU).SerializeToString()
    path = tmp_path / "net.onnx"
    for length in range(len(content)):
        path.write_bytes(content[:length])
        with pytest.raises(OnchipError):
            load(path)


@pytest.mark.thorough
def test_damaged_files_are_refused_or_read(tmp_path: Path) -> None:
    text = """(float[1,3,8,8] x) => (float[1,4] y) <int64[2] t = {1, -1}> {
        a = Conv<kernel_shape=[3,3], pads=[1,1,1,1]>(x, w)  b = Relu(a)  c = Transpose<perm=[0,2,3,1]>(b)
        d = Reshape(c, t)  e, f = Split<axis=1, num_outputs=2>(d)  g = Add(e, f)  h = Gemm(g, v)
        y = Softmax(h) }"""
    content = weighted(graph(text), w=(4, 3, 3, 3), v=(128, 4)).SerializeToString()
    load(save(graph(RELU), tmp_path))
    path = tmp_path / "net.onnx"
    path.write_bytes(content)
    load(path)
    chance = random.Random(1)
    refused: list[str] = []
    for _ in range(300):
        damaged = bytearray(content)
        for _ in range(chance.choice([1, 1, 2, 5])):
            damaged[chance.randrange(len(damaged))] = chance.randrange(256)
        path.write_bytes(damaged)
        try:
            load(path, ReadOptions(granularity=chance.choice(["op", "fused"])))
        except OnchipError as problem:
            refused.append(str(problem))
    assert len(refused) > 20
    assert not any("\n" in message for message in refused)


@pytest.mark.parametrize("model", ["net.pb", "net", "https://x/y.onnx.gz", ""])
def test_what_is_no_model(model: str) -> None:
    with pytest.raises(UsageError, match=r"expected a path ending in .*, or zoo:NAME"):
        load(model)


def test_options_are_checked(tmp_path: Path) -> None:
    assert "granularity" in refusal(tmp_path, RELU, granularity="fine")
    assert "dtype" in refusal(tmp_path, RELU, dtype="int4")


# -- graphs ----------------------------------------------------------------------------------------------


def test_a_cycle(tmp_path: Path) -> None:
    model = graph("(float[4] x) => (float[4] y) { a = Add(x, b)  b = Relu(a)  y = Relu(b) }")
    assert "node a (Add): is on, or waits for, a cycle" in refusal(tmp_path, model)


def test_nodes_in_any_order_are_sorted(tmp_path: Path) -> None:
    source = read("(float[4] x) => (float[4] y) { y = Relu(b)  b = Softmax(x) }", tmp_path, granularity="op")
    assert [op.type for op in source.network.operators] == ["Softmax", "Relu"]


def test_a_value_nobody_produces(tmp_path: Path) -> None:
    message = refusal(tmp_path, "(float[4] x) => (float[4] y) { y = Add(x, ghost) }")
    assert "node y (Add): reads ghost, which nothing produces" in message


def test_an_output_nobody_produces(tmp_path: Path) -> None:
    message = refusal(tmp_path, "(float[4] x) => (float[4] ghost) { y = Relu(x) }")
    assert "tensor ghost: is an output of the graph, and nothing produces it" in message


def test_a_value_written_twice(tmp_path: Path) -> None:
    message = refusal(tmp_path, "(float[4] x) => (float[4] y) { y = Relu(x)  y = Abs(x) }")
    assert "node y (Abs): writes y, which already has a value" in message


def test_an_unknown_operator(tmp_path: Path) -> None:
    assert "node the node (Frobnicate): Frobnicate is no known operator" in refusal(
        tmp_path, with_node("Frobnicate")
    )


def test_an_unknown_domain(tmp_path: Path) -> None:
    message = refusal(tmp_path, with_node("QLinearAdd", domain="com.microsoft"))
    assert "node the node (QLinearAdd): com.microsoft.QLinearAdd is no known operator" in message


def test_an_operator_newer_than_its_operator_set(tmp_path: Path) -> None:
    model = with_node("Gelu")
    assert "Gelu is no known operator in operator set 18" in refusal(tmp_path, model)


@pytest.mark.parametrize("opset", [1, 8, 99])
def test_operator_sets_that_are_not_read(tmp_path: Path, opset: int) -> None:
    model = graph(RELU)
    model.opset_import[0].version = opset
    assert f"uses operator set {opset}; 9 to" in refusal(tmp_path, model)


def test_control_flow(tmp_path: Path) -> None:
    branch = helper.make_graph([], "b", [], [helper.make_tensor_value_info("x", TensorProto.FLOAT, [1, 4])])
    model = with_node("If", then_branch=branch, else_branch=branch)
    assert "node the node (If): control flow cannot be planned" in refusal(tmp_path, model)


def test_a_missing_attribute(tmp_path: Path) -> None:
    message = refusal(tmp_path, "(float[1,3,8,8] x) => (float[1,3,8,8] y) { y = MaxPool(x) }")
    assert "node y (MaxPool)" in message
    assert "kernel_shape" in message


def test_sequences(tmp_path: Path) -> None:
    text = "(float[4] x) => (float[4] y) { s = SequenceConstruct(x, x)  y = ConcatFromSequence<axis=0>(s) }"
    assert "node s (SequenceConstruct): s is no tensor but a sequence" in refusal(tmp_path, text)


def test_strings(tmp_path: Path) -> None:
    model = graph("(string[4] x) => (string[4] y) { y = Identity(x)  }")
    assert "x is strings" in refusal(tmp_path, model)


def test_a_network_that_computes_nothing(tmp_path: Path) -> None:
    model = weighted(graph("() => (float[4] y) { y = Relu(w) }"), w=(4,))
    assert "there is nothing to plan" in refusal(tmp_path, model)


def test_a_function_that_calls_itself(tmp_path: Path) -> None:
    model = graph(RELU)
    call = helper.make_node("F", ["a"], ["b"], domain="own")
    model.functions.append(helper.make_function("own", "F", ["a"], ["b"], [call], list(model.opset_import)))
    model.graph.node[0].CopyFrom(helper.make_node("F", ["x"], ["y"], domain="own"))
    model.opset_import.append(helper.make_opsetid("own", 1))
    assert "function F: calls itself" in refusal(tmp_path, model)


# -- shapes ------------------------------------------------------------------------------------------------


def test_a_dynamic_batch_without_a_value(tmp_path: Path) -> None:
    message = refusal(tmp_path, "(float[batch,4] x) => (float[batch,4] y) { y = Relu(x) }")
    assert (
        "input x: dimension 0 is batch and has no value; give it with --dims, as in --dims batch=1" in message
    )


def test_an_unnamed_dimension(tmp_path: Path) -> None:
    message = refusal(tmp_path, "(float[4,?] x) => (float[4,?] y) { y = Relu(x) }")
    assert (
        "input x: dimension 1 is unnamed and has no value; give it with --dims, as in --dims x.1=1" in message
    )


def test_an_input_without_a_shape(tmp_path: Path) -> None:
    model = graph(RELU)
    model.graph.input[0].type.tensor_type.ClearField("shape")
    assert "input x: has no shape" in refusal(tmp_path, model)


@pytest.mark.parametrize(
    "dims", ["batch", "=3", "batch=0", "batch=-1", "batch=1,batch=2", "batch=1.5", "batch=x"]
)
def test_dims_that_make_no_sense(tmp_path: Path, dims: str) -> None:
    assert refusal(
        tmp_path, "(float[batch,4] x) => (float[batch,4] y) { y = Relu(x) }", dims=dims
    ).startswith("dims")


def test_a_value_for_no_dimension(tmp_path: Path) -> None:
    assert "has a dimension bach" in refusal(tmp_path, RELU, dims="bach=1")


def test_a_missing_shape_on_a_read_tensor(tmp_path: Path) -> None:
    message = refusal(tmp_path, "(float[8] x) => (int64[n] y) { p = NonZero(x)  y = Neg(p) }")
    assert "node p (NonZero): the shape of its output p cannot be inferred" in message


def test_shapes_that_contradict_each_other_say_why(tmp_path: Path) -> None:
    message = refusal(tmp_path, "(float[3,4] x, float[5,6] z) => (float[3,6] y) { y = MatMul(x, z) }")
    assert "node y (MatMul): the shape of its output y cannot be inferred: " in message
    assert "dimension" in message.lower()


def test_a_reshape_to_another_size(tmp_path: Path) -> None:
    text = "(float[3,4] x) => (float[5] y) <int64[1] t = {5}> { r = Reshape(x, t)  y = Relu(r) }"
    assert "node r (Reshape)" in refusal(tmp_path, text)


def test_filters_that_do_not_fit(tmp_path: Path) -> None:
    model = weighted(graph("(float[1,3,8,8] x) => (float[1,4,8,8] y) { y = Conv(x, w) }"), w=(4, 2, 1, 1))
    assert "node y (Conv): 3 channels do not fit 1 groups of filters [4, 2, 1, 1]" in refusal(tmp_path, model)


def test_a_matrix_that_does_not_fit(tmp_path: Path) -> None:
    model = weighted(graph("(float[1,3] x) => (float[1,4] y) { y = Gemm(x, w) }"), w=(2, 4))
    assert "node y (Gemm): 3 features do not fit a matrix of 2 rows" in refusal(tmp_path, model)


def test_a_window_larger_than_its_image(tmp_path: Path) -> None:
    text = (
        "(float[1,1,1,1] x) => (float[1,1,1,1] y) { y = AveragePool<kernel_shape=[2,2], strides=[2,2]>(x) }"
    )
    assert "node y (AveragePool): a window of [2, 2] does not fit an image of [1, 1]" in refusal(
        tmp_path, text
    )


def test_a_built_in_network_that_cannot_have_that_size() -> None:
    for model in ("zoo:densenet121@1x1", "zoo:googlenet@8x8", "zoo:vgg16@320x320", "zoo:vit_b_16@225x225"):
        with pytest.raises(ModelError, match=model):
            load(model)
    for model in ("zoo:resnet50@0x0", "zoo:resnet50@224", "zoo:resnet50@-1x5", "zoo:"):
        with pytest.raises(InputError, match="zoo:"):
            load(model)


def test_zero_bytes(tmp_path: Path) -> None:
    message = refusal(tmp_path, "(float[0,4] x) => (float[0,4] y) { y = Relu(x) }")
    assert "node y (Relu): x has zero bytes: its shape is [0, 4]" in message


def test_ten_terabytes(tmp_path: Path) -> None:
    message = refusal(tmp_path, "(float[2500000000000] x) => (float[2500000000000] y) { y = Relu(x) }")
    assert "tensor x: has 10,000,000,000,000 bytes, not between 1 and 1 TiB" in message


def test_an_index_out_of_range(tmp_path: Path) -> None:
    text = "(float[3,4] x) => (float[4] y) <int64 i = {3}> { g = Gather(x, i)  y = Relu(g) }"
    assert "node g (Gather): gathers beyond axis 0 of 3" in refusal(tmp_path, text)


# -- names -------------------------------------------------------------------------------------------------


def test_hostile_names_stay_names(tmp_path: Path) -> None:
    model = graph(RELU)
    hostile = "<script>alert(1)</script>\n\u202e../../x\x00"
    model.graph.node[0].name = hostile
    assert read(model, tmp_path).network.operators[0].name == hostile
    model.graph.node[0].op_type = hostile
    message = refusal(tmp_path, model)
    assert "\\n" in message
    assert "\x00" not in message


def test_nodes_of_the_same_name_or_none(tmp_path: Path) -> None:
    model = graph(
        "(float[4] x) => (float[4] d) { a = Softmax(x)  b = Softmax(a)  c = Softmax(b)  d = Softmax(c) }"
    )
    for node, name in zip(model.graph.node, ["same", "same", "", "same_2"], strict=True):
        node.name = name
    names = [op.name for op in read(model, tmp_path).network.operators]
    assert len(set(names)) == 4
    assert names[0] == "same"
    assert names[2:] == ["c", "same_2"]


# -- external data -----------------------------------------------------------------------------------------


def external(location: str, **more: str) -> onnx.ModelProto:
    model = weighted(graph("(float[1,4] x) => (float[1,4] y) { y = Gemm(x, w) }"), w=(4, 4))
    tensor = model.graph.initializer[0]
    tensor.ClearField("raw_data")
    tensor.data_location = TensorProto.EXTERNAL
    for key, value in {"location": location, **more}.items():
        tensor.external_data.add(key=key, value=value)
    return model


def test_external_data_beside_the_model(tmp_path: Path) -> None:
    (tmp_path / "weights").mkdir()
    (tmp_path / "weights" / "w.bin").write_bytes(np.zeros(16, np.float32).tobytes())
    source = read(external("weights/w.bin", offset="0", length="64"), tmp_path)
    assert source.network.weight_bytes == 64
    assert source.executable is not None
    assert source.executable.folder == tmp_path


@pytest.mark.parametrize(
    "location", ["../../x", "/etc/passwd", "a/../../x", "..\\x", "C:\\x", "\\\\host\\x", "a/..", "", "x\x00y"]
)
def test_external_data_elsewhere(tmp_path: Path, location: str) -> None:
    assert "tensor w: " in refusal(tmp_path, external(location))


def test_external_data_through_a_link(tmp_path: Path) -> None:
    folder = tmp_path / "model"
    folder.mkdir()
    (tmp_path / "secret").write_bytes(bytes(64))
    os.symlink(tmp_path / "secret", folder / "w.bin")
    assert "tensor w: external data 'w.bin' is reached through a symbolic link" in refusal(
        folder, external("w.bin")
    )
    os.symlink(tmp_path, folder / "link")
    assert "symbolic link" in refusal(folder, external("link/secret"))


def test_external_data_with_a_bad_offset(tmp_path: Path) -> None:
    assert "tensor w: " in refusal(tmp_path, external("w.bin", offset="many"))
    assert "tensor w: " in refusal(tmp_path, external("w.bin", offset="-1"))


def test_external_data_of_a_constant_node(tmp_path: Path) -> None:
    model = external("../w.bin")
    constant = helper.make_node("Constant", [], ["w"], value=model.graph.initializer[0])
    del model.graph.initializer[:]
    model.graph.node.insert(0, constant)
    assert "tensor w: external data '../w.bin' lies outside" in refusal(tmp_path, model)
