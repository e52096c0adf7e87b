"""Groups executed in tiles, for figure 12: words counted by the copies beside words of two models."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from pathlib import Path

from fusion_executed import measured

__all__ = ["accuracies", "accuracy"]


def accuracies(name: str, chip: str = "optimus") -> Iterator[dict[str, int | str | bool]]:
    """Every group of a network at one image: its words by our model, by equation 3, and as counted.

    Equation 3 has maps once and weights as often as bands fetch them; rows that cross again are not in it.
    `bands`: the group runs in bands of rows, not whole or in blocks.
    """
    with tempfile.TemporaryDirectory() as folder:
        plan = Path(folder) / "plan.json"
        fused, _ = measured("fuse", f"zoo:{name}", "--chip", chip, "-o", str(plan))
        report, _ = measured("run", str(plan))
    width = {"int8": 1, "int16": 2}[fused["element"]]
    counted = {group["name"]: group["counted_bytes"] // width for group in report["tiled"]}
    for group in fused["groups"]:
        yield {
            "group": group["name"],
            "modelled": group["dram_words"],
            "equation": group["dram_words"] - group["halo_words"],
            "counted": counted[group["name"]],
            "bands": group["rows"] > 0,
        }


def accuracy(modelled: int, counted: int) -> float:
    """Equation 5 of the paper."""
    return 1 - abs(modelled - counted) / counted
