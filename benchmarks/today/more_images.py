"""More networks that read images: parts of backbones, detectors and decoders that no other file here has."""

from __future__ import annotations

import math

import torch
import torch.nn.functional as F
from blocks import Encoder, FeedForward, SqueezeExcite, classifier, conv
from more_dense import (
    BiFpn,
    Correlation,
    CostVolume,
    Csp,
    Cycle,
    Deformable,
    Focus,
    MaskDecoder,
    Nested,
    PyramidPool,
    Spade,
)
from torch import Tensor, nn


class CosineWindows(nn.Module):
    """Swin V2: cosines of shifted windows, a bias that a small network makes of distances, norms behind."""

    def __init__(self, width: int = 32, heads: int = 2, window: int = 4) -> None:
        super().__init__()
        self.heads, self.window = heads, window
        self.patches, self.merge = nn.Conv2d(3, width, 4, 4), nn.Linear(4 * width, 2 * width, bias=False)
        self.qkv, self.out = nn.Linear(width, 3 * width), nn.Linear(width, width)
        self.heat = nn.Parameter(torch.full((heads, 1, 1), math.log(10)))
        self.bias = nn.Sequential(nn.Linear(2, 64), nn.ReLU(), nn.Linear(64, heads, bias=False))
        self.norms = nn.ModuleList([nn.LayerNorm(n) for n in (width, width, 2 * width)])
        self.feed, self.head = FeedForward(width, 4 * width), nn.Linear(2 * width, 10)
        far = torch.stack(torch.meshgrid(*[torch.arange(1.0 - window, window)] * 2, indexing="ij"), -1)
        self.register_buffer("far", far.sign() * (far.abs() * 8 / (window - 1) + 1).log2() / 3)
        at = torch.stack(torch.meshgrid(*[torch.arange(window)] * 2, indexing="ij")).flatten(1)
        gaps = at[:, :, None] - at[:, None] + window - 1
        self.register_buffer("places", gaps[0] * (2 * window - 1) + gaps[1])

    def attend(self, x: Tensor, shift: int) -> Tensor:
        n, h, w, c = x.shape
        m = self.window
        if shift:
            x = torch.roll(x, (-shift, -shift), (1, 2))
        y = x.view(n, h // m, m, w // m, m, c).permute(0, 1, 3, 2, 4, 5).reshape(-1, m * m, c)
        q, k, v = self.qkv(y).view(y.shape[0], m * m, 3, self.heads, -1).permute(2, 0, 3, 1, 4)
        scores = F.normalize(q, dim=-1) @ F.normalize(k, dim=-1).transpose(-2, -1)
        table = 16 * torch.sigmoid(self.bias(self.far).view(-1, self.heads))
        bias = table[self.places].permute(2, 0, 1)
        shares = (scores * self.heat.clamp(max=math.log(100)).exp() + bias).softmax(-1)
        y = self.out((shares @ v).transpose(1, 2).reshape(-1, m * m, c))
        y = y.view(n, h // m, w // m, m, m, c).permute(0, 1, 3, 2, 4, 5).reshape(n, h, w, c)
        return torch.roll(y, (shift, shift), (1, 2)) if shift else y

    def forward(self, x: Tensor) -> Tensor:
        x = self.patches(x).permute(0, 2, 3, 1)
        x = x + self.norms[0](self.attend(x, 0))
        x = x + self.norms[1](self.feed(x))
        x = x + self.norms[0](self.attend(x, 2))
        parts = [x[:, i::2, j::2] for j in range(2) for i in range(2)]
        return self.head(self.norms[2](self.merge(torch.cat(parts, -1))).mean((1, 2)))


class MaxViT(nn.Module):
    """An inverted block, attention in blocks of pixels, then attention along a grid across the map."""

    def __init__(self, width: int = 32) -> None:
        super().__init__()
        self.stem = conv(3, width, 3, 2)
        self.body = nn.Sequential(
            nn.BatchNorm2d(width), nn.Conv2d(width, 4 * width, 1), nn.GELU(),
            nn.Conv2d(4 * width, 4 * width, 3, 1, 1, groups=4 * width), nn.GELU(),
            SqueezeExcite(4 * width, 8), nn.Conv2d(4 * width, width, 1),
        )  # fmt: skip
        self.blocks = nn.ModuleList([Encoder(width, 2, 2 * width) for _ in range(2)])
        self.head = classifier(width, 10)

    def forward(self, x: Tensor) -> Tensor:
        x = self.stem(x)
        x = x + self.body(x)
        n, c, h, w = x.shape
        y = x.view(n, c, h // 4, 4, w // 4, 4).permute(0, 2, 4, 3, 5, 1).reshape(-1, 16, c)
        y = self.blocks[0](y)
        x = y.view(n, h // 4, w // 4, 4, 4, c).permute(0, 5, 1, 3, 2, 4).reshape(n, c, h, w)
        y = x.view(n, c, 4, h // 4, 4, w // 4).permute(0, 3, 5, 2, 4, 1).reshape(-1, 16, c)
        y = self.blocks[1](y)
        x = y.view(n, h // 4, w // 4, 4, 4, c).permute(0, 5, 3, 1, 4, 2).reshape(n, c, h, w)
        return self.head(x)


class SplitAttention(nn.Module):
    """ResNeSt: groups of a convolution are added, asked, and weighed by a softmax across them."""

    def __init__(self, width: int = 32) -> None:
        super().__init__()
        self.stem, self.body = conv(3, width, 3, 2), conv(width, 2 * width, 3, groups=2)
        self.down, self.up = conv(width, 16, 1), nn.Conv2d(16, 2 * width, 1)
        self.head = classifier(width, 10)

    def forward(self, x: Tensor) -> Tensor:
        x = self.stem(x)
        y = self.body(x)
        n, c, h, w = x.shape
        parts = y.view(n, 2, c, h, w)
        gap = parts.sum(1).mean((2, 3), keepdim=True)
        shares = self.up(self.down(gap)).view(n, 2, c).softmax(1)
        return self.head(x + (parts * shares[..., None, None]).sum(1))


class Attentions(nn.Module):
    """CBAM, an attention by a convolution over channels, and one along each side of the map."""

    def __init__(self, width: int = 32) -> None:
        super().__init__()
        self.stem = conv(3, width, 3, 2)
        self.mlp = nn.Sequential(nn.Linear(width, 8), nn.ReLU(), nn.Linear(8, width))
        self.map, self.near = nn.Conv2d(2, 1, 7, padding=3), nn.Conv1d(1, 1, 3, padding=1, bias=False)
        self.side, self.rows, self.columns = conv(width, 8, 1), nn.Conv2d(8, width, 1), nn.Conv2d(8, width, 1)
        self.head = classifier(width, 10)

    def forward(self, x: Tensor) -> Tensor:
        x = self.stem(x)
        gate = torch.sigmoid(self.mlp(x.mean((2, 3))) + self.mlp(x.amax((2, 3))))
        x = x * gate[..., None, None]
        x = x * torch.sigmoid(self.map(torch.cat((x.mean(1, keepdim=True), x.amax(1, keepdim=True)), 1)))
        y = self.near(x.mean((2, 3))[:, None]).transpose(1, 2)[..., None]
        x = x * torch.sigmoid(y)
        h, w = x.shape[2:]
        both = self.side(torch.cat((x.mean(3, keepdim=True), x.mean(2, keepdim=True).transpose(2, 3)), 2))
        rows, columns = both.split((h, w), 2)
        x = x * self.rows(rows).sigmoid() * self.columns(columns.transpose(2, 3)).sigmoid()
        return self.head(x)


class NonLocal(nn.Module):
    """All positions of a map ask all positions of a smaller one; channels are gated by global context."""

    def __init__(self, width: int = 32) -> None:
        super().__init__()
        self.stem = conv(3, width, 3, 2)
        self.q, self.k, self.v = (nn.Conv2d(width, width // 2, 1) for _ in range(3))
        self.out, self.ask = nn.Conv2d(width // 2, width, 1), nn.Conv2d(width, 1, 1)
        self.more = nn.Sequential(
            nn.Conv2d(width, 8, 1), nn.LayerNorm([8, 1, 1]), nn.ReLU(), nn.Conv2d(8, width, 1)
        )
        self.head = classifier(width, 10)

    def forward(self, x: Tensor) -> Tensor:
        x = self.stem(x)
        n, c, h, w = x.shape
        small = F.max_pool2d(x, 2)
        scores = self.q(x).flatten(2).transpose(1, 2) @ self.k(small).flatten(2)
        y = (scores.softmax(-1) @ self.v(small).flatten(2).transpose(1, 2)).transpose(1, 2)
        x = x + self.out(y.reshape(n, c // 2, h, w))
        shares = self.ask(x).view(n, 1, h * w).softmax(-1)
        context = (x.view(n, c, h * w) @ shares.transpose(1, 2))[..., None]
        return self.head(x + self.more(context))


class Involution(nn.Module):
    """Kernels made at every pixel from the pixel itself, over patches that are unfolded."""

    def __init__(self, width: int = 16) -> None:
        super().__init__()
        self.stem, self.make = conv(3, width, 3, 2), nn.Conv2d(width, 9 * 2, 1)
        self.head = classifier(width, 10)

    def forward(self, x: Tensor) -> Tensor:
        x = self.stem(x)
        n, c, h, w = x.shape
        patches = F.unfold(x, 3, padding=1).view(n, 2, c // 2, 9, h, w)
        kernels = self.make(x).view(n, 2, 1, 9, h, w)
        return self.head((patches * kernels).sum(3).reshape(n, c, h, w))


class Kernels(nn.Module):
    """Large kernels: one split over four groups of channels, one in parts that are dilated, one gated."""

    def __init__(self, width: int = 32) -> None:
        super().__init__()
        self.stem = conv(3, width, 3, 2)
        self.square = nn.Conv2d(8, 8, 3, padding=1, groups=8)
        self.wide, self.high = (
            nn.Conv2d(8, 8, (1, 11), padding=(0, 5), groups=8),
            nn.Conv2d(8, 8, (11, 1), padding=(5, 0), groups=8),
        )
        self.near = nn.Conv2d(width, width, 5, padding=2, groups=width)
        self.far = nn.Conv2d(width, width, 7, padding=9, dilation=3, groups=width)
        self.point, self.shared = nn.Conv2d(width, width, 1), nn.Conv2d(width, 2 * width, 1)
        self.norm, self.head = nn.GroupNorm(4, width), classifier(width, 10)

    def forward(self, x: Tensor) -> Tensor:
        x = self.stem(x)
        a, b, c, d = x.split((8, 8, 8, 8), 1)
        x = x + self.norm(torch.cat((a, self.square(b), self.wide(c), self.high(d)), 1))
        x = x * self.point(self.far(self.near(x)))
        a, b = self.shared(x).chunk(2, 1)
        return self.head(F.silu(a) * b)


class Capsules(nn.Module):
    """Capsules: vectors vote for vectors, and agree in three rounds of routing."""

    def __init__(self) -> None:
        super().__init__()
        self.stem, self.first = nn.Conv2d(3, 32, 5, 2), nn.Conv2d(32, 32, 5, 2)
        self.votes = nn.Parameter(torch.randn(1, 1, 36 * 4, 10, 8, 8) / 10)

    def squash(self, x: Tensor) -> Tensor:
        size = (x * x).sum(-1, keepdim=True)
        return size / (1 + size) * x / (size.sqrt() + 1e-8)

    def forward(self, x: Tensor) -> Tensor:
        y = self.first(F.relu(self.stem(x)))
        n = y.shape[0]
        y = self.squash(y.view(n, 4, 8, -1).permute(0, 3, 1, 2).reshape(n, -1, 8))
        votes = (self.votes[0] @ y[:, :, None, :, None]).squeeze(-1)
        b = torch.zeros(n, votes.shape[1], 10, 1)
        for _ in range(2):
            v = self.squash((b.softmax(2) * votes).sum(1, keepdim=True))
            b = b + (votes * v).sum(-1, keepdim=True)
        return self.squash((b.softmax(2) * votes).sum(1)).norm(dim=-1)


class Registers(nn.Module):
    """DINOv2: registers beside the class word, scaled branches, a gated feed-forward; two outputs."""

    def __init__(self, width: int = 64) -> None:
        super().__init__()
        self.patches = nn.Conv2d(3, width, 8, 8)
        self.word, self.registers = (
            nn.Parameter(torch.randn(1, 1, width)),
            nn.Parameter(torch.randn(1, 4, width)),
        )
        self.places = nn.Parameter(torch.randn(1, 17, width))
        self.qkv, self.out = nn.Linear(width, 3 * width), nn.Linear(width, width)
        self.up, self.down = nn.Linear(width, 4 * width), nn.Linear(2 * width, width)
        self.norms = nn.ModuleList([nn.LayerNorm(width) for _ in range(3)])
        self.scales = nn.Parameter(torch.rand(2, width))

    def forward(self, x: Tensor) -> tuple[Tensor, Tensor]:
        x = self.patches(x).flatten(2).transpose(1, 2)
        n, _rows, width = x.shape
        x = torch.cat((self.word.expand(n, -1, -1), x), 1) + self.places
        x = torch.cat((x[:, :1], self.registers.expand(n, -1, -1), x[:, 1:]), 1)
        q, k, v = self.qkv(self.norms[0](x)).reshape(n, -1, 3, 4, width // 4).permute(2, 0, 3, 1, 4).unbind(0)
        y = F.scaled_dot_product_attention(q, k, v).transpose(1, 2).reshape(x.shape)
        x = x + self.scales[0] * self.out(y)
        a, b = self.up(self.norms[1](x)).chunk(2, -1)
        x = self.norms[2](x + self.scales[1] * self.down(F.silu(a) * b))
        return x[:, 0], x[:, 5:]


class TalkingHeads(nn.Module):
    """CaiT: products mix the heads before and after the softmax; at last the class word alone asks."""

    def __init__(self, width: int = 48, heads: int = 4) -> None:
        super().__init__()
        self.heads, self.patches = heads, nn.Conv2d(3, width, 8, 8)
        self.qkv, self.out = nn.Linear(width, 3 * width), nn.Linear(width, width)
        self.before, self.after = nn.Linear(heads, heads), nn.Linear(heads, heads)
        self.word, self.norm = nn.Parameter(torch.randn(1, 1, width)), nn.LayerNorm(width)
        self.last, self.head = Encoder(width, heads, 96, width), nn.Linear(width, 10)

    def forward(self, x: Tensor) -> Tensor:
        x = self.patches(x).flatten(2).transpose(1, 2)
        n, rows, width = x.shape
        q, k, v = self.qkv(self.norm(x)).view(n, rows, 3, self.heads, -1).permute(2, 0, 3, 1, 4)
        scores = self.before((q * 0.3 @ k.transpose(-2, -1)).permute(0, 2, 3, 1)).permute(0, 3, 1, 2)
        shares = self.after(scores.softmax(-1).permute(0, 2, 3, 1)).permute(0, 3, 1, 2)
        x = x + self.out((shares @ v).transpose(1, 2).reshape(n, rows, width))
        word = self.word.expand(n, -1, -1)
        return self.head(self.last(word, torch.cat((word, x), 1))[:, 0])


class LeViT(nn.Module):
    """Products with batch norms, hard swishes, biases looked up, and attention that makes the map smaller."""

    def __init__(self, width: int = 32, heads: int = 2) -> None:
        super().__init__()
        self.heads, self.stem = (
            heads,
            nn.Sequential(conv(3, 16, 3, 2, act=nn.Hardswish()), conv(16, width, 3, 2)),
        )
        self.kv, self.q = nn.Linear(width, 48 * heads, bias=False), nn.Linear(width, 16 * heads, bias=False)
        self.norms = nn.ModuleList([nn.BatchNorm1d(n) for n in (48 * heads, 16 * heads, 48)])
        self.biases = nn.Parameter(torch.randn(heads, 64))
        self.register_buffer("places", torch.randint(0, 64, (16, 64)))
        self.out, self.head = nn.Linear(32 * heads, 48, bias=False), nn.Linear(48, 10)

    def normed(self, i: int, x: Tensor) -> Tensor:
        return self.norms[i](x.flatten(0, 1)).reshape_as(x)

    def forward(self, x: Tensor) -> Tensor:
        x = self.stem(x)
        n, c, h, w = x.shape
        rows = x.flatten(2).transpose(1, 2)
        k, v = self.normed(0, self.kv(rows)).view(n, h * w, self.heads, 48).split((16, 32), 3)
        few = rows.view(n, h, w, c)[:, ::2, ::2].reshape(n, -1, c)
        q = self.normed(1, self.q(few)).view(n, -1, self.heads, 16).permute(0, 2, 1, 3)
        scores = q @ k.permute(0, 2, 3, 1) * 0.25 + self.biases[:, self.places]
        y = (scores.softmax(-1) @ v.transpose(1, 2)).transpose(1, 2).reshape(n, -1, 32 * self.heads)
        return self.head(self.normed(2, self.out(F.hardswish(y))).mean(1))


def image(size: int) -> tuple[Tensor, ...]:
    return (torch.randn(1, 3, size, size),)


NETWORKS = {
    "Swin V2": (CosineWindows, lambda: image(32)),
    "MaxViT": (MaxViT, lambda: image(32)),
    "YOLOv10": (Csp, lambda: image(64)),
    "YOLOX": (Focus, lambda: image(64)),
    "RT-DETR": (Deformable, lambda: image(64)),
    "BiFPN": (BiFpn, lambda: image(64)),
    "PSPNet": (PyramidPool, lambda: image(64)),
    "SAM mask decoder": (MaskDecoder, lambda: (torch.randn(1, 64, 8, 8), torch.randn(1, 2, 64))),
    "ResNeSt": (SplitAttention, lambda: image(48)),
    "CBAM": (Attentions, lambda: image(48)),
    "Non-local": (NonLocal, lambda: image(48)),
    "Involution": (Involution, lambda: image(48)),
    "Large kernels": (Kernels, lambda: image(48)),
    "Capsules": (Capsules, lambda: image(36)),
    "UNet++": (Nested, lambda: image(48)),
    "DINOv2": (Registers, lambda: image(32)),
    "CaiT": (TalkingHeads, lambda: image(32)),
    "LeViT": (LeViT, lambda: image(32)),
    "CycleGAN": (Cycle, lambda: (*image(48), *image(48))),
    "SPADE": (Spade, lambda: (torch.randn(1, 16), torch.randn(1, 4, 16, 16))),
    "Stereo": (CostVolume, lambda: (*image(32), *image(32))),
    "RAFT": (Correlation, lambda: (*image(32), *image(32))),
}
