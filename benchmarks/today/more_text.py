"""More networks that read words, one after the other: scans, experts, caches, biases, soft caps."""

from __future__ import annotations

import math

import torch
import torch.nn.functional as F
from blocks import Encoder, FeedForward, RMSNorm
from torch import Tensor, nn


class Duality(nn.Module):
    """Mamba-2: a scan as products within chunks of the text, and states that go from chunk to chunk."""

    def __init__(self, width: int = 64, heads: int = 4, state: int = 16, chunk: int = 8) -> None:
        super().__init__()
        self.heads, self.state, self.chunk, self.inner = heads, state, chunk, width
        self.into = nn.Linear(width, 2 * width + 2 * state + heads, bias=False)
        self.near = nn.Conv1d(width + 2 * state, width + 2 * state, 4, groups=width + 2 * state, padding=3)
        self.decay, self.skip = nn.Parameter(torch.rand(heads)), nn.Parameter(torch.ones(heads))
        self.norm, self.out = RMSNorm(width), nn.Linear(width, width, bias=False)

    def sums(self, x: Tensor) -> Tensor:
        """Return the sums of every stretch of the last axis; nothing above the diagonal."""
        n = x.shape[-1]
        total = x.cumsum(-1)
        gaps = total[..., :, None] - total[..., None, :]
        return gaps.masked_fill(~torch.ones(n, n, dtype=torch.bool).tril(), float("-inf"))

    def forward(self, x: Tensor) -> Tensor:
        n, rows, width = x.shape
        z, y, step = self.into(x).split((width, width + 2 * self.state, self.heads), -1)
        y = F.silu(self.near(y.transpose(1, 2))[..., :rows].transpose(1, 2))
        u, b, c = y.split((width, self.state, self.state), -1)
        step = F.softplus(step)
        m = rows // self.chunk
        u = u.view(n, m, self.chunk, self.heads, -1)
        b, c = b.view(n, m, self.chunk, -1), c.view(n, m, self.chunk, -1)
        step = step.view(n, m, self.chunk, self.heads)
        a = (step * -self.decay.exp()).permute(0, 3, 1, 2)
        scaled, total = u * step[..., None], a.cumsum(-1)
        inside = torch.einsum("bcln,bcsn,bhcls,bcshp->bclhp", c, b, self.sums(a).exp(), scaled)
        left = (total[..., -1:] - total).exp()
        states = torch.einsum("bcln,bhcl,bclhp->bchpn", b, left, scaled)
        states = torch.cat((torch.zeros_like(states[:, :1]), states), 1)
        over = self.sums(F.pad(total[..., -1], (1, 0))).exp()
        states = torch.einsum("bhzc,bchpn->bzhpn", over, states)[:, :-1]
        outside = torch.einsum("bcln,bchpn,bhcl->bclhp", c, states, total.exp())
        y = inside + outside + u * self.skip[:, None]
        return x + self.out(self.norm(y.reshape(n, rows, width) * F.silu(z)))


class Experts(nn.Module):
    """Two experts of four for each word: chosen, normalised, spread over all, summed in one product."""

    def __init__(self, width: int = 64, count: int = 4) -> None:
        super().__init__()
        self.count, self.norm = count, RMSNorm(width)
        self.choose = nn.Linear(width, count, bias=False)
        self.up = nn.Parameter(torch.randn(count, width, 4 * width) / 8)
        self.down = nn.Parameter(torch.randn(count, 2 * width, width) / 8)
        self.shared = FeedForward(width, 2 * width)

    def forward(self, x: Tensor) -> Tensor:
        y = self.norm(x)
        shares, best = self.choose(y).softmax(-1).topk(2, -1)
        shares = shares / shares.sum(-1, keepdim=True)
        spread = torch.zeros(*x.shape[:-1], self.count).scatter(-1, best, shares)
        a, b = torch.einsum("btd,edf->btef", y, self.up).chunk(2, -1)
        z = torch.einsum("btef,efd->bted", F.silu(a) * b, self.down)
        return x + (z * spread[..., None]).sum(2) + self.shared(y)


