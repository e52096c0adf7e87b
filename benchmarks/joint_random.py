"""Random networks out of today's blocks: planned with fusion, proved by the checker, executed and compared.

    python benchmarks/joint_random.py COUNT [--first SEED]

Every network is planned at budgets from what it needs at least up to what holds all of it. Printed are plans
with what went wrong: a plan that is refused, a value that differs, a byte that was not planned, or one that
moves more than a plan with less room, than one without nests, or than one without fusion.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
import time
from pathlib import Path

import onnx

import onchip
from onchip.base.errors import Infeasible, OnchipError
from onchip.check import check

sys.path.insert(0, str(Path(__file__).parent.parent / "tests"))
from random_blocks import block_network

SHARES = (0.02, 0.05, 0.1, 0.2, 0.4, 0.8, 1.5)


def wrong_with(path: Path) -> tuple[list[str], int, int]:
    """Return what is wrong, and how many plans were executed and had nests."""
    source = onchip.load(path)
    whole = sum(t.bytes for t in source.network.tensors)
    found, before, ran, nests = [], None, 0, 0
    for share in SHARES:
        budget = max(16, int(whole * share))
        try:
            plan = onchip.plan(source, budget=budget, fuse=True, time_limit=20)
        except Infeasible:
            if before is not None:
                found.append(f"{budget} B: nothing fits, and less room did")
            continue
        moved = check(plan).dram_bytes
        nested = sum(hasattr(group.tiling, "body") for group in plan.groups)
        if before is not None and moved > before and plan.result.status == "optimal":
            found.append(f"{budget} B: {moved} move, {before} with less room")
        before = moved
        for options in ({"fuse": True, "nests": False}, {"fuse": False}):
            try:
                other = onchip.plan(source, budget=budget, time_limit=20, fuse=False, **options)
            except Infeasible:
                continue
            if moved > other.result.dram_bytes:
                found.append(f"{budget} B: {moved} move, {other.result.dram_bytes} with {options}")
        report = plan.run(source)
        ran, nests = ran + 1, nests + bool(nested)
        if report.max_difference > 1e-4:
            found.append(f"{budget} B: {report}")
        total = report.moved.compulsory + report.moved.traffic + report.moved.weights
        if total != moved:
            found.append(f"{budget} B: {total} moved, {moved} planned")
    return found, ran, nests


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("count", type=int)
    parser.add_argument("--first", type=int, default=0)
    given = parser.parse_args()
    bad = plans = nested = 0
    with tempfile.TemporaryDirectory() as folder:
        for seed in range(given.first, given.first + given.count):
            path, start = Path(folder) / f"{seed}.onnx", time.monotonic()
            model = block_network(seed)
            onnx.checker.check_model(model, full_check=True)
            onnx.save(model, path)
            try:
                wrong, ran, nests = wrong_with(path)
            except OnchipError as refusal:
                wrong, ran, nests = [f"{type(refusal).__name__}: {refusal}"], 0, 0
            except Exception as error:
                wrong, ran, nests = [f"{type(error).__name__}: {error}"], 0, 0
            plans, nested, bad = plans + ran, nested + nests, bad + bool(wrong)
            for line in wrong:
                print(f"seed {seed}: {line}", flush=True)
            if time.monotonic() - start > 60:
                print(f"seed {seed}: {time.monotonic() - start:.0f} s", flush=True)
    print(f"{given.count} networks, {plans} plans executed, {nested} with nests, {bad} networks differ")
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main())
