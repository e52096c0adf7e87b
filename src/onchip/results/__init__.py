"""What each verb returns: a plan, a fusion, a co-run, a comparison; their figures, and how they are printed.

A result holds no search. `X` is the result, `X_table` what it looks like in a terminal.
"""
