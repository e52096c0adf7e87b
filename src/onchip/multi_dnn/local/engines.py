"""The engines that run pieces: one thread each, on the core that their process is pinned to.

They are imported in the worker processes only; planning needs none of them.
"""

from __future__ import annotations

import importlib.util
from collections.abc import Callable, Sequence
from typing import Any, Protocol

import numpy as np

from onchip.base.errors import MissingExtra, UsageError
from onchip.run.quiet import quiet_onnxruntime, quiet_openvino

__all__ = ["ENGINES", "Engine", "Loaded", "engine_of", "is_installed", "load_engine"]

Array = np.ndarray[Any, Any]

ENGINES = {
    "onnxruntime": "onnxruntime, optimised",
    "openvino": "OpenVINO, single precision as in the model",
    "onnxruntime-plain": "onnxruntime, every optimisation off",
}
"""The engines by name, with a description."""


class Loaded(Protocol):
    """A piece that an engine has loaded."""

    def bind(self, inputs: Sequence[Array], outputs: Sequence[Array]) -> Callable[[], None]:
        """Return a call that reads `inputs` and writes `outputs` in place, in the order of the model's."""


class Engine(Protocol):
    """Loads serialised ONNX models. It raises an exception of its own for one that it refuses."""

    def load(self, model: bytes) -> Loaded: ...


def is_installed(engine: str) -> bool:
    """Return whether the package behind an engine is installed; it is not imported."""
    return importlib.util.find_spec(engine.removesuffix("-plain")) is not None


def engine_of(unit: str) -> tuple[str, str | None]:
    """Return the engine of a unit of this name, and a note when it is another one than the name states.

    Raises `UsageError` for a name that is no engine, `MissingExtra` without onnxruntime.
    """
    if unit not in ENGINES:
        raise UsageError(f"is no engine of this machine; there are {', '.join(ENGINES)}", item=f"unit {unit}")
    if not is_installed("onnxruntime"):
        raise MissingExtra("corun", "onnxruntime")
    if not is_installed(unit):
        plain = "onnxruntime-plain"
        return plain, f"unit {unit}: OpenVINO is not installed; {ENGINES[plain]} runs in its place"
    return unit, None


def load_engine(name: str) -> Engine:
    """Return the engine itself, with its package imported."""
    return _OpenVino() if name == "openvino" else _OnnxRuntime(plain=name != "onnxruntime")


class _OnnxRuntime:
    def __init__(self, plain: bool) -> None:
        quiet_onnxruntime()
        import onnxruntime

        self._package = onnxruntime
        options = onnxruntime.SessionOptions()
        options.log_severity_level = 4
        options.intra_op_num_threads = options.inter_op_num_threads = 1
        levels = onnxruntime.GraphOptimizationLevel
        options.graph_optimization_level = levels.ORT_DISABLE_ALL if plain else levels.ORT_ENABLE_ALL
        if plain:
            # Packed weights round differently; without packing, pieces equal the whole bit for bit.
            options.add_session_config_entry("session.disable_prepacking", "1")
        self._options = options

    def load(self, model: bytes) -> Loaded:
        session = self._package.InferenceSession(model, self._options, providers=["CPUExecutionProvider"])
        return _Session(session)


class _Session:
    def __init__(self, session: Any) -> None:
        self._session = session
        self._inputs = [value.name for value in session.get_inputs()]
        self._outputs = [value.name for value in session.get_outputs()]

    def bind(self, inputs: Sequence[Array], outputs: Sequence[Array]) -> Callable[[], None]:
        binding = self._session.io_binding()
        for name, array in zip(self._inputs, inputs, strict=True):
            binding.bind_input(name, "cpu", 0, array.dtype, array.shape, array.ctypes.data)
        for name, array in zip(self._outputs, outputs, strict=True):
            binding.bind_output(name, "cpu", 0, array.dtype, array.shape, array.ctypes.data)
        session, kept = self._session, (inputs, outputs)

        def call() -> None:
            session.run_with_iobinding(binding)
            _ = kept  # the binding holds addresses only

        return call


class _OpenVino:
    def __init__(self) -> None:
        quiet_openvino()
        import openvino

        self._package = openvino
        self._core = openvino.Core()
        self._settings = {
            "INFERENCE_NUM_THREADS": 1,
            "NUM_STREAMS": 1,
            "PERFORMANCE_HINT": "LATENCY",
            "INFERENCE_PRECISION_HINT": "f32",
            "EXECUTION_MODE_HINT": "ACCURACY",
            "ENABLE_CPU_PINNING": False,  # the process is pinned already
        }

    def load(self, model: bytes) -> Loaded:
        compiled = self._core.compile_model(self._core.read_model(model), "CPU", self._settings)
        return _Compiled(compiled, self._package.Tensor)


class _Compiled:
    def __init__(self, compiled: Any, tensor: Any) -> None:
        self._request, self._tensor = compiled.create_infer_request(), tensor
        self._bound: object = None

    def bind(self, inputs: Sequence[Array], outputs: Sequence[Array]) -> Callable[[], None]:
        given = [self._tensor(array, shared_memory=True) for array in inputs]
        made = [self._tensor(array, shared_memory=True) for array in outputs]
        request, me = self._request, object()

        def call() -> None:
            if self._bound is not me:
                for i, tensor in enumerate(given):
                    request.set_input_tensor(i, tensor)
                for i, tensor in enumerate(made):
                    request.set_output_tensor(i, tensor)
                self._bound = me
            request.infer()

        return call
