"""CaffeNet (Jia et al., "Caffe: Convolutional Architecture for Fast Feature Embedding", section 4).

AlexNet (Krizhevsky et al., "ImageNet Classification with Deep Convolutional Neural Networks", section 3) in
one tower: 96 to 384 channels on images of 227x227, its second, fourth and fifth convolution in two groups,
and every pooling before its normalisation, where AlexNet has it behind. Normalisation is over five channels
(section 3.3 there).
"""

from __future__ import annotations

from torch import Tensor, nn


class CaffeNet(nn.Module):
    """Images of (batch, 3, 227, 227) to (batch, 1000)."""

    def __init__(self, classes: int = 1000) -> None:
        super().__init__()
        self.conv1 = nn.Conv2d(3, 96, 11, 4)
        self.conv2 = nn.Conv2d(96, 256, 5, 1, 2, groups=2)
        self.conv3 = nn.Conv2d(256, 384, 3, 1, 1)
        self.conv4 = nn.Conv2d(384, 384, 3, 1, 1, groups=2)
        self.conv5 = nn.Conv2d(384, 256, 3, 1, 1, groups=2)
        self.pool1, self.pool2, self.pool5 = (nn.MaxPool2d(3, 2) for _ in range(3))
        self.norm1, self.norm2 = (nn.LocalResponseNorm(5, 1e-4, 0.75, 1.0) for _ in range(2))
        self.relu1, self.relu2, self.relu3, self.relu4, self.relu5, self.relu6, self.relu7 = (
            nn.ReLU() for _ in range(7)
        )
        self.drop6, self.drop7 = nn.Dropout(), nn.Dropout()
        self.fc6 = nn.Linear(256 * 6 * 6, 4096)
        self.fc7 = nn.Linear(4096, 4096)
        self.fc8 = nn.Linear(4096, classes)

    def forward(self, x: Tensor) -> Tensor:
        x = self.norm1(self.pool1(self.relu1(self.conv1(x))))
        x = self.norm2(self.pool2(self.relu2(self.conv2(x))))
        x = self.relu3(self.conv3(x))
        x = self.relu4(self.conv4(x))
        x = self.pool5(self.relu5(self.conv5(x))).flatten(1)
        x = self.drop6(self.relu6(self.fc6(x)))
        x = self.drop7(self.relu7(self.fc7(x)))
        return self.fc8(x)
