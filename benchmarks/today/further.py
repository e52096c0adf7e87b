"""Further networks of today, each with a part that no other one here has."""

from __future__ import annotations

import math

import torch
import torch.nn.functional as F
from blocks import Encoder, FeedForward, LayerNorm2d, RMSNorm, conv
from torch import Tensor, nn


class Perceiver(nn.Module):
    """A few latent rows attend to many inputs, then to themselves; an output row for each class asks them."""

    def __init__(self, width: int = 128) -> None:
        super().__init__()
        self.latents = nn.Parameter(torch.randn(1, 32, width))
        self.asked = nn.Parameter(torch.randn(1, 10, width))
        self.wider = nn.Linear(3, width)
        self.blocks = nn.ModuleList([Encoder(width, 4, 2 * width, width) for _ in range(2)])
        self.last = Encoder(width, 4, 2 * width, width)

    def forward(self, x: Tensor) -> Tensor:
        memory = self.wider(x.flatten(2).transpose(1, 2))
        rows = self.latents.expand(x.shape[0], -1, -1)
        for block in self.blocks:
            rows = block(rows, memory)
        return self.last(self.asked.expand(x.shape[0], -1, -1), rows)


class NeoX(nn.Module):
    """Attention and feed-forward side by side; a quarter of each head is rotated."""

    def __init__(self, width: int = 256, heads: int = 4, rotated: int = 16) -> None:
        super().__init__()
        self.heads, self.rotated = heads, rotated
        self.words, self.norms = (
            nn.Embedding(500, width),
            nn.ModuleList([nn.LayerNorm(width) for _ in range(3)]),
        )
        self.qkv, self.out = nn.Linear(width, 3 * width), nn.Linear(width, width)
        self.feed, self.head = FeedForward(width, 4 * width), nn.Linear(width, 500, bias=False)

    def turn(self, x: Tensor) -> Tensor:
        rows = torch.arange(x.shape[2])[:, None] * 10000 ** (-torch.arange(0, self.rotated, 2) / self.rotated)
        angles = torch.cat((rows, rows), -1)
        part, rest = x[..., : self.rotated], x[..., self.rotated :]
        one, other = part.chunk(2, -1)
        part = part * angles.cos() + torch.cat((-other, one), -1) * angles.sin()
        return torch.cat((part, rest), -1)

    def forward(self, words: Tensor) -> Tensor:
        x = self.words(words)
        batch, rows, _width = x.shape
        packed = self.qkv(self.norms[0](x)).view(batch, rows, self.heads, -1).transpose(1, 2)
        q, k, v = packed.chunk(3, -1)
        y = F.scaled_dot_product_attention(self.turn(q), self.turn(k), v, is_causal=True)
        x = x + self.out(y.transpose(1, 2).reshape(x.shape)) + self.feed(self.norms[1](x))
        return self.head(self.norms[2](x))


class Falcon(nn.Module):
    """Many queries share one key: its head is repeated by broadcasting alone."""

    def __init__(self, width: int = 256, heads: int = 8) -> None:
        super().__init__()
        self.heads, self.each = heads, width // heads
        self.words, self.norm = nn.Embedding(500, width), nn.LayerNorm(width)
        self.qkv, self.out = nn.Linear(width, width + 2 * self.each), nn.Linear(width, width)
        self.feed = FeedForward(width, 4 * width)

    def forward(self, words: Tensor) -> Tensor:
        x = self.words(words)
        batch, rows, width = x.shape
        y = self.norm(x)
        q, k, v = self.qkv(y).split((width, self.each, self.each), -1)
        q = q.view(batch, rows, self.heads, self.each).transpose(1, 2)
        scores = q @ k[:, None].transpose(-1, -2) / math.sqrt(self.each)
        below = torch.ones(rows, rows, dtype=torch.bool).tril()
        shares = scores.masked_fill(~below, float("-inf")).softmax(-1)
        z = (shares @ v[:, None]).transpose(1, 2).reshape(x.shape)
        return x + self.out(z) + self.feed(y)


