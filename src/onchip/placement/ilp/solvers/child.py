"""MathOpt's solvers in a process of their own, so that Ctrl-C and a caller can end them.

HiGHS cannot be interrupted from outside, and SCIP not without noise on stderr. What a solver had found when
it is ended is lost with it; at its own time limit it is not.
"""

from __future__ import annotations

import pickle
import subprocess
import sys
import time

from onchip.placement.ilp.rows import Model
from onchip.placement.ilp.solvers.outcome import MathOptSolver, Outcome
from onchip.placement.search import Limits

__all__ = ["minimise"]

POLL_SECONDS = 0.1
"""How often a caller's `cancelled` is asked."""

NOTHING = Outcome(None, 0, optimal=False)


def minimise(model: Model, solver: MathOptSolver, limits: Limits) -> Outcome:
    """Minimise with HiGHS or SCIP; no solution when Ctrl-C or the caller ends it before it ends itself."""
    order = pickle.dumps((model, solver, limits.seconds, limits.seed))
    with subprocess.Popen(
        [sys.executable, "-m", __name__],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        start_new_session=True,  # Ctrl-C is for the parent
    ) as process:
        try:
            answer = _wait(process, order, limits)
        except KeyboardInterrupt:
            answer = None
        finally:
            process.kill()
    if answer is None:
        return NOTHING
    if process.returncode != 0 or not answer:
        raise RuntimeError(f"{solver} ended without an answer (exit code {process.returncode})")
    outcome: Outcome = pickle.loads(answer)  # from our own child
    return outcome


def _wait(process: subprocess.Popen[bytes], order: bytes, limits: Limits) -> bytes | None:
    """What the child answers; None when the caller cancelled."""
    began, given = time.perf_counter(), order
    while True:
        try:
            return process.communicate(given or None, timeout=POLL_SECONDS)[0]
        except subprocess.TimeoutExpired:
            given = b""
        if limits.cancelled is not None and limits.cancelled():
            return None
        # A solver may overlook its limit for a while, not for ever.
        if limits.seconds is not None and time.perf_counter() - began > 2 * limits.seconds + 30:
            return None


def _main() -> None:
    from onchip.placement.ilp.solvers import math_opt

    # A solver may print; the answer goes out alone.
    out = sys.stdout.buffer
    outcome = math_opt.minimise(*pickle.load(sys.stdin.buffer))
    out.write(pickle.dumps(outcome))
    out.flush()


if __name__ == "__main__":
    _main()
