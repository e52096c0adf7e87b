"""The modules of branches in a plan: what they move and hold, counted on its program alone.

`table` counts, `roles` says what a tensor is to a module, `regions` where those lie, `region` takes a module
out as a network of its own.
"""
