"""onnxruntime sessions: the whole network, or the nodes behind one operator, with the same settings.

Large constants are not copied into sessions. The unoptimised ones take them as graph inputs, which share the
one existing array; only the optimised session, the second opinion, has them as initializers, because its
rewrites need that.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from onchip.base.errors import MissingExtra, ModelError
from onchip.run.quiet import quiet_onnxruntime

if TYPE_CHECKING:
    import onnx

__all__ = ["Signature", "Subgraphs", "following", "runtime"]

Array = np.ndarray[Any, Any]

Signature = Mapping[str, tuple[int, tuple[int, ...]]]
"""Values by name, with (ONNX element type, shape)."""

_INLINE_BYTES = 1 << 14
"""Constants up to this size are stored in the session's model: shapes and axes must be constant there."""

_RANDOM = frozenset(
    {"Bernoulli", "Multinomial", "RandomNormal", "RandomNormalLike", "RandomUniform", "RandomUniformLike"}
)


def runtime() -> Any:
    """Return onnxruntime; raises `MissingExtra` without it."""
    quiet_onnxruntime()
    try:
        import onnxruntime
    except ImportError:
        raise MissingExtra("run", "onnxruntime") from None
    return onnxruntime


NEWEST_IR = 10
"""The newest version of the file format for model files: onnxruntime lags behind the onnx package, and it
ignores the additions of later versions (annotations for several devices)."""


def following(nodes: Iterable[onnx.NodeProto], values: Iterable[str]) -> list[onnx.NodeProto]:
    """Return those of some nodes, in order, that depend on one of some values: the others make constants."""
    known, found = set(values), []
    for node in nodes:
        if known.intersection(_reads(node)):
            known.update(node.output)
            found.append(node)
    return found


