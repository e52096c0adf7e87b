"""The equations of HaX-CoNN as exhibits."""

from __future__ import annotations

from exhibits.hax_conn_places import TESTS
from exhibits.record import Exhibit

__all__ = ["EQUATIONS"]


def equation(number: str, shows: str, test: str, reason: str, outcome: str = "agrees") -> Exhibit:
    """An equation: all are in the judge or in the searches."""
    return Exhibit(
        f"Eq. {number}",
        shows,
        "corun_model.py",
        "corun.md#errata-of-the-paper" if outcome == "differs" else "corun.md#what-a-schedule-costs",
        f"{TESTS}/{test}",
        outcome,  # type: ignore[arg-type]
        reason,
    )


EQUATIONS = (
    equation(
        "1",
        "a schedule gives every layer group an accelerator",
        "test_simulate.py::test_what_is_no_schedule_is_refused",
        "`Schedule.units`; ours has who goes first, too",
    ),
    equation(
        "2",
        "time of a network: groups, slowdowns, transitions",
        "test_errata.py::test_eq_4_and_5_have_no_waiting",
        "as printed a sum of slowed times and transitions, as eq. 4 has it for the groups before one,"
        " where no"
        " group waits for a unit; where nothing contends, with waiting and nothing else changed, the judge's"
        " times come",
        "differs",
    ),
    equation(
        "3",
        "whether a transition comes after a group",
        "test_simulate.py::test_a_transition_slows_nobody_down_and_occupies_no_unit",
        "`Profile.transition_ms`",
    ),
    equation(
        "4, 5",
        "start and end of a group",
        "test_errata.py::test_eq_4_and_5_have_no_waiting",
        "as printed no group waits for a unit; where nothing contends, with waiting and nothing else changed,"
        " the judge's times come",
        "differs",
    ),
    equation(
        "6",
        "the intervals between starts and ends",
        "test_simulate.py::test_it_agrees_with_a_judge_that_steps_through_time",
        "the judge goes from event to event",
    ),
    equation(
        "7",
        "slowdown of a group over its overlaps",
        "test_errata.py::test_eq_7_forgets_the_time_without_contention_that_the_judge_counts",
        "as printed it has no term for the time without contention, and squares the slowdown: of a group of"
        " 4 ms that shares the memory for its first 1 ms at slowdown 2 it makes 2, where the judge has 4.5,"
        " of one that shares it throughout 16 for 8. On the judge's intervals of six schedules of GoogleNet"
        " twice the slower copy's latency, averaged over all groups that overlap, is up to 39 % below the"
        " judge with true overlaps, and up to 48 % above with eq. 8's",
        "differs",
    ),
    equation(
        "8",
        "length of an overlap",
        "test_errata.py::test_eq_8_is_wrong_for_both_kinds_of_partial_overlap_and_for_none",
        "as printed it is wrong for partial overlaps, and where two start together and the other is longer: 9"
        " for 4; else, where one lies within the other, it is right; for groups that never meet it gives the"
        " whole own time, which the text means, but the other's where that begins as it ends",
        "differs",
    ),
    equation(
        "9",
        "two groups share an accelerator for epsilon at most",
        "test_errata.py::test_eq_9_bounds_by_the_wrong_end_and_forbids_groups_that_follow_each_other",
        "as printed it forbids groups that follow each other; bounded by the other's end it is `epsilon_ms`",
        "differs",
    ),
    equation(
        "10",
        "most throughput: the sum of rates",
        "test_solve.py::test_never_worse_than_the_best_baseline_and_never_below_the_bound",
        "objective `rates`",
    ),
    equation(
        "11",
        "least latency of the slowest network",
        "test_solve.py::test_never_worse_than_the_best_baseline_and_never_below_the_bound",
        "objective `latency`",
    ),
)
