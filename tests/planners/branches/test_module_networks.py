"""The random networks are what the reader makes of their models."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from random import Random

import pytest

from module_networks import random_module_network
from onchip.readers import ReadOptions, load


@pytest.mark.parametrize("seed", range(30))
def test_the_network_is_what_the_reader_makes_of_the_model(tmp_path: Path, seed: int) -> None:
    made = random_module_network(Random(seed), long_skips=0.3, leaks=0.03, extra_outputs=0.2)
    stated = made.network()
    read = load(made.write(tmp_path / "modules.onnx"), ReadOptions(dtype="int8")).network
    by_name = {op.name: op for op in read.operators}
    assert [t.name for t in read.tensors] == [t.name for t in stated.tensors]
    for op in stated.operators:
        other = by_name[op.name]
        assert replace(op, id=0) == replace(other, id=0, macs=0)
        assert op.work == other.work