class OneExpert(nn.Module):
    """Matrices looked up for each word: a switch, with the gate's share on the result."""

    def __init__(self, width: int = 32, count: int = 4) -> None:
        super().__init__()
        self.choose = nn.Linear(width, count)
        self.up = nn.Parameter(torch.randn(count, width, 64))
        self.down = nn.Parameter(torch.randn(count, 64, width))

    def forward(self, x: Tensor) -> Tensor:
        share, best = self.choose(x).softmax(-1).max(-1)
        y = F.relu(torch.einsum("btd,btdf->btf", x, self.up[best]))
        return x + share[..., None] * torch.einsum("btf,btfd->btd", y, self.down[best])


class Capped(nn.Module):
    """Gemma 2: a norm before and behind each part, scores and logits under a soft cap, a near window."""

    def __init__(self, width: int = 64, heads: int = 4) -> None:
        super().__init__()
        self.heads, self.words = heads, nn.Embedding(300, width)
        self.norms = nn.ModuleList([RMSNorm(width) for _ in range(9)])
        self.q = nn.ModuleList([nn.Linear(width, width, bias=False) for _ in range(2)])
        self.kv = nn.ModuleList([nn.Linear(width, width, bias=False) for _ in range(2)])
        self.out = nn.ModuleList([nn.Linear(width, width, bias=False) for _ in range(2)])
        self.up = nn.ModuleList([nn.Linear(width, 4 * width, bias=False) for _ in range(2)])
        self.down = nn.ModuleList([nn.Linear(2 * width, width, bias=False) for _ in range(2)])

    def turn(self, x: Tensor) -> Tensor:
        half = x.shape[-1] // 2
        angles = torch.arange(x.shape[2])[:, None] * 10000 ** (-torch.arange(half) / half)
        c, s = torch.cat((angles, angles), -1).cos(), torch.cat((angles, angles), -1).sin()
        return x * c + torch.cat((-x[..., half:], x[..., :half]), -1) * s

    def forward(self, words: Tensor) -> Tensor:
        x = self.words(words) * self.words.embedding_dim**0.5
        n, rows, width = x.shape
        places = torch.arange(rows)
        gaps = places[:, None] - places[None]
        for i in range(2):
            mask = (gaps >= 0) & (gaps < 16) if i else gaps >= 0
            y = self.norms[4 * i](x)
            q = self.q[i](y).view(n, rows, self.heads, -1).transpose(1, 2)
            k, v = self.kv[i](y).view(n, rows, self.heads, -1).transpose(1, 2).chunk(2, 1)
            q, k = self.turn(q), self.turn(k)
            k, v = k.repeat_interleave(2, 1), v.repeat_interleave(2, 1)
            scores = 50 * torch.tanh(q @ k.transpose(-1, -2) / 4 / 50)
            shares = scores.masked_fill(~mask, -2.3819763e38).softmax(-1)
            x = x + self.norms[4 * i + 1](self.out[i]((shares @ v).transpose(1, 2).reshape(n, rows, width)))
            a, b = self.up[i](self.norms[4 * i + 2](x)).chunk(2, -1)
            x = x + self.norms[4 * i + 3](self.down[i](F.gelu(a, approximate="tanh") * b))
        return 30 * torch.tanh(F.linear(self.norms[8](x), self.words.weight) / 30)


class Phi(nn.Module):
    """One norm, then attention and feed-forward side by side; part of each head is rotated."""

    def __init__(self, width: int = 64, heads: int = 4, rotated: int = 8) -> None:
        super().__init__()
        self.heads, self.rotated, self.norm = heads, rotated, nn.LayerNorm(width)
        self.q, self.k, self.v, self.out = (nn.Linear(width, width) for _ in range(4))
        self.feed, self.head = (
            FeedForward(width, 4 * width, nn.GELU(approximate="tanh")),
            nn.Linear(width, 200),
        )

    def turn(self, x: Tensor) -> Tensor:
        rows = torch.arange(x.shape[2])[:, None] * 10000 ** (-torch.arange(0, self.rotated, 2) / self.rotated)
        c, s = torch.cat((rows, rows), -1).cos(), torch.cat((rows, rows), -1).sin()
        part, rest = x[..., : self.rotated], x[..., self.rotated :]
        one, other = part.chunk(2, -1)
        return torch.cat((part * c + torch.cat((-other, one), -1) * s, rest), -1)

    def forward(self, x: Tensor) -> Tensor:
        y = self.norm(x)
        q, k, v = (p(y).unflatten(-1, (self.heads, -1)).transpose(1, 2) for p in (self.q, self.k, self.v))
        z = F.scaled_dot_product_attention(self.turn(q), self.turn(k), v, is_causal=True)
        return self.head(x + self.out(z.transpose(1, 2).flatten(2)) + self.feed(y))


