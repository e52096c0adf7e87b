"""Kernels of layers of 16-bit numbers, each in a file of the name that its layer's file has."""

from __future__ import annotations
