"""Seconds that reading each built-in network's public definition takes, as a torch module without weights.

In the environment that `scripts/make_zoo.py` describes:  python benchmarks/read_torch.py [NAME ...]

Prints wall and processor seconds of tracing, exporting and reading, and whether operators and weights are
those of the committed file.
"""

from __future__ import annotations

import sys
import time
import tomllib
import warnings
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "scripts"))

import make_zoo
import torch

from onchip.readers import ReadOptions, load
from onchip.readers.torch_reader import read_module


def main() -> None:
    warnings.filterwarnings("ignore")
    library = torch.library.Library("torchvision", "DEF")
    for schema in make_zoo.SCHEMAS.strip().splitlines():
        library.define(schema)
    catalogue = tomllib.loads((make_zoo.ZOO / "catalogue.toml").read_text())
    for name in sys.argv[1:] or catalogue:
        entry = catalogue[name]
        with torch.device("meta"):
            module = make_zoo.BUILDERS[entry["library"]](name)
        example = tuple(torch.empty(size) for size in (entry["input"], *entry.get("also", [])))
        wall, processor = time.perf_counter(), time.process_time()
        source = read_module(module, example, None, ReadOptions(dtype="int8"), name=name, where=name)
        wall, processor = time.perf_counter() - wall, time.process_time() - processor
        ours, zoo = source.network, load(f"zoo:{name}").network
        same = (len(ours.operators), ours.weight_bytes) == (len(zoo.operators), zoo.weight_bytes)
        print(
            f"{name:28} {wall:6.1f} s, {processor:5.1f} s of processor; {'same' if same else 'differs'}",
            flush=True,
        )


if __name__ == "__main__":
    main()
