"""Layers of numbers of 16 bits with weights of 8 (16x8), as TensorFlow Lite Micro's reference kernels are.

A number is two bytes, the lower first, and lies as two neighbouring channels: shapes of tensors and layers
count bytes, so that planners, checker and whatever moves bytes need not know of it. Zero points are 0.
"""

from __future__ import annotations
