"""Layers and mappings as the comparison with simulators of one layer spells them, for them and for onchip."""

from __future__ import annotations

import json
import sys
from collections import Counter
from itertools import pairwise
from pathlib import Path

import pytest

from onchip.machines.tile_rates import ArraySide, Channel, TileRates
from onchip.plans import Leaf, Loop, Nest
from onchip.readers import ReadOptions, load

sys.path.append(str(Path(__file__).resolve().parents[3] / "benchmarks/peers"))
import scalesim_layers
import time_rows
import zigzag_layers
from time_chains import CHAINS, network_of_chain
from time_layers import Layer, Slide, layers_of, network_of
from time_nests import nest_of, priced
from time_peers import Peer, Records, stated

ONE = Slide(1, 1)
POINTWISE = Layer(1, 8, 4, Slide(6, 6), Slide(6, 6))
STRIDED = Layer(1, 64, 3, Slide(112, 224, 7, 2, 3), Slide(112, 224, 7, 2, 3))
DEPTHWISE = Layer(96, 1, 1, Slide(56, 112, 3, 2, 1), Slide(56, 112, 3, 2, 1))
HEADS = Layer(12, 197, 64, ONE, Slide(197, 197))
RATES = TileRates(10**9, (Channel(10**9),), 0, (ArraySide("out", 2), ArraySide("out", 2)))


@pytest.mark.parametrize("name", ["resnet50", "mobilenet_v2"])
def test_layers_of_a_network_have_all_of_its_products(name: str) -> None:
    network = load(f"zoo:{name}", ReadOptions(dtype="int8", attention="parts")).network
    layers = layers_of(network)
    assert sum(layer.macs * count for layer, count in layers.items()) == sum(
        o.work for o in network.operators
    )
    assert layers.total() == sum(op.work > 0 for op in network.operators)


@pytest.mark.parametrize("layer", [POINTWISE, STRIDED, DEPTHWISE, HEADS], ids=lambda layer: layer.name)
def test_a_layer_is_the_only_one_of_its_own_network(layer: Layer) -> None:
    network = network_of(layer)
    assert list(layers_of(network)) == [layer]
    assert network.weight_bytes == layer.weight_bytes
    assert network.tensors[network.outputs[0]].bytes == layer.output_bytes


def test_windows_over_padding_read_what_there_is() -> None:
    assert (STRIDED.rows.reached, STRIDED.rows.after) == (229, 2)
    assert STRIDED.input_bytes == 3 * 224 * 224
    skipping = Layer(1, 8, 4, Slide(28, 56, 1, 2), Slide(28, 56, 1, 2))
    assert (skipping.rows.after, skipping.input_bytes) == (-1, 4 * 55 * 55)


def test_a_layer_for_zigzag_has_its_loops_and_padding() -> None:
    said = zigzag_layers.workload(stated(STRIDED))
    assert dict(zip(said["loop_dims"], said["loop_sizes"], strict=True)) == {
        "B": 1, "G": 1, "K": 64, "C": 3, "OY": 112, "OX": 112, "FY": 7, "FX": 7,
    }  # fmt: skip
    assert said["padding"] == [[3, 2], [3, 2]]
    assert said["dimension_relations"] == ["iy=2*oy+1*fy", "ix=2*ox+1*fx"]


def test_a_chip_for_zigzag_has_bits_and_one_way_to_dram() -> None:
    chip = zigzag_layers.accelerator(4096, 16, [32, 32])
    assert chip["memories"]["scratchpad"]["size"] == 8 * 4096
    [port] = chip["memories"]["dram"]["ports"]
    assert port["bandwidth_max"] == 128
    assert sorted(port["allocation"]) == sorted(
        way for port in chip["memories"]["scratchpad"]["ports"] for way in port["allocation"]
    )


