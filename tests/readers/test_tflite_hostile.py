"""A damaged `.tflite` file is one clear line, wherever the damage is."""

from __future__ import annotations

from random import Random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from onchip.base.errors import ModelError
from onchip.readers.source import ReadOptions
from onchip.readers.tflite_reader import read_tflite
from readers.tflite_build import branching

WHOLE = branching()


def survives(content: bytes) -> None:
    """It is read, or refused in one line."""
    try:
        read_tflite(content, ReadOptions(), name="n", where="n.tflite")
    except ModelError as refusal:
        problem = str(refusal)
    else:
        problem = ""
    assert len(problem.splitlines()) <= 1
    assert len(problem) < 2000


@pytest.mark.thorough
@settings(max_examples=400)
@given(st.integers(0, 10**9), st.integers(1, 8))
def test_flipped_bytes(seed: int, count: int) -> None:
    """Most of the file is weights, so half of the flips go into what comes after them."""
    rng = Random(seed)
    content = bytearray(WHOLE)
    for _ in range(count):
        at = rng.randrange(len(content)) if rng.random() < 0.5 else rng.randrange(400)
        content[at] = rng.choice((0, 1, 0x7F, 0x80, 0xFF, rng.randrange(256)))
    survives(bytes(content))


@pytest.mark.thorough
@settings(max_examples=200)
@given(st.integers(0, 10**9))
def test_words_that_became_huge_or_negative(seed: int) -> None:
    rng = Random(seed)
    content = bytearray(WHOLE)
    for _ in range(rng.randint(1, 3)):
        at = rng.randrange(len(content) // 4) * 4
        content[at : at + 4] = rng.choice(
            (b"\xff\xff\xff\xff", b"\xff\xff\xff\x7f", b"\0\0\0\x80", b"\0\0\1\0")
        )
    survives(bytes(content))


@given(st.integers(0, len(WHOLE)))
def test_truncated(length: int) -> None:
    survives(WHOLE[:length])
