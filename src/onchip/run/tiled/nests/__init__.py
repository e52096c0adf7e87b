"""Groups executed as nests of loops (`onchip.plans.nest`): every buffer in its place, every byte counted."""

from onchip.run.tiled.nests.run import NestRun

__all__ = ["NestRun"]
