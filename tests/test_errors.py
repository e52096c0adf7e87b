"""Every message is one line that makes sense alone, whatever names it quotes."""

from __future__ import annotations

import pytest
from hypothesis import given

import onchip.base.errors as errors
from onchip.base.errors import (
    ChipError,
    IllegalPlan,
    Infeasible,
    InputError,
    Mismatch,
    MissingExtra,
    ModelError,
    NegativeAnswer,
    OnchipError,
    PlanFormatError,
    UsageError,
)
from strategies import hostile_names


def test_exit_codes_follow_the_tree() -> None:
    for name in errors.__all__:
        kind = getattr(errors, name)
        assert issubclass(kind, OnchipError)
        assert kind.exit_code == (1 if issubclass(kind, NegativeAnswer) else 2), name


@pytest.mark.parametrize("kind", [InputError, UsageError, ModelError, ChipError, PlanFormatError])
def test_an_input_error_names_file_item_and_reason(kind: type[InputError]) -> None:
    assert str(kind("is empty", where="a.onnx", item="node b")) == "a.onnx: node b: is empty"
    assert str(kind("is empty")) == "is empty"
    problem = kind("r", where="w", item="i")
    assert [problem.where, problem.item, problem.reason] == ["w", "i", "r"]


@given(hostile_names)
def test_no_name_breaks_the_line(name: str) -> None:
    for problem in (
        ModelError("is bad", where=name, item=name),
        Infeasible(needs=2, has=1, operator=name, tensors=((name, 2),)),
        IllegalPlan("rule", name, index=1, instruction=f"run {name}"),
        Mismatch(name),
    ):
        text = str(problem)
        assert text.isprintable(), repr(text)
        assert len(text.splitlines()) <= 1


def test_infeasible_says_what_is_missing_and_why() -> None:
    problem = Infeasible(needs=3000, has=1000, operator="conv", tensors=(("x", 1000), ("y", 2000)))
    for part in ("conv", "3,000", "1,000", "2,000 missing", "x (1,000 B)", "y (2,000 B)"):
        assert part in str(problem)


def test_a_missing_extra_is_its_install_line() -> None:
    assert "pip install 'onchip[run]'" in str(MissingExtra("run", "onnxruntime"))
