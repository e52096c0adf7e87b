"""Layers of transformers as the comparison with another planner spells them, for it and for onchip."""

from __future__ import annotations

import sys
from math import prod
from pathlib import Path

import pytest

from onchip.network import Side

sys.path.append(str(Path(__file__).resolve().parents[3] / "benchmarks/peers"))
import nests
from transformer_layers import Layer, gpt3_67b, lines_of, llama3_8b, network_of, qwen3_8b, workload_of

LAYERS = (gpt3_67b(), llama3_8b(2048), llama3_8b(1, 4096), qwen3_8b(2048), qwen3_8b(1, 4096))


def test_weights_are_those_of_the_models() -> None:
    attention = 4096 * (4096 + 1024 + 1024 + 4096)  # 8 of 32 heads have keys and values
    weights = [network_of(layer).weight_bytes for layer in LAYERS]
    llama, qwen = attention + 3 * 4096 * 14336, attention + 3 * 4096 * 12288
    gpt = 4 * 4096 * 4096 + 2 * 4096 * 16384
    assert weights == [2 * gpt, 2 * llama, 2 * llama, 2 * qwen, 2 * qwen]


@pytest.mark.parametrize("layer", LAYERS, ids=lambda layer: layer.name)
def test_reaches_have_the_bytes_and_work_of_the_spelling(layer: Layer) -> None:
    network = network_of(layer)
    for op, step in zip(network.operators, layer.steps, strict=True):
        assert op.reach is not None
        axes = {*step.made.sides, *step.sums}
        assert prod(op.reach.extents) == prod(layer.sizes[axis] for axis in axes)
        for tensor, sides in zip(op.inputs, op.reach.reads, strict=True):
            assert 2 * prod(side.size for side in sides) == network.tensors[tensor].bytes
            assert all(side.axis < 0 or side.size == op.reach.extents[side.axis] for side in sides)


def test_features_of_a_projection_are_one_axis_and_a_row_of_scores_is_whole() -> None:
    network = network_of(gpt3_67b())
    reaches = {op.name: op.reach for op in network.operators}
    assert reaches["K"] is not None
    assert reaches["K"].output == (2048, 4096)
    assert reaches["SM"] is not None
    assert reaches["SM"].reads == ((Side(32 * 2048, 0), Side(2048, span=2048)),)
    assert reaches["AV"] is not None
    assert reaches["AV"].output == (2048, 32, 128)


def test_the_peer_reads_keys_by_another_axis_than_queries_and_copies_what_several_read() -> None:
    einsums = [row["einsum"] for row in workload_of(gpt3_67b())["einsums"]]
    assert einsums[0] == "I[m, d] = I_in[m, d]"
    assert einsums[4:7] == [
        "s[h, m, p] = q[m, h, e] * k[M: p, h, e]",
        "t[h, m, p] = s[h, m, p]",
        "a[m, h, f] = t[h, m, p] * v[M: p, h, E: f]",
    ]
    assert lines_of(gpt3_67b())[4] == "SM: t(h,m,p) = s(h,m,*p) | p"


@pytest.mark.parametrize("layer", LAYERS, ids=lambda layer: layer.name)
def test_names_of_axes_and_tensors_are_apart(layer: Layer) -> None:
    tensors = {use.tensor for step in layer.steps for use in (step.made, *step.reads)}
    assert not tensors & set(layer.sizes)


def least_of_a_decode_step() -> int:
    attention = 4096 * (4096 + 1024 + 1024 + 4096)
    weights, caches, rows = attention + 3 * 4096 * 14336, 2 * 4096 * 1024, 4096 + 4096 + 2 * 1024
    return 2 * (weights + caches + rows)


def test_nests_of_a_decode_step_move_what_every_plan_must() -> None:
    layer = llama3_8b(1, 4096)
    assert layer.least() == least_of_a_decode_step()
    assert nests.nests(layer, 1 << 20)[0] == least_of_a_decode_step()


@pytest.mark.thorough
def test_a_plan_of_a_decode_step_moves_what_every_plan_must() -> None:
    assert nests.planned(llama3_8b(1, 4096), 64 << 10)[0] == least_of_a_decode_step()


@pytest.mark.thorough
def test_a_layer_of_gpt3_moves_what_is_known_of_it() -> None:
    assert [nests.nests(gpt3_67b(), mib << 20)[0] for mib in (4, 16)] == [1_493_172_224, 771_751_936]


def fake(tmp_path: Path, does: str) -> Path:
    """An interpreter that has the peer, as far as the comparison sees."""
    made = tmp_path / "python"
    made.write_text(f"#!/bin/sh\n{does}\n")
    made.chmod(0o755)
    return made


def test_what_the_peer_answered_is_recorded_and_not_asked_again(tmp_path: Path) -> None:
    answer = '{"version": "1", "seconds": 10.0, "dram_bytes": 2000000000, "mapping": ""}'
    python, records = fake(tmp_path, f"echo '{answer}'"), tmp_path / "records"
    layer = gpt3_67b()
    assert nests.Peer(python, 5, 1, records).run(layer, 1 << 20, nests.DIVISORS)["seconds"] == 10
    later = nests.Peer(tmp_path / "none", 0, 1, records)
    assert later.run(layer, 1 << 20, nests.DIVISORS)["dram_bytes"] == 2_000_000_000
    assert later.run(layer, 1 << 20, nests.COARSE) == {}


def test_a_run_without_memory_did_not_end_and_other_failures_are_told(tmp_path: Path) -> None:
    short = fake(tmp_path, "echo MemoryError >&2; exit 1")
    answer = nests.Peer(short, 5, 1, None).run(gpt3_67b(), 1 << 20, nests.ANY)
    assert answer["failed"] == "more than 1 GiB"
    broken = fake(tmp_path, "echo 'No module named accelforge' >&2; exit 1")
    with pytest.raises(SystemExit, match="No module named accelforge"):
        nests.Peer(broken, 5, 1, None).run(gpt3_67b(), 1 << 20, nests.ANY)