class Latent(nn.Module):
    """Keys and values come from a few latent features; a part of each key is rotated, for all heads."""

    def __init__(self, width: int = 256, heads: int = 4, latent: int = 64, turned: int = 16) -> None:
        super().__init__()
        self.heads, self.each, self.turned = heads, width // heads, turned
        self.norm, self.small = RMSNorm(width), RMSNorm(latent)
        self.q = nn.Linear(width, heads * (self.each + turned), bias=False)
        self.down = nn.Linear(width, latent + turned, bias=False)
        self.up = nn.Linear(latent, 2 * width, bias=False)
        self.out, self.latent = nn.Linear(width, width, bias=False), latent

    def turn(self, x: Tensor) -> Tensor:
        angles = torch.arange(x.shape[-2])[:, None] * 10000 ** (
            -torch.arange(0, self.turned, 2) / self.turned
        )
        even, odd = x[..., ::2], x[..., 1::2]
        c, s = angles.cos(), angles.sin()
        return torch.stack((even * c - odd * s, even * s + odd * c), -1).flatten(-2)

    def forward(self, x: Tensor) -> Tensor:
        batch, rows, _width = x.shape
        y = self.norm(x)
        q = self.q(y).view(batch, rows, self.heads, -1).transpose(1, 2)
        plain, turned = q.split((self.each, self.turned), -1)
        small, key = self.down(y).split((self.latent, self.turned), -1)
        k, v = self.up(self.small(small)).view(batch, rows, self.heads, -1).transpose(1, 2).chunk(2, -1)
        key = self.turn(key[:, None]).expand(-1, self.heads, -1, -1)
        q, k = torch.cat((plain, self.turn(turned)), -1), torch.cat((k, key), -1)
        y = F.scaled_dot_product_attention(q, k, v, is_causal=True)
        return x + self.out(y.transpose(1, 2).reshape(x.shape))


class ModernBert(nn.Module):
    """Windows of attention and global attention in turns, gated feed-forward, padding as an input."""

    def __init__(self, width: int = 256, heads: int = 4) -> None:
        super().__init__()
        self.words, self.heads = nn.Embedding(500, width), heads
        self.norms = nn.ModuleList([nn.LayerNorm(width, bias=False) for _ in range(4)])
        self.qkv = nn.ModuleList([nn.Linear(width, 3 * width, bias=False) for _ in range(2)])
        self.out = nn.ModuleList([nn.Linear(width, width, bias=False) for _ in range(2)])
        self.up = nn.ModuleList([nn.Linear(width, 4 * width, bias=False) for _ in range(2)])
        self.down = nn.ModuleList([nn.Linear(2 * width, width, bias=False) for _ in range(2)])

    def forward(self, words: Tensor, padding: Tensor) -> Tensor:
        x = self.words(words)
        batch, rows, _width = x.shape
        places = torch.arange(rows)
        near = (places[:, None] - places[None]).abs() <= 16
        there = padding[:, None, None, :].bool()
        for i in range(2):
            mask = there & near if i else there.expand(batch, 1, rows, rows)
            y = self.qkv[i](self.norms[2 * i](x)).view(batch, rows, 3, self.heads, -1)
            q, k, v = y.permute(2, 0, 3, 1, 4)
            y = F.scaled_dot_product_attention(q, k, v, attn_mask=mask)
            x = x + self.out[i](y.transpose(1, 2).reshape(x.shape))
            a, b = self.up[i](self.norms[2 * i + 1](x)).chunk(2, -1)
            x = x + self.down[i](F.gelu(a) * b)
        return x


class Bloom(nn.Module):
    """Scores fall with distance, by a slope for each head: a bias of outer products."""

    def __init__(self, width: int = 256, heads: int = 8) -> None:
        super().__init__()
        self.words, self.heads = nn.Embedding(500, width), heads
        self.norms = nn.ModuleList([nn.LayerNorm(width) for _ in range(2)])
        self.qkv, self.out, self.feed = (
            nn.Linear(width, 3 * width),
            nn.Linear(width, width),
            FeedForward(width, 4 * width),
        )
        self.register_buffer("slopes", 2.0 ** -torch.arange(1, heads + 1))

    def forward(self, words: Tensor, there: Tensor) -> Tensor:
        x = self.words(words)
        batch, rows, _width = x.shape
        places = (there.cumsum(-1) - 1) * there
        bias = self.slopes[None, :, None, None] * places[:, None, None, :]
        q, k, v = self.qkv(self.norms[0](x)).view(batch, rows, self.heads, 3, -1).permute(3, 0, 2, 1, 4)
        scores = q @ k.transpose(-1, -2) / math.sqrt(q.shape[-1]) + bias
        below = torch.ones(rows, rows, dtype=torch.bool).tril()
        shares = scores.masked_fill(~below, -1e4).softmax(-1)
        x = x + self.out((shares @ v).transpose(1, 2).reshape(x.shape))
        return x + self.feed(self.norms[1](x))


