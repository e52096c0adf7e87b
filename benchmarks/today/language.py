"""Networks of text: encoders, decoders with and without a cache, encoder-decoders, recurrences, experts."""

from __future__ import annotations

import torch
import torch.nn.functional as F
from blocks import Attention, Encoder, FeedForward, PostNorm, RMSNorm
from torch import Tensor, nn

WORDS = 1000


def ids(rows: int, count: int = WORDS) -> Tensor:
    return torch.randint(0, count, (1, rows))


class Bert(nn.Module):
    def __init__(
        self, layers: int = 2, shared: bool = False, kinds: bool = True, fused: bool = True, narrow: int = 0
    ) -> None:
        super().__init__()
        width = 768
        self.words = nn.Embedding(WORDS, narrow or width)
        self.wider = nn.Linear(narrow, width) if narrow else nn.Identity()
        self.positions = nn.Embedding(512, narrow or width)
        self.kinds = nn.Embedding(2, narrow or width) if kinds else None
        self.norm = nn.LayerNorm(narrow or width, eps=1e-12)
        one = PostNorm(width, 12, 3072, fused)
        self.blocks = nn.ModuleList(
            [one if shared else PostNorm(width, 12, 3072, fused) for _ in range(layers)]
        )
        self.head = nn.Linear(width, 2)

    def forward(self, words: Tensor, kept: Tensor) -> Tensor:
        rows = words.shape[1]
        x = self.words(words) + self.positions(torch.arange(rows))
        if self.kinds is not None:
            x = x + self.kinds(torch.zeros_like(words))
        x = self.wider(self.norm(x))
        mask = (1.0 - kept[:, None, None, :].to(x.dtype)) * -1e9
        for block in self.blocks:
            x = block(x, mask)
        return self.head(x[:, 0].tanh())


def distilbert() -> nn.Module:
    return Bert(kinds=False)


def albert() -> nn.Module:
    return Bert(shared=True, narrow=128)


def bert_parts() -> nn.Module:
    return Bert(fused=False)


class Disentangled(nn.Module):
    """Attention with terms from content to position and back, as DeBERTa's."""

    def __init__(self, width: int = 768, heads: int = 12, rows: int = 128, far: int = 64) -> None:
        super().__init__()
        self.heads, self.each = heads, width // heads
        self.words = nn.Embedding(WORDS, width)
        self.q, self.k, self.v = (nn.Linear(width, width) for _ in range(3))
        self.relative = nn.Embedding(2 * far, width)
        self.out, self.norm, self.norm2 = nn.Linear(width, width), nn.LayerNorm(width), nn.LayerNorm(width)
        self.feed = FeedForward(width, 3072)
        apart = torch.arange(rows)[:, None] - torch.arange(rows)[None]
        self.register_buffer("at", (apart + far).clamp(0, 2 * far - 1))

    def split(self, x: Tensor) -> Tensor:
        return x.view(1, -1, self.heads, self.each).transpose(1, 2)

    def forward(self, words: Tensor) -> Tensor:
        x = self.norm(self.words(words))
        q, k, v = self.split(self.q(x)), self.split(self.k(x)), self.split(self.v(x))
        near = self.relative.weight[None]
        kr, qr = self.split(self.k(near)), self.split(self.q(near))
        rows = x.shape[1]
        at = self.at.expand(1, self.heads, rows, rows)
        scores = q @ k.transpose(-1, -2)
        scores = scores + torch.gather(q @ kr.transpose(-1, -2), -1, at)
        scores = scores + torch.gather(k @ qr.transpose(-1, -2), -1, at).transpose(-1, -2)
        y = (scores / (3 * self.each) ** 0.5).softmax(-1) @ v
        x = self.norm2(x + self.out(y.transpose(1, 2).reshape(x.shape)))
        return x + self.feed(x)


