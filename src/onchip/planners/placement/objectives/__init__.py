"""Objectives other than traffic: the least scratchpad (`peak`), the shortest inference (`latency`).

The least energy needs no search of its own: docs/objectives.md proves that the least traffic has it.
"""