class PoolFormer(nn.Module):
    """Instead of attention a mean over the neighbours, less the place itself."""

    def __init__(self, width: int = 64) -> None:
        super().__init__()
        self.patches = nn.Conv2d(3, width, 7, 4, 3)
        self.norms = nn.ModuleList([nn.GroupNorm(1, width) for _ in range(4)])
        self.up = nn.ModuleList([nn.Conv2d(width, 4 * width, 1) for _ in range(2)])
        self.down = nn.ModuleList([nn.Conv2d(4 * width, width, 1) for _ in range(2)])
        self.scales = nn.Parameter(torch.ones(4, width, 1, 1) / 3)

    def forward(self, x: Tensor) -> Tensor:
        x = self.patches(x)
        for i in range(2):
            y = self.norms[2 * i](x)
            x = x + self.scales[2 * i] * (F.avg_pool2d(y, 3, 1, 1, count_include_pad=False) - y)
            x = x + self.scales[2 * i + 1] * self.down[i](F.gelu(self.up[i](self.norms[2 * i + 1](x))))
        return x.mean((2, 3))


class GMlp(nn.Module):
    """Half of the features are a product over the rows, and gate the other half."""

    def __init__(self, width: int = 128, rows: int = 64) -> None:
        super().__init__()
        self.norms = nn.ModuleList([nn.LayerNorm(width), nn.LayerNorm(width)])
        self.up, self.down = nn.Linear(width, 2 * width), nn.Linear(width, width)
        self.rows = nn.Conv1d(rows, rows, 1)

    def forward(self, x: Tensor) -> Tensor:
        u, v = F.gelu(self.up(self.norms[0](x))).chunk(2, -1)
        return x + self.down(u * self.rows(self.norms[1](v)))


class Retention(nn.Module):
    """Attention without a softmax, with a decay of powers; a norm of each head; a gate."""

    def __init__(self, width: int = 128, heads: int = 4) -> None:
        super().__init__()
        self.heads, self.norm = heads, nn.GroupNorm(heads, width, affine=False)
        self.q, self.k, self.v, self.gate, self.out = (nn.Linear(width, width, bias=False) for _ in range(5))
        self.register_buffer("decay", 1 - 2.0 ** -(5 + torch.arange(heads)))

    def forward(self, x: Tensor) -> Tensor:
        batch, rows, width = x.shape
        q, k, v = (p(x).view(batch, rows, self.heads, -1).transpose(1, 2) for p in (self.q, self.k, self.v))
        gaps = torch.arange(rows)[:, None] - torch.arange(rows)[None]
        decay = torch.where(gaps >= 0, self.decay[:, None, None] ** gaps.clamp(min=0), 0.0)
        y = ((q @ k.transpose(-1, -2) * decay) @ v).transpose(1, 2).reshape(batch * rows, width)
        return x + self.out(F.silu(self.gate(x)) * self.norm(y).view(x.shape))


class VectorQuantiser(nn.Module):
    """An encoder, the nearest of 256 rows for each place, a decoder from those rows."""

    def __init__(self, width: int = 64) -> None:
        super().__init__()
        self.encoder = nn.Sequential(conv(3, width, 4, 2), conv(width, width, 4, 2))
        self.decoder = nn.Sequential(
            nn.ConvTranspose2d(width, width, 4, 2, 1), nn.ReLU(), nn.ConvTranspose2d(width, 3, 4, 2, 1)
        )
        self.book = nn.Parameter(torch.randn(256, width))

    def forward(self, x: Tensor) -> Tensor:
        y = self.encoder(x)
        batch, width, high, wide = y.shape
        rows = y.permute(0, 2, 3, 1).reshape(-1, width)
        far = rows.pow(2).sum(1, keepdim=True) - 2 * rows @ self.book.T + self.book.pow(2).sum(1)
        near = F.embedding(far.argmin(1), self.book)
        return self.decoder(near.view(batch, high, wide, width).permute(0, 3, 1, 2))


