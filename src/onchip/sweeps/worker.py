"""A worker process of this machine: points arrive on stdin, answers leave on stdout, a line of JSON each.

It ends when its coordinator does, also in the middle of a point. The output of libraries goes to stderr.
"""

from __future__ import annotations

import ctypes
import os
import signal
import sys
import threading
import time
from functools import lru_cache
from pathlib import Path

import msgspec

from onchip.network import Network
from onchip.sweeps.compute import KEPT, compute, read_json
from onchip.sweeps.points import Task
from onchip.sweeps.sources import network_bytes

__all__ = ["main"]

_PR_SET_PDEATHSIG = 1


def main(folder: str, parent: int) -> None:
    """Answer points until stdin ends; networks lie in `folder`, `parent` is the coordinator's process."""
    _die_with(parent)
    out = os.fdopen(os.dup(1), "wb", buffering=0)
    os.dup2(2, 1)

    @lru_cache(maxsize=KEPT)
    def networks(key: str) -> Network:
        return read_json(network_bytes(Path(folder), key))

    decode, encode = msgspec.json.Decoder(Task).decode, msgspec.json.Encoder().encode
    out.write(b"{}\n")  # started, and ready
    for line in sys.stdin.buffer:
        try:
            out.write(encode(compute(decode(line), networks)) + b"\n")
        except BrokenPipeError:
            return


def _die_with(parent: int) -> None:
    """End this process when the coordinator is gone: at once where the system can tell, else within 2 s."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is the coordinator's
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)

    def watch() -> None:
        while os.getppid() == parent:
            time.sleep(2)
        os._exit(1)

    threading.Thread(target=watch, daemon=True).start()


if __name__ == "__main__":
    main(sys.argv[1], int(sys.argv[2]))
