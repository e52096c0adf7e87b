"""More networks of sound, video, points, graphs, tables, series and control."""

from __future__ import annotations

import math

import torch
import torch.nn.functional as F
from blocks import Encoder, FeedForward
from torch import Tensor, nn


class WaveNet(nn.Module):
    """Dilated causal convolutions, a gate of two functions, a sum of what every layer skips."""

    def __init__(self, width: int = 32) -> None:
        super().__init__()
        self.first = nn.Conv1d(1, width, 1)
        self.dilated = nn.ModuleList([nn.Conv1d(width, 2 * width, 2, dilation=2**i) for i in range(5)])
        self.out = nn.ModuleList([nn.Conv1d(width, 2 * width, 1) for _ in range(5)])
        self.last = nn.Sequential(nn.ReLU(), nn.Conv1d(width, width, 1), nn.ReLU(), nn.Conv1d(width, 64, 1))

    def forward(self, x: Tensor) -> Tensor:
        x, total = self.first(x), 0
        for i, (dilated, out) in enumerate(zip(self.dilated, self.out, strict=True)):
            a, b = dilated(F.pad(x, (2**i, 0))).chunk(2, 1)
            rest, skipped = out(torch.tanh(a) * torch.sigmoid(b)).chunk(2, 1)
            x, total = x + rest, total + skipped
        return self.last(total)


