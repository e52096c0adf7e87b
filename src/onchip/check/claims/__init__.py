"""The claims of a plan: its options, its bounds and the word optimal, held against its figures.

The program is proved before; nothing here looks at ranges or states. `options`: whether the stated options
are possible. `objectives`: which figure each objective minimizes, and whether its bound agrees with it.
`named`: whether the plan is one that its planner and options name. `standing`: how much a claim is worth.
"""
