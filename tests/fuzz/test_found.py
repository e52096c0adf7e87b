"""What fuzzing found, each as the smallest file that showed it (docs/trust.md lists them)."""

from __future__ import annotations

import io
import json
import zipfile
from collections.abc import Callable
from pathlib import Path

import onnx
import pytest

from fuzz import seeds
from fuzz.targets import TARGETS, survives
from onchip.base.errors import LINE, ChipError, ModelError
from onchip.machines.soc_file import parse_soc
from onchip.readers import ReadOptions
from onchip.readers.onnx_reader import read_onnx
from onchip.readers.tflite_reader import read_tflite


def parted(content: bytes) -> None:
    read_onnx(content, ReadOptions(attention="parts"), name="n", where="n.onnx", folder=None, dtype="file")


def attention(change: Callable[[onnx.ModelProto], object], shape: str = "1,4,8") -> bytes:
    text = f"""<ir_version: 10, opset_import: ["" : 23]> g
        (float[{shape}] q, float[{shape}] k, float[{shape}] v) => (float[{shape}] y) {{
        y = Attention<q_num_heads=2, kv_num_heads=2, is_causal=1>(q, k, v) }}"""
    model = onnx.parser.parse_model(text)
    change(model)
    return bytes(model.SerializeToString())


def set_heads(model: onnx.ModelProto, query: int, key: int) -> None:
    for given in model.graph.node[0].attribute:
        given.i = {"q_num_heads": query, "kv_num_heads": key}.get(given.name, given.i)


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        (lambda m: m.graph.node[0].output.pop(), "no queries, keys, values or result|has output size 0"),
        (lambda m: m.graph.node[0].input.pop(), "no queries, keys, values or result|has input size 2"),
        (lambda m: m.graph.node[0].attribute.pop(0), "num_heads is 0|is_causal"),
        (lambda m: set_heads(m, 3, 2), "q_num_heads is 3, which does not divide 8"),
        (lambda m: set_heads(m, 2, -1), "kv_num_heads is -1"),
        (lambda m: set_heads(m, 2, 8), "2 heads share 8"),
        (
            lambda m: setattr(m.graph.input[0].type.tensor_type, "elem_type", 0),
            "floating-point|no type|cannot be inferred",
        ),
    ],
)
def test_attentions_that_cannot_be_taken_apart(
    change: Callable[[onnx.ModelProto], object], reason: str
) -> None:
    parted(attention(lambda m: None))
    with pytest.raises(ModelError, match=reason):
        parted(attention(change))


def test_an_attention_whose_mask_would_fill_the_memory() -> None:
    with pytest.raises(ModelError, match="scores are too many"):
        parted(attention(lambda m: None, "1,1000000,8"))


@pytest.mark.parametrize("version", [1 << 31, 1 << 62, -1, 0])
def test_a_version_of_onnx_that_no_integer_of_c_holds(version: int) -> None:
    model = onnx.ModelProto.FromString(seeds.onnx_files()[0])
    model.ir_version = version
    with pytest.raises(ModelError, match=f"n.onnx: ir_version: {version} is no version"):
        parted(model.SerializeToString())
    model.ir_version = 8
    model.opset_import.add(domain="mine", version=version)
    with pytest.raises(ModelError, match=f"{version} is no version|mine"):
        parted(model.SerializeToString())


@pytest.mark.parametrize(
    ("shape", "nodes"),
    [
        ("1,3,8,8", "y = Conv<kernel_shape=[3,3]>(x, w)"),
        ("2,6,8", "y = Transpose<perm=[2,1]>(x)"),
        ("2,6,8", "y = ReduceMean<keepdims=1,axes=[1]>(x)"),
        ("2,6,8", "t = Transpose<perm=[0,2,1]>(x) y = Reshape(t, s)"),
    ],
)
@pytest.mark.parametrize("made", ["2", "1,2", "2,6,8", "3,5,7", "2,2,8,8"])
def test_shapes_that_no_such_node_can_have(shape: str, nodes: str, made: str) -> None:
    """What a file states is believed where nothing contradicts it, and nothing is said of such a node."""
    text = f"""<ir_version: 8, opset_import: ["" : 13]> g (float[{shape}] x) => (float[{made}] y)
        <float[2] w = {{1, 2}}, int64[2] s = {{7, 9}}, float[3] t> {{ {nodes} }}"""
    survives(TARGETS["onnx"], bytes(onnx.parser.parse_model(text).SerializeToString()))


