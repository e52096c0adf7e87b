"""Fusion decides which operators run as one group, tile by tile, so that what lies between them never leaves
the chip.

Source: Optimus (Cai, Wang, Zhang). docs/fusion-algorithms.md says what each search does and where it fails.
"""
