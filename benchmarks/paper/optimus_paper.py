"""What the text of Optimus says in figures: its tables, and the ranges of its sentences."""

from __future__ import annotations

__all__ = ["ACCURACY", "DIRECTIONS", "ENERGY", "LATENCY", "LESS", "TABLE_4", "TABLE_4_NETWORKS", "TABLE_5"]

TABLE_4 = {
    "eyeriss": (33.25, 31.75, 49.56, 34.44, 35.09, 23.77, 55.05, 87.59),
    "shidiannao": (37.86, 52.45, 49.45, 24.39, 34.43, 23.88, 57.28, 85.26),
    "lower-bound": (32.43, 27.41, 47.31, 16.86, 33.82, 25.32, 57.08, 84.29),
}
"""Per cent less DRAM access."""
TABLE_4_NETWORKS = (
    "alexnet",
    "vgg16",
    "googlenet",
    "resnet18",
    "resnet50",
    "resnet152",
    "mobilenet_v1",
    "squeezenet1_0",
)
TABLE_5: dict[str, tuple[int, str, float, float, int]] = {
    "vgg16": (18, "171", 0.48, 0.11, 8),
    "resnet50": (52, "3,510", 2.73, 0.29, 31),
    "resnet152": (154, "24,250", 5.01, 0.23, 99),
    "resnet1202": (1204, "-", 383.95, 5.26, 841),
    "googlenet": (72, "50,436", 27.89, 0.64, 21),
    "squeezenet1_0": (38, "1,057", 2.19, 0.24, 8),
    "nasnetalarge": (456, "2.9e+07", 8713.16, 274.10, 328),
}
"""Operators, groups Optimus, milliseconds bottom-up Optimus and on-line, final groups.

The text we have runs the cells of a row together. Times have two decimals: 173.43 and 5.01 for ResNet-152.
Where ResNet-1202's groups end and those on line begin cannot be told.
"""
DIRECTIONS: dict[str, tuple[int, str, str]] = {
    "vgg16": (1, "0.36", "0.48"),
    "resnet50": (2, "4.59 or more", "2.73"),
    "resnet152": (2, "3.43 or more", "5.01"),
    "googlenet": (4, "4.53 or more", "27.89"),
    "squeezenet1_0": (2, "3.39 or more", "2.19"),
    "nasnetalarge": (10, "3.28e+05", "8713.16"),
}
"""Table 5: max |succ|, milliseconds top-down and bottom-up. In the text we have a row's groups run into its
time top-down: all but VGG16's and NASNet's may have more digits in front."""
ONLINE_GROUPS = {"vgg16": 80, "nasnetalarge": 1627}
"""Where the text says how many groups the on-line variant evaluates without leaving a digit open: NASNet's
time top-down behind them is in normal form, 3.28e+05."""

LESS = {"dnnvm": (19, 75), "efficient-s": (17, 58)}
"""Per cent less DRAM access than the older fusers, least and most (section 7.4)."""
ENERGY = {"dnnvm": (1.89, 3.66), "efficient-s": (1.86, 3.47)}
"""Times the energy of Optimus, without the arithmetic (section 7.3)."""
LATENCY = {"dnnvm": 1.44, "efficient-s": 1.10}
"""Times the latency, on average (section 7.3)."""
ACCURACY = (95.05, 99.90, 98.06)
"""Per cent: least, most, mean of 100 groups (section 7.2)."""
