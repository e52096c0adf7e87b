"""One run of AccelForge's mapper FFM, by the interpreter that has the package: nests.py starts it.

Reads from stdin {"workload", "bytes", "imperfect", "coarseness"}; prints {"version", "seconds", "dram_bytes",
"mapping"} as the last line. Seconds are CPU seconds of the mapper alone, behind one small workload mapped to
warm up what it compiles at first use. One thread.
"""

from __future__ import annotations

import json
import sys
import tempfile
import time
from importlib import metadata
from pathlib import Path
from typing import Any

import accelforge
from accelforge.mapper.FFM.main import map_workload_to_arch

WARM_UP = {
    "rank_sizes": {"M": 8, "K": 8, "N": 8, "P": 8},
    "bits_per_value": {"All": 8},
    "einsums": [{"einsum": "h[m, n] = x[m, k] * w[k, n]"}, {"einsum": "y[m, p] = h[m, n] * v[n, p]"}],
}


def chip(size: int) -> dict[str, Any]:
    """Return two memories and an arithmetic unit; only what crosses to and from the outer one has energy.

    A bit read or written there is 1, so the least energy is the fewest bits: as in the package's own
    architecture for that question (snowcat.yaml), but with the size of the inner memory given, in bytes.
    """
    dummy = {"component_class": "Dummy"}
    cross = [{"name": "read", "energy": 1}, {"name": "write", "energy": 1}]
    off = {"keep": "~Intermediates", "may_keep": "All"}
    return {
        "nodes": [
            {"!": "Memory", "name": "MainMemory", **dummy, "size": "inf", "actions": cross, "tensors": off},
            {"!": "Memory", "name": "GlobalBuffer", **dummy, "size": 8 * size, "tensors": {"keep": "All"}},
            {"!": "Compute", "name": "MAC", **dummy},
        ]
    }


def yaml(value: Any) -> str:
    """Return the text of a value as YAML in one line; the key "!" is a mapping's tag."""
    if isinstance(value, dict):
        tag = f"!{value['!']} " if "!" in value else ""
        return f"{tag}{{{', '.join(f'{key}: {yaml(item)}' for key, item in value.items() if key != '!')}}}"
    if isinstance(value, list):
        return f"[{', '.join(map(yaml, value))}]"
    return json.dumps(value)


def mapped(
    workload: dict[str, Any], size: int, imperfect: bool, coarseness: float
) -> tuple[float, float, str]:
    """Return the CPU seconds, the bits that cross, and the mapping in short."""
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "spec.yaml"
        file.write_text(f"arch: {yaml(chip(size))}\nworkload: {yaml(workload)}\n")
        spec = accelforge.Spec.from_yaml(file)
    spec.mapper.metrics = accelforge.mapper.Metrics.ENERGY
    spec.mapper.explore_imperfect_temporal_loops = imperfect
    spec.mapper.tiling_coarseness = coarseness
    began = time.process_time()
    found = map_workload_to_arch(spec, print_progress=False, eval_in_detail=False)
    seconds = time.process_time() - began
    best = found.data.sort_values("Total<SEP>energy").iloc[0]
    return seconds, float(best["Total<SEP>energy"]), best["Total<SEP>mapping"]().compact_str()


def main() -> None:
    asked = json.load(sys.stdin)
    accelforge.set_n_parallel_jobs(1)
    mapped(WARM_UP, 1 << 20, False, 1.0)
    seconds, bits, mapping = mapped(
        asked["workload"], asked["bytes"], asked["imperfect"], asked["coarseness"]
    )
    answer = {
        "version": metadata.version("accelforge"),
        "seconds": seconds,
        "dram_bytes": round(bits / 8),
        "mapping": mapping,
    }
    print(json.dumps(answer))


if __name__ == "__main__":
    main()
