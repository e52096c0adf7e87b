"""Single layers of every kind, at random: the reference is the interpreters', byte for byte."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from microcontroller.int8_layers import AGREED, KINDS
from microcontroller.interpreters import litert, random_inputs, tflm
from onchip.microcontroller.int8.model import Int8, Int8Model
from onchip.microcontroller.int8.read import model_of
from onchip.microcontroller.int8.reference import run
from onchip.microcontroller.made import Builder


def made(kind: str, data: st.DataObject) -> tuple[bytes, Int8Model, list[Int8], tuple[Int8, ...]]:
    """A file, what it is read as, inputs, and what the reference makes of them."""
    b = Builder(data.draw(st.integers(0, 1000)), samples=1)
    content = b.file(KINDS[kind](b, data))
    model = model_of(content, name=kind, where=kind)
    inputs = random_inputs(model, data.draw(st.integers(0, 1000)))
    return content, model, inputs, run(model, inputs)


def equal(ours: tuple[Int8, ...], theirs: list[Int8]) -> bool:
    return all(np.array_equal(a.reshape(-1), b.reshape(-1)) for a, b in zip(ours, theirs, strict=True))


@pytest.mark.parametrize("kind", sorted(KINDS))
@settings(max_examples=25)
@given(data=st.data())
def test_the_reference_is_the_interpreter_that_it_follows(kind: str, data: st.DataObject) -> None:
    content, model, inputs, ours = made(kind, data)
    assert equal(ours, tflm(content, model, inputs))
    if kind in AGREED:
        assert equal(ours, litert(content, model, inputs)[0])


@pytest.mark.parametrize("kind", ["fully_connected", "mul", "prelu", "logistic"])
@settings(max_examples=10)
@given(data=st.data())
def test_where_the_interpreters_differ_they_differ_by_one(kind: str, data: st.DataObject) -> None:
    content, model, inputs, ours = made(kind, data)
    for mine, other in zip(ours, litert(content, model, inputs)[0], strict=True):
        assert np.abs(mine.reshape(-1).astype(int) - other.reshape(-1)).max() <= 1


@pytest.mark.parametrize("kind", ["conv", "depthwise", "fully_connected"])
@pytest.mark.parametrize("bias", [(1 << 31) - 1, (1 << 31) - 5000, -(1 << 31)])
def test_accumulators_wrap_as_the_interpreters_do(kind: str, bias: int) -> None:
    b = Builder(3)
    if kind == "fully_connected":
        x = b.fully_connected(b.input((1, 64)), 8)
    else:
        image = b.input((1, 6, 6, 8))
        x = b.conv(image, 8, 3) if kind == "conv" else b.depthwise(image)
    held = next(i for i, t in enumerate(b.tensors) if t.name.startswith("bias"))
    b.tensors[held] = replace(b.tensors[held], data=np.full(8, bias, np.int32))
    coarse = x.scale.scale * (1 << 31) / 500_000
    b.tensors[x.index] = replace(b.tensors[x.index], scales=(coarse,), zero_points=(0,))
    content = b.file(x)
    model = model_of(content, name=kind, where=kind)
    inputs = random_inputs(model, 1)
    ours = run(model, inputs)
    assert {-128, 127} == set(ours[0].reshape(-1).tolist())
    assert equal(ours, litert(content, model, inputs)[0])
    assert equal(ours, tflm(content, model, inputs))
