"""Operators with parameters, pooling and resizing."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np
import torch

from onchip.readers.torch_export.exporter import Exporter, Node, arguments, kind_of, rule, shape


def per_axis(setting: int | Sequence[int], axes: int) -> list[int]:
    """Return one number for every axis, given as one for all or as a list."""
    values = [setting] if isinstance(setting, int) else list(setting)
    return values * axes if len(values) == 1 else values


def or_constant(to: Exporter, node: Node, key: str, given: Any, size: int, fill: float) -> str:
    """Return an optional operand, or the constant that stands for its absence."""
    if given is not None:
        return to.value(given)
    return to.tensor(
        to.unique(f"{to.path(node)}.{key}"),
        torch.full((size,), fill, dtype=node.args[0].meta["val"].dtype),
    )


# ---------------------------------------------------------------------- convolution


@rule("conv1d", "conv2d", "conv3d")
def _conv(to: Exporter, node: Node) -> None:
    a = arguments(node)
    kernel = shape(a["weight"])[2:]
    dilation = per_axis(a["dilation"], len(kernel))
    if a["padding"] == "same":
        total = [d * (k - 1) for d, k in zip(dilation, kernel, strict=True)]
        pads = [t // 2 for t in total] + [t - t // 2 for t in total]
    else:
        pads = per_axis(0 if a["padding"] == "valid" else a["padding"], len(kernel)) * 2
    _emit_conv(to, node, a, "Conv", pads, strides=per_axis(a["stride"], len(kernel)), dilations=dilation)


@rule("conv_transpose1d", "conv_transpose2d", "conv_transpose3d")
def _conv_transpose(to: Exporter, node: Node) -> None:
    a = arguments(node)
    axes = len(shape(a["weight"])) - 2
    _emit_conv(
        to,
        node,
        a,
        "ConvTranspose",
        per_axis(a["padding"], axes) * 2,
        strides=per_axis(a["stride"], axes),
        dilations=per_axis(a["dilation"], axes),
        output_padding=per_axis(a["output_padding"], axes),
    )


@rule("convolution")
def _convolution(to: Exporter, node: Node) -> None:
    a = arguments(node)
    axes = len(shape(a["weight"])) - 2
    settings: dict[str, Any] = {
        "strides": per_axis(a["stride"], axes),
        "dilations": per_axis(a["dilation"], axes),
    }
    if a["transposed"]:
        settings["output_padding"] = per_axis(a["output_padding"], axes)
    op = "ConvTranspose" if a["transposed"] else "Conv"
    _emit_conv(to, node, a, op, per_axis(a["padding"], axes) * 2, **settings)


def _emit_conv(
    to: Exporter, node: Node, a: dict[str, Any], op: str, pads: list[int], **settings: Any
) -> None:
    kernel = shape(a["weight"])[2:]
    if len(shape(a["input"])) != len(kernel) + 2:
        raise to.refuse(node, "has an input without a batch dimension")
    operands = [to.value(a[key]) for key in ("input", "weight", "bias") if a[key] is not None]
    strides = settings.pop("strides")
    to.values[node] = to.emit(
        op,
        to.path(node),
        operands,
        kernel_shape=kernel,
        strides=strides,
        pads=pads,
        **settings,
        group=a["groups"],
    )


# ---------------------------------------------------------------------- products


@rule("linear")
def _linear(to: Exporter, node: Node) -> None:
    """Emit `Gemm`: the one operator that includes the bias; it takes matrices."""
    a = arguments(node)
    name, source = to.path(node), shape(a["input"])
    value = to.value(a["input"])
    if len(shape(a["weight"])) != 2:
        raise to.refuse(node, "has a weight that is no matrix")
    if len(source) != 2:
        value = to.reshape(f"{name}.rows", value, source, [math.prod(source[:-1]), source[-1]])
    operands = [value] + [to.value(a[key]) for key in ("weight", "bias") if a[key] is not None]
    value = to.emit("Gemm", name, operands, transB=1)
    if len(source) != 2:
        rows = [math.prod(source[:-1]), shape(node)[-1]]
        value = to.reshape(f"{name}.tokens", value, rows, shape(node))
    to.values[node] = value


@rule("addmm")
def _addmm(to: Exporter, node: Node) -> None:
    a = arguments(node)
    operands = [to.value(a[key]) for key in ("mat1", "mat2", "self")]
    to.values[node] = to.emit("Gemm", to.path(node), operands, alpha=float(a["alpha"]), beta=float(a["beta"]))


@rule("matmul", "mm", "bmm")
def _matmul(to: Exporter, node: Node) -> None:
    to.values[node] = to.emit("MatMul", to.path(node), [to.value(n) for n in node.args[:2]])


@rule("baddbmm")
def _baddbmm(to: Exporter, node: Node) -> None:
    a = arguments(node)
    name, dtype = to.path(node), node.meta["val"].dtype
    value = to.emit("MatMul", f"{name}.product", [to.value(a["batch1"]), to.value(a["batch2"])])
    if a["alpha"] != 1:
        value = to.emit("Mul", f"{name}.alpha", [value, to.operand(f"{name}.alpha.value", a["alpha"], dtype)])
    if a["beta"] != 0:
        other = to.value(a["self"])
        if a["beta"] != 1:
            other = to.emit(
                "Mul", f"{name}.beta", [other, to.operand(f"{name}.beta.value", a["beta"], dtype)]
            )
        value = to.emit("Add", name, [other, value])
    to.values[node] = value


@rule("einsum")
def _einsum(to: Exporter, node: Node) -> None:
    a = arguments(node)
    operands = [to.value(n) for n in a["tensors"]]
    to.values[node] = to.emit("Einsum", to.path(node), operands, equation=a["equation"])


@rule("embedding")
def _embedding(to: Exporter, node: Node) -> None:
    a = arguments(node)
    operands = [to.value(a["weight"]), to.value(a["indices"])]
    to.values[node] = to.emit("Gather", to.path(node), operands, axis=0)


@rule("embedding_bag")
def _embedding_bag(to: Exporter, node: Node) -> None:
    """Emit sums, means or largest of as many rows for every bag."""
    a = arguments(node)
    name, (count, *_), indices = to.path(node), shape(a["indices"]), a["indices"]
    offsets = to.known.get(a["offsets"]) if a["offsets"] is not None else None
    if offsets is None or a["per_sample_weights"] is not None or a.get("padding_idx") is not None:
        raise to.refuse(node, "weighs its rows, or has bags of sizes that only their contents tell")
    bags = [int(n) for n in offsets.reshape(-1)]
    ends = bags[1:] if a["include_last_offset"] else [*bags[1:], count]
    starts = bags[: len(ends)]
    sizes = {end - start for start, end in zip(starts, ends, strict=True)}
    if len(shape(indices)) != 1 or len(sizes) != 1 or bags[0] or ends[-1] != count:
        raise to.refuse(node, "has bags of several sizes")
    [size] = sizes
    rows = to.reshape(f"{name}.bags", to.value(indices), [count], [len(ends), size])
    found = to.emit("Gather", f"{name}.rows", [to.value(a["weight"]), rows], axis=0)
    op = ("ReduceSum", "ReduceMean", "ReduceMax")[a["mode"]]
    axes = to.constant(f"{name}.axes", [1])
    to.parts[node] = [to.emit(op, name, [found, axes], keepdims=0), "", "", ""]


# ---------------------------------------------------------------------- normalisation


@rule("batch_norm", "_native_batch_norm_legit_no_training", "cudnn_batch_norm", "miopen_batch_norm")
def _batch_norm(to: Exporter, node: Node) -> None:
    a = arguments(node)
    if a.get("training"):
        raise to.refuse(node, "is in training mode: call .eval() on the module")
    channels = shape(a["input"])[1]
    if a["running_mean"] is None:
        raise to.refuse(node, "has no running statistics: they would depend on the input")
    operands = [
        to.value(a["input"]),
        or_constant(to, node, "weight", a["weight"], channels, 1.0),
        or_constant(to, node, "bias", a["bias"], channels, 0.0),
        to.value(a["running_mean"]),
        to.value(a["running_var"]),
    ]
    _single(to, node, to.emit("BatchNormalization", to.path(node), operands, epsilon=a["eps"]))


@rule("layer_norm", "native_layer_norm")
def _layer_norm(to: Exporter, node: Node) -> None:
    a = arguments(node)
    operands = [to.value(a["input"]), *_gain(to, node, a)]
    if a["bias"] is not None:
        operands.append(to.value(a["bias"]))
    axis = -len(a["normalized_shape"])
    _single(to, node, to.emit("LayerNormalization", to.path(node), operands, axis=axis, epsilon=a["eps"]))


@rule("rms_norm")
def _rms_norm(to: Exporter, node: Node) -> None:
    a = arguments(node)
    eps = a["eps"] if a["eps"] is not None else torch.finfo(node.meta["val"].dtype).eps
    operands = [to.value(a["input"]), *_gain(to, node, a)]
    axis = -len(a["normalized_shape"])
    to.values[node] = to.emit("RMSNormalization", to.path(node), operands, axis=axis, epsilon=eps)


def _gain(to: Exporter, node: Node, a: dict[str, Any]) -> list[str]:
    if a["weight"] is not None:
        return [to.value(a["weight"])]
    ones = torch.ones(a["normalized_shape"], dtype=node.args[0].meta["val"].dtype)
    return [to.tensor(to.unique(f"{to.path(node)}.weight"), ones)]


@rule("group_norm", "native_group_norm")
def _group_norm(to: Exporter, node: Node) -> None:
    a = arguments(node)
    groups = a.get("num_groups", a.get("group"))
    channels = shape(node.args[0])[1]
    operands = [
        to.value(node.args[0]),
        or_constant(to, node, "weight", a["weight"], channels, 1.0),
        or_constant(to, node, "bias", a["bias"], channels, 0.0),
    ]
    _single(
        to, node, to.emit("GroupNormalization", to.path(node), operands, num_groups=groups, epsilon=a["eps"])
    )


@rule("instance_norm")
def _instance_norm(to: Exporter, node: Node) -> None:
    a = arguments(node)
    if not a["use_input_stats"]:
        raise to.refuse(node, "uses running statistics, which ONNX's InstanceNormalization has not")
    channels = shape(a["input"])[1]
    operands = [
        to.value(a["input"]),
        or_constant(to, node, "weight", a["weight"], channels, 1.0),
        or_constant(to, node, "bias", a["bias"], channels, 0.0),
    ]
    to.values[node] = to.emit("InstanceNormalization", to.path(node), operands, epsilon=a["eps"])


def _single(to: Exporter, node: Node, value: str) -> None:
    """Set the value of an operator with several outputs in torch, of which only the first is used."""
    if isinstance(node.meta["val"], torch.Tensor):
        to.values[node] = value
        return
    for user in node.users:
        if user.args[1] != 0 and user.users:
            raise to.refuse(node, f"its output {user.args[1]} is read, which ONNX has not")
        if user.args[1] == 0:
            to.values[user] = value
        else:
            to.skipped.add(user)


# ---------------------------------------------------------------------- pooling and resizing


@rule(
    "max_pool1d", "max_pool2d", "max_pool3d", "avg_pool1d", "avg_pool2d", "avg_pool3d",
    "max_pool2d_with_indices", "max_pool3d_with_indices",
)  # fmt: skip
def _pool(to: Exporter, node: Node) -> None:
    a = arguments(node)
    axes = int(kind_of(node)[8])
    if len(shape(a["self"])) != axes + 2:
        raise to.refuse(node, "has an input without a batch dimension")
    attributes: dict[str, Any] = {
        "kernel_shape": per_axis(a["kernel_size"], axes),
        "strides": per_axis(a["stride"] or a["kernel_size"], axes),
        "pads": per_axis(a["padding"], axes) * 2,
    }
    if a["ceil_mode"]:
        attributes["ceil_mode"] = 1
    if kind_of(node).startswith("max"):
        op = "MaxPool"
        attributes["dilations"] = per_axis(a["dilation"], axes)
    else:
        op = "AveragePool"
        if a.get("divisor_override") is not None:
            raise to.refuse(node, "has a divisor of its own, which ONNX has not")
        attributes["count_include_pad"] = int(a["count_include_pad"])
    _single(to, node, to.emit(op, to.path(node), [to.value(a["self"])], **attributes))


@rule(
    "adaptive_avg_pool1d", "adaptive_avg_pool2d", "adaptive_avg_pool3d", "_adaptive_avg_pool2d",
    "_adaptive_avg_pool3d", "adaptive_max_pool1d", "adaptive_max_pool2d", "adaptive_max_pool3d",
)  # fmt: skip
def _adaptive_pool(to: Exporter, node: Node) -> None:
    source = node.args[0]
    assert isinstance(source, Node)
    value = node.meta["val"]
    wanted = [int(n) for n in (value if isinstance(value, torch.Tensor) else value[0]).shape]
    here, axes = shape(source), int(kind_of(node)[-2])
    mean = "avg" in kind_of(node)
    if here == wanted:  # pools of one pixel: VGG at its own resolution
        _single(to, node, to.emit("Identity", to.path(node), [to.value(source)]))
        return
    if len(here) != axes + 2:
        raise to.refuse(node, "has an input without a batch dimension")
    if set(wanted[2:]) == {1}:
        op = "GlobalAveragePool" if mean else "GlobalMaxPool"
        _single(to, node, to.emit(op, to.path(node), [to.value(source)]))
        return
    if any(n % m for n, m in zip(here[2:], wanted[2:], strict=True)):
        raise to.refuse(node, f"pools {here[2:]} to {wanted[2:]}, which are no equal windows")
    kernel = [n // m for n, m in zip(here[2:], wanted[2:], strict=True)]
    op = "AveragePool" if mean else "MaxPool"
    _single(to, node, to.emit(op, to.path(node), [to.value(source)], kernel_shape=kernel, strides=kernel))


@rule("upsample_linear1d", "upsample_bilinear2d", "upsample_trilinear3d", "upsample_bicubic2d")
def _upsample(to: Exporter, node: Node) -> None:
    a = arguments(node)
    mode = "align_corners" if a["align_corners"] else "half_pixel"
    kind = {"mode": "cubic", "cubic_coeff_a": -0.75} if "cubic" in kind_of(node) else {"mode": "linear"}
    _resize(to, node, a, coordinate_transformation_mode=mode, **kind)


@rule("upsample_nearest1d", "upsample_nearest2d", "upsample_nearest3d")
def _nearest(to: Exporter, node: Node) -> None:
    _resize(
        to,
        node,
        arguments(node),
        mode="nearest",
        coordinate_transformation_mode="asymmetric",
        nearest_mode="floor",
    )


def _resize(to: Exporter, node: Node, a: dict[str, Any], **attributes: Any) -> None:
    name = to.path(node)
    value = to.value(a["input"] if "input" in a else a["self"])
    sizes = to.sizes(f"{name}.sizes", node)
    to.values[node] = to.emit("Resize", name, [value, "", "", sizes], **attributes)


@rule("grid_sampler", "grid_sampler_2d")
def _grid_sample(to: Exporter, node: Node) -> None:
    a = arguments(node)
    to.values[node] = to.emit(
        "GridSample",
        to.path(node),
        [to.value(a["input"]), to.value(a["grid"])],
        mode=("linear", "nearest", "cubic")[a["interpolation_mode"]],
        padding_mode=("zeros", "border", "reflection")[a["padding_mode"]],
        align_corners=int(a["align_corners"]),
    )


@rule("pixel_shuffle", "pixel_unshuffle")
def _pixel_shuffle(to: Exporter, node: Node) -> None:
    """Emit the inverse as reshape, transpose, reshape: `SpaceToDepth` orders channels differently."""
    source, factor = node.args
    assert isinstance(source, Node)
    assert isinstance(factor, int)
    name = to.path(node)
    if kind_of(node) == "pixel_shuffle":
        to.values[node] = to.emit("DepthToSpace", name, [to.value(source)], blocksize=factor, mode="CRD")
        return
    n, c, h, w = shape(source)
    apart = [n, c, h // factor, factor, w // factor, factor]
    value = to.reshape(f"{name}.apart", to.value(source), shape(source), apart)
    value = to.emit("Transpose", f"{name}.transpose", [value], perm=[0, 1, 3, 5, 2, 4])
    to.values[node] = to.reshape(name, value, [apart[i] for i in (0, 1, 3, 5, 2, 4)], shape(node))


def float_constant(to: Exporter, name: str, value: float, dtype: torch.dtype) -> str:
    """Return a scalar constant; single precision goes through numpy, as in the committed networks."""
    if dtype == torch.float32:
        return to.constant(name, value, np.float32)
    return to.tensor(to.unique(name), torch.tensor(value, dtype=dtype))
