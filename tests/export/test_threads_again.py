"""The program of two threads of a plan in which operators run again: its time, its bytes, its values."""

from __future__ import annotations

from pathlib import Path

import pytest
from test_threads import CHIP, needs_compiler, order_of, ran

import onchip
from squeezed import write_squeeze
from timed_plans import few_looks


@needs_compiler
@pytest.mark.thorough
def test_what_runs_again_takes_less_time_and_is_right(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    few_looks(monkeypatch)
    model = onchip.load(write_squeeze(tmp_path / "squeeze.onnx"))

    def planned(*, recompute: bool) -> onchip.Plan:
        return onchip.plan(
            model,
            chip=CHIP,
            budget=12 * 1024,
            fuse=True,
            objective="latency",
            recompute=recompute,
            dram_tiles=False,
        )

    once, again = planned(recompute=False), planned(recompute=True)
    assert any(op.repeats is not None for op in again.network.operators)
    assert again.result.latency_picoseconds is not None
    assert once.result.latency_picoseconds is not None
    assert again.result.latency_picoseconds < once.result.latency_picoseconds
    assert order_of(again).picoseconds == again.result.latency_picoseconds
    assert ran(tmp_path, again, model)["copied_bytes"] == again.result.dram_bytes
