"""A sweep plans many points, networks x chips x planners x buffer sizes, and shows what a buffer buys.

`spec` reads what is asked for, `points` lists it, `journal` remembers what is done, `pool` (this machine) and
`cluster` (Dask) do it, `run` ties them together; `curves` finds the knees, `table` and `page` write the
answer.
"""
