"""Readable names: what converters write is shortened, and different tensors stay different."""

from __future__ import annotations

from types import SimpleNamespace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from onchip.base.short_names import LONGEST, distinct_names, short_names
from onchip.microcontroller.result import microcontroller_table as table
from onchip.microcontroller.result.microcontroller import Buffers
from onchip.report.grid import printed

MERGED = (
    "model/activation/Relu;model/batch_normalization/FusedBatchNormV3;model/conv2d/BiasAdd",
    "model/activation_1/Relu;model/batch_normalization_1/FusedBatchNormV3;model/conv2d_1/BiasAdd",
    "model/dense/MatMul;model/dense/BiasAdd",
    "Identity",
)


def test_merged_names_become_their_first_without_the_folder_of_all() -> None:
    assert list(short_names(MERGED).values()) == [
        "activation/Relu",
        "activation_1/Relu",
        "dense/MatMul",
        "Identity",
    ]


def test_names_that_begin_alike_keep_what_tells_them_apart() -> None:
    found = short_names(["n/a/Relu;n/b/Conv", "n/a/Relu;n/c/Conv", "n/d/Relu;n/b/Conv"])
    assert list(found.values()) == ["a/Relu;b/Conv", "a/Relu;c/Conv", "d/Relu"]


def test_a_short_name_is_never_another_tensor_s_own_name() -> None:
    found = short_names(["net/relu", "net/pool", "relu"])
    assert found["relu"] == "relu"
    assert found["net/relu"] != "relu"


def test_a_signature_s_additions_are_left_out() -> None:
    assert short_names(["serving_default_image:0", "Identity:0"]) == {
        "serving_default_image:0": "image",
        "Identity:0": "Identity:0",
    }
    both = ["serving_default_image:0", "image"]
    assert short_names(both)["serving_default_image:0"] != short_names(both)["image"]


def test_plain_names_stay_as_they_are() -> None:
    plain = ["input", "map5", "map10", "StatefulPartitionedCall:0", ""]
    assert short_names(plain) == {name: name for name in plain}


NAMES = st.lists(
    st.lists(st.text(alphabet="ab/;", max_size=6), max_size=30).map("".join), unique=True, max_size=12
)


@given(NAMES)
def test_different_names_stay_different_and_short(names: list[str]) -> None:
    found = short_names(names)
    assert list(found) == names
    assert len(set(found.values())) == len(names)
    assert all(len(short) <= LONGEST + len(" (12)") for short in found.values())


@given(st.lists(st.text(max_size=60), unique=True, max_size=8))
def test_any_text_is_a_name(names: list[str]) -> None:
    assert len(set(short_names(names).values())) == len(names)


def test_what_exporters_add_to_all_names_goes_first() -> None:
    exported = [f"/model.{n}/cv{m}/act/Mul_output_0" for n in (4, 6, 12) for m in (1, 2)]
    assert list(distinct_names(exported, 15).values()) == [
        f"{n}/cv{m}/act/Mul" for n in (4, 6, 12) for m in (1, 2)
    ]


def test_a_name_that_fits_keeps_itself() -> None:
    assert distinct_names(["/aaaaaaaaaaaa", "aaaaaaaaaaaa"], 12)["aaaaaaaaaaaa"] == "aaaaaaaaaaaa"


@given(NAMES, st.integers(12, 40))
def test_different_names_are_different_in_any_width(names: list[str], width: int) -> None:
    found = distinct_names(names, width)
    assert list(found) == names
    assert len(set(found.values())) == len(names)
    assert all(short == name for name, short in found.items() if len(name) <= width)
    assert all(len(short) <= width + len(" (12)") for short in found.values())


def test_a_step_of_many_tensors_keeps_each_of_their_names(monkeypatch: pytest.MonkeyPatch) -> None:
    held = tuple((f"model/stream_{i}/strided_slice_of_states", 1000 + i) for i in range(12))
    made = SimpleNamespace(plan=None, model=SimpleNamespace(tensors=[]))
    monkeypatch.setattr(table, "buffers", lambda _: [Buffers("c", ("CONV_2D.0",), held, 0, 12_066)])
    text = " ".join(printed(table._steps(made), 100).split())  # type: ignore[arg-type]
    assert all(f"{name} {size:,}" in text for name, size in held)
