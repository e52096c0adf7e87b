"""Networks of sound, video, points, graphs, tables and rays."""

from __future__ import annotations

import torch
import torch.nn.functional as F
from blocks import Attention, Encoder, FeedForward, conv
from torch import Tensor, nn


class Whisper(nn.Module):
    """The encoder: two convolutions over time, positions, blocks."""

    def __init__(self, width: int = 384) -> None:
        super().__init__()
        self.a, self.b = nn.Conv1d(80, width, 3, padding=1), nn.Conv1d(width, width, 3, 2, 1)
        self.register_buffer("positions", torch.randn(256, width))
        self.blocks, self.norm = (
            nn.ModuleList([Encoder(width, 6, 4 * width) for _ in range(2)]),
            nn.LayerNorm(width),
        )

    def forward(self, x: Tensor) -> Tensor:
        x = F.gelu(self.b(F.gelu(self.a(x)))).permute(0, 2, 1) + self.positions
        for block in self.blocks:
            x = block(x)
        return self.norm(x)


class WhisperDecoder(nn.Module):
    def __init__(self, width: int = 384) -> None:
        super().__init__()
        self.words, self.positions = nn.Embedding(1000, width), nn.Embedding(448, width)
        self.blocks, self.norm = (
            nn.ModuleList([Encoder(width, 6, 4 * width, width) for _ in range(2)]),
            nn.LayerNorm(width),
        )

    def forward(self, words: Tensor, memory: Tensor) -> Tensor:
        x = self.words(words) + self.positions.weight[: words.shape[1]]
        for block in self.blocks:
            x = block(x, memory, causal=True)
        return self.norm(x) @ self.words.weight.T


class Wav2Vec(nn.Module):
    """Convolutions over samples with a group norm, grouped positions, post-norm blocks."""

    def __init__(self, width: int = 768) -> None:
        super().__init__()
        self.first, self.norm = nn.Conv1d(1, 256, 10, 5, bias=False), nn.GroupNorm(256, 256)
        self.rest = nn.ModuleList([nn.Conv1d(256, 256, 3, 2, bias=False) for _ in range(4)])
        self.n2, self.wider = nn.LayerNorm(256), nn.Linear(256, width)
        self.positions = nn.Conv1d(width, width, 128, padding=64, groups=16)
        self.blocks, self.n3 = (
            nn.ModuleList([Encoder(width, 12, 3072) for _ in range(2)]),
            nn.LayerNorm(width),
        )

    def forward(self, x: Tensor) -> Tensor:
        x = F.gelu(self.norm(self.first(x[:, None])))
        for layer in self.rest:
            x = F.gelu(layer(x))
        x = self.wider(self.n2(x.transpose(1, 2)))
        x = self.n3(x + F.gelu(self.positions(x.transpose(1, 2))[:, :, :-1]).transpose(1, 2))
        for block in self.blocks:
            x = block(x)
        return x