class GPT2(nn.Module):
    """Blocks with one product for queries, keys and values; caches of the last two where they are given."""

    def __init__(self, width: int = 768, heads: int = 12, layers: int = 2) -> None:
        super().__init__()
        self.heads = heads
        self.words, self.positions = nn.Embedding(WORDS, width), nn.Embedding(1024, width)
        self.blocks = nn.ModuleList(
            nn.ModuleDict(
                {
                    "qkv": nn.Linear(width, 3 * width),
                    "out": nn.Linear(width, width),
                    "a": nn.LayerNorm(width),
                    "b": nn.LayerNorm(width),
                    "feed": FeedForward(width, 4 * width, nn.GELU("tanh")),
                }
            )
            for _ in range(layers)
        )
        self.norm, self.head = nn.LayerNorm(width), nn.Linear(width, WORDS, bias=False)

    def forward(self, words: Tensor, *past: Tensor) -> tuple[Tensor, ...]:
        before = past[0].shape[2] if past else 0
        rows = words.shape[1]
        x = self.words(words) + self.positions(torch.arange(before, before + rows))
        made: list[Tensor] = []
        for i, block in enumerate(self.blocks):
            q, k, v = block["qkv"](block["a"](x)).split(x.shape[-1], -1)
            q, k, v = (t.view(1, rows, self.heads, -1).transpose(1, 2) for t in (q, k, v))
            if past:
                k, v = torch.cat([past[2 * i], k], 2), torch.cat([past[2 * i + 1], v], 2)
                made += [k, v]
            y = F.scaled_dot_product_attention(q, k, v, is_causal=not past)
            x = x + block["out"](y.transpose(1, 2).reshape(x.shape))
            x = x + block["feed"](block["b"](x))
        return (self.head(self.norm(x)), *made)


def turned(x: Tensor, cos: Tensor, sin: Tensor) -> Tensor:
    """Rotary embedding with the halves of a head turned against each other."""
    a, b = x.chunk(2, -1)
    return x * cos + torch.cat([-b, a], -1) * sin


class Llama(nn.Module):
    """Grouped queries, rotary embedding, RMS norms, gated SiLU; normed queries, windows, experts."""

    def __init__(
        self,
        width: int = 1024,
        heads: int = 16,
        shared: int = 4,
        hidden: int = 2816,
        layers: int = 2,
        rows: int = 128,
        normed: bool = False,
        window: int = 0,
        experts: int = 0,
        biased: bool = False,
    ) -> None:
        super().__init__()
        self.heads, self.shared, self.each, self.window = heads, shared, width // heads, window
        self.words = nn.Embedding(WORDS, width)
        self.blocks = nn.ModuleList()
        for _ in range(layers):
            block = nn.ModuleDict(
                {
                    "q": nn.Linear(width, width, bias=biased),
                    "k": nn.Linear(width, shared * self.each, bias=biased),
                    "v": nn.Linear(width, shared * self.each, bias=biased),
                    "o": nn.Linear(width, width, bias=False),
                    "a": RMSNorm(width),
                    "b": RMSNorm(width),
                }
            )
            if normed:
                block["nq"], block["nk"] = RMSNorm(self.each), RMSNorm(self.each)
            if experts:
                block["router"] = nn.Linear(width, experts, bias=False)
            for e in range(max(1, experts)):
                block[f"gate{e}"] = nn.Linear(width, hidden, bias=False)
                block[f"up{e}"] = nn.Linear(width, hidden, bias=False)
                block[f"down{e}"] = nn.Linear(hidden, width, bias=False)
            self.blocks.append(block)
        self.norm, self.head, self.experts = RMSNorm(width), nn.Linear(width, WORDS, bias=False), experts
        self.register_buffer("rate", 1.0 / 10000 ** (torch.arange(0, self.each, 2) / self.each))

    def feed(self, block: nn.ModuleDict, x: Tensor) -> Tensor:
        def one(e: int) -> Tensor:
            return block[f"down{e}"](F.silu(block[f"gate{e}"](x)) * block[f"up{e}"](x))

        if not self.experts:
            return one(0)
        scores = block["router"](x).softmax(-1)
        best, at = scores.topk(2, -1)
        best = best / best.sum(-1, keepdim=True)
        share = torch.zeros_like(scores).scatter(-1, at, best)
        return sum(share[..., e : e + 1] * one(e) for e in range(self.experts))

    def forward(self, words: Tensor, *past: Tensor) -> tuple[Tensor, ...]:
        rows = words.shape[1]
        before = past[0].shape[2] if past else 0
        at = torch.arange(before, before + rows)
        angle = at[:, None] * self.rate[None]
        angle = torch.cat([angle, angle], -1)
        cos, sin = angle.cos(), angle.sin()
        apart = at[:, None] - torch.arange(before + rows)[None]
        seen = (apart >= 0) & (apart < self.window) if self.window else apart >= 0
        mask = torch.zeros(rows, before + rows).masked_fill(~seen, -1e9)
        x = self.words(words)
        made: list[Tensor] = []
        for i, block in enumerate(self.blocks):
            y = block["a"](x)
            q = block["q"](y).view(1, rows, self.heads, self.each).transpose(1, 2)
            k = block["k"](y).view(1, rows, self.shared, self.each).transpose(1, 2)
            v = block["v"](y).view(1, rows, self.shared, self.each).transpose(1, 2)
            if "nq" in block:
                q, k = block["nq"](q), block["nk"](k)
            q, k = turned(q, cos, sin), turned(k, cos, sin)
            if past:
                k, v = torch.cat([past[2 * i], k], 2), torch.cat([past[2 * i + 1], v], 2)
                made += [k, v]
            times = self.heads // self.shared
            k, v = (
                t[:, :, None].expand(-1, -1, times, -1, -1).reshape(1, self.heads, -1, self.each)
                for t in (k, v)
            )
            y = F.scaled_dot_product_attention(q, k, v, attn_mask=mask)
            x = x + block["o"](y.transpose(1, 2).reshape(x.shape))
            x = x + self.feed(block, block["b"](x))
        return (self.head(self.norm(x)), *made)


