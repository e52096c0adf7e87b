"""PyTorch to `Network`: `module:function` and `.pt2` files, through `torch.export` and the ONNX reader.

A program becomes a structure-only ONNX model (`torch_export`), which is read like any other ONNX file; so its
plans are executed like any other, with the program's own weights if it has them.
"""

from __future__ import annotations

import importlib
import os
import re
import sys
import tempfile
import warnings
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from onchip.base.errors import MissingExtra, ModelError, OnchipError
from onchip.readers.reference import remember, split_reference
from onchip.readers.shapes import UnknownDimension, parse_dims
from onchip.readers.source import Executable, ReadOptions, Source
from onchip.readers.torch_archive import Leaf, clean_archive

if TYPE_CHECKING:
    import torch

__all__ = ["read_function", "read_module", "read_pt2", "trace"]


def read_function(text: str, options: ReadOptions) -> Source:
    """Return the network in the result of `module:function`: `(torch.nn.Module, example inputs)`.

    The current directory is importable, as for `python -m`. Example inputs are a tuple, one tensor, or a
    mapping of keyword arguments. Raises `ModelError` in one line for a module that cannot be imported, a
    function that fails or returns something else, and a program that `torch.export` refuses.
    """
    _refuse_dims(options, text)
    _torch()
    module_name, function_name = split_reference(text)
    function = _import(module_name, function_name, text)
    remember(text)
    try:
        made = function()
    except (OnchipError, KeyboardInterrupt):
        raise
    except Exception as problem:
        raise ModelError(f"the function fails: {_reason(problem)}", where=text) from None
    except BaseException as problem:  # SystemExit would pass for success
        raise ModelError(f"the function exits: {_reason(problem)}", where=text) from None
    import torch

    if not isinstance(made, tuple) or len(made) != 2 or not isinstance(made[0], torch.nn.Module):
        kind = type(made).__name__
        raise ModelError(f"returned {kind}, not (torch.nn.Module, example inputs)", where=text)
    module, example = made
    args: tuple[Any, ...] = ()
    kwargs: dict[str, Any] = {}
    if isinstance(example, Mapping):
        kwargs = dict(example)
    elif isinstance(example, tuple | list):
        args = tuple(example)
    elif isinstance(example, torch.Tensor):
        args = (example,)
    else:
        kind = type(example).__name__
        raise ModelError(f"gives {kind} as example inputs, not a tuple, a tensor or a mapping", where=text)
    return read_module(module, args, kwargs, options, name=function_name, where=text)


def read_module(
    module: torch.nn.Module,
    args: tuple[Any, ...],
    kwargs: Mapping[str, Any] | None = None,
    options: ReadOptions | None = None,
    *,
    name: str,
    where: str,
) -> Source:
    """Return the network of a module object; raises `ModelError` naming the call that cannot be read."""
    program = trace(module, args, kwargs, where=where)
    return _read(program, options or ReadOptions(), name=name, where=where, module=module)


def _refuse_dims(options: ReadOptions, where: str) -> None:
    for name in parse_dims(options.dims):
        raise UnknownDimension(
            name,
            f"{where} has the sizes of its example inputs, and no dimension {name} without a value;"
            " torch.onnx.export keeps dimensions open",
        )


def read_pt2(path: Path, options: ReadOptions, *, where: str) -> Source:
    """Return the network in a file of `torch.export.save`.

    The file is read and checked without torch, which then loads an archive written from the parts that were
    understood. Raises `ModelError` for anything but tensors and calls of known operators.
    """
    _refuse_dims(options, where)
    clean = clean_archive(path, where=where)
    remember(str(path))
    with clean.archive:
        _torch()
        import torch

        try:
            with _quiet():
                program = torch.export.load(clean.archive)
        except MemoryError:
            raise
        except Exception as problem:
            raise ModelError(f"torch cannot load it: {_reason(problem)}", where=where) from None
    try:
        if clean.free:
            module = program.module(check_guards=False)
            program = trace(module, tuple(_example(leaf) for leaf in clean.inputs), where=where)
        return _read(program, options, name=path.stem, where=where)
    except (OnchipError, MemoryError):
        raise
    except Exception as problem:  # torch has loaded a graph that it would not have made
        raise ModelError(f"its program makes no sense: {_reason(problem)}", where=where) from problem


