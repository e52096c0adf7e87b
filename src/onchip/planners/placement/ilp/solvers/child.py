"""MathOpt's solvers in a process of their own, so that Ctrl-C and a caller can end them.

HiGHS cannot be interrupted from outside, and SCIP not without noise on stderr. A solver that is ended loses
what it has found; at its own time limit it does not.
"""

from __future__ import annotations

import pickle
import subprocess
import sys
from tempfile import TemporaryFile

from onchip.base.child import environment, interpreter
from onchip.base.guard import dies_with_us
from onchip.planners.limits import Limits
from onchip.planners.placement.ilp.rows import Model
from onchip.planners.placement.ilp.solvers.outcome import MathOptSolver, Outcome

__all__ = ["minimise"]

POLL_SECONDS = 0.1
"""Seconds between two calls of a caller's `cancelled`."""

NOTHING = Outcome(None, 0, optimal=False)


def minimise(model: Model, solver: MathOptSolver, limits: Limits) -> Outcome:
    """Minimise with HiGHS or SCIP; no solution if Ctrl-C or the caller ends it before it ends itself."""
    # Use a file: `communicate` loses the part that a pipe cannot hold when its own timeout interrupts it.
    with TemporaryFile() as order:
        pickle.dump((model, solver, limits.left(), limits.seed), order)
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
    """Return the child's answer; None if the caller cancelled."""
    most = None if limits.time_limit is None else limits.anew(2 * (limits.left() or 0.0) + 30)
    while True:
        try:
            return process.communicate(timeout=POLL_SECONDS)[0]
        except subprocess.TimeoutExpired:
            pass
        if limits.stopped():
            return None
        # A solver may exceed its limit for a while, but not for ever.
        if most is not None and most.over():
            return None


def _main() -> None:
    from onchip.planners.placement.ilp.solvers import math_opt

    # A solver may print: keep the answer separate.
    out = sys.stdout.buffer
    outcome = math_opt.minimise(*pickle.load(sys.stdin.buffer))
    out.write(pickle.dumps(outcome))
    out.flush()


if __name__ == "__main__":
    _main()
