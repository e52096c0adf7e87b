"""TOML from strangers is bounded before it is parsed: its size, and the dotted parts of its keys."""

from __future__ import annotations

import time

import pytest

from onchip.base.errors import ChipError
from onchip.base.toml_file import parse_toml
from onchip.machines.chip import parse_chip


def table(text: str) -> dict[str, object]:
    return parse_toml(text.encode(), what="a chip", where="f.toml", error=ChipError)


@pytest.mark.parametrize(
    "line",
    [
        ".".join(["a"] * 150_000) + " = 1",
        " . ".join(["a"] * 30_000) + " = 1",
        ".".join(['"a.b"', "'c'"] * 15_000) + " = 1",
        "[" + ".".join(["1"] * 100_000) + "]",
        "x = {" + ".".join(["a"] * 100_000) + " = 1}",
    ],
)
def test_a_key_of_many_parts_is_refused_quickly(line: str) -> None:
    began = time.process_time()
    with pytest.raises(ChipError, match=r"f\.toml: line 2: a key of more than \d+ dotted parts"):
        table(f"a = 1\n{line}\n")
    assert time.process_time() - began < 60  # the parser: the square of the parts


def test_dots_that_separate_nothing_do_not_count() -> None:
    made = table(
        f"""# {"so. " * 50}
        text = "{"a.b." * 50}" # {"and. " * 40}
        numbers = [{"1.5, -2.25e3, " * 100}]
        a.b.c = 1
        lines = '''
        {"." * 200}'''
        """
    )
    assert made["text"] == "a.b." * 50
    assert made["numbers"] == [1.5, -2.25e3] * 100


def test_a_large_file_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(ChipError, match=r"f\.toml: larger than 1,048,576 bytes \(ONCHIP_MAX_TOML_BYTES"):
        table("# " + "a" * (1 << 20))
    monkeypatch.setenv("ONCHIP_MAX_TOML_BYTES", "2MiB")
    assert table("a = 1 # " + "a" * (1 << 20)) == {"a": 1}


@pytest.mark.parametrize("text", ["x = " + "[" * 100_000, "x = " + "{a = " * 50_000, "x = 1" + "0" * 9_000])
def test_depth_and_digits_are_one_line(text: str) -> None:
    with pytest.raises(ChipError, match=r"^f\.toml: is not TOML"):
        parse_chip(text.encode(), "f.toml")
