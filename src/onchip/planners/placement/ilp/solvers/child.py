"""MathOpt's solvers in a process of their own, so that Ctrl-C and a caller can end them.

HiGHS cannot be interrupted from outside, and SCIP not without noise on stderr. What a solver had found when
it is ended is lost with it; at its own time limit it is not.
"""

from __future__ import annotations

import pickle
import subprocess
import sys
import time
from tempfile import TemporaryFile

from onchip.base.child import environment, interpreter
from onchip.base.guard import dies_with_us
from onchip.planners.placement.ilp.rows import Model
from onchip.planners.placement.ilp.solvers.outcome import MathOptSolver, Outcome
from onchip.planners.placement.search import Limits

__all__ = ["minimise"]

POLL_SECONDS = 0.1
"""How often a caller's `cancelled` is asked."""

NOTHING = Outcome(None, 0, optimal=False)


def minimise(model: Model, solver: MathOptSolver, limits: Limits) -> Outcome:
    """Minimise with HiGHS or SCIP; no solution when Ctrl-C or the caller ends it before it ends itself."""
    # A file: what a pipe cannot hold at once is lost when `communicate` is interrupted by its own timeout.
    with TemporaryFile() as order:
        pickle.dump((model, solver, limits.seconds, limits.seed), order)
        order.seek(0)
        process = subprocess.Popen(
            [*interpreter(), "-m", __name__],
            env=environment(),
            stdin=order,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            start_new_session=True,  # Ctrl-C is for the parent
            preexec_fn=dies_with_us(),
        )
    with process:
        try:
            answer = _wait(process, limits)
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


def _wait(process: subprocess.Popen[bytes], limits: Limits) -> bytes | None:
    """What the child answers; None when the caller cancelled."""
    began = time.perf_counter()
    while True:
        try:
            return process.communicate(timeout=POLL_SECONDS)[0]
        except subprocess.TimeoutExpired:
            pass
        if limits.cancelled is not None and limits.cancelled():
            return None
        # A solver may overlook its limit for a while, not for ever.
        if limits.seconds is not None and time.perf_counter() - began > 2 * limits.seconds + 30:
            return None


def _main() -> None:
    from onchip.planners.placement.ilp.solvers import math_opt

    # A solver may print; the answer goes out alone.
    out = sys.stdout.buffer
    outcome = math_opt.minimise(*pickle.load(sys.stdin.buffer))
    out.write(pickle.dumps(outcome))
    out.flush()


if __name__ == "__main__":
    _main()