class Gemma(nn.Module):
    """Norms before and after, scores that are capped, GELU gates."""

    def __init__(self, width: int = 640, heads: int = 4, each: int = 256) -> None:
        super().__init__()
        self.heads, self.each = heads, each
        self.words = nn.Embedding(WORDS, width)
        self.q, self.kv, self.o = (
            nn.Linear(width, heads * each),
            nn.Linear(width, 2 * each),
            nn.Linear(heads * each, width),
        )
        self.norms = nn.ModuleList([RMSNorm(width) for _ in range(4)])
        self.gate, self.up, self.down = nn.Linear(width, 2048), nn.Linear(width, 2048), nn.Linear(2048, width)

    def forward(self, words: Tensor) -> Tensor:
        x = self.words(words) * self.words.embedding_dim**0.5
        rows = words.shape[1]
        y = self.norms[0](x)
        q = self.q(y).view(1, rows, self.heads, self.each).transpose(1, 2)
        k, v = self.kv(y).view(1, rows, 2, self.each).unbind(2)
        scores = (q @ k[:, None].transpose(-1, -2)) * self.each**-0.5
        scores = torch.tanh(scores / 50.0) * 50.0
        scores = scores + torch.full((rows, rows), -1e9).triu(1)
        y = self.o((scores.softmax(-1) @ v[:, None]).transpose(1, 2).reshape(1, rows, -1))
        x = x + self.norms[1](y)
        y = self.norms[2](x)
        return x + self.norms[3](self.down(F.gelu(self.gate(y), approximate="tanh") * self.up(y)))


def buckets(rows: int, columns: int, count: int = 32, far: int = 128, both: bool = True) -> Tensor:
    """The bucket of every distance, as T5 counts them."""
    apart = torch.arange(columns)[None] - torch.arange(rows)[:, None]
    found = torch.zeros_like(apart)
    if both:
        count //= 2
        found += (apart > 0) * count
        apart = apart.abs()
    else:
        apart = -apart.clamp(max=0)
    near = count // 2
    large = (
        near
        + (
            torch.log(apart.float().clamp(min=1) / near)
            / torch.log(torch.tensor(far / near))
            * (count - near)
        ).long()
    )
    return found + torch.where(apart < near, apart, large.clamp(max=count - 1))


class T5Attention(nn.Module):
    def __init__(self, width: int, heads: int) -> None:
        super().__init__()
        self.heads = heads
        self.q, self.k, self.v, self.o = (nn.Linear(width, width, bias=False) for _ in range(4))

    def forward(self, x: Tensor, memory: Tensor, bias: Tensor | None) -> Tensor:
        q, k, v = (
            f(y).view(1, y.shape[1], self.heads, -1).transpose(1, 2)
            for f, y in ((self.q, x), (self.k, memory), (self.v, memory))
        )
        scores = q @ k.transpose(-1, -2)
        if bias is not None:
            scores = scores + bias
        return self.o((scores.float().softmax(-1) @ v).transpose(1, 2).reshape(x.shape))


