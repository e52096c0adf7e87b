"""Ctrl-C as "the best so far": remembered, so that no later search of the same plan starts anew."""

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
    """Whether Ctrl-C was pressed: a search takes it as "best so far" and keeps it to itself."""
    guard.searching()
    pressed = threading.Event()

    def note(number: int, frame: FrameType | None) -> None:
        guard.heard()
        pressed.set()
        if callable(before):
            before(number, frame)  # who waits outside hears of it too
        raise KeyboardInterrupt

    if threading.current_thread() is not threading.main_thread():
        yield pressed.is_set  # only the main thread hears of Ctrl-C
        return
    before = signal.signal(signal.SIGINT, note)
    try:
        yield pressed.is_set
    finally:
        signal.signal(signal.SIGINT, before)