def _example(leaf: Leaf) -> Any:
    """Return an input for tracing a program; the numbers in a tensor do not matter."""
    import torch
    from torch._export.serde.serialize import _SERIALIZE_TO_TORCH_DTYPE

    if leaf.sizes is None:
        return leaf.value
    return torch.empty_strided(leaf.sizes, leaf.strides, dtype=_SERIALIZE_TO_TORCH_DTYPE[leaf.dtype])


def trace(
    module: torch.nn.Module,
    args: tuple[Any, ...],
    kwargs: Mapping[str, Any] | None = None,
    *,
    where: str,
    free_sizes: Any = None,
) -> torch.export.ExportedProgram:
    """Return the module in evaluation mode as a program, at the example's sizes; weights are not copied.

    A module with parameters on the `meta` device is traced there; `free_sizes` are torch's `dynamic_shapes`.
    Raises `ModelError` with torch's reason.
    """
    import torch

    kwargs = dict(kwargs or {})
    with_data = [p.device.type != "meta" for p in module.parameters()]
    bare = not all(with_data)
    if bare:
        module = module.to("meta")
        args, kwargs = torch.utils._pytree.tree_map_only(torch.Tensor, lambda t: t.to("meta"), (args, kwargs))
    if not type(module).__module__.startswith("torch.fx"):  # a loaded program's module has no modes
        module = module.eval()
    fast = torch.backends.mha.get_fastpath_enabled()
    torch.backends.mha.set_fastpath_enabled(False)  # its one fused kernel would hide the layers
    try:
        with _quiet(), torch.no_grad(), torch.device("meta" if bare else "cpu"):
            program = torch.export.export(module, args, kwargs, dynamic_shapes=free_sizes)
            return program.run_decompositions({}) if _writes_into_views(program) else program
    except MemoryError:
        raise
    except Exception as problem:
        raise ModelError(f"torch.export refuses it: {_reason(problem)}", where=where) from None
    except KeyboardInterrupt:
        raise
    except BaseException as problem:
        raise ModelError(f"the module exits: {_reason(problem)}", where=where) from None
    finally:
        torch.backends.mha.set_fastpath_enabled(fast)


def _read(
    program: torch.export.ExportedProgram,
    options: ReadOptions,
    *,
    name: str,
    where: str,
    module: torch.nn.Module | None = None,
) -> Source:
    from onchip.readers.onnx_reader import read_onnx
    from onchip.readers.torch_export import export

    with _quiet():
        exported = export(program, name, where=where, module=module)
    source = read_onnx(
        exported.model.SerializeToString(deterministic=True),
        options,
        name=name,
        where=where,
        folder=None,
        dtype=options.dtype or "file",
    )
    assert isinstance(source.executable, Executable)
    weights = {n: array for n, t in exported.weights.items() if (array := _array(t)) is not None}
    return replace(source, executable=replace(source.executable, weights=weights))


def _torch() -> None:
    try:
        with _no_cache():
            importlib.import_module("torch")
            importlib.import_module("torch._dynamo")
    except ImportError:
        raise MissingExtra("torch", "torch") from None


@contextmanager
def _no_cache() -> Iterator[None]:
    """Keep torch from making a folder for the caches of its compiler, which is not used here."""
    key = "TORCHINDUCTOR_CACHE_DIR"
    before = os.environ.get(key)
    if before is None:
        os.environ[key] = tempfile.gettempdir()  # is there already
    try:
        yield
    finally:
        if before is None:
            os.environ.pop(key, None)


