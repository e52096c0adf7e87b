"""Recurrences: LSTM, GRU and plain ones of several layers, one ONNX node for each layer."""

from __future__ import annotations

from typing import Any

import torch

from onchip.readers.torch_export.exporter import Exporter, Node, arguments, kind_of, rule, shape
from onchip.readers.torch_export.layout import cut

_GATES = {"LSTM": (0, 3, 1, 2), "GRU": (1, 0, 2), "RNN": (0,)}
"""The gates in ONNX's order, by their places in torch's: LSTM i, f, g, o; GRU r, z, n."""


@rule("lstm", "gru", "rnn_tanh", "rnn_relu")
def _recurrent(to: Exporter, node: Node) -> None:
    a = arguments(node)
    name, kind = to.path(node), kind_of(node)
    op = {"lstm": "LSTM", "gru": "GRU"}.get(kind, "RNN")
    if "input" not in a or (a.get("train") and a.get("dropout")):
        raise to.refuse(node, "reads packed sequences or drops elements: neither can be planned")
    states = list(a["hx"]) if op == "LSTM" else [a["hx"]]
    if op == "LSTM" and len(shape(states[0])) == 3 and shape(states[0])[-1] * 4 != shape(a["params"][1])[0]:
        raise to.refuse(node, "projects its state, which ONNX has not")
    hidden, both = shape(states[0])[-1], 2 if a["bidirectional"] else 1
    each = len(a["params"]) // (a["num_layers"] * both)
    settings: dict[str, Any] = {"hidden_size": hidden}
    if both == 2:
        settings["direction"] = "bidirectional"
    if op == "GRU":
        settings["linear_before_reset"] = 1
    if op == "RNN":
        settings["activations"] = [kind.removeprefix("rnn_").capitalize()] * both
    value, here = to.value(a["input"]), shape(a["input"])
    if len(here) != 3:
        raise to.refuse(node, "has an input without a batch dimension")
    if a["batch_first"]:
        value = _swapped(to, f"{name}.steps", value, here)
        here = [here[1], here[0], here[2]]
    last: list[list[str]] = [[] for _ in states]
    for layer in range(a["num_layers"]):
        at = f"{name}.{layer}"
        first = layer * both
        groups = [a["params"][(first + d) * each : (first + d + 1) * each] for d in range(both)]
        weights = [_joined(to, f"{at}.{key}", op, [g[i] for g in groups]) for i, key in enumerate("wr")]
        operands = [value, *weights, ""]
        if a["has_biases"]:
            sums = [_joined(to, f"{at}.b{i}", op, [g[i] for g in groups]) for i in (2, 3)]
            operands[3] = to.emit("Concat", f"{at}.bias", sums, axis=1)
        starts = [_start(to, f"{at}.start", state, first, both) for state in states]
        if any(starts):
            operands += ["", *starts]
        made = to.emit_many(op, at, operands, 1 + len(states), **settings)
        for kept, state in zip(last, made[1:], strict=True):
            kept.append(state)
        value = made[0]
        if both == 2:
            value = to.emit("Transpose", f"{at}.beside", [value], perm=[0, 2, 1, 3])
        apart = [here[0], here[1], both, hidden] if both == 2 else [here[0], 1, here[1], hidden]
        value = to.reshape(f"{at}.features", value, apart, [*here[:2], both * hidden])
    if a["batch_first"]:
        value = _swapped(to, f"{name}.images", value, [*here[:2], both * hidden])
    used = {user.args[1] for user in node.users}
    to.parts[node] = [value, *([""] * len(states))]
    for i, kept in enumerate(last, 1):
        if i in used:
            to.parts[node][i] = (
                to.emit("Concat", f"{name}.state{i}", kept, axis=0) if len(kept) > 1 else kept[0]
            )


def _swapped(to: Exporter, name: str, value: str, here: list[int]) -> str:
    return to.emit("Transpose", name, [value], perm=[1, 0, 2])


def _joined(to: Exporter, name: str, op: str, weights: list[Node]) -> str:
    """Return the weights of all directions, [directions, gates x rows, ...], gates in ONNX's order."""
    parts = []
    for i, weight in enumerate(weights):
        here, order, value = shape(weight), _GATES[op], to.value(weight)
        if len(order) > 1:
            rows = here[0] // len(order)
            sizes = to.constant(f"{name}.{i}.sizes", [rows] * len(order))
            gates = to.emit_many("Split", f"{name}.{i}.gates", [value, sizes], len(order), axis=0)
            value = to.emit("Concat", f"{name}.{i}", [gates[g] for g in order], axis=0)
        parts.append(to.reshape(f"{name}.{i}.one", value, here, [1, *here]))
    return to.emit("Concat", name, parts, axis=0) if len(parts) > 1 else parts[0]


def _start(to: Exporter, name: str, state: Node, first: int, count: int) -> str:
    """Return the state that a layer starts with; "" for zeros."""
    known = to.known.get(state)
    if known is not None and not torch.any(known):
        return ""
    if shape(state)[0] == count:
        return to.value(state)
    return cut(to, name, to.value(state), 0, first, first + count)


@rule("gru_cell", "lstm_cell", "rnn_tanh_cell", "rnn_relu_cell")
def _cell(to: Exporter, node: Node) -> None:
    """Emit one step of a recurrence in its parts: two products, and functions of their elements."""
    a = arguments(node)
    name, kind = to.path(node), kind_of(node).removesuffix("_cell")
    states = list(a["hx"]) if kind == "lstm" else [a["hx"]]
    if len(shape(a["input"])) != 2:
        raise to.refuse(node, "has an input without a batch dimension")
    state = to.value(states[0])

    def product(end: str, value: str) -> str:
        bias = a[f"b_{end}"]
        operands = [value, to.value(a[f"w_{end}"]), *([] if bias is None else [to.value(bias)])]
        return to.emit("Gemm", f"{name}.{end}", operands, transB=1)

    def gates(what: str, value: str, count: int) -> list[str]:
        sizes = to.constant(f"{name}.{what}.sizes", [shape(states[0])[1]] * count)
        return to.emit_many("Split", f"{name}.{what}", [value, sizes], count, axis=1)

    def made(op: str, what: str, *operands: str) -> str:
        return to.emit(op, f"{name}.{what}", operands)

    new, old = product("ih", to.value(a["input"])), product("hh", state)
    if kind == "gru":
        (r, z, n), (by_r, by_z, by_n) = gates("new", new, 3), gates("old", old, 3)
        reset = made("Sigmoid", "reset", made("Add", "reset.sum", r, by_r))
        keep = made("Sigmoid", "keep", made("Add", "keep.sum", z, by_z))
        fresh = made("Tanh", "fresh", made("Add", "fresh.sum", n, made("Mul", "fresh.old", reset, by_n)))
        rest = made("Mul", "kept", keep, made("Sub", "change", state, fresh))
        to.values[node] = to.emit("Add", name, [fresh, rest])
        return
    total = made("Add", "sum", new, old)
    if kind != "lstm":
        to.values[node] = to.emit(kind.removeprefix("rnn_").capitalize(), name, [total])
        return
    i, f, g, o = gates("gates", total, 4)
    let, forget, put = made("Sigmoid", "let", i), made("Sigmoid", "forget", f), made("Sigmoid", "put", o)
    kept = made("Mul", "kept", forget, to.value(states[1]))
    cell = made("Add", "cell", kept, made("Mul", "fresh", let, made("Tanh", "fresh.all", g)))
    to.parts[node] = [to.emit("Mul", name, [put, made("Tanh", "shown", cell)]), cell]
