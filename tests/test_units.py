"""Sizes as people write them: exact, or refused."""

from __future__ import annotations

from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from onchip.base.errors import UsageError
from onchip.base.units import MAX_BYTES, exact, parse_bytes

FACTORS = {"": 1, "B": 1, "KB": 10**3, "MB": 10**6, "GB": 10**9, "KiB": 2**10, "MiB": 2**20, "GiB": 2**30}


@pytest.mark.parametrize(
    ("text", "size"),
    [
        ("0", 0),
        ("65536", 65536),
        ("65_536", 65536),
        ("65,536", 65536),
        ("64KiB", 65536),
        ("64 kib", 65536),
        (" 1.5 MB ", 1_500_000),
        ("0.5KiB", 512),
        ("2.0", 2),
        ("007", 7),
        ("1024GiB", MAX_BYTES),
    ],
)
def test_sizes(text: str, size: int) -> None:
    assert parse_bytes(text) == size


@pytest.mark.parametrize(
    "text",
    [
        "", " ", "-1", "+1", "1e6", "0x10", "1 K", "1M", "1 TB", "KB", "1.5", "0.0001KB", ".5KB", "1.KB",
        "1 2", "\uff11\uff12", "1,5 MB", "1\n2", "nan", "inf", "1KBB", "1,", "_1", "1__0", "1,,0",
        "1,00", "12,34", "1_", "1025GiB", str(MAX_BYTES + 1), "9" * 5000, "0." + "0" * 5000 + "1KB",
    ],
)  # fmt: skip
def test_what_is_no_size_is_refused_in_one_line(text: str) -> None:
    with pytest.raises(UsageError) as caught:
        parse_bytes(text, option="--budget")
    assert str(caught.value).startswith("--budget: ")
    assert "\n" not in str(caught.value)
    assert len(str(caught.value)) < 200


@given(st.integers(0, 10**7), st.integers(0, 999), st.sampled_from(sorted(FACTORS)), st.booleans())
def test_a_size_is_exactly_what_it_says(whole: int, thousandths: int, suffix: str, lower: bool) -> None:
    text = f"{whole}.{thousandths:03}{suffix.lower() if lower else suffix}"
    exact = (whole + Fraction(thousandths, 1000)) * FACTORS[suffix]
    if exact.denominator == 1 and exact <= MAX_BYTES:
        assert parse_bytes(text) == exact
    else:
        with pytest.raises(UsageError):
            parse_bytes(text)


@given(st.integers(0, MAX_BYTES))
def test_plain_and_grouped_bytes_read_back(size: int) -> None:
    assert parse_bytes(str(size)) == size
    assert parse_bytes(f"{size:,}") == size
    assert parse_bytes(f"{size:_}") == size
    assert parse_bytes(exact(size).partition("(")[0]) == size


@given(st.text(max_size=8))
def test_any_text_is_a_size_or_refused(text: str) -> None:
    try:
        size = parse_bytes(text)
    except UsageError:
        return
    assert 0 <= size <= MAX_BYTES