class Vocos(nn.Module):
    """Blocks of one-dimensional maps; magnitudes and phases; frames multiplied and added with overlap."""

    def __init__(self, width: int = 48, size: int = 32) -> None:
        super().__init__()
        self.first, self.size = nn.Conv1d(20, width, 7, padding=3), size
        self.deep = nn.Conv1d(width, width, 7, padding=3, groups=width)
        self.norm, self.feed = nn.LayerNorm(width), FeedForward(width, 2 * width)
        self.scale, self.last = nn.Parameter(torch.rand(width)), nn.Linear(width, size + 2)
        angles = torch.outer(torch.arange(size // 2 + 1), torch.arange(size)) * 2 * math.pi / size
        self.register_buffer("basis", torch.cat((angles.cos(), angles.sin()))[:, None] / size)

    def forward(self, x: Tensor) -> Tensor:
        x = self.first(x)
        y = self.feed(self.norm(self.deep(x).transpose(1, 2)))
        x = x.transpose(1, 2) + self.scale * y
        loud, phase = self.last(x).transpose(1, 2).chunk(2, 1)
        loud = loud.exp().clamp(max=100.0)
        return F.conv_transpose1d(
            torch.cat((loud * phase.cos(), loud * phase.sin()), 1), self.basis, stride=8
        )


class Separable(nn.Module):
    """A few words in a spectrogram: convolutions by channel, by point, a mean."""

    def __init__(self, width: int = 32) -> None:
        super().__init__()
        layers: list[nn.Module] = [
            nn.Conv2d(1, width, (10, 4), (2, 2), (5, 1)),
            nn.BatchNorm2d(width),
            nn.ReLU(),
        ]
        for _ in range(3):
            layers += [nn.Conv2d(width, width, 3, 1, 1, groups=width), nn.BatchNorm2d(width), nn.ReLU()]
            layers += [nn.Conv2d(width, width, 1), nn.BatchNorm2d(width), nn.ReLU()]
        self.body, self.head = nn.Sequential(*layers), nn.Linear(width, 12)

    def forward(self, x: Tensor) -> Tensor:
        y = self.body(x)
        return self.head(F.avg_pool2d(y, y.shape[2:]).flatten(1)).softmax(-1)


class Flow1d(nn.Module):
    """Glow: a matrix over channels, half of them scaled and shifted by what the other half says, twice."""

    def __init__(self, width: int = 16) -> None:
        super().__init__()
        self.mix = nn.Parameter(torch.randn(2, width, width, 1) / 4)
        self.nets = nn.ModuleList(
            [nn.Sequential(nn.Conv1d(8, 32, 3, padding=1), nn.ReLU(), nn.Conv1d(32, 16, 1)) for _ in range(2)]
        )

    def forward(self, x: Tensor) -> tuple[Tensor, Tensor]:
        n, c, t = x.shape
        x = x.view(n, c, t // 4, 4).permute(0, 3, 1, 2).reshape(n, 4 * c, t // 4)
        total = torch.zeros(n)
        for i in range(2):
            a, b = F.conv1d(x, self.mix[i]).chunk(2, 1)
            shift, scale = self.nets[i](a).chunk(2, 1)
            scale = torch.tanh(scale)
            x, total = torch.cat((a, b * scale.exp() + shift), 1), total + scale.sum((1, 2))
        return x, total


class Streaming(nn.Module):
    """RNNoise: bands of energy through recurrent layers one frame at a time, states in and out."""

    def __init__(self, width: int = 48) -> None:
        super().__init__()
        self.first = nn.Linear(42, 24)
        self.a, self.b = nn.GRUCell(24, 24), nn.GRUCell(66 + 24, width)
        self.voice, self.gains = nn.Linear(24, 1), nn.Linear(width, 22)

    def forward(self, x: Tensor, a: Tensor, b: Tensor) -> tuple[Tensor, ...]:
        y = torch.tanh(self.first(x))
        a = self.a(y, a)
        b = self.b(torch.cat((y, a, x), -1), b)
        return self.gains(b).sigmoid(), self.voice(a).sigmoid(), a, b


class EdgeConvolution(nn.Module):
    """DGCNN: the nearest points of each, by features; differences to them, a shared layer, a maximum."""

    def __init__(self, width: int = 32, near: int = 8) -> None:
        super().__init__()
        self.near = near
        self.one = nn.Sequential(nn.Conv2d(6, width, 1, bias=False), nn.BatchNorm2d(width), nn.LeakyReLU(0.2))
        self.last, self.head = nn.Conv1d(width, 64, 1), nn.Linear(128, 10)

    def forward(self, x: Tensor) -> Tensor:
        n = x.shape[0]
        inner = -2 * x.transpose(2, 1) @ x
        size = x.pow(2).sum(1, keepdim=True)
        at = (-size - inner - size.transpose(2, 1)).topk(self.near, -1)[1]
        rows = x.transpose(2, 1)
        found = rows[torch.arange(n)[:, None, None], at]
        here = rows[:, :, None].expand(-1, -1, self.near, -1)
        y = self.one(torch.cat((found - here, here), -1).permute(0, 3, 1, 2)).amax(-1)
        y = self.last(y)
        return self.head(torch.cat((y.amax(-1), y.mean(-1)), 1))


class DenseGraph(nn.Module):
    """Adjacency as an input, normalised by degrees on both sides; two layers and a sum over nodes."""

    def __init__(self, width: int = 32) -> None:
        super().__init__()
        self.one, self.two = nn.Linear(16, width, bias=False), nn.Linear(width, width, bias=False)
        self.eps, self.head = nn.Parameter(torch.zeros(1)), nn.Linear(width, 4)

    def forward(self, x: Tensor, edges: Tensor) -> Tensor:
        a = edges + torch.eye(edges.shape[-1])
        d = a.sum(-1).pow(-0.5)
        a = d[..., None] * a * d[..., None, :]
        x = F.relu(a @ self.one(x))
        x = F.relu(a @ self.two(x) + (1 + self.eps) * x)
        return self.head(x.sum(1))


class Messages(nn.Module):
    """Messages along a list of edges: ends looked up, a layer, sums scattered back to the nodes."""

    def __init__(self, width: int = 32) -> None:
        super().__init__()
        self.edge, self.node = FeedForward(2 * 16 + 4, width), FeedForward(16 + 36, width)
        self.head = nn.Linear(52, 3)

    def forward(self, x: Tensor, edges: Tensor, kinds: Tensor) -> Tensor:
        a, b = edges[0], edges[1]
        m = self.edge(torch.cat((x[a], x[b], kinds), -1))
        total = torch.zeros(x.shape[0], m.shape[1]).scatter_add(0, b[:, None].expand_as(m), m)
        return self.head(self.node(torch.cat((x, total), -1)))


class Sines(nn.Module):
    """SIREN with a table of learned features at eight corners, blended linearly."""

    def __init__(self, width: int = 64) -> None:
        super().__init__()
        self.table = nn.Parameter(torch.randn(1, 8, 16, 16))
        self.one, self.two, self.last = nn.Linear(10, width), nn.Linear(width, width), nn.Linear(width, 3)

    def forward(self, x: Tensor) -> Tensor:
        found = F.grid_sample(self.table, x[:, :, None], align_corners=True, padding_mode="border")
        x = torch.cat((x, found.squeeze(-1).transpose(1, 2)), -1)
        x = torch.sin(30 * self.one(x))
        return torch.sigmoid(self.last(torch.sin(30 * self.two(x))))


class Divided(nn.Module):
    """TimeSformer: each patch asks itself at other times, then the others of its frame."""

    def __init__(self, width: int = 48) -> None:
        super().__init__()
        self.patches = nn.Conv3d(3, width, (1, 8, 8), (1, 8, 8))
        self.time, self.space = Encoder(width, 4, 96), Encoder(width, 4, 96)
        self.word, self.head = nn.Parameter(torch.randn(1, 1, width)), nn.Linear(width, 10)

    def forward(self, x: Tensor) -> Tensor:
        x = self.patches(x)
        n, c, t, h, w = x.shape
        x = self.time(x.permute(0, 3, 4, 2, 1).reshape(-1, t, c))
        x = x.view(n, h * w, t, c).transpose(1, 2).reshape(n * t, h * w, c)
        x = self.space(torch.cat((self.word.expand(n * t, -1, -1), x), 1))
        return self.head(x[:, 0].view(n, t, c).mean(1))


class SlowFast(nn.Module):
    """Few frames with many channels beside many frames with few; the fast ones join the slow by strides."""

    def __init__(self) -> None:
        super().__init__()
        self.slow = nn.Conv3d(3, 24, (1, 5, 5), (1, 2, 2), (0, 2, 2))
        self.fast = nn.Conv3d(3, 8, (5, 5, 5), (1, 2, 2), (2, 2, 2))
        self.join = nn.Conv3d(8, 16, (5, 1, 1), (4, 1, 1), (2, 0, 0))
        self.next = nn.Conv3d(40, 32, (1, 3, 3), 1, (0, 1, 1))
        self.head = nn.Linear(40, 10)

    def forward(self, x: Tensor) -> Tensor:
        slow, fast = F.relu(self.slow(x[:, :, ::4])), F.relu(self.fast(x))
        slow = F.relu(self.next(torch.cat((slow, self.join(fast)), 1)))
        return self.head(torch.cat((slow.mean((2, 3, 4)), fast.mean((2, 3, 4))), 1))


class Volume(nn.Module):
    """nnU-Net: instance norms over volumes, a transposed convolution, trilinear and nearest enlarging."""

    def __init__(self) -> None:
        super().__init__()
        self.a = nn.Sequential(
            nn.Conv3d(1, 8, 3, padding=1), nn.InstanceNorm3d(8, affine=True), nn.LeakyReLU(0.01)
        )
        self.b = nn.Sequential(
            nn.Conv3d(8, 16, 3, 2, 1), nn.InstanceNorm3d(16, affine=True), nn.LeakyReLU(0.01)
        )
        self.up = nn.ConvTranspose3d(16, 8, 2, 2)
        self.last, self.deep = nn.Conv3d(16, 3, 1), nn.Conv3d(16, 3, 1)

    def forward(self, x: Tensor) -> Tensor:
        a = self.a(x)
        b = self.b(a)
        deep = F.interpolate(self.deep(b), scale_factor=2.0, mode="trilinear", align_corners=False)
        return self.last(torch.cat((a, self.up(b)), 1)) + deep


class ConvLstm(nn.Module):
    """A recurrence of convolutions over five frames, its four gates in one map."""

    def __init__(self, width: int = 16) -> None:
        super().__init__()
        self.gates, self.last, self.width = (
            nn.Conv2d(3 + width, 4 * width, 3, 1, 1),
            nn.Conv2d(width, 3, 1),
            width,
        )

    def forward(self, x: Tensor) -> Tensor:
        h = c = torch.zeros(x.shape[0], self.width, *x.shape[3:])
        for t in range(x.shape[1]):
            i, f, o, g = self.gates(torch.cat((x[:, t], h), 1)).chunk(4, 1)
            c = f.sigmoid() * c + i.sigmoid() * g.tanh()
            h = o.sigmoid() * c.tanh()
        return self.last(h)


class Basis(nn.Module):
    """N-BEATS: each block explains a part of the past, which is taken away, and adds to the future."""

    def __init__(self, past: int = 48, future: int = 12) -> None:
        super().__init__()
        self.blocks = nn.ModuleList([FeedForward(past, 64, nn.ReLU()) for _ in range(3)])
        self.theta = nn.ModuleList([nn.Linear(past, 8) for _ in range(3)])
        t = torch.arange(past + future) / (past + future)
        self.register_buffer("basis", torch.stack([t**i for i in range(8)]))
        self.past = past

    def forward(self, x: Tensor) -> Tensor:
        total = torch.zeros(x.shape[0], self.basis.shape[1] - self.past)
        for block, theta in zip(self.blocks, self.theta, strict=True):
            both = theta(F.relu(block(x))) @ self.basis
            x, total = x - both[:, : self.past], total + both[:, self.past :]
        return total


class Decomposed(nn.Module):
    """Moving means apart from what is left of a series; patches of it as words; means put back."""

    def __init__(self, width: int = 32) -> None:
        super().__init__()
        self.trend, self.patch = nn.Linear(64, 16), nn.Linear(16, width)
        self.block, self.head = Encoder(width, 4, 64), nn.Linear(7 * width, 16)

    def forward(self, x: Tensor) -> Tensor:
        mean, spread = (
            x.mean(1, keepdim=True).detach(),
            torch.sqrt(x.var(1, keepdim=True, unbiased=False) + 1e-5),
        )
        x = ((x - mean) / spread).transpose(1, 2)
        padded = torch.cat((x[..., :1].repeat(1, 1, 6), x, x[..., -1:].repeat(1, 1, 6)), -1)
        slow = F.avg_pool1d(padded, 13, 1)
        words = self.patch((x - slow).unfold(-1, 16, 8))
        n, c, m, d = words.shape
        y = self.head(self.block(words.reshape(n * c, m, d)).flatten(1)).view(n, c, -1)
        return (y + self.trend(slow)).transpose(1, 2) * spread + mean


class Temporal(nn.Module):
    """Temporal fusion: gated networks choose variables; a recurrence; attention of shared values."""

    def __init__(self, width: int = 16, count: int = 5) -> None:
        super().__init__()
        self.each = nn.ModuleList([nn.Linear(1, width) for _ in range(count)])
        self.a, self.b, self.gate = (
            nn.Linear(width * count, width),
            nn.Linear(width, count),
            nn.Linear(count, 2 * count),
        )
        self.lstm, self.norm = nn.LSTM(width, width, batch_first=True), nn.LayerNorm(width)
        self.q, self.k, self.v = (
            nn.Linear(width, 2 * width),
            nn.Linear(width, 2 * width),
            nn.Linear(width, width),
        )
        self.out = nn.Linear(width, 3)

    def forward(self, x: Tensor) -> Tensor:
        parts = torch.stack([each(x[..., i : i + 1]) for i, each in enumerate(self.each)], -1)
        shares = F.glu(self.gate(self.b(F.elu(self.a(parts.flatten(2))))), -1).softmax(-1)
        y = (parts * shares[:, :, None]).sum(-1)
        z, _ = self.lstm(y)
        y = self.norm(y + z)
        n, t, d = y.shape
        q, k = (p(y).view(n, t, 2, d).transpose(1, 2) for p in (self.q, self.k))
        scores = (q @ k.transpose(-1, -2) / d**0.5).masked_fill(
            torch.ones(t, t, dtype=torch.bool).triu(1), -1e9
        )
        return self.out((scores.softmax(-1) @ self.v(y)[:, None]).mean(1))


class Clicks(nn.Module):
    """DIN and DCN: a history weighed by how it compares with a candidate; crosses; a sum of pairs."""

    def __init__(self, width: int = 16) -> None:
        super().__init__()
        self.items = nn.Embedding(500, width)
        self.weigh = nn.Sequential(nn.Linear(4 * width, 32), nn.PReLU(), nn.Linear(32, 1))
        self.cross, self.deep = nn.Linear(3 * width, 3 * width), FeedForward(3 * width, 64, nn.ReLU())
        self.head, self.fields = nn.Linear(3 * width, 1), nn.EmbeddingBag(100, width, mode="mean")

    def forward(self, history: Tensor, item: Tensor, there: Tensor, bag: Tensor) -> Tensor:
        h, c = self.items(history), self.items(item)[:, None]
        wide = c.expand_as(h)
        scores = self.weigh(torch.cat((wide, h, wide - h, wide * h), -1)).squeeze(-1)
        shares = torch.where(there, scores, torch.full_like(scores, -1e9)).softmax(-1)
        x = torch.cat(((shares[:, None] @ h)[:, 0], c[:, 0], self.fields(bag)), -1)
        crossed = x * self.cross(x) + x
        parts = torch.stack(x.chunk(3, -1), 1)
        pairs = (parts.sum(1).pow(2) - parts.pow(2).sum(1)).sum(-1, keepdim=True) / 2
        return torch.sigmoid(self.head(crossed + self.deep(x)) + pairs)


class Denoiser(nn.Module):
    """Diffusion policy: one-dimensional maps, group norms, Mish, scales by time and observation."""

    def __init__(self, width: int = 32) -> None:
        super().__init__()
        self.time = nn.Sequential(nn.Linear(16, 32), nn.Mish(), nn.Linear(32, 16))
        self.a, self.b, self.down = (
            nn.Conv1d(4, width, 5, padding=2),
            nn.Conv1d(width, width, 5, padding=2),
            nn.Conv1d(width, width, 3, 2, 1),
        )
        self.film, self.norm = (
            nn.Linear(16 + 10, 2 * width),
            nn.ModuleList([nn.GroupNorm(8, width) for _ in range(2)]),
        )
        self.up, self.last = nn.ConvTranspose1d(width, width, 4, 2, 1), nn.Conv1d(2 * width, 4, 1)

    def forward(self, x: Tensor, t: Tensor, seen: Tensor) -> Tensor:
        angles = t[:, None] * torch.exp(-math.log(10000) * torch.arange(8) / 7)
        where = self.time(torch.cat((angles.sin(), angles.cos()), -1))
        scale, shift = self.film(torch.cat((where, seen), -1))[..., None].chunk(2, 1)
        y = F.mish(self.norm[0](self.a(x))) * (1 + scale) + shift
        z = F.mish(self.norm[1](self.b(y)))
        return self.last(torch.cat((self.up(self.down(z)), y), 1))


class Operators(nn.Module):
    """A network of functions: a product of two nets, and splines on a grid in the place of functions."""

    def __init__(self, width: int = 32) -> None:
        super().__init__()
        self.branch, self.trunk = FeedForward(24, width, nn.Tanh()), nn.Linear(2, 24)
        self.register_buffer("grid", torch.linspace(-1.5, 1.5, 9))
        self.weights, self.base = nn.Parameter(torch.randn(24, 24, 9) / 9), nn.Linear(24, 24)

    def forward(self, u: Tensor, x: Tensor) -> Tensor:
        y = torch.tanh(self.trunk(x))
        near = F.relu(1 - (y[..., None] - self.grid).abs() / 0.375)
        y = self.base(F.silu(y)) + torch.einsum("big,oig->bo", near, self.weights)
        return torch.einsum("bi,pi->bp", self.branch(u), y)


class Sorted(nn.Module):
    """TabNet: features masked by a sparse softmax, which sorts them; gates; what was used is used less."""

    def __init__(self, width: int = 16) -> None:
        super().__init__()
        self.norm, self.first = nn.BatchNorm1d(12), nn.Linear(12, 2 * width)
        self.ask = nn.ModuleList([nn.Linear(width // 2, 12) for _ in range(2)])
        self.step, self.head = nn.Linear(12, 2 * width), nn.Linear(width // 2, 3)
        self.width = width

    def sparse(self, x: Tensor) -> Tensor:
        ranked = x.sort(-1, descending=True)[0]
        k = torch.arange(1, x.shape[-1] + 1)
        total = ranked.cumsum(-1)
        many = (1 + k * ranked > total).sum(-1, keepdim=True)
        tau = (total.gather(-1, many - 1) - 1) / many
        return F.relu(x - tau)

    def forward(self, x: Tensor) -> Tensor:
        x = self.norm(x)
        a = F.glu(self.first(x), -1)[..., self.width // 2 :]
        left, found = torch.ones_like(x), 0
        for ask in self.ask:
            mask = self.sparse(ask(a) * left)
            left = left * (1.3 - mask)
            d, a = F.glu(self.step(mask * x), -1).chunk(2, -1)
            found = found + F.relu(d)
        return self.head(found)


def graph(nodes: int = 20, edges: int = 60) -> tuple[Tensor, ...]:
    return torch.randn(nodes, 16), torch.randint(0, nodes, (2, edges)), torch.randn(edges, 4)


NETWORKS = {
    "WaveNet": (WaveNet, lambda: (torch.randn(1, 1, 256),)),
    "Vocos": (Vocos, lambda: (torch.randn(1, 20, 40),)),
    "DS-CNN": (Separable, lambda: (torch.randn(1, 1, 49, 10),)),
    "Glow": (Flow1d, lambda: (torch.randn(1, 4, 128),)),
    "RNNoise": (Streaming, lambda: (torch.randn(1, 42), torch.randn(1, 24), torch.randn(1, 48))),
    "DGCNN": (EdgeConvolution, lambda: (torch.randn(1, 3, 64),)),
    "Dense graph": (DenseGraph, lambda: (torch.randn(1, 20, 16), torch.rand(1, 20, 20).round())),
    "Messages": (Messages, graph),
    "SIREN": (Sines, lambda: (torch.rand(1, 100, 2) * 2 - 1,)),
    "TimeSformer": (Divided, lambda: (torch.randn(1, 3, 4, 32, 32),)),
    "SlowFast": (SlowFast, lambda: (torch.randn(1, 3, 8, 32, 32),)),
    "nnU-Net": (Volume, lambda: (torch.randn(1, 1, 16, 16, 16),)),
    "ConvLSTM": (ConvLstm, lambda: (torch.randn(1, 5, 3, 24, 24),)),
    "N-BEATS": (Basis, lambda: (torch.randn(4, 48),)),
    "PatchTST": (Decomposed, lambda: (torch.randn(1, 64, 3),)),
    "Temporal fusion": (Temporal, lambda: (torch.randn(1, 20, 5),)),
    "Clicks": (
        Clicks,
        lambda: (
            torch.randint(0, 500, (2, 12)),
            torch.randint(0, 500, (2,)),
            torch.rand(2, 12) > 0.3,
            torch.randint(0, 100, (2, 5)),
        ),
    ),
    "Diffusion policy": (Denoiser, lambda: (torch.randn(1, 4, 16), torch.tensor([7.0]), torch.randn(1, 10))),
    "DeepONet": (Operators, lambda: (torch.randn(3, 24), torch.rand(50, 2))),
    "TabNet": (Sorted, lambda: (torch.randn(4, 12),)),
}
