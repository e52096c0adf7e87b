"""Ctrl-C as "the best so far": remembered, so that no later search of the same plan starts again."""

from __future__ import annotations

import signal
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import FrameType

from onchip.base import guard

__all__ = ["until_interrupted"]


@contextmanager
def until_interrupted() -> Iterator[Callable[[], bool]]:
    """Yield a function that tells whether Ctrl-C was pressed; a search then ends with the best so far."""
    guard.searching()
    pressed = threading.Event()

    def note(number: int, frame: FrameType | None) -> None:
        guard.heard()
        pressed.set()
        if callable(before):
            before(number, frame)  # outer searches are told too
        raise KeyboardInterrupt

    if threading.current_thread() is not threading.main_thread():
        yield pressed.is_set  # only the main thread receives Ctrl-C
        return
    before = signal.signal(signal.SIGINT, note)
    try:
        yield pressed.is_set
    finally:
        signal.signal(signal.SIGINT, before)
