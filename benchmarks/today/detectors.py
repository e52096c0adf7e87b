"""Networks that answer with boxes."""

from __future__ import annotations

import torch
import torch.nn.functional as F
from blocks import conv
from torch import Tensor, nn


class C2f(nn.Module):
    def __init__(self, inside: int, outside: int, count: int) -> None:
        super().__init__()
        half, act = outside // 2, nn.SiLU()
        self.into, self.out = conv(inside, outside, 1, act=act), conv((2 + count) * half, outside, 1, act=act)
        self.parts = nn.ModuleList(
            [nn.Sequential(conv(half, half, act=act), conv(half, half, act=act)) for _ in range(count)]
        )

    def forward(self, x: Tensor) -> Tensor:
        y = list(self.into(x).chunk(2, 1))
        for part in self.parts:
            y.append(y[-1] + part(y[-1]))
        return self.out(torch.cat(y, 1))


class Yolo(nn.Module):
    """YOLOv8: split features, pooled pyramid, boxes as distributions, all levels joined and decoded."""

    def __init__(self) -> None:
        super().__init__()
        act = nn.SiLU()
        self.a = nn.Sequential(
            conv(3, 16, 3, 2, act=act),
            conv(16, 32, 3, 2, act=act),
            C2f(32, 32, 1),
            conv(32, 64, 3, 2, act=act),
            C2f(64, 64, 2),
        )
        self.b = nn.Sequential(conv(64, 128, 3, 2, act=act), C2f(128, 128, 2))
        self.narrow, self.wide = conv(128, 64, 1, act=act), conv(256, 128, 1, act=act)
        self.top, self.down, self.last = C2f(192, 64, 1), conv(64, 64, 3, 2, act=act), C2f(192, 128, 1)
        self.boxes = nn.ModuleList(
            [nn.Sequential(conv(n, 64, act=act), nn.Conv2d(64, 64, 1)) for n in (64, 128)]
        )
        self.kinds = nn.ModuleList(
            [nn.Sequential(conv(n, 80, act=act), nn.Conv2d(80, 80, 1)) for n in (64, 128)]
        )
        self.register_buffer("bins", torch.arange(16.0).view(1, 16, 1, 1))

    def forward(self, x: Tensor) -> Tensor:
        a = self.a(x)
        b = self.b(a)
        y = self.narrow(b)
        pools = [y]
        for _ in range(3):
            pools.append(F.max_pool2d(pools[-1], 5, 1, 2))
        b = self.wide(torch.cat(pools, 1))
        top = self.top(torch.cat([F.interpolate(b, scale_factor=2.0), a], 1))
        last = self.last(torch.cat([self.down(top), b], 1))
        levels = [
            torch.cat([f(y), g(y)], 1).flatten(2)
            for f, g, y in zip(self.boxes, self.kinds, (top, last), strict=True)
        ]
        box, kind = torch.cat(levels, 2).split([64, 80], 1)
        box = F.conv2d(box.view(1, 4, 16, -1).transpose(1, 2).softmax(1), self.bins).view(1, 4, -1)
        at = []
        steps = []
        for y, step in ((top, 8.0), (last, 16.0)):
            h, w = y.shape[2:]
            rows, columns = torch.meshgrid(torch.arange(h) + 0.5, torch.arange(w) + 0.5, indexing="ij")
            at.append(torch.stack([columns, rows]).view(2, -1))
            steps.append(torch.full((1, h * w), step))
        places, step_of = torch.cat(at, 1)[None], torch.cat(steps, 1)
        low, high = box.chunk(2, 1)
        first, second = places - low, places + high
        return torch.cat([torch.cat([(first + second) / 2, second - first], 1) * step_of, kind.sigmoid()], 1)


