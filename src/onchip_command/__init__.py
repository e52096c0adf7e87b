"""The console's `onchip`: outside the package, so that Ctrl-C while that is imported is one line too."""

from __future__ import annotations

import os
import signal
import sys
from types import FrameType

__all__ = ["main"]


def main() -> None:
    """Import the command line and run it; nothing that it started or wrote aside is left when it ends."""
    try:
        if signal.getsignal(signal.SIGINT) is signal.default_int_handler:
            signal.signal(signal.SIGINT, _end)
        from onchip.base import guard

        guard.start(ends=_end)
        try:
            from onchip.cli import main as run

            run()
        finally:
            guard.clean()
    except KeyboardInterrupt:
        print("onchip: interrupted", file=sys.stderr)
        sys.exit(130)


def _end(number: int, frame: FrameType | None) -> None:
    """End at once: nothing is to clean yet, and an exception raised within an import may be lost."""
    os.write(2, b"onchip: interrupted\n")
    os._exit(130)
