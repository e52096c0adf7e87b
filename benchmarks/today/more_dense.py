"""More networks that answer for every pixel or box: heads, decoders, generators, flow."""

from __future__ import annotations

from collections.abc import Sequence

import torch
import torch.nn.functional as F
from blocks import Encoder, FeedForward, LayerNorm2d, conv
from torch import Tensor, nn


class Csp(nn.Module):
    """YOLOv10: halves of the channels in turn, pools in a row, attention of positions, two heads."""

    def __init__(self, width: int = 32) -> None:
        super().__init__()
        self.stem = nn.Sequential(conv(3, 16, 3, 2, act=nn.SiLU()), conv(16, width, 3, 2, act=nn.SiLU()))
        half = width // 2
        self.first, self.last = conv(width, width, 1, act=nn.SiLU()), conv(2 * width, width, 1, act=nn.SiLU())
        self.inner = nn.ModuleList([conv(half, half, 3, act=nn.SiLU()) for _ in range(2)])
        self.down = nn.Sequential(conv(width, 64, 1, act=nn.SiLU()), nn.Conv2d(64, 64, 3, 2, 1, groups=64))
        self.pool_in, self.pool_out = conv(64, 32, 1, act=nn.SiLU()), conv(128, 64, 1, act=nn.SiLU())
        self.qkv, self.place, self.out = (
            nn.Conv2d(32, 64, 1),
            nn.Conv2d(32, 32, 3, 1, 1, groups=32),
            nn.Conv2d(32, 32, 1),
        )
        self.box, self.kind = nn.Conv2d(96, 16, 1), nn.Conv2d(96, 8, 1)

    def attend(self, x: Tensor) -> Tensor:
        n, c, h, w = x.shape
        q, k, v = self.qkv(x).view(n, 1, 64, h * w).split((16, 16, 32), 2)
        shares = (q.transpose(-2, -1) @ k * 0.25).softmax(-1)
        y = (v @ shares.transpose(-2, -1)).view(n, c, h, w)
        return self.out(y + self.place(v.reshape(n, c, h, w)))

    def forward(self, x: Tensor) -> tuple[Tensor, Tensor]:
        x = self.stem(x)
        parts = list(self.first(x).chunk(2, 1))
        for block in self.inner:
            parts.append(parts[-1] + block(parts[-1]))
        fine = self.last(torch.cat(parts, 1))
        y = self.pool_in(self.down(fine))
        pools = [y]
        for _ in range(3):
            pools.append(F.max_pool2d(pools[-1], 5, 1, 2))
        a, b = self.pool_out(torch.cat(pools, 1)).chunk(2, 1)
        b = b + self.attend(b)
        both = torch.cat((F.interpolate(torch.cat((a, b), 1), scale_factor=2.0), fine), 1)
        scores = self.kind(both).sigmoid().flatten(2).transpose(1, 2)
        best, at = scores.amax(-1).topk(20)
        boxes = self.box(both).flatten(2).transpose(1, 2)
        return boxes.gather(1, at[..., None].expand(-1, -1, 16)), best


class Focus(nn.Module):
    """YOLOX: every other pixel as channels; heads of classes, boxes and objects apart; a decoded grid."""

    def __init__(self, width: int = 32) -> None:
        super().__init__()
        self.stem, self.body = conv(12, 16, 3, act=nn.SiLU()), conv(16, width, 3, 2, act=nn.SiLU())
        self.deeper = conv(width, width, 3, 2, act=nn.SiLU())
        self.trunk = nn.ModuleList([conv(width, width, 3, act=nn.SiLU()) for _ in range(2)])
        self.kind, self.box, self.object = (nn.Conv2d(width, n, 1) for n in (8, 4, 1))

    def forward(self, x: Tensor) -> Tensor:
        parts = (x[..., ::2, ::2], x[..., 1::2, ::2], x[..., ::2, 1::2], x[..., 1::2, 1::2])
        x = self.body(self.stem(torch.cat(parts, 1)))
        found = []
        for y, step in ((x, 4), (self.deeper(x), 8)):
            a, b = self.trunk[0](y), self.trunk[1](y)
            h, w = y.shape[2:]
            grid = torch.stack(torch.meshgrid(torch.arange(w), torch.arange(h), indexing="xy"), 0)[None]
            box = self.box(b)
            box = torch.cat(((box[:, :2] + grid) * step, box[:, 2:].exp() * step), 1)
            all_ = torch.cat((box, self.object(b).sigmoid(), self.kind(a).sigmoid()), 1)
            found.append(all_.flatten(2))
        return torch.cat(found, 2).permute(0, 2, 1)


