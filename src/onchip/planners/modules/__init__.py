"""The modules of branches in a plan: the bytes that they move and hold, counted on its program alone.

`table` counts, `roles` classifies a module's tensors, `regions` gives their places, `region` extracts a
module as a network of its own.
"""