def _import(module: str, function: str, where: str) -> Any:
    """Return the function; the current directory comes first on the path, as for `python -m`."""
    sys.path.insert(0, os.getcwd())
    try:
        found: Any = importlib.import_module(module)
    except OnchipError:
        raise
    except Exception as problem:
        raise ModelError(f"cannot import {module}: {_reason(problem)}", where=where) from None
    except KeyboardInterrupt:
        raise
    except BaseException as problem:
        raise ModelError(f"cannot import {module}: it exits: {_reason(problem)}", where=where) from None
    finally:
        if os.getcwd() in sys.path:
            sys.path.remove(os.getcwd())
    for part in function.split("."):
        found = getattr(found, part, None)
    if not callable(found):
        raise ModelError(f"{module} has no function {function}", where=where)
    return found


@contextmanager
def _quiet() -> Iterator[None]:
    """Silence torch's warnings and log lines, which are not for the reader of a plan."""
    import logging

    logger = logging.getLogger("torch")
    level = logger.level
    logger.setLevel(logging.CRITICAL)
    try:
        with warnings.catch_warnings(), _no_cache():
            warnings.simplefilter("ignore")
            yield
    finally:
        logger.setLevel(level)


def _writes_into_views(program: torch.export.ExportedProgram) -> bool:
    """Return whether some value is changed in place while another name for its bytes is read later.

    Then the graph is first made functional. The plain `x.relu_()` of most networks does not need it, and
    keeps its batch normalisations and dropouts as they are.
    """
    import torch

    root: dict[torch.fx.Node, torch.fx.Node] = {}
    last_read: dict[torch.fx.Node, int] = {}
    nodes = list(program.graph.nodes)
    for i, node in enumerate(nodes):
        for read in node.all_input_nodes:
            last_read[read] = i
    members: dict[torch.fx.Node, list[torch.fx.Node]] = {}
    changed: list[tuple[int, torch.fx.Node, torch.fx.Node]] = []
    for i, node in enumerate(nodes):
        schema = getattr(node.target, "_schema", None)
        root[node] = node
        if schema is None or not node.args or not isinstance(node.args[0], torch.fx.Node):
            members[node] = [node]
            continue
        alias = schema.arguments[0].alias_info if schema.arguments else None
        if alias is not None or node.target in _MAY_ALIAS():
            root[node] = root[node.args[0]]
        members.setdefault(root[node], []).append(node)
        if (
            alias is not None
            and alias.is_write
            and str(node.target).split(".")[1] not in ("detach_", "dropout_")
        ):
            changed.append((i, node, node.args[0]))
    for i, node, before in changed:
        if str(node.target).startswith("aten.copy_"):
            return True
        for other in members.get(root[node], []):
            if other not in (node, before) and nodes.index(other) < i and last_read.get(other, -1) > i:
                return True
        if last_read.get(before, -1) > i:
            return True
    return False


def _MAY_ALIAS() -> tuple[Any, ...]:
    import torch

    aten = torch.ops.aten
    return (aten.reshape.default, aten.contiguous.default, aten.flatten.using_ints, aten.to.dtype)


def _reason(problem: BaseException) -> str:
    """Return the first line with text, without colours: some of torch's messages begin with a blank."""
    text = re.sub(r"\x1b\[[0-9;]*m", "", str(problem))
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    line = f"{type(problem).__name__}: {lines[0] if lines else ''}"[:400]
    return "".join(c if c.isprintable() else "?" for c in line)


def _array(tensor: torch.Tensor) -> Any:
    """Return the tensor's own bytes as an array, None if it has none."""
    import torch
    from onnx import helper

    tensor = tensor.detach()
    if tensor.device.type != "cpu" or type(tensor) not in (torch.Tensor, torch.nn.Parameter):
        return None
    tensor = tensor.contiguous()
    if tensor.dtype == torch.bfloat16:
        array = tensor.view(torch.int16).numpy().view(helper.tensor_dtype_to_np_dtype(16))
    else:
        array = tensor.numpy()
    array = array.view()
    array.flags.writeable = False
    return array
