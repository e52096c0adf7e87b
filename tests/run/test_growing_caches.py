"""Caches that grow on chip, executed: what is new is written behind what the buffer holds."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

import onchip
from growing import model, saved
from onchip.base.errors import IllegalPlan, Mismatch
from onchip.plans import Alloc, Free
from onchip.run import run

STATE = ("past.*=present.*",)


@pytest.fixture(name="decode", scope="module")
def _decode(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return saved(tmp_path_factory.mktemp("words"), "decode.onnx", model(words=1, past="past", layers=2))


@pytest.mark.parametrize("dtype", ["file", "int8"])
@pytest.mark.parametrize("past", [1, 7])
def test_a_step_is_bit_for_bit_the_network(decode: Path, past: int, dtype: str) -> None:
    made = onchip.plan(decode, budget=3000, dims=f"past={past}", state=STATE, capacity=16, dtype=dtype)
    report = made.run()
    assert report.bit_exact
    assert {f"present.{i}.{x}" for i in range(2) for x in "kv"} <= report.digests.keys()
    assert made.run(seed=1).digests != report.digests


def test_a_prompt_begins_the_caches(tmp_path: Path) -> None:
    path = saved(tmp_path, "prompt.onnx", model(words="words", past=None, layers=2))
    made = onchip.plan(path, budget=8192, dims="words=5", state=("=present.*",), capacity=16)
    assert made.result.compulsory_bytes == 2 * 5 * 32  # x and y; what is kept never crosses
    assert made.run().bit_exact


def test_chunks_of_a_prompt_go_behind_each_other(tmp_path: Path) -> None:
    path = saved(tmp_path, "chunk.onnx", model(words=3, past="past", layers=1))
    made = onchip.plan(path, budget=8192, dims="past=5", state=STATE, capacity=16)
    assert made.result.compulsory_bytes == 2 * 3 * 32
    assert made.run().bit_exact


def test_no_byte_of_a_buffer_is_taken_for_something_else(decode: Path) -> None:
    made = onchip.plan(decode, budget=3000, dims="past=7", state=STATE, capacity=16)
    at = next(i for i, x in enumerate(made.program) if isinstance(x, Alloc) and x.over is None)
    moved = replace(made.program[at], address=made.caches[1].address)
    wrong = replace(made, program=(*made.program[:at], moved, *made.program[at + 1 :]))
    with pytest.raises(IllegalPlan, match=r"range-not-free.*cache present\.0\.v"):
        run(wrong)
    with pytest.raises(Mismatch, match=r"cache present\.0\.v.*were taken by"):
        run(wrong, checked=False)


def test_the_program_neither_moves_nor_frees_a_cache(decode: Path) -> None:
    made = onchip.plan(decode, budget=3000, dims="past=7", state=STATE, capacity=16)
    at = next(i for i, x in enumerate(made.program) if isinstance(x, Alloc) and x.over is not None)
    elsewhere = replace(made.program[at], address=2048)
    for i, new in ((at, elsewhere), (at + 2, Free("present.0.k"))):
        wrong = replace(made, program=(*made.program[:i], new, *made.program[i + 1 :]))
        with pytest.raises(IllegalPlan, match="cache-moved"):
            run(wrong)
        with pytest.raises(IllegalPlan, match="cache-moved"):
            run(wrong, checked=False)