class CentreNet(nn.Module):
    """Peaks of a map of scores are those that a maximum over neighbours leaves; the best hundred are kept."""

    def __init__(self) -> None:
        super().__init__()
        self.body = nn.Sequential(
            conv(3, 32, 3, 2), conv(32, 64, 3, 2), nn.ConvTranspose2d(64, 32, 4, 2, 1), nn.ReLU()
        )
        self.heat, self.size = nn.Conv2d(32, 8, 1), nn.Conv2d(32, 2, 1)

    def forward(self, x: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        y = self.body(x)
        heat = self.heat(y).sigmoid()
        heat = heat * (F.max_pool2d(heat, 3, 1, 1) == heat).float()
        scores, places = heat.flatten(1).topk(100)
        at = places % (heat.shape[2] * heat.shape[3])
        sizes = self.size(y).flatten(2).transpose(1, 2)
        return scores, places, sizes.gather(1, at[..., None].expand(-1, -1, 2))


class Flow(nn.Module):
    """All pairs of two maps' pixels are compared; samples of that move a flow, twice."""

    def __init__(self, width: int = 32) -> None:
        super().__init__()
        self.features = nn.Sequential(conv(3, width, 7, 4), nn.Conv2d(width, width, 3, 2, 1))
        self.update = nn.Sequential(conv(2 + 1, width, 3, 1), nn.Conv2d(width, 2, 3, 1, 1))

    def forward(self, one: Tensor, other: Tensor) -> Tensor:
        a, b = self.features(one), self.features(other)
        n, c, h, w = a.shape
        pairs = torch.einsum("nci,ncj->nij", a.flatten(2), b.flatten(2)) / c**0.5
        pairs = pairs.view(n * h * w, 1, h, w)
        ys, xs = torch.meshgrid(torch.arange(h), torch.arange(w), indexing="ij")
        at = torch.stack((xs, ys), 0).float()[None]
        flow = torch.zeros(n, 2, h, w)
        for _ in range(2):
            places = (at + flow).permute(0, 2, 3, 1).reshape(n * h * w, 1, 1, 2)
            places = places / torch.tensor([(w - 1) / 2.0, (h - 1) / 2.0]) - 1
            found = F.grid_sample(pairs, places, align_corners=True).view(n, 1, h, w)
            flow = flow + self.update(torch.cat((flow, found), 1))
        return flow


class NafNet(nn.Module):
    """Restoration: halves of the channels multiply; a gate of the mean; pixels shuffled."""

    def __init__(self, width: int = 32) -> None:
        super().__init__()
        self.first, self.last = nn.Conv2d(3, width, 3, 1, 1), nn.Conv2d(width, 12, 3, 1, 1)
        self.norms = nn.ModuleList([LayerNorm2d(width) for _ in range(2)])
        self.wide, self.deep = (
            nn.Conv2d(width, 2 * width, 1),
            nn.Conv2d(2 * width, 2 * width, 3, 1, 1, groups=64),
        )
        self.gate, self.out = nn.Conv2d(width, width, 1), nn.Conv2d(width, width, 1)
        self.up, self.down = nn.Conv2d(width, 2 * width, 1), nn.Conv2d(width, width, 1)
        self.scales = nn.Parameter(torch.ones(2, 1, width, 1, 1) / 2)

    def forward(self, x: Tensor) -> Tensor:
        y = self.first(x)
        a, b = self.deep(self.wide(self.norms[0](y))).chunk(2, 1)
        z = a * b
        z = z * self.gate(z.mean((2, 3), keepdim=True))
        y = y + self.out(z) * self.scales[0]
        a, b = self.up(self.norms[1](y)).chunk(2, 1)
        y = y + self.down(a * b) * self.scales[1]
        return F.pixel_shuffle(self.last(y), 2)


class Restormer(nn.Module):
    """Attention between channels: rows of pixels are normalised and multiplied with each other."""

    def __init__(self, width: int = 32, heads: int = 2) -> None:
        super().__init__()
        self.heads, self.norm = heads, LayerNorm2d(width)
        self.first, self.last = nn.Conv2d(3, width, 3, 1, 1), nn.Conv2d(width, 3, 3, 1, 1)
        self.qkv = nn.Conv2d(width, 3 * width, 1)
        self.deep = nn.Conv2d(3 * width, 3 * width, 3, 1, 1, groups=3 * width)
        self.heat, self.out = nn.Parameter(torch.ones(heads, 1, 1)), nn.Conv2d(width, width, 1)

    def forward(self, x: Tensor) -> Tensor:
        y = self.first(x)
        n, c, h, w = y.shape
        q, k, v = self.deep(self.qkv(self.norm(y))).view(n, 3, self.heads, c // self.heads, h * w).unbind(1)
        q, k = F.normalize(q, dim=-1), F.normalize(k, dim=-1)
        shares = (q @ k.transpose(-1, -2) * self.heat).softmax(-1)
        y = y + self.out((shares @ v).view(n, c, h, w))
        return x + self.last(y)


class Modulated(nn.Module):
    """A convolution whose kernels a style scales and normalises: its weights are computed."""

    def __init__(self, width: int = 32) -> None:
        super().__init__()
        self.start = nn.Parameter(torch.randn(1, width, 8, 8))
        self.style = nn.ModuleList([nn.Linear(64, width) for _ in range(2)])
        self.kernels = nn.Parameter(torch.randn(2, width, width, 3, 3) / 10)
        self.last = nn.Conv2d(width, 3, 1)

    def forward(self, style: Tensor) -> Tensor:
        x = self.start
        for i in range(2):
            kernels = self.kernels[i] * self.style[i](style)[:, None, :, None, None][0]
            kernels = kernels * torch.rsqrt(kernels.pow(2).sum((1, 2, 3), keepdim=True) + 1e-8)
            x = F.leaky_relu(
                F.conv2d(F.interpolate(x, scale_factor=2.0, mode="bilinear"), kernels, padding=1), 0.2
            )
        return self.last(x)


class Ecapa(nn.Module):
    """Speakers: convolutions of groups of channels in turn, gates, weighted means and deviations."""

    def __init__(self, width: int = 64) -> None:
        super().__init__()
        self.first = nn.Conv1d(40, width, 5, padding=2)
        self.parts = nn.ModuleList([nn.Conv1d(16, 16, 3, padding=2, dilation=2) for _ in range(3)])
        self.squeeze, self.excite = nn.Conv1d(width, 16, 1), nn.Conv1d(16, width, 1)
        self.ask, self.weigh = nn.Conv1d(3 * width, 32, 1), nn.Conv1d(32, width, 1)
        self.last = nn.Linear(2 * width, 96)

    def forward(self, x: Tensor) -> Tensor:
        x = F.relu(self.first(x))
        parts = list(x.chunk(4, 1))
        for i, part in enumerate(self.parts):
            parts[i + 1] = F.relu(part(parts[i + 1] + (parts[i] if i else 0)))
        y = torch.cat(parts, 1)
        x = x + y * torch.sigmoid(self.excite(F.relu(self.squeeze(y.mean(2, keepdim=True)))))
        mean, spread = x.mean(2, keepdim=True), x.var(2, keepdim=True).clamp(min=1e-5).sqrt()
        wide = torch.cat((x, mean.expand_as(x), spread.expand_as(x)), 1)
        shares = self.weigh(torch.tanh(self.ask(wide))).softmax(2)
        mean = (shares * x).sum(2)
        spread = ((shares * x.pow(2)).sum(2) - mean.pow(2)).clamp(min=1e-5).sqrt()
        return self.last(torch.cat((mean, spread), 1))


class Codec(nn.Module):
    """Sound in a few numbers: strided convolutions, snakes, two books of rows one after the other."""

    def __init__(self, width: int = 32) -> None:
        super().__init__()
        self.down = nn.ModuleList([nn.Conv1d(1, width, 7, padding=3), nn.Conv1d(width, width, 8, 4, 2)])
        self.up = nn.ModuleList(
            [nn.ConvTranspose1d(width, width, 8, 4, 2), nn.Conv1d(width, 1, 7, padding=3)]
        )
        self.alpha = nn.Parameter(torch.ones(2, 1, width, 1))
        self.books = nn.Parameter(torch.randn(2, 64, width))

    def snake(self, x: Tensor, i: int) -> Tensor:
        return x + torch.sin(self.alpha[i] * x).pow(2) / (self.alpha[i] + 1e-9)

    def forward(self, x: Tensor) -> Tensor:
        y = self.down[1](self.snake(self.down[0](x), 0)).transpose(1, 2)
        rest, total = y, torch.zeros_like(y)
        for book in self.books:
            far = (rest.unsqueeze(2) - book[None, None]).pow(2).sum(-1)
            near = F.embedding(far.argmin(-1), book)
            total, rest = total + near, rest - near
        return torch.tanh(self.up[1](self.snake(self.up[0](total.transpose(1, 2)), 1)))


class Features(nn.Module):
    """A table row as words: each number by a row of its own, each category by a look-up, then attention."""

    def __init__(self, width: int = 64) -> None:
        super().__init__()
        self.scale, self.shift = nn.Parameter(torch.randn(8, width)), nn.Parameter(torch.randn(8, width))
        self.table, self.first = nn.Embedding(60, width), nn.Parameter(torch.randn(1, 1, width))
        self.register_buffer("offsets", torch.tensor([0, 10, 30]))
        self.blocks = nn.ModuleList([Encoder(width, 4, 2 * width) for _ in range(2)])
        self.head = nn.Sequential(nn.LayerNorm(width), nn.ReLU(), nn.Linear(width, 1))

    def forward(self, numbers: Tensor, kinds: Tensor) -> Tensor:
        rows = numbers[..., None] * self.scale + self.shift
        words = self.table(kinds + self.offsets)
        x = torch.cat((self.first.expand(numbers.shape[0], -1, -1), rows, words), 1)
        for block in self.blocks:
            x = block(x)
        return self.head(x[:, 0])


def image(size: int) -> tuple[Tensor, ...]:
    return (torch.randn(1, 3, size, size),)


def words(rows: int) -> tuple[Tensor, ...]:
    return (torch.randint(0, 500, (1, rows)),)


def with_padding(rows: int) -> tuple[Tensor, ...]:
    there = torch.ones(1, rows, dtype=torch.int64)
    there[:, -rows // 4 :] = 0
    return (torch.randint(0, 500, (1, rows)), there)


NETWORKS = {
    "Perceiver": (Perceiver, lambda: image(32)),
    "GPT-NeoX": (NeoX, lambda: words(64)),
    "Falcon, one key": (Falcon, lambda: words(64)),
    "Latent attention": (Latent, lambda: (torch.randn(1, 64, 256),)),
    "ModernBERT": (ModernBert, lambda: with_padding(64)),
    "BLOOM, slopes": (Bloom, lambda: with_padding(64)),
    "PoolFormer": (PoolFormer, lambda: image(64)),
    "gMLP": (GMlp, lambda: (torch.randn(1, 64, 128),)),
    "Retention": (Retention, lambda: (torch.randn(1, 64, 128),)),
    "Vector quantiser": (VectorQuantiser, lambda: image(64)),
    "CentreNet": (CentreNet, lambda: image(64)),
    "Optical flow": (Flow, lambda: (*image(64), *image(64))),
    "NAFNet": (NafNet, lambda: image(48)),
    "Restormer": (Restormer, lambda: image(32)),
    "Style modulation": (Modulated, lambda: (torch.randn(1, 64),)),
    "Speakers": (Ecapa, lambda: (torch.randn(1, 40, 100),)),
    "Sound codec": (Codec, lambda: (torch.randn(1, 1, 640),)),
    "Table rows": (Features, lambda: (torch.randn(4, 8), torch.randint(0, 10, (4, 3)))),
}
