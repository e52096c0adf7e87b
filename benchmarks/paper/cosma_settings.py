"""COSMA's evaluation: its networks, budgets, schemes and chip."""

from __future__ import annotations

from typing import Literal

from onchip.comparison.baselines import SCHEMES
from onchip.machines.chip import load_chip

__all__ = ["BUDGETS", "FOUR", "GENERIC", "HUMAN", "NAS", "TITLES", "WEIGHTS"]

HUMAN = {
    "resnet50": "ResNet-50",
    "densenet121": "DenseNet",
    "resnext50_32x4d": "ResNeXt",
    "r2plus1d_18": "R2Plus1D",
    "s3d": "S3D",
    "fcn_resnet50": "FCN",
    "lraspp_mobilenet_v3_large": "L-RASPP",
    "deeplabv3_resnet50": "DeepLabV3",
    "transformer": "Transformer",
    "vit_b_16": "ViT",
}
NAS = {
    "pnasnet5large": "PNASNet-5",
    "amoebanet_d": "AmoebaNet-D",
    "nasnetalarge": "NASNet-A",
    "darts": "DARTS",
}
TITLES = {**HUMAN, **NAS}
FOUR = tuple(name for name, s in SCHEMES.items() if name.partition("-")[0] in ("given", "minpeak"))
BUDGETS = ("MR", "MH", "MP")
GENERIC = load_chip("generic")
WEIGHTS: tuple[Literal["streamed", "resident"], ...] = ("streamed", "resident")
