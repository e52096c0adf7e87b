"""A back end that follows a plan's loops (`onchip export PLAN --to loops -o loops.json`), in a hundred lines.

    python examples/follow_loops.py loops.json

It walks every turn as a code generator's loops would, computes no numbers, and counts: the bytes that are
copied, which have to be the plan's, and the boxes that operators make. A box that is copied or used while it
is not in its place, or a place outside the scratchpad, is an error.
"""

from __future__ import annotations

import json
import sys
from math import prod
from pathlib import Path
from typing import Any

Span = tuple[int, int]


class Follower:
    """The state of a walk: the ranges of the loops around, and what every place holds."""

    def __init__(self, plan: dict[str, Any]) -> None:
        self.plan = plan
        self.places = {place["id"]: place for place in plan["places"]}
        self.ranges: dict[str, Span] = {}
        self.regions: dict[str, list[Span]] = {}
        self.copied = self.boxes = 0
        for place in plan["places"]:
            assert 0 <= place["address"] <= place["address"] + place["bytes"] <= plan["scratchpad_bytes"]

    def range(self, some: Any) -> Span:
        """Return a range: two numbers, a loop's by its name, or what windows need for one."""
        if isinstance(some, str):
            return self.ranges[some]
        if isinstance(some, list):
            return some[0], some[1]
        low, high = self.ranges[some["of"]]
        first = (low * some["stride"] - some["before"]) // some["per"]
        last = ((high - 1) * some["stride"] - some["before"]) // some["per"]
        first = min(max(first, 0), some["size"])
        return first, max(first, min(last + some["span"], some["size"])) if low < high else first

    def box(self, place: str, box: list[Any]) -> int:
        """Return the elements of a box, which has to be in the place's region."""
        spans = [self.range(one) for one in box]
        count = prod(max(0, high - low) for low, high in spans)
        region = self.regions[place]
        inside = all(a <= low and high <= b for (low, high), (a, b) in zip(spans, region, strict=True))
        assert inside or not count, f"{place} holds {region}, not {spans}"
        return count

    def last(self, parts: list[Any]) -> bool:
        """Return whether a sum is in its last part."""
        return all(self.range(of)[1] == size for of, size in parts)

    def first(self, parts: list[Any]) -> bool:
        """Return whether a sum is in its first part."""
        return all(self.range(of)[0] == 0 for of, _ in parts)

    def copy(self, step: dict[str, Any], name: str) -> None:
        """Count a copy between a place and DRAM, if it is one in this turn."""
        place, element = self.places[name], self.places[name]["element_bytes"]
        if not self.last(step.get("only_last", [])):
            return
        if "sums_unless_first" in step:
            if self.first(step["sums_unless_first"]):
                return
            element = place["sum_bytes"]
        elif not self.last(step.get("sums_unless_last", [])):
            element = place["sum_bytes"]
        self.copied += self.box(name, step["box"]) * element

    def step(self, step: dict[str, Any]) -> None:
        """Follow a step."""
        if "for" in step:
            self.loop(step)
        elif "allocate" in step:
            self.regions[step["allocate"]] = [self.range(one) for one in step["region"]]
        elif "load" in step or "store" in step:
            self.copy(step, step.get("load") or step["store"])
        elif "compute" in step:
            if all(low < high for low, high in map(self.range, step["axes"])):
                for use in (*step["reads"], step["writes"]):
                    self.box(use["place"], use["box"])
                self.boxes += 1
        elif "run" in step:
            self.copied += step["streamed_bytes"]
            self.boxes += 1
        elif "load_all" in step or "store_all" in step:
            self.copied += step["bytes"]

    def loop(self, step: dict[str, Any]) -> None:
        """Run all turns of a loop."""
        if "ranges" in step:
            turns = [
                {name: tuple(rows[n]) for name, rows in step["ranges"].items()} for n in range(step["turns"])
            ]
        else:
            low, high = self.range(step["of"])
            tile = step["tile"]
            turns = [{step["for"]: (at, min(at + tile, high))} for at in range(low, high, tile)]
        for ranges in turns:
            self.ranges.update(ranges)
            for inner in step["body"]:
                self.step(inner)


def follow(plan: dict[str, Any]) -> Follower:
    """Follow a whole plan."""
    follower = Follower(plan)
    for step in plan["steps"]:
        follower.step(step)
    return follower


if __name__ == "__main__":
    done = follow(json.loads(Path(sys.argv[1]).read_text()))
    print(f"{done.copied:,} bytes copied, {done.plan['dram_bytes']:,} planned; {done.boxes:,} boxes made")
    sys.exit(done.copied != done.plan["dram_bytes"])
