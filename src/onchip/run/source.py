"""The model behind a plan: read again, and refused unless it is the one that was planned."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import fields, replace
from pathlib import Path

from onchip.base.errors import InputError, UsageError
from onchip.network import Network, Tensor
from onchip.network.repeats import Folded, folded
from onchip.plans import Plan
from onchip.readers.reference import check_named, is_reference
from onchip.readers.source import Executable, ReadOptions, Source, TfliteExecutable

__all__ = ["source_of"]


def source_of(plan: Plan, source: Source | str | Path | None) -> Executable | TfliteExecutable:
    """Return the original nodes of the plan's network, from `source` or from the model that the plan names.

    Raises `InputError` when the model differs from the planned one, `UsageError` when there is nothing to
    execute.
    """
    if not isinstance(source, Source):
        if source is None and not plan.network.source:
            raise UsageError("the plan names no model to execute", where=plan.network.name)
        from onchip.readers import load

        named = str(source or plan.network.source)
        if source is None:
            check_named(named)
        is_path = not is_reference(named) and not named.startswith("zoo:")
        if source is None and is_path and not Path(named).exists():
            raise UsageError("the planned model is not there; say where it is with --model", where=named)
        source = load(source or named, read_options(plan))
    where = source.network.source or source.network.name
    if source.executable is None:
        raise UsageError("describes sizes only: there is nothing to execute", where=where)
    changed = plan.network.sha256 and source.network.sha256 and plan.network.sha256 != source.network.sha256
    meant = folded(plan.network)
    if changed or _structure(meant.network) != _structure(source.network):
        raise InputError("the model changed since it was planned", where=where)
    return source.executable if meant.network is plan.network else _again(source.executable, meant)


def _again(executable: Executable | TfliteExecutable, meant: Folded) -> Executable | TfliteExecutable:
    """Return the nodes of a network with repeats: a repeat has those of its original, and its values."""
    nodes = tuple([executable.nodes[op] for op in meant.operators])
    dtype = tuple([executable.dtype[t] for t in meant.tensors])
    shape = tuple([executable.shape[t] for t in meant.tensors])
    if isinstance(executable, TfliteExecutable):
        values = tuple([executable.value[t] for t in meant.tensors])
        return replace(executable, nodes=nodes, dtype=dtype, shape=shape, value=values)
    names = tuple([executable.value[t] for t in meant.tensors])
    return replace(executable, nodes=nodes, dtype=dtype, shape=shape, value=names)


def read_options(plan: Plan) -> ReadOptions:
    """Return the reader's options of the plan's model, from the plan's record."""
    given: Mapping[str, object] = {"granularity": plan.network.granularity, **plan.options}
    return ReadOptions(**{f.name: given[f.name] for f in fields(ReadOptions) if f.name in given})  # type: ignore[arg-type]


def _structure(network: Network) -> str:
    """Return the fingerprint without a plan's own parts: workspaces, storage of maps and their walk.

    A network's shapes, geometry, reach and work decide what is legal, not what is computed.
    Workspaces hold the weights in a plan made with resident ones. A map in patches counts as the plain one
    that it is made from, and a view of it, whole channels, as the same channels there.
    """
    plain = [_plain(t, t.bytes) for t in network.tensors]
    return replace(
        network,
        tensors=tuple(
            replace(t, bytes=size, patches=None, shape=())
            for t, size in zip(network.tensors, plain, strict=True)
        ),
        granularity="op",
        element="int8",
        operators=tuple(
            replace(op, workspace=0, geometry=None, macs=0, reach=None) for op in network.operators
        ),
        views=tuple(replace(v, offset=_plain(network.tensors[v.of], v.offset)) for v in network.views),
    ).fingerprint


def _plain(tensor: Tensor, size: int) -> int:
    """Return the bytes of whole channels of a tensor without its patches."""
    p = tensor.patches
    if p is None:
        return size
    whole, rest = divmod(size * p.rows * p.columns, p.plane)
    return whole if not rest else -1
