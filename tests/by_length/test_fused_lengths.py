"""Plans of all lengths whose operators run fused: none is worse than the plan made for its length alone."""

from __future__ import annotations

from pathlib import Path

import pytest

import onchip
from growing import model, saved
from onchip.base.errors import UsageError
from onchip.by_length.judge import check_table
from onchip.replanning import network_at

CACHE = "past.*=present.*"


@pytest.fixture(name="decode", scope="module")
def _decode(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return saved(tmp_path_factory.mktemp("words"), "decode.onnx", model(words=1, past="past", layers=1))


@pytest.mark.thorough
@pytest.mark.parametrize(("budget", "last"), [(1000, 24), (600, 30)])
def test_no_length_has_a_better_fused_plan(decode: Path, budget: int, last: int, tmp_path: Path) -> None:
    table = onchip.lengths(decode, length=f"past=2..{last}", budget=budget, cache=CACHE, fuse=True)
    assert (table.rows[0].first, table.rows[-1].last) == (2, last)
    assert all(table.proof(row).endswith("checked at every length") for row in table.rows)
    for n in (2, 9, 17, 24, 26, last):
        if n > last:
            continue
        alone = onchip.plan(decode, dims=f"past={n}", budget=budget, cache=CACHE, fuse=True)
        made = table.plan(n)
        assert made.check().dram_bytes <= alone.result.dram_bytes
        assert (made.result.dram_lower_bound_bytes or 0) >= (alone.result.dram_lower_bound_bytes or 0)
        assert made.result.dram_bytes - table.row(n).gap_bytes <= made.result.dram_lower_bound_bytes
        assert made.run().operators == alone.run().operators
    table.save(tmp_path)
    assert check_table(tmp_path / "lengths.json", network_at) == table.data()


@pytest.mark.thorough
def test_a_plan_in_nests_serves_shorter_lengths(decode: Path) -> None:
    table = onchip.lengths(decode, length="past=20..28", budget=1000, cache=CACHE, fuse=True)
    [row] = table.rows
    assert row.plan.groups
    assert row.gap_bytes == 0
    assert table.plan(21).groups == row.plan.groups
    assert table.plan(21).result.dram_bytes < row.plan.result.dram_bytes


@pytest.mark.parametrize(
    ("how", "message"),
    [
        ({"state": ("past.*=present.*",)}, "does not go with --fuse"),
        ({"state": ("=present.0.k",)}, "run fused keep caches in DRAM"),
        ({"strategy": "greedy"}, "need exact"),
        ({"overlap": False, "fuse": False}, "goes with --fuse only"),
    ],
)
def test_what_fused_steps_do_not_have(decode: Path, how: dict[str, object], message: str) -> None:
    with pytest.raises(UsageError, match=message):
        onchip.lengths(decode, length="past=2..3", budget=1000, **{"fuse": True, **how})  # type: ignore[arg-type]
