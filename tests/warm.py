"""Commands in processes that have onchip's modules already: each is forked from one that imported them once.

Tests that start hundreds of commands spend most of their time in imports. `Warm.run` gives each command a
process of its own, with its folder, environment and files of output.
"""

from __future__ import annotations

import atexit
import json
import os
import resource
import signal
import socket
import subprocess
import sys
import tempfile
from collections.abc import Mapping, Sequence
from functools import lru_cache
from importlib import import_module
from pathlib import Path

__all__ = ["Warm", "warm"]

MOST = 1 << 20
"""The most bytes of a request."""

MODULES = (
    "numpy", "onnx", "onchip.check.certificate", "onchip.methods.best", "onchip.microcontroller",
    "onchip.multi_dnn", "onchip.readers.onnx_reader", "onchip.readers.tflite_graph", "onchip.report",
    "onchip.run",
)  # fmt: skip
"""What commands import as they run, beside the commands themselves."""


class Warm:
    """A process that has the modules, and forks one for every command."""

    def __init__(self) -> None:
        self._to, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        self._process = subprocess.Popen(
            [sys.executable, str(Path(__file__)), str(theirs.fileno())], pass_fds=[theirs.fileno()]
        )
        theirs.close()
        atexit.register(self.close)

    def close(self) -> None:
        """End it."""
        self._to.close()
        self._process.wait()

    def run(
        self,
        call: Sequence[str],
        folder: Path,
        environment: Mapping[str, str],
        out: int,
        err: int,
        *,
        first: str = "",
        file_bytes: int | None = None,
    ) -> int:
        """Run the console's command with its output in two files; return its exit code (negative: signal).

        `first` is Python that comes before it in its process; no file may grow beyond `file_bytes`.
        """
        asked = {
            "call": [*call],
            "folder": str(folder),
            "env": {**environment},
            "first": first,
            "file_bytes": file_bytes,
        }
        socket.send_fds(self._to, [json.dumps(asked).encode()], [out, err])
        return os.waitstatus_to_exitcode(int(self._to.recv(64)))


@lru_cache(maxsize=1)
def warm() -> Warm:
    """Return the one of this process."""
    return Warm()


def _serve(at: socket.socket) -> None:
    """Answer requests until there are no more; returns in the process of every command, too."""
    from onchip.cli import load_all

    load_all()
    for module in MODULES:
        import_module(module)
    while True:
        request, files, _, _ = socket.recv_fds(at, MOST, 2)
        if not request:
            os._exit(0)
        child = os.fork()
        if not child:
            at.close()
            return _become(json.loads(request), files)
        for file in files:
            os.close(file)
        at.send(str(os.waitpid(child, 0)[1]).encode())


def _become(asked: dict[str, object], files: Sequence[int]) -> None:
    """Take a command's place: its folder, environment, arguments and files."""
    nothing = os.open(os.devnull, os.O_RDONLY)
    for at, file in enumerate((nothing, *files)):
        os.dup2(file, at)
        os.close(file)
    sys.stdin = os.fdopen(0, closefd=False)
    sys.stdout = os.fdopen(1, "w", closefd=False)  # what the old ones know of their files is not so of these
    sys.stderr = os.fdopen(2, "w", buffering=1, errors="backslashreplace", closefd=False)
    tempfile.tempdir = None
    os.environ.clear()
    os.environ.update(asked["env"])  # type: ignore[call-overload]
    os.chdir(str(asked["folder"]))
    signal.signal(signal.SIGINT, signal.default_int_handler)
    call = asked["call"]
    assert isinstance(call, list)
    sys.argv = ["-c", *call]
    sys.path[0] = ""
    if (most := asked["file_bytes"]) is not None:
        resource.setrlimit(resource.RLIMIT_FSIZE, (most, most))  # type: ignore[arg-type]
    exec(str(asked["first"]), {"__name__": "__main__"})


if __name__ == "__main__":
    _serve(socket.socket(fileno=int(sys.argv[1])))
    from onchip_command import main

    main()
