"""Networks that answer for every pixel or box: segmentation, detection, depth, generation, ..."""

from __future__ import annotations

import torch
import torch.nn.functional as F
from blocks import Attention, Encoder, FeedForward, LayerNorm2d, conv
from detectors import SSD, Detr, RetinaNet, Selected, Yolo
from torch import Tensor, nn


class Double(nn.Sequential):
    def __init__(self, inside: int, outside: int) -> None:
        super().__init__(conv(inside, outside), conv(outside, outside))


class UNet(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.a, self.b, self.c = Double(3, 32), Double(32, 64), Double(64, 128)
        self.up1, self.up2 = nn.ConvTranspose2d(128, 64, 2, 2), nn.ConvTranspose2d(64, 32, 2, 2)
        self.d, self.e, self.head = Double(128, 64), Double(64, 32), nn.Conv2d(32, 2, 1)

    def forward(self, x: Tensor) -> Tensor:
        a = self.a(x)
        b = self.b(F.max_pool2d(a, 2))
        c = self.c(F.max_pool2d(b, 2))
        b = self.d(torch.cat([b, self.up1(c)], 1))
        return self.head(self.e(torch.cat([a, self.up2(b)], 1)))


class Residual(nn.Module):
    """A residual of group norms and SiLU that takes an embedding of the time."""

    def __init__(self, inside: int, outside: int, time: int) -> None:
        super().__init__()
        self.n1, self.c1 = nn.GroupNorm(32, inside), nn.Conv2d(inside, outside, 3, padding=1)
        self.n2, self.c2 = nn.GroupNorm(32, outside), nn.Conv2d(outside, outside, 3, padding=1)
        self.time = nn.Linear(time, outside) if time else None
        self.skip = nn.Conv2d(inside, outside, 1) if inside != outside else nn.Identity()

    def forward(self, x: Tensor, time: Tensor | None = None) -> Tensor:
        y = self.c1(F.silu(self.n1(x)))
        if self.time is not None and time is not None:
            y = y + self.time(F.silu(time))[:, :, None, None]
        return self.skip(x) + self.c2(F.silu(self.n2(y)))


class Spatial(nn.Module):
    """Attention over a map and to a text, gated GELU: a block of Stable Diffusion's U-Net."""

    def __init__(self, width: int, heads: int, text: int) -> None:
        super().__init__()
        self.norm, self.into, self.out = (
            nn.GroupNorm(32, width),
            nn.Conv2d(width, width, 1),
            nn.Conv2d(width, width, 1),
        )
        self.norms = nn.ModuleList([nn.LayerNorm(width) for _ in range(3)])
        self.own, self.cross = Attention(width, heads), Attention(width, heads, text)
        self.gate, self.down = nn.Linear(width, 8 * width), nn.Linear(4 * width, width)

    def forward(self, x: Tensor, text: Tensor) -> Tensor:
        n, c, h, w = x.shape
        y = self.into(self.norm(x)).permute(0, 2, 3, 1).reshape(n, h * w, c)
        y = y + self.own(self.norms[0](y))
        y = y + self.cross(self.norms[1](y), text)
        a, b = self.gate(self.norms[2](y)).chunk(2, -1)
        y = y + self.down(a * F.gelu(b))
        return x + self.out(y.reshape(n, h, w, c).permute(0, 3, 1, 2))


class Diffusion(nn.Module):
    def __init__(self, width: int = 160) -> None:
        super().__init__()
        time = 4 * width
        self.time = nn.Sequential(nn.Linear(width, time), nn.SiLU(), nn.Linear(time, time))
        self.first = nn.Conv2d(4, width, 3, padding=1)
        self.a, self.x, self.down = (
            Residual(width, width, time),
            Spatial(width, 5, 768),
            nn.Conv2d(width, width, 3, 2, 1),
        )
        self.b, self.y = Residual(width, 2 * width, time), Spatial(2 * width, 5, 768)
        self.up, self.c = nn.Conv2d(2 * width, 2 * width, 3, padding=1), Residual(3 * width, width, time)
        self.z, self.norm, self.last = (
            Spatial(width, 5, 768),
            nn.GroupNorm(32, width),
            nn.Conv2d(width, 4, 3, padding=1),
        )
        self.register_buffer("rate", torch.exp(-9.2 * torch.arange(width // 2) / (width // 2)))

    def forward(self, x: Tensor, step: Tensor, text: Tensor) -> Tensor:
        angle = step[:, None].float() * self.rate[None]
        time = self.time(torch.cat([angle.cos(), angle.sin()], -1))
        a = self.x(self.a(self.first(x), time), text)
        b = self.y(self.b(self.down(a), time), text)
        b = self.up(F.interpolate(b, scale_factor=2.0, mode="nearest"))
        c = self.z(self.c(torch.cat([b, a], 1), time), text)
        return self.last(F.silu(self.norm(c)))


class DiT(nn.Module):
    """A transformer of diffusion: norms shifted and scaled by the time."""

    def __init__(self, width: int = 384, heads: int = 6) -> None:
        super().__init__()
        self.patches, self.time = nn.Conv2d(4, width, 2, 2), nn.Linear(256, width)
        self.norm, self.norm2 = (nn.LayerNorm(width, elementwise_affine=False) for _ in range(2))
        self.own, self.feed = Attention(width, heads), FeedForward(width, 4 * width, nn.GELU("tanh"))
        self.shift, self.last = nn.Linear(width, 6 * width), nn.Linear(width, 2 * 2 * 4)

    def forward(self, x: Tensor, time: Tensor) -> Tensor:
        n, _, h, w = x.shape
        y = self.patches(x).flatten(2).transpose(1, 2)
        a, b, c, d, e, f = self.shift(F.silu(self.time(time))).chunk(6, 1)
        y = y + c[:, None] * self.own(self.norm(y) * (1 + b[:, None]) + a[:, None])
        y = y + f[:, None] * self.feed(self.norm2(y) * (1 + e[:, None]) + d[:, None])
        y = self.last(y).reshape(n, h // 2, w // 2, 2, 2, 4)
        return torch.einsum("nhwpqc->nchpwq", y).reshape(n, 4, h, w)


class Decoder(nn.Module):
    """A variational autoencoder's decoder: residuals, attention of one head, nearest neighbours."""

    def __init__(self, width: int = 128) -> None:
        super().__init__()
        self.first, self.a, self.b = (
            nn.Conv2d(4, width, 3, padding=1),
            Residual(width, width, 0),
            Residual(width, 64, 0),
        )
        self.norm, self.own = nn.GroupNorm(32, width), Attention(width, 1)
        self.up, self.out = nn.Conv2d(width, width, 3, padding=1), nn.Conv2d(64, 3, 3, padding=1)
        self.last = nn.GroupNorm(32, 64)

    def forward(self, x: Tensor) -> Tensor:
        x = self.a(self.first(x))
        n, c, h, w = x.shape
        y = self.own(self.norm(x).view(n, c, h * w).transpose(1, 2))
        x = x + y.transpose(1, 2).reshape(n, c, h, w)
        x = self.b(self.up(F.interpolate(x, scale_factor=2.0)))
        return self.out(F.silu(self.last(x)))


class Sam(nn.Module):
    """An encoder of windows with decomposed relative positions, a global block and a neck."""

    class Block(nn.Module):
        def __init__(self, width: int, heads: int, window: int, size: int) -> None:
            super().__init__()
            self.heads, self.window = heads, window
            side = window or size
            self.n1, self.n2 = nn.LayerNorm(width), nn.LayerNorm(width)
            self.qkv, self.out, self.feed = (
                nn.Linear(width, 3 * width),
                nn.Linear(width, width),
                FeedForward(width, 4 * width),
            )
            self.rows = nn.Parameter(torch.randn(2 * side - 1, width // heads))
            self.columns = nn.Parameter(torch.randn(2 * side - 1, width // heads))

        def attend(self, x: Tensor) -> Tensor:
            n, h, w, c = x.shape
            q, k, v = (
                self.qkv(x)
                .reshape(n, h * w, 3, self.heads, -1)
                .permute(2, 0, 3, 1, 4)
                .reshape(3, n * self.heads, h * w, -1)
                .unbind(0)
            )
            scores = (q * q.shape[-1] ** -0.5) @ k.transpose(-2, -1)
            at = torch.arange(h)[:, None] - torch.arange(h)[None] + h - 1
            by = q.reshape(n * self.heads, h, w, -1)
            up = torch.einsum("bhwc,hkc->bhwk", by, self.rows[at])
            across = torch.einsum("bhwc,wkc->bhwk", by, self.columns[at])
            scores = (scores.view(-1, h, w, h, w) + up[..., None] + across[..., None, :]).view(
                -1, h * w, h * w
            )
            y = (
                (scores.softmax(-1) @ v)
                .view(n, self.heads, h, w, -1)
                .permute(0, 2, 3, 1, 4)
                .reshape(n, h, w, c)
            )
            return self.out(y)

        def forward(self, x: Tensor) -> Tensor:
            n, h, w, c = x.shape
            y, side = self.n1(x), self.window
            if side:
                more = (side - h % side) % side
                y = F.pad(y, (0, 0, 0, more, 0, more))
                big = h + more
                y = (
                    y.view(n, big // side, side, big // side, side, c)
                    .permute(0, 1, 3, 2, 4, 5)
                    .reshape(-1, side, side, c)
                )
                y = self.attend(y).view(n, big // side, big // side, side, side, c).permute(0, 1, 3, 2, 4, 5)
                y = y.reshape(n, big, big, c)[:, :h, :w]
            else:
                y = self.attend(y)
            x = x + y
            return x + self.feed(self.n2(x))

    def __init__(self, width: int = 384, heads: int = 6) -> None:
        super().__init__()
        self.patches, self.positions = (
            nn.Conv2d(3, width, 16, 16),
            nn.Parameter(torch.randn(1, 20, 20, width)),
        )
        self.blocks = nn.Sequential(Sam.Block(width, heads, 14, 20), Sam.Block(width, heads, 0, 20))
        self.neck = nn.Sequential(
            nn.Conv2d(width, 256, 1, bias=False),
            LayerNorm2d(256),
            nn.Conv2d(256, 256, 3, padding=1, bias=False),
            LayerNorm2d(256),
        )

    def forward(self, x: Tensor) -> Tensor:
        return self.neck(
            self.blocks(self.patches(x).permute(0, 2, 3, 1) + self.positions).permute(0, 3, 1, 2)
        )


class SegFormer(nn.Module):
    """Attention with keys of a smaller map, mixing by channel, all levels joined."""

    class Block(nn.Module):
        def __init__(self, width: int, heads: int, narrow: int) -> None:
            super().__init__()
            self.n1, self.n2, self.n3 = nn.LayerNorm(width), nn.LayerNorm(width), nn.LayerNorm(width)
            self.narrow = nn.Conv2d(width, width, narrow, narrow) if narrow > 1 else None
            self.own = Attention(width, heads)
            self.up, self.mix = (
                nn.Linear(width, 4 * width),
                nn.Conv2d(4 * width, 4 * width, 3, padding=1, groups=4 * width),
            )
            self.down = nn.Linear(4 * width, width)

        def forward(self, x: Tensor) -> Tensor:
            n, c, h, w = x.shape
            y = x.flatten(2).transpose(1, 2)
            z = self.n1(y)
            keys = z
            if self.narrow is not None:
                keys = self.n3(self.narrow(z.transpose(1, 2).reshape(n, c, h, w)).flatten(2).transpose(1, 2))
            y = y + self.own(z, keys)
            z = self.up(self.n2(y)).transpose(1, 2).reshape(n, -1, h, w)
            y = y + self.down(F.gelu(self.mix(z).flatten(2).transpose(1, 2)))
            return y.transpose(1, 2).reshape(n, c, h, w)

    def __init__(self) -> None:
        super().__init__()
        self.a, self.b = nn.Conv2d(3, 32, 7, 4, 3), nn.Conv2d(32, 64, 3, 2, 1)
        self.one, self.two = SegFormer.Block(32, 1, 8), SegFormer.Block(64, 2, 4)
        self.p, self.q = nn.Conv2d(32, 128, 1), nn.Conv2d(64, 128, 1)
        self.join, self.head = conv(256, 128, 1), nn.Conv2d(128, 19, 1)

    def forward(self, x: Tensor) -> Tensor:
        a = self.one(self.a(x))
        b = self.two(self.b(a))
        b = F.interpolate(self.q(b), size=a.shape[2:], mode="bilinear", align_corners=False)
        return self.head(self.join(torch.cat([self.p(a), b], 1)))


class DeepLab(nn.Module):
    """Atrous convolutions side by side, one branch of the pooled map."""

    def __init__(self) -> None:
        super().__init__()
        self.a, self.b = (
            nn.Sequential(conv(3, 32, 3, 2), conv(32, 64, 3, 2)),
            nn.Sequential(conv(64, 128, 3, 2), conv(128, 256)),
        )
        self.rates = nn.ModuleList(
            [conv(256, 64, 1)]
            + [
                nn.Sequential(nn.Conv2d(256, 64, 3, padding=r, dilation=r), nn.BatchNorm2d(64), nn.ReLU())
                for r in (6, 12, 18)
            ]
        )
        self.pooled, self.join = (
            nn.Sequential(nn.AdaptiveAvgPool2d(1), nn.Conv2d(256, 64, 1), nn.ReLU()),
            conv(320, 64, 1),
        )
        self.low, self.last, self.head = conv(64, 48, 1), conv(112, 64), nn.Conv2d(64, 21, 1)

    def forward(self, x: Tensor) -> Tensor:
        a = self.a(x)
        b = self.b(a)
        pooled = F.interpolate(self.pooled(b), size=b.shape[2:], mode="bilinear", align_corners=False)
        y = self.join(torch.cat([rate(b) for rate in self.rates] + [pooled], 1))
        y = F.interpolate(y, size=a.shape[2:], mode="bilinear", align_corners=False)
        y = self.head(self.last(torch.cat([self.low(a), y], 1)))
        return F.interpolate(y, size=x.shape[2:], mode="bilinear", align_corners=False)


class HRNet(nn.Module):
    """Branches of several resolutions that exchange."""

    def __init__(self) -> None:
        super().__init__()
        self.stem = nn.Sequential(conv(3, 32, 3, 2), conv(32, 32, 3, 2))
        self.fine, self.coarse = conv(32, 32), conv(32, 64, 3, 2)
        self.f2, self.c2 = (
            nn.Sequential(conv(32, 32), conv(32, 32)),
            nn.Sequential(conv(64, 64), conv(64, 64)),
        )
        self.up, self.down, self.head = nn.Conv2d(64, 32, 1), nn.Conv2d(32, 64, 3, 2, 1), nn.Conv2d(96, 17, 1)

    def forward(self, x: Tensor) -> Tensor:
        x = self.stem(x)
        fine, coarse = self.f2(self.fine(x)), self.c2(self.coarse(x))
        one = F.relu(fine + F.interpolate(self.up(coarse), scale_factor=2.0))
        two = F.relu(coarse + self.down(fine))
        return self.head(torch.cat([one, F.interpolate(two, scale_factor=2.0, mode="bilinear")], 1))


class Super(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.first, self.last = nn.Conv2d(3, 64, 3, padding=1), nn.Conv2d(64, 3 * 16, 3, padding=1)
        self.parts = nn.ModuleList(
            [
                nn.Sequential(nn.Conv2d(64, 64, 3, padding=1), nn.PReLU(), nn.Conv2d(64, 64, 3, padding=1))
                for _ in range(2)
            ]
        )

    def forward(self, x: Tensor) -> Tensor:
        y = self.first(x)
        for part in self.parts:
            y = y + 0.1 * part(y)
        return F.pixel_shuffle(self.last(y), 4) + F.interpolate(x, scale_factor=4.0, mode="bicubic")


def gan() -> nn.Module:
    def up(inside: int, outside: int) -> nn.Sequential:
        return nn.Sequential(
            nn.ConvTranspose2d(inside, outside, 4, 2, 1, bias=False), nn.BatchNorm2d(outside), nn.ReLU()
        )

    return nn.Sequential(
        nn.Unflatten(1, (100, 1, 1)),
        nn.ConvTranspose2d(100, 256, 4),
        up(256, 128),
        up(128, 64),
        up(64, 64),
        nn.ConvTranspose2d(64, 3, 4, 2, 1),
        nn.Tanh(),
    )


class Style(nn.Module):
    """Instance norms, reflected borders, residuals."""

    def __init__(self) -> None:
        super().__init__()

        def part(inside: int, outside: int, kernel: int, stride: int = 1) -> nn.Sequential:
            return nn.Sequential(
                nn.ReflectionPad2d(kernel // 2),
                nn.Conv2d(inside, outside, kernel, stride),
                nn.InstanceNorm2d(outside, affine=True),
            )

        self.body = nn.Sequential(part(3, 32, 9), nn.ReLU(), part(32, 64, 3, 2), nn.ReLU())
        self.one, self.two, self.last = part(64, 64, 3), part(64, 64, 3), part(64, 3, 9)

    def forward(self, x: Tensor) -> Tensor:
        x = self.body(x)
        x = x + self.two(F.relu(self.one(x)))
        return self.last(F.interpolate(x, scale_factor=2.0))


class Depth(nn.Module):
    """A dense prediction over tokens: reassembled maps, fused residuals."""

    def __init__(self, width: int = 384) -> None:
        super().__init__()
        self.patches, self.positions = nn.Conv2d(3, width, 14, 14), nn.Parameter(torch.randn(1, 257, width))
        self.token = nn.Parameter(torch.randn(1, 1, width))
        self.blocks = nn.ModuleList([Encoder(width, 6, 4 * width) for _ in range(2)])
        self.p, self.q = nn.Conv2d(width, 64, 1), nn.Conv2d(width, 64, 1)
        self.up, self.mix = (
            nn.ConvTranspose2d(64, 64, 2, 2),
            nn.Sequential(nn.ReLU(), nn.Conv2d(64, 64, 3, padding=1)),
        )
        self.head = nn.Sequential(nn.Conv2d(64, 32, 3, padding=1), nn.ReLU(), nn.Conv2d(32, 1, 1), nn.ReLU())

    def forward(self, x: Tensor) -> Tensor:
        y = self.patches(x).flatten(2).transpose(1, 2)
        y = torch.cat([self.token, y], 1) + self.positions
        levels = []
        for block, side in zip(self.blocks, (self.p, self.q), strict=True):
            y = block(y)
            levels.append(side(y[:, 1:].transpose(1, 2).reshape(1, -1, 16, 16)))
        fine = self.up(levels[0])
        fine = fine + self.mix(F.interpolate(levels[1], size=(32, 32), mode="bilinear", align_corners=True))
        return self.head(F.interpolate(fine, scale_factor=4.0, mode="bilinear", align_corners=True))


def image(size: int) -> Tensor:
    return torch.randn(1, 3, size, size)


NETWORKS = {
    "U-Net": (UNet, lambda: (image(128),)),
    "Stable Diffusion U-Net": (
        Diffusion,
        lambda: (torch.randn(1, 4, 32, 32), torch.tensor([500]), torch.randn(1, 77, 768)),
    ),
    "DiT": (DiT, lambda: (torch.randn(1, 4, 32, 32), torch.randn(1, 256))),
    "VAE decoder": (Decoder, lambda: (torch.randn(1, 4, 32, 32),)),
    "SAM encoder": (Sam, lambda: (image(320),)),
    "YOLOv8": (Yolo, lambda: (image(256),)),
    "SSD": (SSD, lambda: (image(256),)),
    "SSD with selection": (Selected, lambda: (image(256),)),
    "RetinaNet": (RetinaNet, lambda: (image(128),)),
    "DETR": (Detr, lambda: (image(224),)),
    "SegFormer": (SegFormer, lambda: (image(256),)),
    "DeepLabV3+": (DeepLab, lambda: (image(224),)),
    "HRNet": (HRNet, lambda: (image(192),)),
    "Super resolution": (Super, lambda: (image(64),)),
    "DCGAN": (gan, lambda: (torch.randn(1, 100),)),
    "Style transfer": (Style, lambda: (image(128),)),
    "Depth Anything": (Depth, lambda: (image(224),)),
}
