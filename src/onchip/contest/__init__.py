"""The public contest of graph scheduling (MLSys 2026) as one external suite, under a named law.

`solve` finds a schedule and a bound; `verify` prices a schedule step by step, or refuses it by the number of
a rule; docs/contest.md states the rules and names the readings. A figure of one law says nothing about
another's.
"""

from onchip.contest.law import LAWS, Law, law_named
from onchip.contest.options import LawOptions, SolveOptions
from onchip.contest.problem import Problem, problem_from_json, read_problem
from onchip.contest.solution import Step, read_solution, solution_from_json, solution_json, write_solution
from onchip.contest.solve import Solved, solve
from onchip.contest.verify import Priced, verify

__all__ = [
    "LAWS",
    "Law",
    "LawOptions",
    "Priced",
    "Problem",
    "SolveOptions",
    "Solved",
    "Step",
    "law_named",
    "problem_from_json",
    "read_problem",
    "read_solution",
    "solution_from_json",
    "solution_json",
    "solve",
    "verify",
    "write_solution",
]
