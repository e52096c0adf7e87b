"""The console's `onchip`: outside the package, so that Ctrl-C while that is imported is one line too."""

from __future__ import annotations

import sys

__all__ = ["main"]


def main() -> None:
    """Import the command line and run it; nothing that it started or wrote aside is left when it ends."""
    try:
        from onchip.base import guard

        guard.start()
        try:
            from onchip.cli import main as run

            run()
        finally:
            guard.clean()
    except KeyboardInterrupt:
        print("onchip: interrupted", file=sys.stderr)
        sys.exit(130)