class T5(nn.Module):
    """Relative bias in buckets, RMS norms, no scale; encoder, or decoder over a memory."""

    def __init__(self, decoder: bool, width: int = 512, heads: int = 8, layers: int = 2) -> None:
        super().__init__()
        self.decoder = decoder
        self.words, self.bias = nn.Embedding(WORDS, width), nn.Embedding(32, heads)
        self.own = nn.ModuleList([T5Attention(width, heads) for _ in range(layers)])
        self.other = nn.ModuleList([T5Attention(width, heads) for _ in range(layers)])
        self.feed = nn.ModuleList(
            [
                nn.Sequential(
                    nn.Linear(width, 2048, bias=False), nn.ReLU(), nn.Linear(2048, width, bias=False)
                )
                for _ in range(layers)
            ]
        )
        self.norms = nn.ModuleList([RMSNorm(width) for _ in range(3 * layers + 1)])

    def forward(self, words: Tensor, memory: Tensor | None = None) -> Tensor:
        x = self.words(words)
        rows = x.shape[1]
        bias = self.bias(buckets(rows, rows, both=not self.decoder)).permute(2, 0, 1)[None]
        if self.decoder:
            bias = bias + torch.full((rows, rows), -1e9).triu(1)
        for i in range(len(self.own)):
            y = self.norms[3 * i](x)
            x = x + self.own[i](y, y, bias)
            if memory is not None:
                x = x + self.other[i](self.norms[3 * i + 1](x), memory, None)
            x = x + self.feed[i](self.norms[3 * i + 2](x))
        return self.norms[-1](x)


class Mamba(nn.Module):
    """A selective state space, its scan written out over the steps."""

    def __init__(self, width: int = 256, state: int = 16, rank: int = 16) -> None:
        super().__init__()
        inner = 2 * width
        self.words, self.norm = nn.Embedding(WORDS, width), RMSNorm(width)
        self.into, self.mix = (
            nn.Linear(width, 2 * inner, bias=False),
            nn.Conv1d(inner, inner, 4, padding=3, groups=inner),
        )
        self.select, self.rate = nn.Linear(inner, rank + 2 * state, bias=False), nn.Linear(rank, inner)
        self.decay = nn.Parameter(torch.log(torch.arange(1, state + 1).float()).repeat(inner, 1))
        self.skip, self.out = nn.Parameter(torch.ones(inner)), nn.Linear(inner, width, bias=False)
        self.rank, self.state = rank, state

    def forward(self, words: Tensor) -> Tensor:
        x = self.words(words)
        y, z = self.into(self.norm(x)).chunk(2, -1)
        rows = y.shape[1]
        y = F.silu(self.mix(y.transpose(1, 2))[..., :rows].transpose(1, 2))
        rate, b, c = self.select(y).split([self.rank, self.state, self.state], -1)
        rate = F.softplus(self.rate(rate))
        keep = torch.exp(rate[..., None] * -torch.exp(self.decay))
        add = (rate * y)[..., None] * b[:, :, None]
        state = torch.zeros_like(add[:, 0])
        made = []
        for i in range(rows):
            state = keep[:, i] * state + add[:, i]
            made.append((state @ c[:, i, :, None])[..., 0])
        y = torch.stack(made, 1) + y * self.skip
        return x + self.out(y * F.silu(z))


