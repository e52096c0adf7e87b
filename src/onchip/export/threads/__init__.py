"""Tiled plans as a program of two threads: one serves the channel, as a DMA engine does, one runs the steps.

The law of docs/nest-times.md gives both their order. Each counts what it has done, and waits for a count of
the other.
"""