def test_an_input_that_is_an_output_of_no_type() -> None:
    text = """<ir_version: 8, opset_import: ["" : 18]> g (float[4] x, float[4] k)
        => (float[4] k, float[4] y) {
        y = Relu(x) }"""
    model = onnx.parser.parse_model(text)
    parted(model.SerializeToString())
    model.graph.output[0].type.tensor_type.elem_type = 127
    with pytest.raises(ModelError, match=r"n.onnx: tensor k: the element type cannot be inferred"):
        parted(model.SerializeToString())


def test_names_of_thousands_of_characters_do_not_bury_the_reason() -> None:
    with pytest.raises(ChipError) as caught:
        parse_soc(b"x" * 5000 + b" = 1", "s.toml")
    assert str(caught.value).startswith("s.toml: ")
    assert len(str(caught.value)) <= LINE


def test_a_soc_scaled_from_one_whose_name_is_no_file_name() -> None:
    content = next(c for c in seeds.built_in("socs") if b"contention_scaled_from" in c)
    line = next(row for row in content.splitlines() if row.startswith(b"contention_scaled_from"))
    for name in (b"x" * 5000, b"../socs/xavier-agx", b"\\u0000", b""):
        with pytest.raises(ChipError, match="names no built-in SoC"):
            parse_soc(content.replace(line, b'contention_scaled_from = "%s"' % name), "s.toml")


# ------------------------------------------------------------------------------------------------- .pt2


def pt2(change: Callable[[dict[str, object]], object]) -> bytes:
    """The first seed with its graph changed."""
    made = io.BytesIO()
    with zipfile.ZipFile(io.BytesIO(seeds.pt2_files()[0])) as old, zipfile.ZipFile(made, "w") as new:
        for name in old.namelist():
            data = old.read(name)
            if "/models/" in name and name.endswith(".json"):
                graph = json.loads(data)
                change(graph["graph_module"]["graph"])
                data = json.dumps(graph).encode()
            new.writestr(name, data)
    return made.getvalue()


def test_archives_that_python_does_not_read(tmp_path: Path) -> None:
    pytest.importorskip("torch")
    from onchip.readers.torch_reader import read_pt2

    whole = seeds.pt2_files()[0]
    entry = whole.rindex(b"PK\x01\x02")  # the last entry of the directory: version, flags, ..., name
    newer = whole[: entry + 6] + b"\xff\x00" + whole[entry + 8 :]
    unnamed = (
        whole[: entry + 8] + b"\x00\x08" + whole[entry + 10 : entry + 46] + b"\xff" + whole[entry + 47 :]
    )
    for content in (newer, unnamed):
        (tmp_path / "n.pt2").write_bytes(content)
        with pytest.raises(ModelError, match=r"is no file of torch\.export\.save"):
            read_pt2(tmp_path / "n.pt2", ReadOptions(), where="n.pt2")


def test_calls_whose_arguments_do_not_fit_their_operators() -> None:
    pytest.importorskip("torch")

    def number(argument: int) -> Callable[[dict[str, object]], object]:
        def change(graph: dict[str, object]) -> None:
            graph["nodes"][0]["inputs"][argument]["arg"] = {"as_int": 1}  # type: ignore[index]

        return change

    for argument in (0, 1):
        with pytest.raises(ModelError, match="conv2d"):
            TARGETS["pt2"].read(pt2(number(argument)))
    assert survives(TARGETS["pt2"], pt2(lambda graph: None))


def test_a_size_that_no_integer_of_onnx_holds() -> None:
    text = """<ir_version: 10, opset_import: ["" : 23]> g
        (float[4000000000, 4000000000, 4000000000] x) => (int64 y) { y = Size(x) }"""
    with pytest.raises(ModelError):
        parted(onnx.parser.parse_model(text).SerializeToString())


def test_a_view_of_a_tensor_of_no_type() -> None:
    """The root of a view is no operand of any node, so nothing else had looked at its type."""
    content = (Path(__file__).parent / "found" / "root_without_type.tflite").read_bytes()
    options = ReadOptions()
    with pytest.raises(ModelError, match=r"tensor t0: is of type .* cannot be planned"):
        read_tflite(content, options, name="n", where="n.tflite", dtype="file")