class RWKV(nn.Module):
    """Linear attention over matrices of state, a few steps."""

    def __init__(self, width: int = 256, heads: int = 4) -> None:
        super().__init__()
        self.heads, self.each = heads, width // heads
        self.words, self.norm, self.last = (
            nn.Embedding(WORDS, width),
            nn.LayerNorm(width),
            nn.GroupNorm(heads, width),
        )
        self.r, self.k, self.v, self.g, self.w, self.o = (
            nn.Linear(width, width, bias=False) for _ in range(6)
        )
        self.mix, self.bonus = (
            nn.Parameter(torch.rand(width)),
            nn.Parameter(torch.rand(heads, width // heads, 1)),
        )

    def forward(self, words: Tensor) -> Tensor:
        x = self.words(words)
        y = self.norm(x)
        before = F.pad(y, (0, 0, 1, -1))
        y = y * self.mix + before * (1 - self.mix)
        r, k, v, w = (f(y).view(1, -1, self.heads, self.each) for f in (self.r, self.k, self.v, self.w))
        w = torch.exp(-torch.exp(w))
        state = torch.zeros(1, self.heads, self.each, self.each)
        made = []
        for i in range(words.shape[1]):
            one = k[:, i, :, :, None] @ v[:, i, :, None, :]
            made.append((r[:, i, :, None] @ (state + self.bonus * one))[:, :, 0])
            state = w[:, i, :, :, None] * state + one
        y = self.last(torch.stack(made, 1).reshape(-1, x.shape[-1])).view(x.shape)
        return x + self.o(y * F.silu(self.g(x)))


class Tagger(nn.Module):
    def __init__(self, kind: str) -> None:
        super().__init__()
        self.words = nn.Embedding(WORDS, 128)
        cell = nn.LSTM if kind == "lstm" else nn.GRU
        self.rnn = cell(128, 128, num_layers=2, batch_first=True, bidirectional=True)
        self.head = nn.Linear(256, 20)

    def forward(self, words: Tensor) -> Tensor:
        return self.head(self.rnn(self.words(words))[0])


class Transformer(nn.Module):
    """torch's own encoder and decoder layers with a causal mask."""

    def __init__(self) -> None:
        super().__init__()
        self.source, self.target = nn.Embedding(WORDS, 512), nn.Embedding(WORDS, 512)
        self.body = nn.Transformer(512, 8, 2, 2, 2048, batch_first=True)

    def forward(self, source: Tensor, target: Tensor) -> Tensor:
        mask = torch.full((target.shape[1],) * 2, float("-inf")).triu(1)
        return self.body(self.source(source), self.target(target), tgt_mask=mask, tgt_is_causal=False)


class Cross(nn.Module):
    """A decoder over a memory, as a captioner's or a translator's."""

    def __init__(self) -> None:
        super().__init__()
        self.words = nn.Embedding(WORDS, 512)
        self.blocks = nn.ModuleList([Encoder(512, 8, 2048, 768) for _ in range(2)])
        self.look = Attention(512, 8)

    def forward(self, words: Tensor, memory: Tensor) -> Tensor:
        x = self.words(words)
        for block in self.blocks:
            x = block(x, memory, causal=True)
        return self.look(x)


def cache(layers: int, heads: int, rows: int, each: int) -> tuple[Tensor, ...]:
    return tuple(torch.randn(1, heads, rows, each) for _ in range(2 * layers))


def kept(rows: int) -> Tensor:
    return torch.cat([torch.ones(1, rows - 9, dtype=torch.int64), torch.zeros(1, 9, dtype=torch.int64)], 1)


NETWORKS = {
    "BERT": (Bert, lambda: (ids(256), kept(256))),
    "BERT, attention written out": (bert_parts, lambda: (ids(256), kept(256))),
    "DistilBERT": (distilbert, lambda: (ids(128), kept(128))),
    "ALBERT": (albert, lambda: (ids(128), kept(128))),
    "DeBERTa": (Disentangled, lambda: (ids(128),)),
    "GPT-2, prompt": (GPT2, lambda: (ids(256),)),
    "GPT-2, one token with a cache": (GPT2, lambda: (ids(1), *cache(2, 12, 255, 64))),
    "Llama, prompt": (Llama, lambda: (ids(256),)),
    "Llama, one token with a cache": (Llama, lambda: (ids(1), *cache(2, 4, 255, 64))),
    "Mistral, sliding window": (lambda: Llama(window=64), lambda: (ids(256),)),
    "Qwen2": (lambda: Llama(biased=True), lambda: (ids(128),)),
    "Qwen3": (lambda: Llama(normed=True), lambda: (ids(256),)),
    "Mixtral": (lambda: Llama(experts=4, layers=1, hidden=1024), lambda: (ids(64),)),
    "Gemma": (Gemma, lambda: (ids(128),)),
    "T5 encoder": (lambda: T5(False), lambda: (ids(256),)),
    "T5 decoder": (lambda: T5(True), lambda: (ids(64), torch.randn(1, 256, 512))),
    "Transformer": (Transformer, lambda: (ids(128), ids(64))),
    "Captioner": (Cross, lambda: (ids(32), torch.randn(1, 197, 768))),
    "Mamba": (Mamba, lambda: (ids(16),)),
    "RWKV": (RWKV, lambda: (ids(8),)),
    "LSTM tagger": (lambda: Tagger("lstm"), lambda: (ids(32),)),
    "GRU tagger": (lambda: Tagger("gru"), lambda: (ids(32),)),
}
