"""Networks that classify images: convolutional, of windows of attention, and between."""

from __future__ import annotations

import torch
import torch.nn.functional as F
from blocks import Encoder, Inverted, LayerNorm2d, SqueezeExcite, classifier, conv
from torch import Tensor, nn

IMAGE = (1, 3, 224, 224)


class Bottleneck(nn.Module):
    def __init__(
        self, inside: int, inner: int, outside: int, stride: int = 1, groups: int = 1, excite: bool = False
    ) -> None:
        super().__init__()
        self.body = nn.Sequential(
            conv(inside, inner, 1),
            conv(inner, inner, 3, stride, groups),
            SqueezeExcite(inner, inner // 4) if excite else nn.Identity(),
            nn.Conv2d(inner, outside, 1, bias=False),
            nn.BatchNorm2d(outside),
        )
        self.skip = nn.Sequential(nn.Conv2d(inside, outside, 1, stride, bias=False), nn.BatchNorm2d(outside))

    def forward(self, x: Tensor) -> Tensor:
        return F.relu(self.body(x) + self.skip(x))


def resnet50() -> nn.Module:
    return nn.Sequential(
        conv(3, 64, 7, 2),
        nn.MaxPool2d(3, 2, 1),
        Bottleneck(64, 64, 256),
        Bottleneck(256, 128, 512, 2),
        classifier(512),
    )


def regnet() -> nn.Module:
    return nn.Sequential(
        conv(3, 32, 3, 2),
        Bottleneck(32, 48, 48, 2, 6, True),
        Bottleneck(48, 104, 104, 2, 13, True),
        classifier(104),
    )


class DenseBlock(nn.Module):
    def __init__(self, inside: int, growth: int, layers: int) -> None:
        super().__init__()
        self.layers = nn.ModuleList()
        for _ in range(layers):
            self.layers.append(
                nn.Sequential(
                    nn.BatchNorm2d(inside),
                    nn.ReLU(),
                    nn.Conv2d(inside, 4 * growth, 1, bias=False),
                    nn.BatchNorm2d(4 * growth),
                    nn.ReLU(),
                    nn.Conv2d(4 * growth, growth, 3, padding=1, bias=False),
                )
            )
            inside += growth

    def forward(self, x: Tensor) -> Tensor:
        for layer in self.layers:
            x = torch.cat([x, layer(x)], 1)
        return x


def densenet() -> nn.Module:
    return nn.Sequential(
        conv(3, 64, 7, 2),
        nn.MaxPool2d(3, 2, 1),
        DenseBlock(64, 32, 4),
        nn.BatchNorm2d(192),
        nn.ReLU(),
        nn.Conv2d(192, 96, 1),
        nn.AvgPool2d(2),
        DenseBlock(96, 32, 3),
        classifier(192),
    )


class ShuffleUnit(nn.Module):
    def __init__(self, width: int) -> None:
        super().__init__()
        half = width // 2
        self.body = nn.Sequential(
            conv(half, half, 1),
            nn.Conv2d(half, half, 3, 1, 1, groups=half),
            nn.BatchNorm2d(half),
            conv(half, half, 1),
        )

    def forward(self, x: Tensor) -> Tensor:
        a, b = x.chunk(2, 1)
        x = torch.cat([a, self.body(b)], 1)
        n, c, h, w = x.shape
        return x.view(n, 2, c // 2, h, w).transpose(1, 2).reshape(n, c, h, w)


def shufflenet() -> nn.Module:
    return nn.Sequential(
        conv(3, 116, 3, 2), nn.MaxPool2d(3, 2, 1), ShuffleUnit(116), ShuffleUnit(116), classifier(116)
    )


def efficientnet() -> nn.Module:
    act = nn.SiLU()
    return nn.Sequential(
        conv(3, 32, 3, 2, act=act),
        Inverted(32, 16, 1, act=act, excite=True),
        Inverted(16, 24, 6, 3, 2, act, True),
        Inverted(24, 24, 6, 3, 1, act, True),
        Inverted(24, 40, 6, 5, 2, act, True),
        classifier(40),
    )


def mobilenet_v3() -> nn.Module:
    act, gate = nn.Hardswish(), nn.Hardsigmoid()
    return nn.Sequential(
        conv(3, 16, 3, 2, act=act),
        Inverted(16, 24, 4, 3, 2),
        Inverted(24, 24, 3, 3, 1),
        Inverted(24, 40, 3, 5, 2, excite=True, gate=gate),
        Inverted(40, 40, 3, 5, 1, act, True, gate),
        classifier(40),
    )


class MobileAttention(nn.Module):
    """Attention over a map with one head of keys, as MobileNetV4's."""

    def __init__(self, width: int, heads: int, each: int) -> None:
        super().__init__()
        self.heads, self.each = heads, each
        self.norm = nn.BatchNorm2d(width)
        self.q, self.out = (
            nn.Conv2d(width, heads * each, 1, bias=False),
            nn.Conv2d(heads * each, width, 1, bias=False),
        )
        self.narrow = nn.Sequential(nn.Conv2d(width, width, 3, 2, 1, groups=width), nn.BatchNorm2d(width))
        self.k, self.v = nn.Conv2d(width, each, 1, bias=False), nn.Conv2d(width, each, 1, bias=False)

    def forward(self, x: Tensor) -> Tensor:
        n, _, h, w = x.shape
        y = self.norm(x)
        q = self.q(y).reshape(n, self.heads, self.each, h * w).transpose(-1, -2)
        small = self.narrow(y)
        k, v = (part(small).reshape(n, 1, self.each, -1).transpose(-1, -2) for part in (self.k, self.v))
        made = F.scaled_dot_product_attention(
            q, k.expand(-1, self.heads, -1, -1), v.expand(-1, self.heads, -1, -1)
        )
        made = made.transpose(1, 2).reshape(n, h, w, self.heads * self.each).permute(0, 3, 1, 2)
        return x + self.out(made)


def mobilenet_v4() -> nn.Module:
    return nn.Sequential(
        conv(3, 32, 3, 2),
        conv(32, 32, 3, 2),
        conv(32, 96, 3, 2),
        Inverted(96, 192, 4, 3, 2),
        MobileAttention(192, 8, 64),
        Inverted(192, 192, 4, 5),
        classifier(192),
    )


class ConvNeXt(nn.Module):
    def __init__(self, width: int, response: bool) -> None:
        super().__init__()
        self.by_channel = nn.Conv2d(width, width, 7, padding=3, groups=width)
        self.norm = nn.LayerNorm(width, eps=1e-6)
        self.up, self.down = nn.Linear(width, 4 * width), nn.Linear(4 * width, width)
        self.response = response
        self.gamma, self.beta = nn.Parameter(torch.randn(4 * width)), nn.Parameter(torch.randn(4 * width))

    def forward(self, x: Tensor) -> Tensor:
        y = F.gelu(self.up(self.norm(self.by_channel(x).permute(0, 2, 3, 1))))
        if self.response:  # global response normalisation
            size = torch.norm(y, p=2, dim=(1, 2), keepdim=True)
            y = self.gamma * (y * (size / (size.mean(-1, keepdim=True) + 1e-6))) + self.beta + y
        return x + self.down(y).permute(0, 3, 1, 2)


def convnext(response: bool = False) -> nn.Module:
    return nn.Sequential(
        nn.Conv2d(3, 96, 4, 4),
        LayerNorm2d(96),
        ConvNeXt(96, response),
        ConvNeXt(96, response),
        LayerNorm2d(96),
        nn.Conv2d(96, 192, 2, 2),
        ConvNeXt(192, response),
        classifier(192),
    )


def convnext_v2() -> nn.Module:
    return convnext(True)


class ViT(nn.Module):
    def __init__(self, width: int = 768, heads: int = 12, extra: int = 1, fused: bool = True) -> None:
        super().__init__()
        self.patches = nn.Conv2d(3, width, 16, 16)
        self.tokens = nn.Parameter(torch.randn(1, extra, width))
        self.positions = nn.Parameter(torch.randn(1, 196 + extra, width))
        self.blocks = nn.ModuleList([Encoder(width, heads, 4 * width, fused=fused) for _ in range(2)])
        self.norm, self.head, self.extra = nn.LayerNorm(width), nn.Linear(width, 100), extra

    def forward(self, x: Tensor) -> Tensor:
        x = self.patches(x).flatten(2).transpose(1, 2)
        x = torch.cat([self.tokens.expand(x.shape[0], -1, -1), x], 1) + self.positions
        for block in self.blocks:
            x = block(x)
        x = self.norm(x)
        if self.extra == 2:  # a second token that is distilled
            return (self.head(x[:, 0]) + self.head(x[:, 1])) / 2
        return self.head(x[:, 0])


def deit() -> nn.Module:
    return ViT(192, 3, 2, fused=False)


class WindowAttention(nn.Module):
    """Attention in windows with a relative bias, shifted or not, as Swin's."""

    def __init__(self, width: int, heads: int, window: int, size: int, shift: int) -> None:
        super().__init__()
        self.heads, self.window, self.shift, self.size = heads, window, shift, size
        self.norm, self.norm2 = nn.LayerNorm(width), nn.LayerNorm(width)
        self.qkv, self.out = nn.Linear(width, 3 * width), nn.Linear(width, width)
        self.table = nn.Parameter(torch.randn((2 * window - 1) ** 2, heads))
        at = torch.stack(torch.meshgrid(torch.arange(window), torch.arange(window), indexing="ij")).flatten(1)
        apart = (at[:, :, None] - at[:, None, :]) + window - 1
        self.register_buffer("index", apart[0] * (2 * window - 1) + apart[1])
        part = torch.zeros(size, size)
        for i, rows in enumerate((slice(0, -window), slice(-window, -shift or None), slice(-shift, None))):
            for j, columns in enumerate(
                (slice(0, -window), slice(-window, -shift or None), slice(-shift, None))
            ):
                if shift:
                    part[rows, columns] = 3 * i + j
        cut = part.view(size // window, window, size // window, window).transpose(1, 2).reshape(-1, window**2)
        self.register_buffer("mask", (cut[:, None, :] != cut[:, :, None]) * -100.0)
        self.feed = nn.Sequential(nn.Linear(width, 4 * width), nn.GELU(), nn.Linear(4 * width, width))

    def forward(self, x: Tensor) -> Tensor:
        n, h, w, c = x.shape
        side = self.window
        y = self.norm(x)
        if self.shift:
            y = torch.roll(y, (-self.shift, -self.shift), (1, 2))
        y = (
            y.view(n, h // side, side, w // side, side, c)
            .permute(0, 1, 3, 2, 4, 5)
            .reshape(-1, side * side, c)
        )
        q, k, v = (
            self.qkv(y).view(-1, side * side, 3, self.heads, c // self.heads).permute(2, 0, 3, 1, 4).unbind(0)
        )
        bias = self.table[self.index.view(-1)].view(side * side, side * side, self.heads).permute(2, 0, 1)
        scores = (q * (c // self.heads) ** -0.5) @ k.transpose(-2, -1) + bias[None]
        if self.shift:
            some = self.mask.shape[0]
            scores = scores.view(-1, some, self.heads, side**2, side**2) + self.mask[None, :, None]
            scores = scores.view(-1, self.heads, side**2, side**2)
        y = self.out((scores.softmax(-1) @ v).transpose(1, 2).reshape(-1, side * side, c))
        y = y.view(n, h // side, w // side, side, side, c).permute(0, 1, 3, 2, 4, 5).reshape(n, h, w, c)
        if self.shift:
            y = torch.roll(y, (self.shift, self.shift), (1, 2))
        x = x + y
        return x + self.feed(self.norm2(x))


class Swin(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.patches, self.norm = nn.Conv2d(3, 96, 4, 4), nn.LayerNorm(96)
        self.blocks = nn.Sequential(WindowAttention(96, 3, 7, 56, 0), WindowAttention(96, 3, 7, 56, 3))
        self.merged, self.reduce = nn.LayerNorm(384), nn.Linear(384, 192, bias=False)
        self.last, self.head = WindowAttention(192, 6, 7, 28, 0), nn.Linear(192, 100)

    def forward(self, x: Tensor) -> Tensor:
        x = self.blocks(self.norm(self.patches(x).permute(0, 2, 3, 1)))
        x = torch.cat([x[:, 0::2, 0::2], x[:, 1::2, 0::2], x[:, 0::2, 1::2], x[:, 1::2, 1::2]], -1)
        return self.head(self.last(self.reduce(self.merged(x))).mean((1, 2)))


class MobileViT(nn.Module):
    def __init__(self, width: int = 64, inner: int = 144) -> None:
        super().__init__()
        act = nn.SiLU()
        self.stem = nn.Sequential(
            conv(3, 16, 3, 2, act=act), Inverted(16, 32, 4, 3, 2, act), Inverted(32, width, 4, 3, 2, act)
        )
        self.local = nn.Sequential(conv(width, width, act=act), nn.Conv2d(width, inner, 1, bias=False))
        self.blocks = nn.Sequential(Encoder(inner, 4, 2 * inner), Encoder(inner, 4, 2 * inner))
        self.back, self.join = conv(inner, width, 1, act=act), conv(2 * width, width, act=act)
        self.head = classifier(width)

    def forward(self, x: Tensor) -> Tensor:
        x = self.stem(x)
        y = self.local(x)
        n, c, h, w = y.shape
        y = y.reshape(n * c * h // 2, 2, w // 2, 2).transpose(1, 2)
        y = y.reshape(n, c, h * w // 4, 4).transpose(1, 3).reshape(n * 4, h * w // 4, c)
        y = self.blocks(y).view(n, 4, h * w // 4, c).transpose(1, 3)
        y = y.reshape(n * c * h // 2, w // 2, 2, 2).transpose(1, 2).reshape(n, c, h, w)
        return self.head(self.join(torch.cat([x, self.back(y)], 1)))


class EfficientViT(nn.Module):
    """Linear attention with a kernel of ReLU."""

    def __init__(self, width: int = 64, each: int = 16) -> None:
        super().__init__()
        self.stem = nn.Sequential(
            conv(3, 16, 3, 2, act=nn.Hardswish()), Inverted(16, width, 4, 3, 2, nn.Hardswish())
        )
        self.qkv, self.each = nn.Conv2d(width, 3 * width, 1, bias=False), each
        self.mix = nn.Conv2d(3 * width, 3 * width, 5, padding=2, groups=3 * width, bias=False)
        self.out = nn.Sequential(nn.Conv2d(2 * width, width, 1, bias=False), nn.BatchNorm2d(width))
        self.head = classifier(width)

    def forward(self, x: Tensor) -> Tensor:
        x = self.stem(x)
        n, c, h, w = x.shape
        one = self.qkv(x)
        y = torch.cat([one, self.mix(one)], 1).reshape(n, -1, 3 * self.each, h * w)
        q, k, v = y[:, :, : self.each], y[:, :, self.each : 2 * self.each], y[:, :, 2 * self.each :]
        q, k, v = F.relu(q), F.relu(k), F.pad(v, (0, 0, 0, 1), value=1.0)
        y = (v @ k.transpose(-1, -2)) @ q
        y = y[:, :, :-1] / (y[:, :, -1:] + 1e-15)
        return self.head(x + self.out(y.reshape(n, 2 * c, h, w)))


class Mixer(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.patches = nn.Conv2d(3, 512, 16, 16)
        self.norms = nn.ModuleList([nn.LayerNorm(512) for _ in range(3)])
        self.tokens = nn.Sequential(nn.Linear(196, 256), nn.GELU(), nn.Linear(256, 196))
        self.channels = nn.Sequential(nn.Linear(512, 2048), nn.GELU(), nn.Linear(2048, 512))
        self.head = nn.Linear(512, 100)

    def forward(self, x: Tensor) -> Tensor:
        x = self.patches(x).flatten(2).transpose(1, 2)
        x = x + self.tokens(self.norms[0](x).transpose(1, 2)).transpose(1, 2)
        x = x + self.channels(self.norms[1](x))
        return self.head(self.norms[2](x).mean(1))


def squeezenet() -> nn.Module:
    class Fire(nn.Module):
        def __init__(self, inside: int, small: int, wide: int) -> None:
            super().__init__()
            self.narrow = nn.Conv2d(inside, small, 1)
            self.one, self.three = nn.Conv2d(small, wide, 1), nn.Conv2d(small, wide, 3, padding=1)

        def forward(self, x: Tensor) -> Tensor:
            x = F.relu(self.narrow(x))
            return torch.cat([F.relu(self.one(x)), F.relu(self.three(x))], 1)

    return nn.Sequential(
        nn.Conv2d(3, 64, 3, 2),
        nn.ReLU(),
        nn.MaxPool2d(3, 2, ceil_mode=True),
        Fire(64, 16, 64),
        Fire(128, 16, 64),
        nn.MaxPool2d(3, 2, ceil_mode=True),
        Fire(128, 32, 128),
        nn.Conv2d(256, 100, 1),
        nn.ReLU(),
        nn.AdaptiveAvgPool2d(1),
        nn.Flatten(),
    )


NETWORKS = {
    name: (make, lambda: (torch.randn(IMAGE),))
    for name, make in {
        "ResNet-50": resnet50,
        "RegNetY": regnet,
        "DenseNet": densenet,
        "ShuffleNetV2": shufflenet,
        "SqueezeNet": squeezenet,
        "EfficientNet": efficientnet,
        "MobileNetV3": mobilenet_v3,
        "MobileNetV4": mobilenet_v4,
        "ConvNeXt": convnext,
        "ConvNeXt-V2": convnext_v2,
        "ViT-B/16": ViT,
        "DeiT": deit,
        "Swin": Swin,
        "MobileViT": MobileViT,
        "EfficientViT": EfficientViT,
        "MLP-Mixer": Mixer,
    }.items()
}
