"""Slow, plain answers to what the planners claim to solve: written from the definitions, sharing no code.

`states`     least traffic and least peak by exact states, evicting and reloading at any time
`corun`      schedules of several networks judged by stepping through time
`ilp`        least traffic as a CP-SAT model of which tensor is where at which step
`addresses`  least traffic with every address chosen, relocation included
`twin`       the planner's own search, pruning rules and all, short enough to weaken rule by rule
"""
