"""LiteRT in a separate process: a crash on a damaged file ends that process, not the caller's.

LiteRT trusts its files: a wrong index can end it by a signal, where no exception is raised. Requests and
answers are MessagePack over the child's stdin and stdout, a length of eight bytes before each.
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
import weakref
from collections.abc import Mapping, Sequence
from typing import IO, Any

import msgspec
import numpy as np

from onchip.base.child import environment, interpreter
from onchip.base.errors import MissingExtra, ModelError
from onchip.base.guard import dies_with_us

__all__ = ["Child", "main"]

Array = np.ndarray[Any, Any]

START = "from onchip.run.tflite_child import main; main()"


class Values(msgspec.Struct, frozen=True):
    """An array: NumPy's name of its element type, its shape, its bytes."""

    element: str
    shape: tuple[int, ...]
    content: bytes


class Request(msgspec.Struct, frozen=True):
    """One run of a model: the values given to its tensors, by index, and the wanted tensors."""

    model: bytes
    given: dict[int, Values]
    wanted: list[int]
    keep: bool
    optimised: bool


class Answer(msgspec.Struct, frozen=True):
    """The values, or the reason why there are none."""

    found: dict[int, Values] = {}
    problem: str = ""
    missing: bool = False


def _values(array: Array) -> Values:
    array = np.ascontiguousarray(array).reshape(array.shape)
    return Values(array.dtype.str, array.shape, array.tobytes())


def _array(values: Values) -> Array:
    return np.frombuffer(values.content, np.dtype(values.element)).reshape(values.shape).copy()


def _send(file: IO[bytes], message: msgspec.Struct) -> None:
    content = msgspec.msgpack.encode(message)
    file.write(len(content).to_bytes(8, "little"))
    file.write(content)
    file.flush()


def _receive(file: IO[bytes]) -> bytes | None:
    size = file.read(8)
    content = file.read(int.from_bytes(size, "little")) if len(size) == 8 else b""
    return content if len(size) == 8 and len(content) == int.from_bytes(size, "little") else None


class Child:
    """The process; it starts with the first request, and again after it died.

    It takes one request at a time: concurrent threads wait for each other.
    """

    def __init__(self) -> None:
        self._process: subprocess.Popen[bytes] | None = None
        self._asked = threading.Lock()

    def run(
        self,
        model: bytes,
        given: Mapping[int, Array],
        wanted: Sequence[int],
        what: str,
        *,
        keep: bool = False,
        optimised: bool = False,
    ) -> dict[int, Array]:
        """Return the tensors `wanted` of a file, by index.

        Raises `ModelError` naming `what` when LiteRT refuses the file or dies of it, `MissingExtra` when
        it is not installed.
        """
        request = Request(
            model, {i: _values(array) for i, array in given.items()}, [*wanted], keep, optimised
        )
        with self._asked:
            answer = self._answered(request, what)
        if answer.missing:
            raise MissingExtra("tflite", "ai-edge-litert")
        if answer.problem:
            raise ModelError(f"LiteRT cannot run it ({answer.problem})", item=what)
        return {index: _array(values) for index, values in answer.found.items()}

    def _answered(self, request: Request, what: str) -> Answer:
        if self._process is None:
            self._process = _start()
            self._end = weakref.finalize(self, _finish, self._process)
        process = self._process
        assert process.stdin is not None
        assert process.stdout is not None
        try:
            _send(process.stdin, request)
            content = _receive(process.stdout)
        except BrokenPipeError:
            content = None
        except BaseException:  # Ctrl-C between a request and its answer
            self.close()
            raise
        if content is None:
            self.close()
            raise ModelError(f"LiteRT cannot run it (it was ended by {_how(process)})", item=what)
        return msgspec.msgpack.decode(content, type=Answer)

    def close(self) -> None:
        """End the process."""
        if self._process is not None:
            self._process = None
            self._end()


def _start() -> subprocess.Popen[bytes]:
    return subprocess.Popen(
        [*interpreter(), "-c", START],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        env=environment(),
        start_new_session=True,  # Ctrl-C is for the parent
        preexec_fn=dies_with_us(),
    )


def _finish(process: subprocess.Popen[bytes]) -> None:
    process.kill()
    process.wait()
    for pipe in (process.stdin, process.stdout):
        assert pipe is not None
        try:
            pipe.close()
        except OSError:  # unwritten data is dropped
            continue


def _how(process: subprocess.Popen[bytes]) -> str:
    code = process.wait()
    try:
        return signal.Signals(-code).name if code < 0 else f"exit code {code}"
    except ValueError:
        return f"signal {-code}"


def main() -> None:
    """Answer until stdin ends. LiteRT's output is discarded."""
    out = os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)
    while (content := _receive(sys.stdin.buffer)) is not None:
        _send(out, _answer(msgspec.msgpack.decode(content, type=Request)))


def _answer(asked: Request) -> Answer:
    try:
        from ai_edge_litert import interpreter as runtime
    except ImportError:
        return Answer(missing=True)
    resolver = runtime.OpResolverType
    try:
        made = runtime.Interpreter(
            model_content=asked.model,
            num_threads=1,
            experimental_op_resolver_type=resolver.BUILTIN_WITHOUT_DEFAULT_DELEGATES
            if asked.optimised
            else resolver.BUILTIN_REF,
            experimental_preserve_all_tensors=asked.keep,
        )
        made.allocate_tensors()
        for index, values in asked.given.items():
            made.set_tensor(index, _array(values))
        made.invoke()
        return Answer({index: _values(made.get_tensor(index)) for index in asked.wanted})
    except (RuntimeError, ValueError, TypeError) as problem:
        lines = str(problem).strip().splitlines() or [type(problem).__name__]
        return Answer(problem=lines[0])