class Conformer(nn.Module):
    """Half feed-forward parts, relative attention by shifting, convolutions gated and by channel."""

    def __init__(self, width: int = 256, heads: int = 4) -> None:
        super().__init__()
        self.stem = nn.Sequential(nn.Conv2d(1, 64, 3, 2), nn.ReLU(), nn.Conv2d(64, 64, 3, 2), nn.ReLU())
        self.into, self.heads = nn.Linear(64 * 19, width), heads
        self.f1, self.f2 = FeedForward(width, 4 * width, nn.SiLU()), FeedForward(width, 4 * width, nn.SiLU())
        self.norms = nn.ModuleList([nn.LayerNorm(width) for _ in range(5)])
        self.q, self.k, self.v, self.o = (nn.Linear(width, width) for _ in range(4))
        self.place = nn.Linear(width, width, bias=False)
        self.u, self.w = (
            nn.Parameter(torch.randn(heads, width // heads)),
            nn.Parameter(torch.randn(heads, width // heads)),
        )
        self.gate, self.out = nn.Conv1d(width, 2 * width, 1), nn.Conv1d(width, width, 1)
        self.mix = nn.Sequential(
            nn.Conv1d(width, width, 31, padding=15, groups=width), nn.BatchNorm1d(width), nn.SiLU()
        )
        self.register_buffer("far", torch.randn(1, 2 * 63 - 1, width))

    def attend(self, x: Tensor) -> Tensor:
        n, rows, width = x.shape

        def split(y: Tensor) -> Tensor:
            return y.view(1, -1, self.heads, width // self.heads)

        q, k, v = split(self.q(x)), split(self.k(x)).transpose(1, 2), split(self.v(x)).transpose(1, 2)
        p = split(self.place(self.far)).transpose(1, 2)
        content = (q + self.u).transpose(1, 2) @ k.transpose(-1, -2)
        position = (q + self.w).transpose(1, 2) @ p.transpose(-1, -2)
        position = F.pad(position, (1, 0)).view(n, self.heads, 2 * rows, rows)[:, :, 1:]
        position = position.reshape(n, self.heads, rows, 2 * rows - 1)[..., :rows]
        scores = (content + position) / (width // self.heads) ** 0.5
        return self.o((scores.softmax(-1) @ v).transpose(1, 2).reshape(x.shape))

    def forward(self, x: Tensor) -> Tensor:
        x = self.stem(x[:, None])
        x = self.into(x.transpose(1, 2).flatten(2))
        x = x + 0.5 * self.f1(self.norms[0](x))
        x = x + self.attend(self.norms[1](x))
        y = F.glu(self.gate(self.norms[2](x).transpose(1, 2)), 1)
        x = x + self.out(self.mix(y)).transpose(1, 2)
        return self.norms[4](x + 0.5 * self.f2(self.norms[3](x)))


class TCN(nn.Module):
    def __init__(self, width: int = 64) -> None:
        super().__init__()
        self.first = nn.Conv1d(16, width, 1)
        self.layers = nn.ModuleList([nn.Conv1d(width, width, 3, dilation=2**i) for i in range(4)])

    def forward(self, x: Tensor) -> Tensor:
        x = self.first(x)
        for i, layer in enumerate(self.layers):
            x = x + F.relu(layer(F.pad(x, (2 * 2**i, 0))))
        return x


class Separation(nn.Module):
    """Conv-TasNet: an encoder of samples, masks, a transposed convolution back."""

    def __init__(self, width: int = 256, inner: int = 128) -> None:
        super().__init__()
        self.into, self.back = (
            nn.Conv1d(1, width, 16, 8, bias=False),
            nn.ConvTranspose1d(width, 1, 16, 8, bias=False),
        )
        self.norm, self.narrow = nn.GroupNorm(1, width), nn.Conv1d(width, inner, 1)
        self.parts = nn.ModuleList(
            [
                nn.Sequential(
                    nn.Conv1d(inner, width, 1),
                    nn.PReLU(),
                    nn.GroupNorm(1, width),
                    nn.Conv1d(width, width, 3, padding=2**i, dilation=2**i, groups=width),
                    nn.PReLU(),
                    nn.GroupNorm(1, width),
                    nn.Conv1d(width, inner, 1),
                )
                for i in range(2)
            ]
        )
        self.mask = nn.Conv1d(inner, 2 * width, 1)

    def forward(self, x: Tensor) -> Tensor:
        y = F.relu(self.into(x))
        z = self.narrow(self.norm(y))
        for part in self.parts:
            z = z + part(z)
        masks = self.mask(z).sigmoid().view(2, y.shape[1], -1)
        return self.back(y * masks)


class Vocoder(nn.Module):
    """HiFi-GAN: transposed convolutions over time, residuals of dilated ones."""

    def __init__(self) -> None:
        super().__init__()
        self.first, self.last = nn.Conv1d(80, 128, 7, padding=3), nn.Conv1d(32, 1, 7, padding=3)
        self.ups = nn.ModuleList([nn.ConvTranspose1d(128, 64, 16, 8, 4), nn.ConvTranspose1d(64, 32, 4, 2, 1)])
        self.parts = nn.ModuleList(
            [nn.ModuleList([nn.Conv1d(n, n, 3, padding=d, dilation=d) for d in (1, 3, 5)]) for n in (64, 32)]
        )

    def forward(self, x: Tensor) -> Tensor:
        x = self.first(x)
        for up, part in zip(self.ups, self.parts, strict=True):
            x = up(F.leaky_relu(x, 0.1))
            for layer in part:
                x = x + layer(F.leaky_relu(x, 0.1))
        return torch.tanh(self.last(F.leaky_relu(x, 0.1)))


class Video(nn.Module):
    """R(2+1)D: convolutions over space, then over time."""

    def __init__(self) -> None:
        super().__init__()

        def part(inside: int, inner: int, outside: int, stride: int = 1) -> nn.Sequential:
            return nn.Sequential(
                nn.Conv3d(inside, inner, (1, 3, 3), (1, stride, stride), (0, 1, 1), bias=False),
                nn.BatchNorm3d(inner),
                nn.ReLU(),
                nn.Conv3d(inner, outside, (3, 1, 1), (stride, 1, 1), (1, 0, 0), bias=False),
                nn.BatchNorm3d(outside),
            )

        self.first, self.a, self.b = part(3, 45, 64, 2), part(64, 144, 64), part(64, 144, 64)
        self.head = nn.Linear(64, 100)

    def forward(self, x: Tensor) -> Tensor:
        x = F.relu(self.first(x))
        x = F.relu(x + self.b(F.relu(self.a(x))))
        return self.head(x.mean((2, 3, 4)))


class Volumes(nn.Module):
    """A U-Net of three dimensions with instance norms."""

    def __init__(self) -> None:
        super().__init__()

        def part(inside: int, outside: int, stride: int = 1) -> nn.Sequential:
            return nn.Sequential(
                nn.Conv3d(inside, outside, 3, stride, 1),
                nn.InstanceNorm3d(outside, affine=True),
                nn.LeakyReLU(),
            )

        self.a, self.b, self.c = part(1, 16), part(16, 32, 2), part(32, 32)
        self.up, self.d, self.head = nn.ConvTranspose3d(32, 16, 2, 2), part(32, 16), nn.Conv3d(16, 3, 1)

    def forward(self, x: Tensor) -> Tensor:
        a = self.a(x)
        y = self.up(self.c(self.b(a)))
        return self.head(self.d(torch.cat([a, y], 1)))


class VideoTransformer(nn.Module):
    """Tubes as tokens, attention over time and over space in turn."""

    def __init__(self, width: int = 192) -> None:
        super().__init__()
        self.tubes, self.positions = (
            nn.Conv3d(3, width, (2, 16, 16), (2, 16, 16)),
            nn.Parameter(torch.randn(1, 4, 49, width)),
        )
        self.time, self.space, self.norm = (
            Encoder(width, 3, 4 * width),
            Encoder(width, 3, 4 * width),
            nn.LayerNorm(width),
        )

    def forward(self, x: Tensor) -> Tensor:
        x = self.tubes(x).flatten(3).permute(0, 2, 3, 1) + self.positions
        n, t, p, c = x.shape
        x = self.time(x.transpose(1, 2).reshape(n * p, t, c)).view(n, p, t, c).transpose(1, 2)
        x = self.space(x.reshape(n * t, p, c)).view(n, t * p, c)
        return self.norm(x).mean(1)


class PointNet(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.turn = nn.Sequential(
            nn.Conv1d(3, 64, 1), nn.BatchNorm1d(64), nn.ReLU(), nn.Conv1d(64, 256, 1), nn.ReLU()
        )
        self.matrix = nn.Linear(256, 9)
        self.body = nn.Sequential(
            nn.Conv1d(3, 64, 1), nn.BatchNorm1d(64), nn.ReLU(), nn.Conv1d(64, 1024, 1), nn.BatchNorm1d(1024)
        )
        self.head = nn.Sequential(nn.Linear(1024, 256), nn.ReLU(), nn.Linear(256, 40))

    def forward(self, x: Tensor) -> Tensor:
        turn = self.matrix(self.turn(x).amax(2)).view(-1, 3, 3) + torch.eye(3)
        x = (x.transpose(1, 2) @ turn).transpose(1, 2)
        return self.head(self.body(x).amax(2)).log_softmax(-1)


class Graph(nn.Module):
    """Messages along edges, added up at the nodes."""

    def __init__(self, width: int = 64) -> None:
        super().__init__()
        self.into, self.own, self.other = (
            nn.Linear(32, width),
            nn.Linear(width, width),
            nn.Linear(width, width),
        )
        self.head = nn.Linear(width, 7)

    def forward(self, x: Tensor, edges: Tensor) -> Tensor:
        x = F.relu(self.into(x))
        for _ in range(2):
            got = torch.zeros_like(x).index_add(0, edges[1], self.other(x)[edges[0]])
            x = F.relu(self.own(x) + got)
        return self.head(x).log_softmax(-1)


class GraphAttention(nn.Module):
    """Attention over a dense matrix of neighbours."""

    def __init__(self, width: int = 64) -> None:
        super().__init__()
        self.into, self.a, self.b, self.head = (
            nn.Linear(32, width),
            nn.Linear(width, 1),
            nn.Linear(width, 1),
            nn.Linear(width, 7),
        )

    def forward(self, x: Tensor, near: Tensor) -> Tensor:
        x = self.into(x)
        scores = F.leaky_relu(self.a(x) + self.b(x).transpose(0, 1), 0.2)
        scores = scores.masked_fill(near == 0, -1e9)
        return self.head(F.elu(scores.softmax(-1) @ x))


class Clip(nn.Module):
    """Two towers and the likeness of what they make."""

    def __init__(self) -> None:
        super().__init__()
        self.patches, self.token, self.at = (
            nn.Conv2d(3, 768, 32, 32, bias=False),
            nn.Parameter(torch.randn(1, 1, 768)),
            nn.Parameter(torch.randn(1, 50, 768)),
        )
        self.seen, self.n1, self.n2 = Encoder(768, 12, 3072), nn.LayerNorm(768), nn.LayerNorm(768)
        self.words, self.places = nn.Embedding(1000, 512), nn.Parameter(torch.randn(77, 512))
        self.read, self.n3 = Encoder(512, 8, 2048), nn.LayerNorm(512)
        self.p, self.q = nn.Linear(768, 512, bias=False), nn.Linear(512, 512, bias=False)

    def forward(self, image: Tensor, words: Tensor) -> Tensor:
        x = self.patches(image).flatten(2).transpose(1, 2)
        x = self.p(self.n2(self.seen(self.n1(torch.cat([self.token, x], 1) + self.at)))[:, 0])
        mask = torch.full((77, 77), float("-inf")).triu(1)
        y = self.n3(self.read(self.words(words) + self.places, mask=mask))
        y = self.q(y[torch.arange(words.shape[0]), words.argmax(-1)])
        x, y = x / x.norm(dim=-1, keepdim=True), y / y.norm(dim=-1, keepdim=True)
        return 14.3 * x @ y.T


class Ray(nn.Module):
    """Positions in sines and cosines, a deep chain of products, one joined again in the middle."""

    def __init__(self, width: int = 256) -> None:
        super().__init__()
        self.a = nn.ModuleList([nn.Linear(63, width)] + [nn.Linear(width, width) for _ in range(3)])
        self.b = nn.ModuleList([nn.Linear(width + 63, width), nn.Linear(width, width)])
        self.density, self.colour = nn.Linear(width, 1), nn.Linear(width, 3)
        self.register_buffer("rate", 2.0 ** torch.arange(10))

    def forward(self, x: Tensor) -> Tensor:
        angle = (x[..., None] * self.rate).flatten(1)
        first = torch.cat([x, angle.sin(), angle.cos()], -1)
        y = first
        for layer in self.a:
            y = F.relu(layer(y))
        y = torch.cat([y, first], -1)
        for layer in self.b:
            y = F.relu(layer(y))
        return torch.cat([self.colour(y).sigmoid(), F.relu(self.density(y))], -1)


class Dlrm(nn.Module):
    """Embeddings and numbers, their products pair by pair."""

    def __init__(self, tables: int = 8, width: int = 64) -> None:
        super().__init__()
        self.tables = nn.ModuleList([nn.Embedding(1000, width) for _ in range(tables)])
        self.low = nn.Sequential(nn.Linear(13, 256), nn.ReLU(), nn.Linear(256, width), nn.ReLU())
        self.register_buffer("pairs", torch.tril_indices(tables + 1, tables + 1, -1))
        self.high = nn.Sequential(
            nn.Linear(width + (tables + 1) * tables // 2, 256), nn.ReLU(), nn.Linear(256, 1)
        )

    def forward(self, numbers: Tensor, kinds: Tensor) -> Tensor:
        x = self.low(numbers)
        rows = torch.stack([x] + [table(kinds[:, i]) for i, table in enumerate(self.tables)], 1)
        products = rows @ rows.transpose(1, 2)
        products = products[:, self.pairs[0], self.pairs[1]]
        return self.high(torch.cat([x, products], 1)).sigmoid()


def autoencoder() -> nn.Module:
    return nn.Sequential(
        nn.Linear(640, 128),
        nn.ReLU(),
        nn.Linear(128, 8),
        nn.ReLU(),
        nn.Linear(8, 128),
        nn.ReLU(),
        nn.Linear(128, 640),
    )


class Keyword(nn.Module):
    """A transformer of spectrogram rows."""

    def __init__(self) -> None:
        super().__init__()
        self.into, self.token, self.at = (
            nn.Linear(40, 192),
            nn.Parameter(torch.randn(1, 1, 192)),
            nn.Parameter(torch.randn(1, 99, 192)),
        )
        self.block, self.head = (
            nn.TransformerEncoderLayer(192, 3, 768, activation="gelu", batch_first=True),
            nn.Linear(192, 35),
        )

    def forward(self, x: Tensor) -> Tensor:
        x = torch.cat([self.token, self.into(x)], 1) + self.at
        return self.head(self.block(x)[:, 0])


class Policy(nn.Module):
    """A robot's policy: an image, a state, a decoder of a chunk of actions."""

    def __init__(self) -> None:
        super().__init__()
        self.eye = nn.Sequential(conv(3, 32, 5, 2), conv(32, 64, 3, 2), conv(64, 128, 3, 2))
        self.state, self.wide = nn.Linear(14, 256), nn.Conv2d(128, 256, 1)
        self.queries, self.look = (
            nn.Parameter(torch.randn(1, 50, 256)),
            nn.MultiheadAttention(256, 8, batch_first=True),
        )
        self.own, self.feed, self.norm = (
            Attention(256, 8),
            FeedForward(256, 1024, nn.ReLU()),
            nn.LayerNorm(256),
        )
        self.head = nn.Linear(256, 14)

    def forward(self, image: Tensor, state: Tensor) -> Tensor:
        x = torch.cat([self.wide(self.eye(image)).flatten(2).transpose(1, 2), self.state(state)[:, None]], 1)
        x = x + self.own(x)
        y = self.look(self.queries, x, x, need_weights=False)[0]
        return self.head(self.norm(y + self.feed(y)))


class Bird(nn.Module):
    """Features sampled at places that are computed: a plane seen from above."""

    def __init__(self) -> None:
        super().__init__()
        self.eye, self.shift = (
            nn.Sequential(conv(3, 32, 3, 2), conv(32, 64, 3, 2)),
            nn.Conv2d(64, 2, 3, padding=1),
        )
        self.head = conv(64, 64)

    def forward(self, x: Tensor) -> Tensor:
        x = self.eye(x)
        rows, columns = torch.meshgrid(torch.linspace(-1, 1, 32), torch.linspace(-1, 1, 32), indexing="ij")
        grid = torch.stack([columns, rows], -1)[None] + 0.1 * self.shift(x).permute(0, 2, 3, 1).tanh()
        return self.head(F.grid_sample(x, grid, align_corners=False))


class Forecast(nn.Module):
    """Patches of a series as tokens, normalised by what the series is."""

    def __init__(self, width: int = 128) -> None:
        super().__init__()
        self.into, self.at = nn.Linear(16, width), nn.Parameter(torch.randn(1, 63, width))
        self.block, self.head = Encoder(width, 8, 256), nn.Linear(63 * width, 96)

    def forward(self, x: Tensor) -> Tensor:
        mean = x.mean(-1, keepdim=True)
        spread = torch.sqrt(x.var(-1, keepdim=True, unbiased=False) + 1e-5)
        y = ((x - mean) / spread).unfold(2, 16, 8)
        y = self.block(self.into(y[0]) + self.at)
        return self.head(y.flatten(1)) * spread[0] + mean[0]


NETWORKS = {
    "Whisper encoder": (Whisper, lambda: (torch.randn(1, 80, 512),)),
    "Whisper decoder": (WhisperDecoder, lambda: (torch.randint(0, 1000, (1, 48)), torch.randn(1, 256, 384))),
    "wav2vec 2.0": (Wav2Vec, lambda: (torch.randn(1, 16000),)),
    "Conformer": (Conformer, lambda: (torch.randn(1, 255, 80),)),
    "TCN": (TCN, lambda: (torch.randn(1, 16, 512),)),
    "Conv-TasNet": (Separation, lambda: (torch.randn(1, 1, 8000),)),
    "HiFi-GAN": (Vocoder, lambda: (torch.randn(1, 80, 64),)),
    "Keyword transformer": (Keyword, lambda: (torch.randn(1, 98, 40),)),
    "R(2+1)D": (Video, lambda: (torch.randn(1, 3, 8, 112, 112),)),
    "3-D U-Net": (Volumes, lambda: (torch.randn(1, 1, 32, 32, 32),)),
    "Video transformer": (VideoTransformer, lambda: (torch.randn(1, 3, 8, 112, 112),)),
    "PointNet": (PointNet, lambda: (torch.randn(1, 3, 1024),)),
    "Graph network": (Graph, lambda: (torch.randn(128, 32), torch.randint(0, 128, (2, 512)))),
    "Graph attention": (GraphAttention, lambda: (torch.randn(256, 32), (torch.rand(256, 256) > 0.9).float())),
    "CLIP": (Clip, lambda: (torch.randn(1, 3, 224, 224), torch.randint(0, 1000, (2, 77)))),
    "NeRF": (Ray, lambda: (torch.randn(1024, 3),)),
    "DLRM": (Dlrm, lambda: (torch.randn(16, 13), torch.randint(0, 1000, (16, 8)))),
    "Autoencoder": (autoencoder, lambda: (torch.randn(1, 640),)),
    "Robot policy": (Policy, lambda: (torch.randn(1, 3, 128, 128), torch.randn(1, 14))),
    "Bird's eye": (Bird, lambda: (torch.randn(1, 3, 128, 128),)),
    "Forecast": (Forecast, lambda: (torch.randn(1, 7, 512),)),
}
