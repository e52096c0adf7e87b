"""Plans of random small chains on a microcontroller against everything that there is in the stated space.

`python benchmarks/segments_oracle.py --count N --first SEED` makes chains of 1 to 4 layers of odd geometry
(padding to 3, dilation, stride above kernel, groups, one-row maps, residuals), plans each for every objective
and tries every plan of the space: whole layers and groups in rings, at all distances, at all addresses. The
oracle is `tests/oracles/segments.py`. It prints the shares of what was called optimal and of what was least,
and every claim that is false; the exit code is 1 if there is one.
"""

from __future__ import annotations

import argparse
import random
import resource
import sys
from collections import Counter
from math import prod
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "tests"))

from onchip.base.errors import Infeasible, ModelError
from onchip.check import check
from onchip.microcontroller.segments import Objective, SegmentOptions, Space, plan
from onchip.network import Geometry, Network, OperatorSpec
from oracles.segments import least_bytes

OBJECTIVES: dict[Objective, tuple[bool, bool]] = {
    "free": (False, False),
    "once": (True, False),
    "least": (True, True),
}
"""Whether layers share stages, and whether work is done anew."""


def random_chain(seed: int) -> Network:
    """1 to 4 layers; an add takes an earlier tensor as well where it fits."""
    rng = random.Random(seed)
    shape = (1, rng.choice([1, 2, 3, 4, 5]), rng.choice([1, 2, 3, 4, 5]), rng.randint(1, 4))
    shapes, specs, kept = [shape], [], None
    for i in range(rng.randint(1, 4)):
        given = shapes[-1]
        if kept is not None and shapes[kept] == given and kept < i and rng.random() < 0.7:
            geometry = Geometry("elementwise", given, given, layout="NHWC")
            inputs = rng.sample([f"t{i}", f"t{kept}"], 2)
            kept = None
        else:
            geometry, inputs = _layer(rng, given, same=kept is not None), [f"t{i}"]
            if kept is None and rng.random() < 0.25:
                kept = i
        work = rng.choice([0, 0, 0, 1, 4, 7])
        specs.append(OperatorSpec(f"f{i}", geometry.kind, inputs, [f"t{i + 1}"], 0, work, geometry))
        shapes.append(geometry.output)
        if prod(geometry.output[:3]) == 0:
            raise AssertionError("an empty map")
    tensors = [
        (f"t{i}", prod(s), "input" if i == 0 else "activation")
        for i, s in enumerate(s if len(s) == 4 else (1, 1, *s) for s in shapes)
    ]
    return Network.build(f"chain {seed}", tensors, specs, [f"t{len(specs)}"])  # type: ignore[arg-type]


def _layer(rng: random.Random, given: tuple[int, ...], *, same: bool) -> Geometry:
    _, height, width, deep = given
    kind = rng.choice(["conv"] * 4 + ["depthwise", "pool", "pool", "pad", "elementwise", "rowwise", "matrix"])
    steps = {"pixels": rng.choice([1, 1, 2, 3]), "channels": rng.choice([0, 0, 1, 2])}
    if kind == "matrix" and (height, width) == (1, 1):
        made = rng.randint(1, 4)
        return Geometry(
            "conv", given, (1, 1, 1, made), (1, 1), (1, 1), (0, 0, 0, 0), (1, 1), 1, "NHWC", **steps
        )
    if kind in ("elementwise", "rowwise"):
        return Geometry(kind, given, given, layout="NHWC")
    if kind == "pad":
        padding = tuple(rng.randint(0, 2) for _ in range(4))
        made = (1, height + padding[0] + padding[2], width + padding[1] + padding[3], deep)
        return Geometry("pad", given, made, padding=padding, layout="NHWC", **steps)
    for _ in range(50):
        kernel = rng.choice([1, 1, 2, 3]), rng.choice([1, 1, 2, 3])
        stride = rng.choice([1, 1, 2, 3]), rng.choice([1, 1, 2, 3])
        dilation = rng.choice([1, 1, 2]), rng.choice([1, 1, 2])
        padding = tuple(rng.choice([0, 0, 1, 2, 3]) for _ in range(4))
        if same and rng.random() < 0.7:
            stride, dilation = (1, 1), (1, 1)
            padding = ((kernel[0] - 1) // 2, (kernel[1] - 1) // 2, kernel[0] // 2, kernel[1] // 2)
        size = [
            (given[1 + a] + padding[a] + padding[a + 2] - (kernel[a] - 1) * dilation[a] - 1) // stride[a] + 1
            for a in (0, 1)
        ]
        if min(size) < 1 or max(size) > 6:
            continue
        groups = 1
        made = deep if same else rng.randint(1, 4)
        if kind == "conv" and deep % 2 == 0 and made % 2 == 0 and rng.random() < 0.3:
            groups = 2
        if kind != "conv":
            made, groups = deep, deep if kind == "depthwise" else 1
        return Geometry(
            kind, given, (1, *size, made), kernel, stride, padding, dilation, groups, "NHWC", **steps
        )
    return Geometry("elementwise", given, given, layout="NHWC")


def judged(network: Network, objective: Objective) -> tuple[str, ...]:
    """What is to be counted of a network's plan, and in a word that begins with FALSE what is wrong."""
    try:
        made = plan(network, 1 << 20, SegmentOptions(objective=objective))
    except ModelError:
        return (f"{objective}: no such network",)
    check(made)
    result, space = made.result, Space()
    joined, anew = OBJECTIVES[objective]
    heights = space.heights if anew else (1, 1 << 20)
    least = least_bytes(network, heights, space.strips if anew else (1,), joined=joined, anew=anew)
    found = [
        f"{objective}: {result.status}",
        f"{objective}: {'least' if result.extent_bytes == least else 'more'}",
    ]
    bound = result.peak_lower_bound_bytes
    if result.extent_bytes < least:
        found.append("FALSE oracle: the plan takes less than the oracle's least")
    if result.status == "optimal" and result.extent_bytes > least:
        found.append(f"FALSE optimal: {objective} takes {result.extent_bytes}, least is {least}")
    if bound is not None and bound > least:
        found.append(f"FALSE bound: {objective} says at least {bound}, least is {least}")
    try:
        plan(network, least - 1, SegmentOptions(objective="least")) if objective == "least" else None
    except Infeasible as refused:
        if refused.needs > least and refused.proved:
            found.append(f"FALSE need: {refused.needs} where {least} are enough")
    if objective == "least":
        try:
            plan(network, least, SegmentOptions(objective="least"))
        except Infeasible as refused:
            if refused.proved:
                found.append(f"FALSE infeasible: {least} are enough")
    return tuple(found)


def main() -> int:
    """Exit code 1 if some claim is false."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--count", type=int, default=100)
    parser.add_argument("--first", type=int, default=0)
    parser.add_argument("--objective", choices=[*OBJECTIVES], action="append")
    asked = parser.parse_args()
    counts: Counter[str] = Counter()
    for seed in range(asked.first, asked.first + asked.count):
        network = random_chain(seed)
        counts["networks"] += 1
        for objective in asked.objective or OBJECTIVES:
            for line in judged(network, objective):
                counts[line.split(":")[0] if line.startswith("FALSE") else line] += 1
                if line.startswith("FALSE"):
                    print(f"{network.name}: {line}", flush=True)
    for what, n in sorted(counts.items()):
        print(f"{n:7,} {what}")
    print(f"{resource.getrusage(resource.RUSAGE_SELF).ru_utime:7.1f} CPU seconds")
    return int(any(what.startswith("FALSE") for what in counts))


if __name__ == "__main__":
    sys.exit(main())
