"""Layers planned by ZigZag, by the interpreter that has the package: times.py starts it.

Reads from stdin {"layers": [{"loops", "strides", "inputs", "before"}], "bytes", "bandwidth", "array",
"hints", "lpf", "mappings", "shared"}; prints a line of JSON for every layer, in their order: {"version",
"cycles", "compute", "array_cycles", "stall", "loading", "storing", "spatial", "temporal", "seconds"}.
`loops` are the sizes of G, K, C, OY, OX, FY, FX, `hints` the loops that may stand on either side of the
array, several on one (a *mixed* spatial mapping). One byte each element, sums as wide. One thread.
"""

from __future__ import annotations

import json
import logging
import sys
import tempfile
import time
from importlib import metadata
from pathlib import Path
from typing import Any

LOOPS = ("G", "K", "C", "OY", "OX", "FY", "FX")
WIDE = 1_000_000_000
"""Bits a cycle of what is to limit nothing."""


def accelerator(size: int, bandwidth: int, array: list[int], *, shared: bool = False) -> dict[str, Any]:
    """Return an array on a scratchpad of `size` bytes, on DRAM with `bandwidth` bytes a cycle for both ways.

    The scratchpad has a port for every way of every operand, none of which limits anything; where the one to
    DRAM is `shared`, all operands come and go through it.
    """
    ways = [[f"{operand}, tl"] for operand in ("I1", "I2", "O")] + [["O, fl"]]
    outer = ["I1, fh", "I2, fh", "O, fh", "O, th"]
    ways += [outer] if shared else [[way] for way in outer]

    def memory(bits: int, ports: list[tuple[int, list[str]]]) -> dict[str, Any]:
        return {
            "size": bits,
            "r_cost": 0.0,
            "w_cost": 0.0,
            "area": 0.0,
            "latency": 1,
            "operands": ["I1", "I2", "O"],
            "ports": [
                {
                    "name": f"rw_port_{n}",
                    "type": "read_write",
                    "bandwidth_min": 8,
                    "bandwidth_max": wide,
                    "allocation": served,
                }
                for n, (wide, served) in enumerate(ports, 1)
            ],
            "served_dimensions": ["D1", "D2"],
        }

    every = [f"{operand}, {way}" for operand in ("I1", "I2") for way in ("fh", "tl")]
    every += [f"O, {way}" for way in ("fh", "tl", "fl", "th")]
    return {
        "name": "chip",
        "memories": {
            "scratchpad": memory(8 * size, [(WIDE, way) for way in ways]),
            "dram": memory(10**13, [(8 * bandwidth, every)]),
        },
        "operational_array": {
            "unit_energy": 0.0,
            "unit_area": 1.0,
            "dimensions": ["D1", "D2"],
            "sizes": array,
        },
    }


def workload(layer: dict[str, Any]) -> dict[str, Any]:
    """Return a layer in the package's words."""
    rows, columns = layer["strides"]
    sizes = dict(zip(LOOPS, layer["loops"], strict=True))
    padding = []
    for n, (out, tap) in enumerate((("OY", "FY"), ("OX", "FX"))):
        reached = (sizes[out] - 1) * layer["strides"][n] + sizes[tap]
        before = layer["before"][n]
        padding.append([before, max(0, reached - before - layer["inputs"][n])])
    return {
        "id": 0,
        "name": "layer",
        "operator_type": "Conv",
        "equation": "O[b][g][k][oy][ox]+=W[g][k][c][fy][fx]*I[b][g][c][iy][ix]",
        "dimension_relations": [f"iy={rows}*oy+1*fy", f"ix={columns}*ox+1*fx"],
        "loop_dims": ["B", *LOOPS],
        "loop_sizes": [1, *layer["loops"]],
        "pr_loop_dims": ["IY", "IX"],
        "pr_loop_sizes": layer["inputs"],
        "padding": padding,
        "operand_precision": {"W": 8, "I": 8, "O": 8, "O_final": 8},
        "operand_source": {"I": 0, "W": 0},
    }


def run(asked: dict[str, Any], layer: dict[str, Any], folder: Path) -> dict[str, Any]:
    """Return the figures of the fastest mapping that the package finds."""
    from zigzag.mapping.temporal_mapping import TemporalMappingType
    from zigzag.stages.evaluation.cost_model_evaluation import CostModelStage
    from zigzag.stages.main import MainStage
    from zigzag.stages.mapping.spatial_mapping_generation import SpatialMappingGeneratorStage
    from zigzag.stages.mapping.temporal_mapping_generator_stage import (
        TemporalMappingGeneratorStage,
    )
    from zigzag.stages.parser.accelerator_parser import AcceleratorParserStage
    from zigzag.stages.parser.workload_parser import WorkloadParserStage
    from zigzag.stages.results.reduce_stages import MinimalLatencyStage
    from zigzag.stages.workload_iterator import WorkloadStage

    shared = asked.get("shared", False)
    chip = accelerator(asked["bytes"], asked["bandwidth"], asked["array"], shared=shared)
    mapping = [{"name": "default", "spatial_mapping_hint": asked["hints"]}]
    files = []
    for name, data in (("chip", chip), ("layer", [workload(layer)]), ("mapping", mapping)):
        files.append(folder / f"{name}.yaml")
        files[-1].write_text(json.dumps(data))
    began = time.process_time()
    stages = [
        WorkloadParserStage,
        AcceleratorParserStage,
        WorkloadStage,
        MinimalLatencyStage,
        SpatialMappingGeneratorStage,
        MinimalLatencyStage,
        TemporalMappingGeneratorStage,
        CostModelStage,
    ]
    main_stage = MainStage(
        list_of_callables=stages,
        accelerator=str(files[0]),
        workload=str(files[1]),
        mapping=str(files[2]),
        loma_lpf_limit=asked["lpf"],
        loma_show_progress_bar=False,
        nb_mappings_generated=asked["mappings"],
        enable_mix_spatial_mapping_generation=True,
        access_same_data_considered_as_no_access=True,
        temporal_mapping_type=TemporalMappingType("uneven"),
    )
    ((cost, _),) = main_stage.run()
    return {
        "version": metadata.version("zigzag-dse"),
        "cycles": float(cost.latency_total2),
        "compute": float(cost.ideal_cycle),
        "array_cycles": float(cost.ideal_temporal_cycle),
        "stall": float(cost.stall_slack_comb),
        "loading": float(cost.data_onloading_cycle),
        "storing": float(cost.data_offloading_cycle),
        "spatial": str(cost.layer.spatial_mapping),
        "temporal": {
            str(operand): [[[str(loop), int(size)] for loop, size in level] for level in levels]
            for operand, levels in cost.temporal_mapping.mapping_dic_stationary.items()
        },
        "seconds": time.process_time() - began,
    }


def main() -> None:
    logging.disable(logging.CRITICAL)
    asked = json.load(sys.stdin)
    with tempfile.TemporaryDirectory() as folder:
        for layer in asked["layers"]:
            print(json.dumps(run(asked, layer, Path(folder))), flush=True)


if __name__ == "__main__":
    main()