class Subgraphs:
    """Runs any part of a model between given values.

    `constants` hold every initializer's data, and override the nodes that would compute them.
    """

    def __init__(self, model: onnx.ModelProto, constants: Mapping[str, Array]) -> None:
        self.model, self.constants = model, constants
        self._runtime = runtime()
        self._nodes = list(model.graph.node)
        self._producer = {name: i for i, node in enumerate(self._nodes) for name in node.output if name}
        self._reads = [list(dict.fromkeys(_reads(node))) for node in self._nodes]

    def run(
        self,
        given: Mapping[str, Array],
        signature: Signature,
        wanted: Sequence[str],
        what: str,
        *,
        optimise: bool = False,
    ) -> list[Array]:
        """Return the values `wanted`, computed from only `given` and constants.

        `signature` covers both. `what` names the part in errors. Raises `ModelError` when a value needs
        one that is not given, draws random numbers, or onnxruntime refuses it.
        """
        nodes, constants = self._closure(given, wanted, what)
        try:
            session, fed = self._session(given, signature, wanted, nodes, constants, optimise)
            feeds = {**given, **{name: self.constants[name] for name in fed}}
            results: list[Array] = session.run(list(wanted), feeds)
        except MemoryError:
            raise ModelError("does not fit in this machine's memory", item=what) from None
        except Exception as problem:  # onnxruntime's errors have no common class
            raise ModelError(f"onnxruntime cannot run it ({_line(problem)})", item=what) from None
        return results

    def _closure(self, given: Iterable[str], wanted: Sequence[str], what: str) -> tuple[list[int], list[str]]:
        """Return the nodes between, in order, and the constants that they read."""
        nodes: set[int] = set()
        constants: dict[str, None] = {}
        stack, seen = list(wanted), set(given)
        while stack:
            name = stack.pop()
            if name in seen:
                continue
            seen.add(name)
            if name in self.constants:
                constants[name] = None
                continue
            i = self._producer.get(name)
            if i is None:
                raise ModelError(f"needs {name}, which is not among its operands", item=what)
            node = self._nodes[i]
            if node.op_type in _RANDOM or self._trains(node):
                raise ModelError(
                    f"{node.op_type} draws random numbers: there is no one result to compare with", item=what
                )
            if i not in nodes:
                nodes.add(i)
                stack.extend(self._reads[i])
        return sorted(nodes), list(constants)

    def between(
        self, given: Iterable[str], wanted: Sequence[str], what: str
    ) -> tuple[list[onnx.NodeProto], list[str]]:
        """Return the nodes that make `wanted` from `given`, in order, and the constants that they read."""
        nodes, constants = self._closure(given, wanted, what)
        return [self._nodes[i] for i in nodes], constants

    def constant_outputs(
        self, node: onnx.NodeProto, constants: Mapping[str, Array], signature: Signature, what: str
    ) -> dict[str, Array]:
        """Return the outputs of a node that reads only constants."""
        inputs = {name: constants[name] for name in node.input if name}
        names = [name for name in node.output if name in signature]
        session = self.session([node], {}, {n: signature[n][0] for n in names}, inputs)
        try:
            return dict(zip(names, session.run(names, {}), strict=True))
        except Exception as problem:  # onnxruntime's errors have no common class
            raise ModelError(f"onnxruntime cannot run it ({_line(problem)})", item=what) from None

    def session(
        self,
        nodes: Iterable[onnx.NodeProto],
        inputs: Mapping[str, tuple[int, int | Sequence[int]]],
        outputs: Mapping[str, int],
        constants: Mapping[str, Array],
    ) -> Any:
        """Return an unoptimised session of some nodes: `inputs` are (element type, rank) for maps of any
        extent, or (element type, shape).

        `outputs` are element types; `constants` are stored in the session.
        """
        import onnx
        from onnx import helper, numpy_helper

        model = onnx.ModelProto(ir_version=min(max(self.model.ir_version, 4), NEWEST_IR))
        model.opset_import.extend(self.model.opset_import)
        model.functions.extend(self.model.functions)
        model.graph.name = "tile"
        model.graph.node.extend(nodes)
        for name, (element, sides) in inputs.items():
            shape = [None] * sides if isinstance(sides, int) else list(sides)
            model.graph.input.append(helper.make_tensor_value_info(name, element, shape))
        for name, element in outputs.items():
            model.graph.output.append(helper.make_tensor_value_info(name, element, None))
        model.graph.initializer.extend(numpy_helper.from_array(a, n) for n, a in constants.items())
        return self._runtime.InferenceSession(
            model.SerializeToString(), self._options(False), providers=["CPUExecutionProvider"]
        )

    def _trains(self, node: onnx.NodeProto) -> bool:
        """Return whether a node is a dropout whose training switch exists and is not known to be off."""
        if node.op_type != "Dropout" or len(node.input) < 3 or not node.input[2]:
            return False
        switch = self.constants.get(node.input[2])
        return switch is None or bool(switch.any())

    def _session(
        self,
        given: Mapping[str, Array],
        signature: Signature,
        wanted: Sequence[str],
        nodes: list[int],
        constants: list[str],
        optimise: bool,
    ) -> tuple[Any, list[str]]:
        """Return a session over these nodes, and the constants that have to be fed to it."""
        import onnx
        from onnx import TensorProto, helper, numpy_helper

        ir = min(max(self.model.ir_version, 4), NEWEST_IR)
        model = onnx.ModelProto(ir_version=ir, functions=self.model.functions)
        model.opset_import.extend(self.model.opset_import)
        graph = model.graph
        graph.name = "part"
        graph.node.extend(self._nodes[i] for i in nodes)
        for name in given:
            graph.input.append(helper.make_tensor_value_info(name, *signature[name]))
        for name in wanted:
            graph.output.append(helper.make_tensor_value_info(name, *signature[name]))
        large = []
        for name in constants:
            array = self.constants[name]
            if array.nbytes <= _INLINE_BYTES:
                graph.initializer.append(numpy_helper.from_array(array, name))
                continue
            large.append(name)
            element = helper.np_dtype_to_tensor_dtype(array.dtype)
            if optimise:
                tensor = TensorProto(name=name, dims=array.shape, data_type=element)
                tensor.data_location = TensorProto.EXTERNAL
                tensor.external_data.add(key="location", value="memory")
                graph.initializer.append(tensor)
            else:
                graph.input.append(helper.make_tensor_value_info(name, element, array.shape))
        options = self._options(optimise)
        if optimise:
            values = [self._runtime.OrtValue.ortvalue_from_numpy(self.constants[name]) for name in large]
            options.add_external_initializers(large, values)
        else:
            _round_halves(graph, {name for name in wanted if signature[name][0] == TensorProto.FLOAT16})
        session = self._runtime.InferenceSession(
            model.SerializeToString(), options, providers=["CPUExecutionProvider"]
        )
        return session, [] if optimise else large

    def _options(self, optimise: bool) -> Any:
        options = self._runtime.SessionOptions()
        options.log_severity_level = 4
        options.intra_op_num_threads = 1
        levels = self._runtime.GraphOptimizationLevel
        if optimise:
            options.graph_optimization_level = levels.ORT_ENABLE_ALL
        else:
            options.graph_optimization_level = levels.ORT_DISABLE_ALL
            # Packed weights round differently, and only a constant weight is packed.
            options.add_session_config_entry("session.disable_prepacking", "1")
            # One run each: planning and pooling memory for a second one costs more than it saves.
            options.enable_mem_pattern = False
            options.enable_cpu_mem_arena = False
        return options


def _line(problem: Exception) -> str:
    """Return the first line of an error's message."""
    return (str(problem).strip().splitlines() or [type(problem).__name__])[0]


def _round_halves(graph: onnx.GraphProto, names: set[str]) -> None:
    """Round every named half-precision value to half precision for its readers.

    onnxruntime has few half-precision kernels on CPUs: it computes in single precision, and even unoptimised
    omits the rounding between two such operators. An identity between them prevents that.
    """
    from onnx import helper

    if not names:
        return
    nodes = list(graph.node)
    del graph.node[:]
    for node in nodes:
        graph.node.append(node)
        for i, name in enumerate(node.output):
            if name in names:
                graph.node[-1].output[i] = f"{name}/unrounded"
                graph.node.append(helper.make_node("Identity", [f"{name}/unrounded"], [name]))


def _reads(node: onnx.NodeProto) -> Iterator[str]:
    """Yield every value a node reads, including those that the graphs in its attributes capture."""
    yield from (name for name in node.input if name)
    for attribute in node.attribute:
        for graph in (attribute.g, *attribute.graphs) if attribute.type in (5, 10) else ():
            inner = {i.name for i in graph.input} | {t.name for t in graph.initializer}
            for child in graph.node:
                yield from (name for name in _reads(child) if name not in inner)
                inner.update(child.output)
            yield from (o.name for o in graph.output if o.name not in inner)
