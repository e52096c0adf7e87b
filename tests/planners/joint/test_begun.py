"""Joint plans that begin caches: those of groups go through DRAM into their buffers, others do not."""

from __future__ import annotations

from pathlib import Path

import pytest

import onchip
from growing import model, saved
from onchip.base.errors import Infeasible, NegativeAnswer, UsageError
from onchip.plans import Alloc, Load
from onchip.results.proving import prove

STATE = ("=present.*",)


@pytest.fixture(name="prompt", scope="module")
def _prompt(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return saved(tmp_path_factory.mktemp("words"), "prompt.onnx", model(words="words", past=None, layers=1))


def plan(prompt: Path, words: int, budget: int, **how: object) -> onchip.Plan:
    how = {"state": STATE, "capacity": 32, **how}
    return onchip.plan(prompt, dims=f"words={words}", budget=budget, fuse=True, **how)  # type: ignore[arg-type]


def test_where_all_is_whole_caches_are_made_in_their_buffers(prompt: Path) -> None:
    made = plan(prompt, 12, 8192)
    whole = onchip.plan(prompt, dims="words=12", budget=8192, state=STATE, capacity=32)
    assert made.check().dram_bytes == whole.result.dram_bytes
    assert made.result.status == "optimal"
    places = {(x.tensor, x.address) for x in made.program if isinstance(x, Alloc)}
    assert {(c.output, c.address) for c in made.caches} <= places
    assert made.run().bit_exact
    assert onchip.Plan.from_text(made.to_text()) == onchip.Plan.from_text(made.to_json()) == made


@pytest.mark.thorough
def test_a_prompt_that_does_not_fit_whole_has_a_plan(prompt: Path) -> None:
    with pytest.raises(Infeasible):
        onchip.plan(prompt, dims="words=20", budget=5000, state=STATE, capacity=32)
    made = plan(prompt, 20, 5000)
    result = made.check()
    assert made.groups
    assert result.dram_lower_bound_bytes is not None
    assert result.dram_lower_bound_bytes < result.dram_bytes
    loads = {(x.tensor, x.address) for x in made.program if isinstance(x, Load)}
    assert loads & {(c.output, c.address) for c in made.caches}
    report = made.run()
    assert report.moved.reload == result.reload_bytes
    again = onchip.Plan.from_text(made.to_text())
    assert prove(again).outcome == "not decided"


@pytest.mark.parametrize(
    ("how", "kind", "message"),
    [
        ({"state": ("x=y.0",)}, UsageError, "does not go with --fuse"),
        ({"state": ()}, UsageError, "--capacity: does not go with --fuse"),
        ({"state": ("=s.0",), "capacity": None}, UsageError, "s.0 is no output"),
        ({"capacity": 5}, UsageError, "5 rows are fewer"),
        ({"capacity": 200}, NegativeAnswer, r"cache present\.0\.k \(6,400 B\)"),
    ],
)
def test_what_does_not_begin(
    prompt: Path, how: dict[str, object], kind: type[Exception], message: str
) -> None:
    with pytest.raises(kind, match=message):
        plan(prompt, 12, 8192, **how)
