"""LiteRT runs beside us: what ends it is an error of one line, and the next run works."""

from __future__ import annotations

import os
import signal
from concurrent.futures import ThreadPoolExecutor
from importlib.util import find_spec

import numpy as np
import pytest

from onchip.base.errors import ModelError
from onchip.run import tflite_child
from onchip.run.tflite_child import Child

pytestmark = pytest.mark.skipif(find_spec("ai_edge_litert") is None, reason="needs LiteRT")


@pytest.mark.thorough
def test_a_file_that_litert_refuses_is_an_error() -> None:
    child = Child()
    with pytest.raises(ModelError, match=r"operator a: LiteRT cannot run it \("):
        child.run(b"no model", {}, [], "operator a")
    child.close()


@pytest.mark.thorough
@pytest.mark.parametrize("number", [signal.SIGABRT, signal.SIGSEGV])
def test_a_file_that_ends_litert_is_an_error(number: int, monkeypatch: pytest.MonkeyPatch) -> None:
    dies = f"import os, sys; sys.stdin.buffer.read(8); os.kill(os.getpid(), {int(number)})"
    child = Child()
    with monkeypatch.context() as patched:
        patched.setattr(tflite_child, "START", dies)
        with pytest.raises(ModelError, match=signal.Signals(number).name):
            child.run(b"x" * 100, {0: np.zeros((2, 3), np.float32)}, [], "network n")
    with pytest.raises(ModelError, match="LiteRT cannot run it") as problem:  # another process
        child.run(b"no model", {}, [], "network n")
    assert "ended by" not in str(problem.value)
    child.close()


@pytest.mark.thorough
def test_no_process_is_left() -> None:
    child = Child()
    with pytest.raises(ModelError):
        child.run(b"no model", {}, [], "network n")
    process = child._process
    assert process is not None
    del child
    assert process.returncode is not None
    with pytest.raises(ProcessLookupError):
        os.kill(process.pid, 0)


ECHO = """
from onchip.run import tflite_child
tflite_child._answer = lambda asked: tflite_child.Answer(asked.given)
tflite_child.main()
"""


@pytest.mark.thorough
def test_threads_that_ask_at_once_get_their_own_answers(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tflite_child, "START", ECHO)
    child = Child()

    def ask(index: int) -> set[int]:
        return set(child.run(b"", {index: np.full(40_000, index, np.int32)}, [index], "network n"))

    with ThreadPoolExecutor(4) as threads:
        assert list(threads.map(ask, range(200))) == [{index} for index in range(200)]
    child.close()
