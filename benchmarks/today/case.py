"""Networks read, planned, checked, executed: a line of JSON for each file, for `today_networks.py`."""

from __future__ import annotations

import json
import multiprocessing
import resource
import signal
import sys
import time
from math import ceil
from pathlib import Path
from typing import Any

import onchip
from onchip.readers import ReadOptions, load


def in_parts(operator: onchip.Operator) -> bool:
    """Return whether an operator may be part of a group: by its geometry or by a reach."""
    return operator.reach is not None or (operator.geometry is not None and operator.geometry.promises)


def executed(plan: onchip.Plan, seconds: float) -> dict[str, Any]:
    """Execute a plan in a child process, for as many CPU seconds at most."""
    answers, answer = multiprocessing.Pipe(duplex=False)
    child = multiprocessing.get_context("fork").Process(target=_run, args=(plan, answer, seconds))
    child.start()
    answer.close()
    if not answers.poll(60 * seconds):  # a machine that is shared gives it less than a core
        child.kill()
        return {"long": True}
    try:
        return dict(answers.recv())
    except EOFError:
        child.join()
        long = child.exitcode == -signal.SIGXCPU
        return {"long": True} if long else {"refused": f"CRASH exit code {child.exitcode}"}


def _run(plan: onchip.Plan, answer: Any, seconds: float) -> None:
    used = time.process_time()
    resource.setrlimit(resource.RLIMIT_CPU, (ceil(used + seconds), ceil(used + seconds) + 1))
    try:
        plan.run()
        answer.send({"executed": True})
    except onchip.OnchipError as problem:
        answer.send({"refused": str(problem)})
    except Exception as problem:
        answer.send({"refused": f"CRASH {type(problem).__name__}: {problem}"})


def planned(path: str, budget: str | int, seconds: float, execution: float) -> dict[str, Any]:
    """Return figures of a plan, or the line that refuses it; `execution` are CPU seconds."""
    found: dict[str, Any] = {}
    began = time.perf_counter()
    try:
        plan = onchip.plan(path, budget=budget, dtype="int8", fuse=True, time_limit=seconds)
        found["seconds"] = round(time.perf_counter() - began, 1)
        several = [group for group in plan.groups if len(group.operators) > 1]
        result = plan.result
        found |= {
            "groups": len(plan.groups),
            "several": len(several),
            "fused": sum(len(group.operators) for group in several),
            "dram": result.dram_bytes,
            "least": result.compulsory_bytes + result.weight_bytes,
            "status": result.status,
        }
        plan.check()
        found["checked"] = True
        if execution:
            found |= executed(plan, execution)
    except onchip.OnchipError as problem:
        found["refused"] = str(problem)
    except Exception as problem:
        found["refused"] = f"CRASH {type(problem).__name__}: {problem}"
    return found


def room(network: onchip.Network, budget: str) -> str | int:
    """Return a budget, a share such as `1/8` being one of all that the largest operator reads and makes."""
    if "/" not in budget:
        return budget
    most = max(sum(network.tensors[t].bytes for t in {*op.inputs, *op.outputs}) for op in network.operators)
    part, of = map(int, budget.split("/"))
    return -(-most * part // of)


def main() -> None:
    seconds, execution = map(float, sys.argv[1:3])
    budgets = [word for word in sys.argv[3].split(",") if word]
    for path in sys.argv[4:]:
        case: dict[str, Any] = {"file": Path(path).name}
        try:
            network = load(path, ReadOptions(dtype="int8")).network
            operators = network.operators
            case["operators"] = len(operators)
            case["whole"] = sorted(operator.type for operator in operators if not in_parts(operator))
            for budget in budgets:
                alone = execution if budget == budgets[0] else 0
                case[budget] = planned(path, room(network, budget), seconds, alone)
        except onchip.OnchipError as problem:
            case["refused"] = str(problem)
        except Exception as problem:
            case["refused"] = f"CRASH {type(problem).__name__}: {problem}"
        print(json.dumps(case), flush=True)


if __name__ == "__main__":
    main()
