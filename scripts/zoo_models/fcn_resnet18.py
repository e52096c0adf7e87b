"""A fully convolutional network (Long et al., "Fully Convolutional Networks for Semantic Segmentation").

It stands on ResNet-18 without its classifier, whose map has 1/32 of the image's height and width; a head of a
3x3 and a 1x1 convolution follows, scaled up to the image's size. torchvision has no dilated form of
ResNet-18's blocks of two 3x3 convolutions, so the map is not kept at 1/8 as in `fcn_resnet50`.
"""

from __future__ import annotations

from torch import Tensor, nn
from torch.nn.functional import interpolate


class FCNResNet18(nn.Module):
    """Images of (batch, 3, height, width) to (batch, 21, height, width)."""

    def __init__(self, classes: int = 21) -> None:
        super().__init__()
        import torchvision.models

        backbone = torchvision.models.resnet18(weights=None)
        self.backbone = nn.Sequential()
        for name, module in backbone.named_children():
            if name not in ("avgpool", "fc"):
                self.backbone.add_module(name, module)
        self.classifier = nn.Sequential(
            nn.Conv2d(512, 128, 3, padding=1, bias=False),
            nn.BatchNorm2d(128),
            nn.ReLU(),
            nn.Dropout(0.1),
            nn.Conv2d(128, classes, 1),
        )

    def forward(self, x: Tensor) -> Tensor:
        y = self.classifier(self.backbone(x))
        return interpolate(y, size=x.shape[-2:], mode="bilinear", align_corners=False)