class Step(nn.Module):
    """A step with caches of fixed length: keys and values are written at a place that is an input."""

    def __init__(self, width: int = 64, heads: int = 4, length: int = 32) -> None:
        super().__init__()
        self.heads, self.norm = heads, RMSNorm(width)
        self.q, self.out = nn.Linear(width, width), nn.Linear(width, width)
        self.kv = nn.Linear(width, 2 * width // heads)
        self.feed = FeedForward(width, 2 * width, nn.SiLU())
        self.length = length

    def forward(self, x: Tensor, at: Tensor, keys: Tensor, values: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        y = self.norm(x)
        n, rows, width = x.shape
        q = self.q(y).view(n, rows, self.heads, -1).transpose(1, 2)
        k, v = self.kv(y).chunk(2, -1)
        keys, values = keys.index_copy(1, at, k), values.index_copy(1, at, v)
        seen = torch.arange(self.length)[None] <= at[:, None]
        scores = q @ keys[:, None].transpose(-1, -2) / math.sqrt(q.shape[-1])
        shares = scores.masked_fill(~seen, float("-inf")).softmax(-1)
        x = x + self.out((shares @ values[:, None]).transpose(1, 2).reshape(n, rows, width))
        return x + self.feed(x), keys, values


class CrossStep(nn.Module):
    """Whisper: a word asks its own grown caches, then caches of the sound; the caches leave."""

    def __init__(self, width: int = 64, heads: int = 4) -> None:
        super().__init__()
        self.heads, self.words = heads, nn.Embedding(300, width)
        self.places = nn.Embedding(64, width)
        self.norms = nn.ModuleList([nn.LayerNorm(width) for _ in range(4)])
        self.q, self.v, self.out = (nn.Linear(width, width) for _ in range(3))
        self.k = nn.Linear(width, width, bias=False)
        self.ask, self.answer = nn.Linear(width, width), nn.Linear(width, width)
        self.feed = FeedForward(width, 4 * width)

    def split(self, x: Tensor) -> Tensor:
        return x.view(x.shape[0], -1, self.heads, x.shape[-1] // self.heads).transpose(1, 2)

    def forward(
        self, word: Tensor, past_k: Tensor, past_v: Tensor, sound_k: Tensor, sound_v: Tensor
    ) -> tuple[Tensor, Tensor, Tensor]:
        x = self.words(word) + self.places.weight[past_k.shape[2] : past_k.shape[2] + 1]
        y = self.norms[0](x)
        k = torch.cat((past_k, self.split(self.k(y))), 2)
        v = torch.cat((past_v, self.split(self.v(y))), 2)
        z = F.scaled_dot_product_attention(self.split(self.q(y)), k, v)
        x = x + self.out(z.transpose(1, 2).reshape(x.shape))
        z = F.scaled_dot_product_attention(self.split(self.ask(self.norms[1](x))), sound_k, sound_v)
        x = x + self.answer(z.transpose(1, 2).reshape(x.shape))
        x = x + self.feed(self.norms[2](x))
        return F.linear(self.norms[3](x), self.words.weight), k, v


class MatrixMemory(nn.Module):
    """xLSTM: gates of exponentials, summed along the text, weigh products of queries and keys."""

    def __init__(self, width: int = 64, heads: int = 4) -> None:
        super().__init__()
        self.heads, self.norm = heads, nn.LayerNorm(width)
        self.up, self.down = nn.Linear(width, 2 * width), nn.Linear(width, width)
        self.q, self.k, self.v = (nn.Linear(width, width) for _ in range(3))
        self.gates, self.near = (
            nn.Linear(width, 2 * heads),
            nn.Conv1d(width, width, 4, padding=3, groups=width),
        )
        self.each = nn.GroupNorm(heads, width)

    def forward(self, x: Tensor) -> Tensor:
        n, rows, width = x.shape
        u, gate = self.up(self.norm(x)).chunk(2, -1)
        c = F.silu(self.near(u.transpose(1, 2))[..., :-3].transpose(1, 2))
        q, k, v = (
            p(y).view(n, rows, self.heads, -1).transpose(1, 2)
            for p, y in ((self.q, c), (self.k, c), (self.v, u))
        )
        i, f = self.gates(u).transpose(1, 2).chunk(2, 1)
        total = F.logsigmoid(f).cumsum(-1)
        weights = total[..., :, None] - total[..., None, :] + i[..., None, :]
        weights = weights.masked_fill(torch.ones(rows, rows, dtype=torch.bool).triu(1), float("-inf"))
        most = weights.amax(-1, keepdim=True)
        scores = q @ k.transpose(-1, -2) / math.sqrt(q.shape[-1]) * (weights - most).exp()
        size = torch.maximum(scores.sum(-1, keepdim=True).abs(), (-most).exp())
        y = ((scores / (size + 1e-6)) @ v).transpose(1, 2).reshape(n * rows, width)
        return x + self.down(self.each(y).view(n, rows, width) * F.silu(gate))


class Recurrent(nn.Module):
    """Griffin: a gated linear recurrence, step by step, beside a gate; each head has its own matrix."""

    def __init__(self, width: int = 32, heads: int = 4) -> None:
        super().__init__()
        self.heads, self.norm = heads, RMSNorm(width)
        self.a, self.b, self.out = nn.Linear(width, width), nn.Linear(width, width), nn.Linear(width, width)
        self.near = nn.Conv1d(width, width, 4, groups=width)
        self.gates = nn.Parameter(torch.randn(2, heads, width // heads, width // heads))
        self.decay = nn.Parameter(torch.rand(width))

    def forward(self, x: Tensor) -> Tensor:
        n, rows, width = x.shape
        y = self.norm(x)
        u = self.near(F.pad(self.a(y).transpose(1, 2), (3, 0))).transpose(1, 2)
        parts = u.view(n, rows, self.heads, -1)
        r, i = (
            torch.einsum("bthi,hij->bthj", parts, g).reshape(n, rows, width).sigmoid() for g in self.gates
        )
        log = -8 * r * F.softplus(self.decay)
        a, u = log.exp(), u * i * torch.sqrt(1 - (2 * log).exp())
        state, states = torch.zeros(n, width), []
        for t in range(rows):
            state = a[:, t] * state + u[:, t]
            states.append(state)
        return x + self.out(torch.stack(states, 1) * F.gelu(self.b(y)))


class LongConvolution(nn.Module):
    """Hyena: three projections, each filtered nearby, and a filter as long as the text that sines make."""

    def __init__(self, width: int = 32, rows: int = 32) -> None:
        super().__init__()
        self.into, self.out = nn.Linear(width, 3 * width), nn.Linear(width, width)
        self.near = nn.Conv1d(3 * width, 3 * width, 3, padding=2, groups=3 * width)
        self.one, self.two = nn.Linear(5, 16), nn.Linear(16, width)
        t = torch.linspace(0, 1, rows)[:, None]
        angles = 2 * math.pi * t * torch.arange(1, 3)
        self.register_buffer("times", torch.cat((t, angles.cos(), angles.sin()), -1))

    def forward(self, x: Tensor) -> Tensor:
        _n, rows, width = x.shape
        u = self.near(self.into(x).transpose(1, 2))[..., :rows]
        a, b, v = u.chunk(3, 1)
        kernel = self.two(torch.sin(self.one(self.times))).T.flip(-1)[:, None]
        v = F.conv1d(F.pad(v * b, (rows - 1, 0)), kernel, groups=width)
        return x + self.out((v * a).transpose(1, 2))


class Projected(nn.Module):
    """Linformer, then Performer: keys projected to few rows; features of exponentials, sums first."""

    def __init__(self, width: int = 64, heads: int = 4, rows: int = 48, few: int = 8) -> None:
        super().__init__()
        self.heads = heads
        self.qkv = nn.ModuleList([nn.Linear(width, 3 * width) for _ in range(2)])
        self.out = nn.ModuleList([nn.Linear(width, width) for _ in range(2)])
        self.few = nn.Parameter(torch.randn(few, rows) / 7)
        self.register_buffer("random", torch.randn(width // heads, 24))

    def features(self, x: Tensor) -> Tensor:
        x = x / x.shape[-1] ** 0.25
        y = x @ self.random - x.pow(2).sum(-1, keepdim=True) / 2
        return (y - y.amax(-1, keepdim=True)).exp() + 1e-4

    def forward(self, x: Tensor) -> Tensor:
        n, rows, width = x.shape
        q, k, v = self.qkv[0](x).view(n, rows, 3, self.heads, -1).permute(2, 0, 3, 1, 4)
        y = F.scaled_dot_product_attention(q, self.few @ k, self.few @ v)
        x = x + self.out[0](y.transpose(1, 2).reshape(n, rows, width))
        q, k, v = self.qkv[1](x).view(n, rows, 3, self.heads, -1).permute(2, 0, 3, 1, 4)
        q, k = self.features(q), self.features(k)
        y = q @ (k.transpose(-1, -2) @ v) / (q @ k.sum(-2)[..., None])
        return x + self.out[1](y.transpose(1, 2).reshape(n, rows, width))


class Chunks(nn.Module):
    """Longformer: each block of words asks itself and both neighbours, cut out by unfolding."""

    def __init__(self, width: int = 32, heads: int = 2, block: int = 8) -> None:
        super().__init__()
        self.heads, self.block = heads, block
        self.q, self.kv, self.out = (
            nn.Linear(width, width),
            nn.Linear(width, 2 * width),
            nn.Linear(width, width),
        )

    def forward(self, x: Tensor) -> Tensor:
        n, rows, width = x.shape
        b = self.block
        q = self.q(x).view(n, rows // b, b, self.heads, -1).transpose(2, 3)
        kv = F.pad(self.kv(x), (0, 0, b, b)).unfold(1, 3 * b, b).transpose(2, 3)
        k, v = kv.reshape(n, rows // b, 3 * b, 2, self.heads, -1).permute(3, 0, 1, 4, 2, 5)
        y = (q @ k.transpose(-1, -2) / 4).softmax(-1) @ v
        return x + self.out(y.transpose(2, 3).reshape(n, rows, width))


class Shifted(nn.Module):
    """Transformer-XL: products with distances, moved to their places by padding and reshaping."""

    def __init__(self, width: int = 64, heads: int = 4, rows: int = 24) -> None:
        super().__init__()
        self.heads, self.rows = heads, rows
        self.q, self.k, self.v, self.r, self.out = (nn.Linear(width, width, bias=False) for _ in range(5))
        self.u, self.w = (nn.Parameter(torch.randn(heads, 1, width // heads)) for _ in range(2))
        far = torch.arange(rows - 1, -rows, -1.0)[:, None] * 10000 ** (-torch.arange(0, width, 2) / width)
        self.register_buffer("far", torch.cat((far.sin(), far.cos()), -1))
        self.feed, self.norm = FeedForward(width, 2 * width), nn.LayerNorm(width)

    def forward(self, x: Tensor) -> Tensor:
        n, rows, width = x.shape
        q, k, v = (p(x).view(n, rows, self.heads, -1).transpose(1, 2) for p in (self.q, self.k, self.v))
        r = self.r(self.far).view(-1, self.heads, width // self.heads).transpose(0, 1)
        far = F.pad((q + self.w) @ r.transpose(-1, -2), (1, 0))
        far = far.view(n, self.heads, -1, rows)[:, :, 1:].view(n, self.heads, rows, -1)[..., :rows]
        scores = ((q + self.u) @ k.transpose(-1, -2) + far) / math.sqrt(width // self.heads)
        x = self.norm(x + self.out((scores.softmax(-1) @ v).transpose(1, 2).reshape(n, rows, width)))
        return x + self.feed(x)


class Asked(nn.Module):
    """A sentence as one vector: causal words, the row of the highest word number, a unit length."""

    def __init__(self, width: int = 64) -> None:
        super().__init__()
        self.words, self.places = nn.Embedding(300, width), nn.Parameter(torch.randn(24, width))
        self.block, self.norm = Encoder(width, 4, 4 * width), nn.LayerNorm(width)
        self.project = nn.Parameter(torch.randn(width, 32))

    def forward(self, words: Tensor) -> Tensor:
        x = self.norm(self.block(self.words(words) + self.places, causal=True))
        x = x[torch.arange(x.shape[0]), words.argmax(-1)] @ self.project
        return x / x.norm(dim=-1, keepdim=True)


class Fourier(nn.Module):
    """FNet: rows and features mixed by a discrete Fourier transform, written as products."""

    def __init__(self, width: int = 32, rows: int = 24) -> None:
        super().__init__()
        for name, size in (("w", width), ("r", rows)):
            angles = torch.outer(torch.arange(size), torch.arange(size)) * 2 * math.pi / size
            self.register_buffer(f"{name}_cos", angles.cos())
            self.register_buffer(f"{name}_sin", angles.sin())
        self.norms = nn.ModuleList([nn.LayerNorm(width) for _ in range(2)])
        self.feed = FeedForward(width, 4 * width)

    def forward(self, x: Tensor) -> Tensor:
        mixed = self.r_cos @ (x @ self.w_cos) - self.r_sin @ (x @ self.w_sin)
        x = self.norms[0](x + mixed)
        return self.norms[1](x + self.feed(x))


class Additive(nn.Module):
    """Bahdanau: a recurrent encoder in both directions; a cell asks it by a sum under a tangent."""

    def __init__(self, width: int = 32) -> None:
        super().__init__()
        self.words = nn.Embedding(200, width)
        self.encoder = nn.GRU(width, width, batch_first=True, bidirectional=True)
        self.cell = nn.GRUCell(3 * width, width)
        self.q, self.k, self.v = nn.Linear(width, 32), nn.Linear(2 * width, 32), nn.Linear(32, 1, bias=False)
        self.head = nn.Linear(3 * width, 200)

    def forward(self, words: Tensor, said: Tensor) -> Tensor:
        memory, last = self.encoder(self.words(words))
        keys, state, found = self.k(memory), last[0], []
        for t in range(said.shape[1]):
            shares = self.v(torch.tanh(self.q(state)[:, None] + keys)).softmax(1)
            context = (shares * memory).sum(1)
            state = self.cell(torch.cat((self.words(said[:, t]), context), -1), state)
            found.append(self.head(torch.cat((state, context), -1)))
        return torch.stack(found, 1)


def words(rows: int) -> tuple[Tensor, ...]:
    return (torch.randint(0, 200, (1, rows)),)


def rows(count: int, width: int) -> tuple[Tensor, ...]:
    return (torch.randn(1, count, width),)


def caches(count: int, rows: int, heads: int = 4, width: int = 16) -> tuple[Tensor, ...]:
    return tuple(torch.randn(1, heads, rows, width) for _ in range(count))


NETWORKS = {
    "Mamba-2": (Duality, lambda: rows(32, 64)),
    "Experts in one product": (Experts, lambda: rows(32, 64)),
    "Switch": (OneExpert, lambda: rows(16, 32)),
    "Gemma 2": (Capped, lambda: words(48)),
    "Phi": (Phi, lambda: rows(48, 64)),
    "Step with fixed caches": (
        Step,
        lambda: (torch.randn(1, 1, 64), torch.tensor([20]), torch.randn(1, 32, 16), torch.randn(1, 32, 16)),
    ),
    "Whisper, one word": (CrossStep, lambda: (*words(1), *caches(2, 20), *caches(2, 50))),
    "xLSTM": (MatrixMemory, lambda: rows(32, 64)),
    "Griffin": (Recurrent, lambda: rows(12, 32)),
    "Hyena": (LongConvolution, lambda: rows(32, 32)),
    "Linformer, Performer": (Projected, lambda: rows(48, 64)),
    "Longformer": (Chunks, lambda: rows(32, 32)),
    "Transformer-XL": (Shifted, lambda: rows(24, 64)),
    "CLIP, text": (Asked, lambda: words(24)),
    "FNet": (Fourier, lambda: rows(24, 32)),
    "Seq2seq": (Additive, lambda: (*words(16), *words(4))),
}
