"""The results of `plan`, `fuse` and `branches`: their figures, and their printing; a claim proved again.

A result holds no search. `planned`, `fused` and `branched` are the results, `branched_table` is the form of
one in a terminal.
"""
