"""One network in one form: read, planned, checked, executed; a line of JSON for `today_networks.py`."""

from __future__ import annotations

import json
import multiprocessing
import sys
import time
from pathlib import Path
from typing import Any

import onchip
from onchip.readers import ReadOptions, load


def tiled(network: onchip.Network) -> int:
    """Return the operators that may be part of a group: by their geometry or by a reach."""
    return sum(
        operator.reach is not None or (operator.geometry is not None and operator.geometry.promises)
        for operator in network.operators
    )


def executed(plan: onchip.Plan, seconds: float) -> dict[str, Any]:
    """Execute a plan in a child process, for as many seconds at most."""
    answers, answer = multiprocessing.Pipe(duplex=False)
    child = multiprocessing.get_context("fork").Process(target=_run, args=(plan, answer))
    child.start()
    if not answers.poll(seconds):
        alive = child.is_alive()
        child.kill()
        return {"long": True} if alive else {"refused": f"CRASH exit code {child.exitcode}"}
    return dict(answers.recv())


def _run(plan: onchip.Plan, answer: Any) -> None:
    try:
        plan.run()
        answer.send({"executed": True})
    except onchip.OnchipError as problem:
        answer.send({"refused": str(problem)})
    except Exception as problem:
        answer.send({"refused": f"CRASH {type(problem).__name__}: {problem}"})


def planned(path: str, budget: str, seconds: float, *, execute: bool) -> dict[str, Any]:
    """Return figures of a plan, or the line that refuses it."""
    found: dict[str, Any] = {}
    began = time.perf_counter()
    try:
        plan = onchip.plan(path, budget=budget, dtype="int8", fuse=True, time_limit=seconds)
        found["seconds"] = round(time.perf_counter() - began, 1)
        several = [group for group in plan.groups if len(group.operators) > 1]
        found |= {
            "groups": len(plan.groups),
            "several": len(several),
            "fused": sum(len(group.operators) for group in several),
            "dram": plan.result.dram_bytes,
            "status": plan.result.status,
        }
        plan.check()
        found["checked"] = True
        if execute:
            found |= executed(plan, seconds)
    except onchip.OnchipError as problem:
        found["refused"] = str(problem)
    except Exception as problem:
        found["refused"] = f"CRASH {type(problem).__name__}: {problem}"
    return found


def main() -> None:
    path, seconds, *budgets = sys.argv[1:]
    case: dict[str, Any] = {}
    try:
        network = load(path, ReadOptions(dtype="int8")).network
        case |= {"operators": len(network.operators), "tiled": tiled(network)}
        case["untiled"] = sorted(
            {
                operator.type
                for operator in network.operators
                if operator.reach is None
                and not (operator.geometry is not None and operator.geometry.promises)
            }
        )
        for budget in budgets:
            case[budget] = planned(path, budget, float(seconds), execute=budget == budgets[0])
    except onchip.OnchipError as problem:
        case["refused"] = str(problem)
    except Exception as problem:
        case["refused"] = f"CRASH {type(problem).__name__}: {problem}"
    print(json.dumps(case | {"file": Path(path).name}))


if __name__ == "__main__":
    main()
