"""ATen operators against torch: each is read, run by onnxruntime and compared with what torch computes."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

torch = pytest.importorskip("torch")

from torch_modules import Calling, agrees  # noqa: E402

pytestmark = pytest.mark.slow

F = torch.nn.functional
nn = torch.nn


def x(*shape: int) -> Any:
    return torch.randn(*shape, generator=torch.Generator().manual_seed(len(shape) * 7 + sum(shape)))


IMAGE = (1, 4, 8, 10)

LAYERS: dict[str, tuple[Callable[[], Any], tuple[int, ...]]] = {
    "conv1d": (lambda: nn.Conv1d(4, 6, 3, 2, padding=1, groups=2), (2, 4, 9)),
    "conv2d same": (lambda: nn.Conv2d(4, 6, (3, 4), padding="same", dilation=(1, 2)), IMAGE),
    "conv2d valid": (lambda: nn.Conv2d(4, 6, 3, padding="valid", bias=False), IMAGE),
    "conv3d": (lambda: nn.Conv3d(4, 6, 3, padding=1), (1, 4, 5, 6, 7)),
    "conv_transpose": (lambda: nn.ConvTranspose2d(4, 6, 3, 2, padding=1, output_padding=1), IMAGE),
    "batch norm without gain": (lambda: nn.BatchNorm2d(4, affine=False), IMAGE),
    "layer norm": (lambda: nn.LayerNorm(10), IMAGE),
    "layer norm of two axes, no bias": (lambda: nn.LayerNorm([8, 10], bias=False), IMAGE),
    "layer norm without gain": (lambda: nn.LayerNorm(10, elementwise_affine=False), IMAGE),
    "rms norm": (lambda: nn.RMSNorm(10), IMAGE),
    "group norm": (lambda: nn.GroupNorm(2, 4), IMAGE),
    "instance norm": (lambda: nn.InstanceNorm2d(4, affine=True), IMAGE),
    "response norm": (lambda: nn.LocalResponseNorm(3, 0.5, 0.6, 1.5), IMAGE),
    "response norm of an even number": (lambda: nn.LocalResponseNorm(2, 0.5), IMAGE),
    "response norm by hand, of something else": (
        lambda: Calling(lambda m, t: t / (t * (t + 1)).mul(0.5).add(1.0).pow(0.75)),
        IMAGE,
    ),
    "linear of a vector": (lambda: nn.Linear(10, 3), (10,)),
    "linear of tokens": (lambda: nn.Linear(10, 3, bias=False), IMAGE),
    "prelu": (lambda: nn.PReLU(4), IMAGE),
    "max pool": (lambda: nn.MaxPool2d(3, 2, 1, ceil_mode=True), IMAGE),
    "average pool": (lambda: nn.AvgPool2d(3, 2, 1, count_include_pad=False), IMAGE),
    "average pool 1d": (lambda: nn.AvgPool1d(3), (2, 4, 9)),
    "adaptive average to equal windows": (lambda: nn.AdaptiveAvgPool2d((2, 5)), IMAGE),
    "adaptive maximum": (lambda: nn.AdaptiveMaxPool2d(1), IMAGE),
    "bilinear": (lambda: nn.Upsample(scale_factor=2, mode="bilinear"), IMAGE),
    "bilinear with corners": (lambda: nn.Upsample(size=(5, 9), mode="bilinear", align_corners=True), IMAGE),
    "nearest": (lambda: nn.Upsample(scale_factor=2), IMAGE),
    "bicubic": (lambda: nn.Upsample(scale_factor=2, mode="bicubic"), IMAGE),
    "pixel shuffle": (lambda: nn.PixelShuffle(2), IMAGE),
    "pixel unshuffle": (lambda: nn.PixelUnshuffle(2), IMAGE),
    "reflection pad": (lambda: nn.ReflectionPad2d((1, 2, 3, 0)), IMAGE),
    "replication pad": (lambda: nn.ReplicationPad2d(2), IMAGE),
    "multi-head attention": (
        lambda: Calling(lambda m, t: m.a(t, t, t)[0], a=nn.MultiheadAttention(12, 3)),
        (5, 2, 12),
    ),
    "transformer layer": (
        lambda: nn.TransformerEncoderLayer(12, 3, 24, batch_first=True, norm_first=True, activation="gelu"),
        (2, 5, 12),
    ),
    "transformer encoder": (
        lambda: nn.TransformerEncoder(nn.TransformerEncoderLayer(12, 2, 24, batch_first=True), 2),
        (2, 5, 12),
    ),
}


@pytest.mark.parametrize("name", LAYERS)
def test_layer(name: str) -> None:
    torch.manual_seed(0)
    make, shape = LAYERS[name]
    module = make()
    for part in module.modules():
        if isinstance(part, nn.modules.batchnorm._BatchNorm):
            part.running_mean.normal_()
            part.running_var.uniform_(0.5, 1.5)
    agrees(module, x(*shape))


UNARY = {
    "relu": F.relu,
    "silu": F.silu,
    "gelu": F.gelu,
    "gelu tanh": lambda t: F.gelu(t, approximate="tanh"),
    "hardswish": F.hardswish,
    "hardsigmoid": F.hardsigmoid,
    "relu6": F.relu6,
    "elu": F.elu,
    "selu": F.selu,
    "celu": lambda t: F.celu(t, 0.5),
    "leaky": lambda t: F.leaky_relu(t, 0.2),
    "mish": F.mish,
    "softplus": F.softplus,
    "log sigmoid": F.logsigmoid,
    "sigmoid": torch.sigmoid,
    "tanh": torch.tanh,
    "abs": torch.abs,
    "neg": lambda t: -t,
    "exp": torch.exp,
    "erf": torch.erf,
    "sin": torch.sin,
    "cos": torch.cos,
    "sign": torch.sign,
    "floor": torch.floor,
    "ceil": torch.ceil,
    "round": torch.round,
    "sqrt": lambda t: torch.sqrt(t.abs()),
    "rsqrt": lambda t: torch.rsqrt(t.abs() + 1),
    "square": torch.square,
    "reciprocal": lambda t: torch.reciprocal(t + 10),
    "log1p": lambda t: torch.log1p(t.abs()),
    "expm1": torch.expm1,
    "log2": lambda t: torch.log2(t.abs() + 1),
    "exp2": torch.exp2,
    "clamp": lambda t: t.clamp(-0.5, 1),
    "clamp below": lambda t: t.clamp(min=0.1),
    "clamp to tensor": lambda t: t.clamp(max=t[:, :1]),
    "power": lambda t: (t.abs() + 1) ** 1.5,
    "square by power": lambda t: t**2,
    "number to power": lambda t: 2**t,
    "is nan": lambda t: torch.isnan(t / t),
    "glu": lambda t: F.glu(t, 1),
    "cast": lambda t: (t * 3).to(torch.int32),
    "to bool and back": lambda t: (t > 0).float(),
}

BINARY = {
    "add scaled": lambda s, t: torch.add(s, t, alpha=2),
    "sub scaled": lambda s, t: torch.sub(s, t, alpha=0.5),
    "rsub": lambda s, t: 3 - s * t,
    "div": lambda s, t: s / (t.abs() + 1),
    "floor divide": lambda s, t: (s * 5) // (t.abs() + 1),
    "remainder": lambda s, t: s % (t.abs() + 1),
    "fmod": lambda s, t: torch.fmod(s, t.abs() + 1),
    "maximum": torch.maximum,
    "minimum": torch.minimum,
    "max of two": torch.max,
    "where": lambda s, t: torch.where(s > t, s, 0.5),
    "masked fill": lambda s, t: s.masked_fill(t <= 0, -1e9),
    "compare": lambda s, t: (s > t) & (t != 0) | ~(s >= 1),
    "promotes": lambda s, t: s * (t > 0),
    "compares with a number": lambda s, t: (s > 0) == (t < 1),
    "lerp": lambda s, t: torch.lerp(s, t, 0.3),
    "addcmul": lambda s, t: torch.addcmul(s, s, t, value=0.5),
    "whole numbers": lambda s, t: (s * 4).to(torch.int64) * 3 + 1,
    "in place": lambda s, t: (s * 1).add_(t).relu_(),
    "logical": lambda s, t: torch.logical_or(s > 0, torch.logical_not(t > 0)),
}

SHAPES = {
    "slice": lambda t: t[:, 1:3, ::2],
    "negative slice": lambda t: t[..., -3:-1],
    "select": lambda t: t[:, -1],
    "split": lambda t: t.split(3, dim=2)[1],
    "split unevenly": lambda t: t.split([1, 7], 2),
    "chunk": lambda t: t.chunk(3, 3)[2],
    "unbind": lambda t: t.unbind(1)[2],
    "cat": lambda t: torch.cat([t, t[:, :2], t.new_zeros(1, 1, 8, 10)], 1),
    "stack": lambda t: torch.stack([t, t * 2], 2),
    "permute": lambda t: t.permute(0, 2, 3, 1),
    "T": lambda t: t[0, 0].T,
    "movedim": lambda t: t.movedim(1, -1),
    "transpose": lambda t: t.mT,
    "flatten some": lambda t: t.flatten(1, 2),
    "unflatten": lambda t: t.unflatten(2, (2, 4)),
    "squeeze": lambda t: t.squeeze(0),
    "expand": lambda t: t[:, :1].expand(-1, 3, -1, -1),
    "repeat": lambda t: t.repeat(2, 1, 1, 3),
    "repeat interleave": lambda t: t.repeat_interleave(2, 1),
    "roll": lambda t: t.roll((2, -3), (2, 3)),
    "flip": lambda t: t.flip(1, 3),
    "pad": lambda t: F.pad(t, (1, 0, 2, 3), value=0.5),
    "circular": lambda t: F.pad(t, (1, 2, 0, 1), mode="circular"),
    "tril": lambda t: t.tril(1),
    "index": lambda t: t[:, :, torch.tensor([0, 3, 3])],
    "two indices": lambda t: t[0][torch.tensor([0, 1]), torch.tensor([2, 5])],
    "index select": lambda t: t.index_select(3, torch.tensor([9, 0])),
    "gather": lambda t: t.gather(3, torch.argmax(t, 3, keepdim=True)),
    "narrow": lambda t: t.narrow(2, 1, 4),
    "writes a slice": lambda t: _write(t, slice(2, 4)),
    "writes an index": lambda t: _write(t, 3),
    "changes a view": lambda t: _change_view(t),
    "zeros like": lambda t: torch.zeros_like(t) + t.new_ones(10) * t,
    "output twice": lambda t: (t + 1,) * 2,
    "arange": lambda t: t + torch.arange(10, dtype=t.dtype),
    "linspace": lambda t: t * torch.linspace(0, 1, 10),
}

REDUCTIONS = {
    "mean": lambda t: t.mean((2, 3)),
    "mean of all": lambda t: t.mean(),
    "sum": lambda t: t.sum(1, keepdim=True),
    "max": lambda t: t.max(1),
    "amax": lambda t: t.amax((1, 2)),
    "min of all": lambda t: t.min(),
    "argmax": lambda t: t.argmax(1),
    "argmin of all": lambda t: t.argmin(),
    "var": lambda t: t.var(1),
    "std": lambda t: t.std((2, 3), correction=0, keepdim=True),
    "norm": lambda t: F.normalize(t, dim=1),
    "softmax": lambda t: t.softmax(1),
    "log softmax": lambda t: F.log_softmax(t, -1),
    "logsumexp": lambda t: t.logsumexp(2),
    "cumsum": lambda t: t.cumsum(3),
    "topk": lambda t: t.topk(3, 2),
    "sort": lambda t: t.sort(3, descending=True)[0],
    "prod": lambda t: t.prod(3),
    "sum of whole numbers": lambda t: (t > 0).sum(1),
}

PRODUCTS = {
    "matmul": lambda t: t @ t.mT,
    "bmm": lambda t: torch.bmm(t[0], t[0].mT),
    "einsum": lambda t: torch.einsum("bchw,bdhw->bcd", t, t),
    "baddbmm": lambda t: torch.baddbmm(t[0], t[0], t[0].mT @ t[0], beta=0.5, alpha=2),
    "addmm": lambda t: torch.addmm(t[0, 0], t[0, 0], t[0, 0].T @ t[0, 0]),
    "attention": lambda t: F.scaled_dot_product_attention(t, t * 2, t + 1),
    "causal attention": lambda t: F.scaled_dot_product_attention(t, t, t, is_causal=True, scale=0.3),
    "attention with mask": lambda t: F.scaled_dot_product_attention(
        t, t, t, attn_mask=torch.ones(8, 8).tril().bool()
    ),
    "attention with bias": lambda t: F.scaled_dot_product_attention(t, t, t, attn_mask=t[:, :, :, :8]),
    "attention of three axes": lambda t: F.scaled_dot_product_attention(t[0], t[0], t[0]),
    "grouped attention": lambda t: F.scaled_dot_product_attention(t, t[:, :2], t[:, 1:3], enable_gqa=True),
}


def _write(t: Any, where: Any) -> Any:
    t = t.clone()
    t[:, :, where] = 0.5
    return t


def _change_view(t: Any) -> Any:
    t = t + 1
    view = t[:, 0]
    view.mul_(2)
    return t * 1


@pytest.mark.parametrize("name", [*UNARY, *SHAPES, *REDUCTIONS, *PRODUCTS])
def test_function_of_one_value(name: str) -> None:
    function = {**UNARY, **SHAPES, **REDUCTIONS, **PRODUCTS}[name]
    # The input is computed, so that no part of it is an input of the network itself.
    agrees(Calling(lambda m, t: function(t + 0.25)), x(*IMAGE))


@pytest.mark.parametrize("name", BINARY)
def test_function_of_two_values(name: str) -> None:
    agrees(Calling(lambda m, s, t: BINARY[name](s, t)), x(*IMAGE), x(4, 1, 10))
