"""Reductions, softmax, sorting and running sums."""

from __future__ import annotations

import torch

from onchip.readers.torch_export.exporter import Exporter, Node, arguments, kind_of, rule, shape

REDUCTIONS = {
    "mean": "ReduceMean", "sum": "ReduceSum", "amax": "ReduceMax", "amin": "ReduceMin", "prod": "ReduceProd",
    "logsumexp": "ReduceLogSumExp",
}  # fmt: skip


def axes_of(node: Node) -> tuple[list[int], bool]:
    """Return the axes that are reduced, and whether they stay with size 1."""
    a = arguments(node)
    given, rank = a.get("dim"), len(shape(a["self"]))
    if given is None or given == []:
        return list(range(rank)), False
    return [given] if isinstance(given, int) else list(given), bool(a.get("keepdim"))


@rule(*REDUCTIONS)
def _reduce(to: Exporter, node: Node) -> None:
    name = to.path(node)
    axes, keep = axes_of(node)
    value = to.operand(name, arguments(node)["self"], node.meta["val"].dtype)
    settings = [value, to.constant(f"{name}.axes", axes)]
    to.values[node] = to.emit(REDUCTIONS[kind_of(node)], name, settings, keepdims=int(keep))


@rule("max", "min")
def _extreme(to: Exporter, node: Node) -> None:
    """Emit the extreme of everything, along an axis with its index, or of two tensors."""
    a, name = arguments(node), to.path(node)
    op = "Max" if kind_of(node) == "max" else "Min"
    if "other" in a:
        to.values[node] = to.emit(op, name, [to.value(a["self"]), to.value(a["other"])])
        return
    axes, keep = axes_of(node)
    value = to.value(a["self"])
    found = to.emit(f"Reduce{op}", name, [value, to.constant(f"{name}.axes", axes)], keepdims=int(keep))
    if isinstance(node.meta["val"], torch.Tensor):
        to.values[node] = found
        return
    to.parts[node] = [found]
    if any(user.args[1] == 1 for user in node.users):
        where = to.emit(f"Arg{op}", f"{name}.indices", [value], axis=axes[0], keepdims=int(keep))
        to.parts[node].append(where)


@rule("argmax", "argmin")
def _arg(to: Exporter, node: Node) -> None:
    a, name = arguments(node), to.path(node)
    value, here = to.value(a["self"]), shape(a["self"])
    axis = a["dim"]
    if axis is None:
        value, axis = to.reshape(f"{name}.flat", value, here, [torch.Size(here).numel()]), 0
    op = "ArgMax" if kind_of(node) == "argmax" else "ArgMin"
    to.values[node] = to.emit(op, name, [value], axis=axis, keepdims=int(a["keepdim"]))


@rule("var", "std")
def _spread(to: Exporter, node: Node) -> None:
    a, name, dtype = arguments(node), to.path(node), node.meta["val"].dtype
    axes, keep = axes_of(node)
    value, here = to.value(a["self"]), shape(a["self"])
    count = torch.Size(here[axis] for axis in axes).numel()
    less = a.get("correction", 1 if a.get("unbiased", True) else 0)
    less = 1 if less is None else less
    if count <= less:
        raise to.refuse(node, "has no degrees of freedom")
    where = to.constant(f"{name}.axes", axes)
    centre = to.emit("ReduceMean", f"{name}.mean", [value, where], keepdims=1)
    apart = to.emit("Sub", f"{name}.difference", [value, centre])
    square = to.emit("Mul", f"{name}.square", [apart, apart])
    value = to.emit("ReduceMean", f"{name}.variance", [square, where], keepdims=int(keep))
    if less:
        factor = to.operand(f"{name}.factor", count / (count - less), dtype)
        value = to.emit("Mul", f"{name}.corrected", [value, factor])
    to.values[node] = to.emit("Sqrt", name, [value]) if kind_of(node) == "std" else value


@rule("linalg_vector_norm", "norm")
def _norm(to: Exporter, node: Node) -> None:
    a, name = arguments(node), to.path(node)
    order = a.get("ord", a.get("p", 2))
    if order not in (1, 2, None):
        raise to.refuse(node, "is a norm other than the first and the second")
    axes, keep = axes_of(node)
    operands = [to.value(a["self"]), to.constant(f"{name}.axes", axes)]
    to.values[node] = to.emit("ReduceL1" if order == 1 else "ReduceL2", name, operands, keepdims=int(keep))


@rule("softmax", "_softmax", "log_softmax", "_log_softmax", "_safe_softmax")
def _softmax(to: Exporter, node: Node) -> None:
    a, name = arguments(node), to.path(node)
    value = to.operand(name, a["self"], node.meta["val"].dtype)
    op = "LogSoftmax" if "log" in kind_of(node) else "Softmax"
    to.values[node] = to.emit(op, name, [value], axis=a["dim"])


@rule("cumsum")
def _cumsum(to: Exporter, node: Node) -> None:
    a, name = arguments(node), to.path(node)
    value = to.operand(name, a["self"], node.meta["val"].dtype)
    to.values[node] = to.emit("CumSum", name, [value, to.constant(f"{name}.axis", a["dim"])])


@rule("topk", "sort", "argsort")
def _topk(to: Exporter, node: Node) -> None:
    a, name = arguments(node), to.path(node)
    here = shape(a["self"])
    axis = a["dim"] % len(here)
    descending = a["largest"] if kind_of(node) == "topk" else a["descending"]
    count = to.constant(f"{name}.count", [a["k"] if kind_of(node) == "topk" else here[axis]])
    made = to.emit_many(
        "TopK", name, [to.value(a["self"]), count], 2, axis=axis, largest=int(descending), sorted=1
    )
    if kind_of(node) == "argsort":
        to.values[node] = made[1]
    else:
        to.parts[node] = made
