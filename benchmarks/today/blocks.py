"""Parts that several networks share: attention in its variants, feed-forward parts, norms, convolutions."""

from __future__ import annotations

import torch
import torch.nn.functional as F
from torch import Tensor, nn


class RMSNorm(nn.Module):
    """Root-mean-square norm, written out in its parts as published language models write it."""

    def __init__(self, width: int, eps: float = 1e-6) -> None:
        super().__init__()
        self.weight, self.eps = nn.Parameter(1 + 0.1 * torch.randn(width)), eps

    def forward(self, x: Tensor) -> Tensor:
        return self.weight * (x * torch.rsqrt(x.pow(2).mean(-1, keepdim=True) + self.eps))


class LayerNorm2d(nn.Module):
    """Layer norm over the channels of a map, in parts."""

    def __init__(self, width: int, eps: float = 1e-6) -> None:
        super().__init__()
        self.weight, self.bias, self.eps = (
            nn.Parameter(torch.ones(width)),
            nn.Parameter(torch.zeros(width)),
            eps,
        )

    def forward(self, x: Tensor) -> Tensor:
        mean = x.mean(1, keepdim=True)
        spread = (x - mean).pow(2).mean(1, keepdim=True)
        x = (x - mean) / torch.sqrt(spread + self.eps)
        return self.weight[:, None, None] * x + self.bias[:, None, None]


class Attention(nn.Module):
    """Attention of several heads; keys and values of another sequence where `memory` is given."""

    def __init__(self, width: int, heads: int, memory: int | None = None, fused: bool = True) -> None:
        super().__init__()
        self.heads, self.fused = heads, fused
        self.q = nn.Linear(width, width)
        self.k = nn.Linear(memory or width, width, bias=False)
        self.v = nn.Linear(memory or width, width)
        self.out = nn.Linear(width, width)

    def split(self, x: Tensor) -> Tensor:
        batch, rows, width = x.shape
        return x.view(batch, rows, self.heads, width // self.heads).transpose(1, 2)

    def forward(
        self, x: Tensor, memory: Tensor | None = None, mask: Tensor | None = None, causal: bool = False
    ) -> Tensor:
        other = x if memory is None else memory
        q, k, v = self.split(self.q(x)), self.split(self.k(other)), self.split(self.v(other))
        if self.fused:
            y = F.scaled_dot_product_attention(q, k, v, attn_mask=mask, is_causal=causal)
        else:
            scores = q @ k.transpose(-1, -2) / q.shape[-1] ** 0.5
            if mask is not None:
                scores = scores + mask
            y = scores.softmax(-1) @ v
        return self.out(y.transpose(1, 2).reshape(x.shape))


class FeedForward(nn.Sequential):
    """Two products around a function."""

    def __init__(self, width: int, hidden: int, act: nn.Module | None = None) -> None:
        super().__init__(nn.Linear(width, hidden), act or nn.GELU(), nn.Linear(hidden, width))


class Encoder(nn.Module):
    """A pre-norm block of a transformer; with `memory` it attends to that, too."""

    def __init__(
        self, width: int, heads: int, hidden: int, memory: int | None = None, fused: bool = True
    ) -> None:
        super().__init__()
        self.attention = Attention(width, heads, fused=fused)
        self.cross = None if memory is None else Attention(width, heads, memory, fused=fused)
        self.feed = FeedForward(width, hidden)
        self.norms = nn.ModuleList([nn.LayerNorm(width) for _ in range(3)])

    def forward(
        self, x: Tensor, memory: Tensor | None = None, mask: Tensor | None = None, causal: bool = False
    ) -> Tensor:
        x = x + self.attention(self.norms[0](x), mask=mask, causal=causal)
        if self.cross is not None:
            x = x + self.cross(self.norms[1](x), memory)
        return x + self.feed(self.norms[2](x))


class PostNorm(nn.Module):
    """A post-norm block, as BERT's."""

    def __init__(self, width: int, heads: int, hidden: int, fused: bool = True) -> None:
        super().__init__()
        self.attention, self.feed = Attention(width, heads, fused=fused), FeedForward(width, hidden)
        self.norms = nn.ModuleList([nn.LayerNorm(width, eps=1e-12) for _ in range(2)])

    def forward(self, x: Tensor, mask: Tensor | None = None) -> Tensor:
        x = self.norms[0](x + self.attention(x, mask=mask))
        return self.norms[1](x + self.feed(x))


def conv(
    inside: int, outside: int, kernel: int = 3, stride: int = 1, groups: int = 1, act: nn.Module | None = None
) -> nn.Sequential:
    """A convolution, a batch norm and a function."""
    return nn.Sequential(
        nn.Conv2d(inside, outside, kernel, stride, kernel // 2, groups=groups, bias=False),
        nn.BatchNorm2d(outside),
        act or nn.ReLU(),
    )


class SqueezeExcite(nn.Module):
    """Channels weighted by what the whole map says."""

    def __init__(self, width: int, inner: int, gate: nn.Module | None = None) -> None:
        super().__init__()
        self.down, self.up = nn.Conv2d(width, inner, 1), nn.Conv2d(inner, width, 1)
        self.gate = gate or nn.Sigmoid()

    def forward(self, x: Tensor) -> Tensor:
        return x * self.gate(self.up(F.relu(self.down(F.adaptive_avg_pool2d(x, 1)))))


class Inverted(nn.Module):
    """An inverted residual: wider, by channel, narrower."""

    def __init__(
        self,
        inside: int,
        outside: int,
        expand: int,
        kernel: int = 3,
        stride: int = 1,
        act: nn.Module | None = None,
        excite: bool = False,
        gate: nn.Module | None = None,
    ) -> None:
        super().__init__()
        wide = inside * expand
        self.same = inside == outside and stride == 1
        self.body = nn.Sequential(
            conv(inside, wide, 1, act=act),
            conv(wide, wide, kernel, stride, wide, act=act),
            SqueezeExcite(wide, max(8, inside // 4), gate) if excite else nn.Identity(),
            nn.Conv2d(wide, outside, 1, bias=False),
            nn.BatchNorm2d(outside),
        )

    def forward(self, x: Tensor) -> Tensor:
        return x + self.body(x) if self.same else self.body(x)


def classifier(width: int, classes: int = 100) -> nn.Sequential:
    """A pooled linear layer."""
    return nn.Sequential(nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(width, classes))
