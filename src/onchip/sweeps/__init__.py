"""A sweep plans many points, networks x chips x planners x buffer sizes, and shows the gain of a buffer.

`spec` reads the request, `points` lists its points, `journal` stores the finished ones, `pool` (this machine)
and `cluster` (Dask) compute them, `run` combines these; `curves` finds the knees, `table` and `page` write
the answer.
"""