class SSD(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.a = nn.Sequential(conv(3, 32, 3, 2), conv(32, 64, 3, 2), conv(64, 128, 3, 2))
        self.b, self.c = conv(128, 256, 3, 2), conv(256, 256, 3, 2)
        self.boxes = nn.ModuleList([nn.Conv2d(n, 16, 3, padding=1) for n in (128, 256, 256)])
        self.kinds = nn.ModuleList([nn.Conv2d(n, 4 * 21, 3, padding=1) for n in (128, 256, 256)])

    def forward(self, x: Tensor) -> tuple[Tensor, Tensor]:
        a = self.a(x)
        b = self.b(a)
        levels = (a, b, self.c(b))
        boxes = [f(y).permute(0, 2, 3, 1).reshape(1, -1, 4) for f, y in zip(self.boxes, levels, strict=True)]
        kinds = [f(y).permute(0, 2, 3, 1).reshape(1, -1, 21) for f, y in zip(self.kinds, levels, strict=True)]
        return torch.cat(boxes, 1), torch.cat(kinds, 1).softmax(-1)


class RetinaNet(nn.Module):
    """A pyramid of features with heads that share their weights."""

    def __init__(self) -> None:
        super().__init__()
        self.a = nn.Sequential(conv(3, 64, 7, 2), conv(64, 128, 3, 2), conv(128, 256, 3, 2))
        self.b, self.c = conv(256, 512, 3, 2), conv(512, 512, 3, 2)
        self.side = nn.ModuleList([nn.Conv2d(n, 128, 1) for n in (256, 512, 512)])
        self.smooth = nn.ModuleList([nn.Conv2d(128, 128, 3, padding=1) for _ in range(3)])
        self.kind = nn.Sequential(
            nn.Conv2d(128, 128, 3, padding=1),
            nn.GroupNorm(32, 128),
            nn.ReLU(),
            nn.Conv2d(128, 9 * 20, 3, padding=1),
        )
        self.box = nn.Sequential(
            nn.Conv2d(128, 128, 3, padding=1), nn.ReLU(), nn.Conv2d(128, 9 * 4, 3, padding=1)
        )

    def forward(self, x: Tensor) -> tuple[Tensor, Tensor]:
        a = self.a(x)
        b = self.b(a)
        c = self.side[2](self.c(b))
        b = self.side[1](b) + F.interpolate(c, size=b.shape[-2:], mode="nearest")
        a = self.side[0](a) + F.interpolate(b, size=a.shape[-2:], mode="nearest")
        levels = [f(y) for f, y in zip(self.smooth, (a, b, c), strict=True)]
        kinds = [self.kind(y).view(1, 9, 20, -1).permute(0, 3, 1, 2).reshape(1, -1, 20) for y in levels]
        boxes = [self.box(y).view(1, 9, 4, -1).permute(0, 3, 1, 2).reshape(1, -1, 4) for y in levels]
        return torch.cat(kinds, 1).sigmoid(), torch.cat(boxes, 1)


class Detr(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.body = nn.Sequential(
            conv(3, 64, 7, 2), conv(64, 128, 3, 2), conv(128, 256, 3, 2), conv(256, 256, 3, 2)
        )
        self.positions, self.queries = (
            nn.Parameter(torch.randn(1, 196, 256)),
            nn.Parameter(torch.randn(1, 100, 256)),
        )
        self.encoder = nn.TransformerEncoderLayer(256, 8, 1024, batch_first=True)
        self.decoder = nn.TransformerDecoderLayer(256, 8, 1024, batch_first=True)
        self.kind, self.box = (
            nn.Linear(256, 92),
            nn.Sequential(nn.Linear(256, 256), nn.ReLU(), nn.Linear(256, 4)),
        )

    def forward(self, x: Tensor) -> tuple[Tensor, Tensor]:
        memory = self.encoder(self.body(x).flatten(2).transpose(1, 2) + self.positions)
        y = self.decoder(self.queries, memory)
        return self.kind(y), self.box(y).sigmoid()


class Selected(nn.Module):
    """A detector that ends in a selection of the best boxes."""

    def __init__(self) -> None:
        super().__init__()
        self.body = SSD()

    def forward(self, x: Tensor) -> tuple[Tensor, Tensor]:
        boxes, kinds = self.body(x)
        best, at = kinds[..., 1:].amax(-1).topk(100, 1)
        return best, torch.gather(boxes, 1, at[..., None].expand(-1, -1, 4))