class Deformable(nn.Module):
    """RT-DETR: places best by their scores ask maps of two sizes at points that they choose themselves."""

    def __init__(self, width: int = 32, heads: int = 2, points: int = 4, asked: int = 12) -> None:
        super().__init__()
        self.heads, self.points, self.asked = heads, points, asked
        self.stem, self.deeper = conv(3, width, 7, 4), conv(width, width, 3, 2)
        self.encoder = Encoder(width, heads, 2 * width)
        self.value, self.score = nn.Linear(width, width), nn.Linear(width, 8)
        self.box = nn.Linear(width, 4)
        self.offsets = nn.Linear(width, heads * 2 * points * 2)
        self.weights, self.out = nn.Linear(width, heads * 2 * points), nn.Linear(width, width)
        self.norm, self.head = nn.LayerNorm(width), nn.Linear(width, 8)

    def forward(self, x: Tensor) -> tuple[Tensor, Tensor]:
        fine = self.stem(x)
        coarse = self.deeper(fine)
        n, c, h, w = coarse.shape
        coarse = self.encoder(coarse.flatten(2).transpose(1, 2)).transpose(1, 2).view(n, c, h, w)
        maps = (fine, coarse)
        memory = torch.cat([y.flatten(2).transpose(1, 2) for y in maps], 1)
        best = self.score(memory).amax(-1).topk(self.asked)[1]
        rows = memory.gather(1, best[..., None].expand(-1, -1, c))
        boxes = self.box(rows).sigmoid()
        values = self.value(memory).view(n, -1, self.heads, c // self.heads)
        offsets = self.offsets(rows).view(n, -1, self.heads, 2, self.points, 2)
        shares = self.weights(rows).view(n, -1, self.heads, 2 * self.points).softmax(-1)
        places = (
            boxes[:, :, None, None, None, :2] + offsets / self.points * boxes[:, :, None, None, None, 2:] / 2
        )
        sizes = [y.shape[2] * y.shape[3] for y in maps]
        found = []
        for level, (y, value) in enumerate(zip(maps, values.split(sizes, 1), strict=True)):
            value = value.permute(0, 2, 3, 1).reshape(n * self.heads, -1, *y.shape[2:])
            grid = 2 * places[:, :, :, level].transpose(1, 2).flatten(0, 1) - 1
            found.append(
                F.grid_sample(value, grid, mode="bilinear", padding_mode="zeros", align_corners=False)
            )
        weights = shares.transpose(1, 2).reshape(n * self.heads, 1, -1, 2 * self.points)
        y = (torch.cat(found, -1) * weights).sum(-1).view(n, c, -1).transpose(1, 2)
        rows = self.norm(rows + self.out(y))
        return self.head(rows), boxes


class BiFpn(nn.Module):
    """Maps of three sizes joined up and down, each sum weighed by numbers that are normalised first."""

    def __init__(self, width: int = 32) -> None:
        super().__init__()
        self.stem = nn.ModuleList([conv(3, width, 3, 2), conv(width, width, 3, 2), conv(width, width, 3, 2)])
        self.joins = nn.ModuleList(
            [
                nn.Sequential(
                    nn.SiLU(), nn.Conv2d(width, width, 3, 1, 1, groups=width), conv(width, width, 1)
                )
                for _ in range(4)
            ]
        )
        self.weights = nn.Parameter(torch.rand(4, 3))
        self.head = nn.Conv2d(width, 9, 3, 1, 1)

    def weigh(self, i: int, parts: Sequence[Tensor]) -> Tensor:
        shares = F.relu(self.weights[i, : len(parts)])
        shares = shares / (shares.sum() + 1e-4)
        return self.joins[i](sum(share * part for share, part in zip(shares, parts, strict=True)))

    def forward(self, x: Tensor) -> list[Tensor]:
        a = self.stem[0](x)
        b = self.stem[1](a)
        c = self.stem[2](b)
        b1 = self.weigh(0, (b, F.interpolate(c, scale_factor=2.0)))
        a1 = self.weigh(1, (a, F.interpolate(b1, scale_factor=2.0)))
        b2 = self.weigh(2, (b, b1, F.max_pool2d(a1, 3, 2, 1)))
        c1 = self.weigh(3, (c, F.max_pool2d(b2, 3, 2, 1)))
        return [self.head(y) for y in (a1, b2, c1)]


class PyramidPool(nn.Module):
    """Means over a map in 1, 4 and 16 parts, made as large as the map again and joined with it."""

    def __init__(self, width: int = 32) -> None:
        super().__init__()
        self.body = nn.Sequential(conv(3, width, 3, 2), conv(width, width, 3, 2))
        self.sizes = (1, 2, 4)
        self.parts = nn.ModuleList([conv(width, 8, 1) for _ in self.sizes])
        self.last = nn.Sequential(conv(width + 24, width, 3), nn.Conv2d(width, 5, 1))

    def forward(self, x: Tensor) -> Tensor:
        y = self.body(x)
        parts = [y]
        for size, part in zip(self.sizes, self.parts, strict=True):
            small = part(F.adaptive_avg_pool2d(y, size))
            parts.append(F.interpolate(small, y.shape[2:], mode="bilinear", align_corners=True))
        return F.interpolate(self.last(torch.cat(parts, 1)), scale_factor=4.0, mode="bilinear")


class MaskDecoder(nn.Module):
    """SAM: words and a map attend to each other; the map grows; words make the kernels of its masks."""

    def __init__(self, width: int = 64) -> None:
        super().__init__()
        self.words = nn.Parameter(torch.randn(1, 4, width))
        self.block = Encoder(width, 4, 2 * width, width)
        self.back = Encoder(width, 4, 2 * width, width)
        self.up = nn.Sequential(
            nn.ConvTranspose2d(width, 16, 2, 2), LayerNorm2d(16), nn.GELU(),
            nn.ConvTranspose2d(16, 8, 2, 2), nn.GELU(),
        )  # fmt: skip
        self.kernels = nn.ModuleList([FeedForward(width, width) for _ in range(3)])
        self.small, self.score = nn.Linear(width, 8), nn.Linear(width, 3)

    def forward(self, x: Tensor, points: Tensor) -> tuple[Tensor, Tensor]:
        n, c, h, w = x.shape
        rows = torch.cat((self.words.expand(n, -1, -1), points), 1)
        memory = x.flatten(2).transpose(1, 2)
        rows = self.block(rows, memory)
        memory = self.back(memory, rows)
        wide = self.up(memory.transpose(1, 2).reshape(n, c, h, w))
        kernels = torch.stack([self.small(part(rows[:, i])) for i, part in enumerate(self.kernels)], 1)
        masks = (kernels @ wide.flatten(2)).view(n, 3, *wide.shape[2:])
        return masks, self.score(rows[:, 3])


class Nested(nn.Module):
    """UNet++: every node joins all before it at its height with what comes from below; gates of attention."""

    def __init__(self, width: int = 16) -> None:
        super().__init__()
        self.nodes = nn.ModuleList(
            [
                conv(a, b, 3)
                for a, b in ((3, width), (width, 32), (32, 64), (width + 32, width), (96, 32), (64, width))
            ]
        )
        self.ask, self.keep, self.gate = nn.Conv2d(32, 8, 1), nn.Conv2d(width, 8, 2, 2), nn.Conv2d(8, 1, 1)
        self.last = nn.Conv2d(width, 2, 1)

    def up(self, x: Tensor) -> Tensor:
        return F.interpolate(x, scale_factor=2.0, mode="bilinear", align_corners=False)

    def forward(self, x: Tensor) -> Tensor:
        a0 = self.nodes[0](x)
        b0 = self.nodes[1](F.max_pool2d(a0, 2))
        c0 = self.nodes[2](F.max_pool2d(b0, 2))
        a1 = self.nodes[3](torch.cat((a0, self.up(b0)), 1))
        b1 = self.nodes[4](torch.cat((b0, self.up(c0)), 1))
        gate = torch.sigmoid(self.gate(F.relu(self.ask(b1) + self.keep(a1))))
        return self.last(self.nodes[5](torch.cat((a0, a1 * self.up(gate), self.up(b1)), 1)))


class Cycle(nn.Module):
    """Maps of one picture in the style of another: reflected borders, means and deviations exchanged."""

    def __init__(self, width: int = 16) -> None:
        super().__init__()
        self.first = nn.Sequential(
            nn.ReflectionPad2d(3), nn.Conv2d(3, width, 7), nn.InstanceNorm2d(width), nn.ReLU()
        )
        self.down = nn.Sequential(
            nn.Conv2d(width, 32, 3, 2, 1), nn.InstanceNorm2d(32, affine=True), nn.ReLU()
        )
        self.same = nn.Sequential(nn.ReflectionPad2d(1), nn.Conv2d(32, 32, 3))
        self.up = nn.ConvTranspose2d(32, width, 3, 2, 1, output_padding=1)
        self.last = nn.Sequential(nn.ReplicationPad2d(3), nn.Conv2d(width, 3, 7), nn.Tanh())

    def forward(self, x: Tensor, style: Tensor) -> Tensor:
        a, b = self.down(self.first(x)), self.down(self.first(style))
        mean, spread = a.mean((2, 3), keepdim=True), a.std((2, 3), keepdim=True) + 1e-5
        y = (a - mean) / spread * b.std((2, 3), keepdim=True) + b.mean((2, 3), keepdim=True)
        return self.last(self.up(y + self.same(F.relu(y))))


class Spade(nn.Module):
    """A map normalised, then scaled and shifted by maps that a picture of classes makes, at two sizes."""

    def __init__(self, width: int = 32) -> None:
        super().__init__()
        self.first, self.norm = nn.Linear(16, width * 16), nn.InstanceNorm2d(width)
        self.shared = nn.ModuleList([nn.Conv2d(4, 16, 3, padding=1) for _ in range(2)])
        self.scale = nn.ModuleList([nn.Conv2d(16, width, 3, padding=1) for _ in range(2)])
        self.shift = nn.ModuleList([nn.Conv2d(16, width, 3, padding=1) for _ in range(2)])
        self.body = nn.ModuleList([nn.Conv2d(width, width, 3, padding=1) for _ in range(2)])
        self.last, self.width = nn.Conv2d(width, 3, 3, padding=1), width

    def forward(self, z: Tensor, classes: Tensor) -> Tensor:
        x = self.first(z).view(-1, self.width, 4, 4)
        for i in range(2):
            x = F.interpolate(x, scale_factor=2.0)
            kinds = F.relu(self.shared[i](F.interpolate(classes, x.shape[2:], mode="nearest")))
            y = self.norm(x) * (1 + self.scale[i](kinds)) + self.shift[i](kinds)
            x = x + self.body[i](F.leaky_relu(y, 0.2))
        return torch.tanh(self.last(x))


class CostVolume(nn.Module):
    """Stereo: one map beside another at eight shifts, a volume that is filtered, a mean of the shifts."""

    def __init__(self, width: int = 8) -> None:
        super().__init__()
        self.features = nn.Sequential(conv(3, width, 3, 2), nn.Conv2d(width, width, 3, 1, 1))
        self.filter = nn.Sequential(
            nn.Conv3d(2 * width, width, 3, padding=1),
            nn.BatchNorm3d(width),
            nn.ReLU(),
            nn.Conv3d(width, 1, 3, padding=1),
        )
        self.register_buffer("shifts", torch.arange(8.0).view(1, 8, 1, 1))

    def forward(self, left: Tensor, right: Tensor) -> Tensor:
        a, b = self.features(left), self.features(right)
        w = a.shape[3]
        parts = [torch.cat((a, F.pad(b, (i, 0, 0, 0))[..., :w]), 1) for i in range(8)]
        scores = self.filter(torch.stack(parts, 2)).squeeze(1)
        return (scores.neg().softmax(1) * self.shifts).sum(1)


class Correlation(nn.Module):
    """RAFT: products of all pairs in a pyramid of pools, and a recurrent unit of convolutions."""

    def __init__(self, width: int = 16) -> None:
        super().__init__()
        self.features = nn.Sequential(conv(3, width, 3, 2), nn.Conv2d(width, width, 3, 2, 1))
        self.context = nn.Sequential(conv(3, width, 3, 2), nn.Conv2d(width, 2 * width, 3, 2, 1))
        self.look = nn.Conv2d(64 + 16, width, 1)
        self.z, self.r, self.q = (nn.Conv2d(3 * width, width, 3, padding=1) for _ in range(3))
        self.last = nn.Conv2d(width, 2, 3, padding=1)

    def forward(self, one: Tensor, other: Tensor) -> Tensor:
        a, b = self.features(one), self.features(other)
        n, c, h, w = a.shape
        pairs = (a.view(n, c, h * w).transpose(1, 2) @ b.view(n, c, h * w)).view(n * h * w, 1, h, w) / c**0.5
        levels = [pairs, F.avg_pool2d(pairs, 2)]
        rows = torch.cat([level.view(n, h, w, -1) for level in levels], -1).permute(0, 3, 1, 2)
        hidden, inputs = self.context(one).split((c, c), 1)
        hidden, inputs = hidden.tanh(), inputs.relu()
        flow = torch.zeros(n, 2, h, w)
        for _ in range(2):
            x = torch.cat((inputs, F.relu(self.look(rows))), 1)
            both = torch.cat((hidden, x), 1)
            z, r = self.z(both).sigmoid(), self.r(both).sigmoid()
            q = self.q(torch.cat((r * hidden, x), 1)).tanh()
            hidden = (1 - z) * hidden + z * q
            flow = flow + self.last(hidden)
        return flow
