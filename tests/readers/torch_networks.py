"""Networks as `module:function` gives them: what a user has, and public ones in small."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor, nn

F = nn.functional


class SwiGlu(nn.Module):
    def __init__(self, width: int, inner: int) -> None:
        super().__init__()
        self.gate, self.up = (nn.Linear(width, inner, bias=False) for _ in range(2))
        self.down = nn.Linear(inner, width, bias=False)

    def forward(self, x: Tensor) -> Tensor:
        return self.down(F.silu(self.gate(x)) * self.up(x))


def rotate(x: Tensor) -> Tensor:
    """Rotary position embedding over (batch, heads, tokens, width)."""
    tokens, width = x.shape[-2:]
    frequency = 10000.0 ** (-torch.arange(0, width, 2, device=x.device) / width)
    angle = torch.outer(torch.arange(tokens, device=x.device), frequency)
    cosine, sine = torch.cat([angle, angle], -1).cos(), torch.cat([angle, angle], -1).sin()
    turned = torch.cat([-x[..., width // 2 :], x[..., : width // 2]], -1)
    return x * cosine + turned * sine


class LlamaBlock(nn.Module):
    def __init__(self, width: int = 64, heads: int = 4, shared: int = 2) -> None:
        super().__init__()
        self.heads, self.shared, self.each = heads, shared, width // heads
        self.before_attention, self.before_mlp = nn.RMSNorm(width), nn.RMSNorm(width)
        self.query = nn.Linear(width, width, bias=False)
        self.key, self.value = (nn.Linear(width, shared * self.each, bias=False) for _ in range(2))
        self.out = nn.Linear(width, width, bias=False)
        self.mlp = SwiGlu(width, 3 * width)

    def forward(self, x: Tensor) -> Tensor:
        batch, tokens, width = x.shape
        h = self.before_attention(x)
        query = self.query(h).view(batch, tokens, self.heads, self.each).transpose(1, 2)
        key = self.key(h).view(batch, tokens, self.shared, self.each).transpose(1, 2)
        value = self.value(h).view(batch, tokens, self.shared, self.each).transpose(1, 2)
        mixed = F.scaled_dot_product_attention(
            rotate(query), rotate(key), value, is_causal=True, enable_gqa=True
        )
        x = x + self.out(mixed.transpose(1, 2).reshape(batch, tokens, width))
        return x + self.mlp(self.before_mlp(x))


class Llama(nn.Module):
    def __init__(self, words: int = 100, width: int = 64, blocks: int = 2) -> None:
        super().__init__()
        self.embedding = nn.Embedding(words, width)
        self.blocks = nn.ModuleList(LlamaBlock(width) for _ in range(blocks))
        self.norm = nn.RMSNorm(width)
        self.head = nn.Linear(width, words, bias=False)
        self.head.weight = self.embedding.weight

    def forward(self, tokens: Tensor) -> Tensor:
        x = self.embedding(tokens)
        for block in self.blocks:
            x = block(x)
        return self.head(self.norm(x[:, -1]))


def twice(source: int, out: int) -> nn.Sequential:
    """Two convolutions with normalisation, the activations in place."""
    layers: list[nn.Module] = []
    for i, o in ((source, out), (out, out)):
        layers += [nn.Conv2d(i, o, 3, padding=1, bias=False), nn.BatchNorm2d(o), nn.ReLU(inplace=True)]
    return nn.Sequential(*layers)


class UNet(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.down1, self.down2, self.bottom = twice(3, 8), twice(8, 16), twice(16, 32)
        self.up2, self.up1 = nn.ConvTranspose2d(32, 16, 2, 2), nn.ConvTranspose2d(16, 8, 2, 2)
        self.join2, self.join1 = twice(32, 16), twice(16, 8)
        self.head = nn.Conv2d(8, 2, 1)

    def forward(self, x: Tensor) -> Tensor:
        first = self.down1(x)
        second = self.down2(F.max_pool2d(first, 2))
        x = self.bottom(F.max_pool2d(second, 2))
        x = self.join2(torch.cat([self.up2(x), second], 1))
        return self.head(self.join1(torch.cat([self.up1(x), first], 1)))


class MobileVit(nn.Module):
    """One block: a convolution, attention among pixels at the same place of every patch, and a fusion."""

    def __init__(self, channels: int = 16, width: int = 24, patch: int = 2) -> None:
        super().__init__()
        self.patch = patch
        self.local = nn.Sequential(
            nn.Conv2d(channels, channels, 3, padding=1), nn.BatchNorm2d(channels), nn.SiLU()
        )
        self.inside = nn.Conv2d(channels, width, 1, bias=False)
        self.layers = nn.TransformerEncoder(
            nn.TransformerEncoderLayer(
                width, 4, 2 * width, batch_first=True, norm_first=True, activation="gelu"
            ),
            2,
            enable_nested_tensor=False,
        )
        self.outside = nn.Conv2d(width, channels, 1)
        self.fuse = nn.Conv2d(2 * channels, channels, 3, padding=1)

    def forward(self, x: Tensor) -> Tensor:
        p = self.patch
        y = self.inside(self.local(x))
        batch, width, height, breadth = y.shape
        y = y.reshape(batch * width * height // p, p, breadth // p, p).transpose(1, 2)
        y = y.reshape(batch, width, -1, p * p).permute(0, 3, 2, 1).reshape(batch * p * p, -1, width)
        y = self.layers(y)
        y = y.reshape(batch, p * p, -1, width).permute(0, 3, 2, 1)
        y = y.reshape(batch * width * height // p, breadth // p, p, p).transpose(1, 2)
        y = self.outside(y.reshape(batch, width, height, breadth))
        return F.silu(self.fuse(torch.cat([x, y], 1)))


def llama() -> Any:
    torch.manual_seed(0)
    return Llama(), torch.randint(0, 100, (1, 12))


def llama_without_weights() -> Any:
    with torch.device("meta"):
        return Llama(words=32000, width=512, blocks=4), torch.randint(0, 100, (1, 64))


def unet() -> Any:
    torch.manual_seed(0)
    return UNet(), (torch.randn(1, 3, 32, 48),)


def mobilevit() -> Any:
    torch.manual_seed(0)
    return MobileVit(), {"x": torch.randn(1, 16, 8, 12)}


def small() -> Any:
    torch.manual_seed(0)
    module = nn.Sequential(
        nn.Conv2d(3, 16, 3, padding=1), nn.BatchNorm2d(16), nn.SiLU(), nn.AdaptiveAvgPool2d(1), nn.Flatten(),
        nn.Linear(16, 10),
    )  # fmt: skip
    return module, (torch.randn(1, 3, 32, 32),)


def names_an_attacker_chose() -> Any:
    return nn.Sequential(nn.ReLU(), nn.Sigmoid()), torch.randn(2, 3)


def nothing() -> None:
    return None


def one_thing() -> Any:
    return nn.ReLU()


def wrong_example() -> Any:
    return nn.ReLU(), 3


def fails() -> Any:
    raise ValueError("no such\ncheckpoint")


def of_no_size() -> Any:
    class Mask(nn.Module):
        def forward(self, x: Tensor) -> Tensor:
            return x[x > 0] + 1

    return Mask(), torch.randn(4)


def branches() -> Any:
    class Branch(nn.Module):
        def forward(self, x: Tensor) -> Tensor:
            return x + 1 if x.sum() > 0 else x

    return Branch(), torch.randn(4)


def unknown_operator() -> Any:
    class Svd(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.linear = nn.Linear(4, 4)

        def forward(self, x: Tensor) -> Tensor:
            return torch.linalg.svdvals(self.linear(x))

    return Svd(), torch.randn(4, 4)


def random_numbers() -> Any:
    class Noise(nn.Module):
        def forward(self, x: Tensor) -> Tensor:
            return x + torch.rand_like(x)

    return Noise(), torch.randn(4)


number = 3
