"""Scaled dot-product attention, whole: one `Attention` for one call."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any

import torch

from onchip.readers.torch_export.exporter import Exporter, Node, arguments, kind_of, rule, shape

_CALL = "scaled_dot_product_attention"


@rule(_CALL, "_scaled_dot_product_flash_attention_for_cpu")
def _attention(to: Exporter, node: Node) -> None:
    if to.opset < 23:
        raise to.refuse(node, "needs operator set 23, with which Attention came")
    if node in to.packed:
        _emit_packed(to, node)
        return
    a = arguments(node)
    result = node.meta["val"] if isinstance(node.meta["val"], torch.Tensor) else node.meta["val"][0]
    name, after = to.path(node), [int(size) for size in result.shape]
    operands = []
    for key in ("query", "key", "value"):
        here = shape(a[key])
        four = [math.prod(here[:-3]), *([1] * (3 - len(here))), *here[-3:]]
        operands.append(to.reshape(f"{name}.{key}", to.value(a[key]), here, four))
    mask = a.get("attn_mask")
    if mask is not None:
        operands.append(_mask(to, node, mask, len(after), [shape(a[key])[-2] for key in ("query", "key")]))
    settings: dict[str, Any] = {}
    if a["is_causal"]:
        settings["is_causal"] = 1
    if a["scale"] is not None:
        settings["scale"] = float(a["scale"])
    value = to.emit("Attention", name, operands, **settings)
    four = [math.prod(after[:-3]), *([1] * (3 - len(after))), *after[-3:]]
    value = to.reshape(f"{name}.result", value, four, after)
    if isinstance(node.meta["val"], torch.Tensor):
        to.values[node] = value
    else:
        to.parts[node] = [value]


def _mask(to: Exporter, node: Node, mask: Node, rank: int, sides: list[int]) -> str:
    """Return the mask with at most four dimensions; ONNX aligns it at the last, as torch does.

    One row for all queries (the padding of a text) is repeated: onnxruntime takes none without it.
    """
    here = shape(mask)
    value, name = to.value(mask), f"{to.path(node)}.mask"
    if len(here) > 4 or rank != 4:
        if any(size != 1 for size in here[:-3]):
            raise to.refuse(node, "has a mask with more than four dimensions")
        value, here = to.reshape(name, value, here, here[-3:]), here[-3:]
    if len(here) < 2 or here[-2:] == sides:
        return value
    return to.emit("Expand", f"{name}.rows", [value, to.constant(f"{name}.shape", [*here[:-2], *sides])])


# ---------------------------------------------------------------------- one packed projection


def find_packed(to: Exporter) -> None:
    """Record every self-attention over one packed projection, with the layout nodes ONNX does not need.

    ONNX's `Attention` takes queries, keys and values as (batch, tokens, heads * width), the form that the
    packed projection of a single image holds side by side; torch moves heads to the front and back again.
    """
    for node in to.graph.nodes:
        if node.op != "call_function" or kind_of(node) != _CALL or len(node.args) != 3 or node.kwargs:
            continue
        chain = _packed(node)
        if chain is not None:
            to.packed[node] = chain
            to.skipped.update(chain[1:])


def _packed(node: Node) -> list[Node] | None:
    """Return the packed projection, and all nodes of the chains from it and behind, the last reshape last."""
    steps = (
        "view",
        "transpose",
        "view",
        "select",
        "contiguous",
        "squeeze",
        "transpose",
        "unsqueeze",
        "unflatten",
    )
    chains = []
    if len(shape(node)) != 4 or shape(node)[0] != 1:
        return None
    for position, operand in enumerate(node.args[:3]):
        assert isinstance(operand, Node)
        chain = [operand]
        for step in steps:
            if chain[-1].op != "call_function" or kind_of(chain[-1]) != step:
                return None
            if step == "select" and chain[-1].args[1:] != (0, position):
                return None
            chain.append(chain[-1].args[0])
        chains.append(chain)
    source = chains[0][-1]
    inner = dict.fromkeys(n for chain in chains for n in chain[:-1])
    behind = list(_behind(node))
    if len(behind) != 2 or any(chain[-1] is not source for chain in chains):
        return None
    if any(user not in inner and user is not node for n in inner for user in n.users):
        return None
    return [source, *inner, *behind]


def _behind(node: Node) -> Iterator[Node]:
    """Yield the permute and the reshape that put heads behind tokens again."""
    for step in ("permute", "reshape"):
        if len(node.users) != 1:
            return
        (node,) = node.users
        if kind_of(node) != step or (step == "permute" and list(node.args[1]) != [2, 0, 1, 3]):
            return
        yield node


def _emit_packed(to: Exporter, node: Node) -> None:
    source, *_, reshape = to.packed[node]
    batch, heads, tokens, width = shape(node)
    name = to.path(node).removesuffix(f".{_CALL}")
    together = [batch, tokens, 3 * heads * width]
    packed = to.reshape(f"{name}.packed", to.value(source), shape(source), together)
    parts = [to.unique(f"{name}.{part}") for part in ("query", "key", "value")]
    sizes = to.constant(f"{name}.split.sizes", [heads * width] * 3)
    to.split(f"{name}.split", [packed, sizes], parts, axis=2)
    value = to.emit("Attention", f"{name}.attention", parts, q_num_heads=heads, kv_num_heads=heads)
    together = [batch, tokens, heads * width]
    to.values[reshape] = to.reshape(f"{name}.rows", value, together, shape(reshape))
