"""Chains of layers planned by Stream, by the interpreter that has the package: times.py starts it.

Reads from stdin {"layers": [CHAIN, ...], "bytes", "bandwidth", "array", "limit"}; prints a line of JSON for
every chain: {"version", "cycles", "groups", "seconds"}, or {"failed": why}. A chain is a list of {"loops",
"strides", "inputs", "before"}, each layer reading what the one before it made. The core is the chip of
zigzag_layers.py without its DRAM, which is a core of its own behind a link as fast. `limit` are seconds for
each of its solver's runs. One byte each element.
"""

from __future__ import annotations

import json
import logging
import sys
import tempfile
import time
from contextlib import redirect_stdout
from importlib import metadata
from pathlib import Path
from typing import Any

sys.path.append(str(Path(__file__).resolve().parent))
from zigzag_layers import accelerator


def hardware(asked: dict[str, Any], folder: Path) -> Path:
    """Write the chip in the package's form, and return its file."""
    chip = accelerator(asked["bytes"], asked["bandwidth"], asked["array"])
    memories = chip["memories"]
    none = {"unit_energy": 0.0, "unit_area": 0.0, "dimensions": ["D1", "D2"], "sizes": [0, 0]}
    array = chip["operational_array"]
    files = {
        "core": {
            "name": "core",
            "type": "zigzag.compute",
            "memories": {"scratchpad": memories["scratchpad"]},
            "operational_array": array,
        },
        "dram": {
            "name": "dram",
            "type": "zigzag.offchip",
            "memories": {"dram": memories["dram"]},
            "operational_array": none,
        },
        "chip": {
            "name": "chip",
            "cores": {0: "core.yaml", 1: "dram.yaml"},
            "core_coordinates": {0: [0, 0], 1: [0, 1]},
            "offchip_core_id": 1,
            "unit_energy_cost": 0,
            "core_connectivity": [{"type": "link", "cores": [0, 1], "bandwidth": 8 * asked["bandwidth"]}],
        },
    }
    import yaml

    for name, data in files.items():
        (folder / f"{name}.yaml").write_text(yaml.safe_dump(data))
    return folder / "chip.yaml"


def network(chain: list[dict[str, Any]], folder: Path) -> Path:
    """Write the chain as ONNX, a convolution each, and return its file."""
    import onnx
    from onnx import helper

    def map_of(name: str, channels: int, rows: int, columns: int) -> Any:
        return helper.make_tensor_value_info(name, onnx.TensorProto.FLOAT, [1, channels, rows, columns])

    nodes, weights, maps = [], [], []
    for n, layer in enumerate(chain):
        groups, outputs, inputs, rows, columns, down, across = layer["loops"]
        if not maps:
            maps.append(map_of("t0", groups * inputs, *layer["inputs"]))
        maps.append(map_of(f"t{n + 1}", groups * outputs, rows, columns))
        reached = [
            (out - 1) * stride + taps
            for out, stride, taps in zip((rows, columns), layer["strides"], (down, across), strict=True)
        ]
        after = [
            max(0, far - before - size)
            for far, before, size in zip(reached, layer["before"], layer["inputs"], strict=True)
        ]
        shape = [groups * outputs, inputs, down, across]
        size = groups * outputs * inputs * down * across
        weights.append(helper.make_tensor(f"w{n}", onnx.TensorProto.FLOAT, shape, bytes(4 * size), raw=True))
        nodes.append(
            helper.make_node(
                "Conv",
                [f"t{n}", f"w{n}"],
                [f"t{n + 1}"],
                f"layer{n}",
                kernel_shape=[down, across],
                strides=layer["strides"],
                pads=[*layer["before"], *after],
                dilations=[1, 1],
                group=groups,
            )
        )
    graph = helper.make_graph(nodes, "chain", maps[:1], maps[-1:], weights, value_info=maps[1:-1])
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)]), folder / "chain.onnx")
    return folder / "chain.onnx"


def run(asked: dict[str, Any], chain: list[dict[str, Any]], folder: Path) -> dict[str, Any]:
    """Return the package's estimate of its own mapping of a chain."""
    from stream.api import SolveOptions, evaluate_mapping

    chip, model = str(hardware(asked, folder)), str(network(chain, folder))
    options = SolveOptions(time_limit_s=asked["limit"], artifacts=False)
    began = time.process_time()
    try:
        found = evaluate_mapping(chip, model, str(folder / "out"), options=options)
    except Exception as no:
        return {"failed": f"{type(no).__name__}: {no}"[:200]}
    return {
        "version": metadata.version("stream-dse"),
        "cycles": float(found.cycles),
        "groups": len(found.group_cycles),
        "seconds": time.process_time() - began,
    }


def main() -> None:
    logging.disable(logging.CRITICAL)
    asked = json.load(sys.stdin)
    for chain in asked["layers"]:
        with tempfile.TemporaryDirectory() as folder:
            with redirect_stdout(sys.stderr):
                answer = run(asked, chain, Path(folder))
            print(json.dumps(answer), flush=True)


if __name__ == "__main__":
    main()
