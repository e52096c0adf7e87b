"""The result of each verb: a plan, a fusion, a co-run, a comparison; their figures, and their printing.

A result holds no search. `X` is the result, `X_table` its form in a terminal.
"""
