"""NASNet-A (4 @ 1056), "mobile" (Zoph et al., "Learning Transferable Architectures for Scalable Image
Recognition"), put together from timm's cells: timm itself has the large one only.

Three stages of four normal cells with a reducing cell between, 44 channels at first, a stem of 32. The cell
after a reducing one takes that and the cell before it as its inputs (the large network skips one more).
"""

from __future__ import annotations

from functools import partial

from timm.layers import ConvNormAct
from timm.models.nasnet import CellStem0, CellStem1, FirstCell, NormalCell, ReductionCell0, ReductionCell1
from torch import Tensor, nn

STEM, CHANNELS, CELLS = 32, 44, 4


class NASNetAMobile(nn.Module):
    """Images of (batch, 3, 224, 224) to (batch, 1000)."""

    def __init__(self, classes: int = 1000) -> None:
        super().__init__()
        norm = partial(nn.BatchNorm2d, eps=0.001, momentum=0.1)
        self.conv0 = ConvNormAct(
            3, STEM, kernel_size=3, padding=0, stride=2, norm_layer=norm, apply_act=False
        )
        self.cell_stem_0 = CellStem0(STEM, num_channels=CHANNELS // 4, pad_type="same")
        self.cell_stem_1 = CellStem1(STEM, num_channels=CHANNELS // 2, pad_type="same")
        before, last = CHANNELS, 2 * CHANNELS
        self.stages, self.reductions = nn.ModuleList(), nn.ModuleList()
        for stage, reducing in enumerate((None, ReductionCell0, ReductionCell1)):
            channels = CHANNELS << stage
            if reducing is not None:
                self.reductions.append(reducing(before, channels, last, channels, pad_type="same"))
                before, last = last, 4 * channels
            cells = nn.ModuleList()
            for i in range(CELLS):
                kind = FirstCell if i == 0 else NormalCell
                left = channels // 2 if i == 0 else channels
                cells.append(kind(before, left, last, channels, pad_type="same"))
                before, last = last, 6 * channels
            self.stages.append(cells)
        self.act = nn.ReLU()
        self.pool = nn.AdaptiveAvgPool2d(1)
        self.last_linear = nn.Linear(last, classes)

    def forward(self, x: Tensor) -> Tensor:
        stem = self.conv0(x)
        before = self.cell_stem_0(stem)
        last = self.cell_stem_1(stem, before)
        for i, stage in enumerate(self.stages):
            if i:
                before, last = last, self.reductions[i - 1](last, before)
            for cell in stage:
                before, last = last, cell(last, before)
        return self.last_linear(self.pool(self.act(last)).flatten(1))