def test_a_layer_for_scalesim_has_its_padding_in_the_map() -> None:
    head, line = scalesim_layers.topology(stated(STRIDED)).splitlines()
    values = dict(zip(head.split(","), line.split(","), strict=True))
    assert values["IFMAP Height"] == values["IFMAP Width"] == "229"
    assert (values["Channels"], values["Num Filter"], values["Strides"]) == ("3", "64", "2")
    said = scalesim_layers.config(time_rows.scalesim_asks(512, "os"))
    sizes = [int(line.split()[1]) for line in said.splitlines() if "SramSzkB" in line]
    assert sum(sizes) == 512


def test_reports_of_scalesim_are_read_for_all_groups(tmp_path: Path) -> None:
    (tmp_path / "COMPUTE_REPORT.csv").write_text(
        "LayerID, Total Cycles (incl. prefetch), Total Cycles, Stall Cycles,\n0, 70, 50, 8,\n"
    )
    names = ("IFMAP Reads", "Filter Reads", "OFMAP Writes")
    head = ", ".join(["LayerID", *(f"DRAM {name}" for name in names)])
    (tmp_path / "DETAILED_ACCESS_REPORT.csv").write_text(f"{head},\n0, 5, 6, 7,\n")
    assert scalesim_layers.report(tmp_path, 3) == {
        "array_cycles": 126, "stall": 24, "cycles": 150, "with_prefetch": 210, "dram_bytes": 54,
    }  # fmt: skip


def test_a_mapping_is_a_nest_with_every_buffer_where_the_mapping_fills_it() -> None:
    # C 4 and half of the pixels innermost; weights in every turn of K; outputs in every turn of OY
    order = [["C", 4], ["OX", 6], ["OY", 3], ["OY", 2], ["K", 2]]
    temporal = {
        "O": [order[:3], order[3:]],
        "W": [order[:4], order[4:]],
        "I": [order, []],
    }
    nest = nest_of(POINTWISE, temporal)
    rows = Loop((("layer", 2),), 3, (Leaf("layer"),), ("y",))
    assert nest == Nest((Loop((("layer", 1),), 4, (rows,), ("W",)),), ("x",))
    time = priced(POINTWISE, nest, RATES, 1000)
    assert time is not None
    assert time >= max(POINTWISE.macs // 4, POINTWISE.least_bytes) * 1000
    assert priced(POINTWISE, nest, RATES, 100) is None


def test_a_mapping_with_loops_over_taps_around_a_buffer_is_no_nest() -> None:
    loops = [["OX", 112], ["FX", 7]]
    assert nest_of(STRIDED, {"O": [loops[:1], loops[1:]], "W": [loops, []], "I": [loops, []]}) is None


def test_cycles_of_an_array_count_edges() -> None:
    assert time_rows.cycles_on(POINTWISE) == 2 * 1 * 4
    assert time_rows.cycles_on(DEPTHWISE) == 96 * 98 * 9


@pytest.mark.parametrize("name", CHAINS)
def test_layers_of_a_chain_read_what_the_one_before_made(name: str) -> None:
    chain = CHAINS[name]
    network = network_of_chain(name, chain)
    assert layers_of(network) == Counter(chain)
    for first, second in pairwise(chain):
        assert first.output_bytes == second.input_bytes
    assert network.weight_bytes == sum(layer.weight_bytes for layer in chain)


def test_answers_are_kept_and_asked_once(tmp_path: Path) -> None:
    file = tmp_path / "kept.jsonl"
    script = tmp_path / "peer.py"
    script.write_text(
        "import json, sys\n"
        "for layer in json.load(sys.stdin)['layers']:\n"
        "    print(json.dumps({'cycles': layer['loops'][1]}))\n"
    )
    peer = Peer("someone", str(script), Path(sys.executable), 60, Records(file))
    layers = [POINTWISE, STRIDED]
    assert [one["cycles"] for one in peer.answers(layers, {"bytes": 1}).values()] == [8, 64]
    assert len(file.read_text().splitlines()) == 2
    unable = Peer("someone", str(script), None, 60, Records(file))
    assert unable.answers(layers, {"bytes": 1}) == peer.answers(layers, {"bytes": 1})
    assert unable.answers(layers, {"bytes": 2}) == {}
    assert all(json.loads(line)["asked"]["bytes"] == 1 for line in file.read_text().splitlines())
