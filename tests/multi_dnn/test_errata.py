"""Where the paper's printed equations cannot mean what they say: eq. 7, 8 and 9 beside the judge."""

from __future__ import annotations

import pytest
from workloads import Fixed, alone, profile_of, workload_of

from onchip.multi_dnn.simulate import simulate
from onchip.multi_dnn.workload import Job

Interval = tuple[float, float]


def overlap(i: Interval, j: Interval) -> float:
    """How long both run."""
    return max(0.0, min(i[1], j[1]) - max(i[0], j[0]))


def eq8(i: Interval, j: Interval) -> float:
    """Eq. 8 as printed, its cases from top to bottom."""
    (si, ei), (sj, ej) = i, j
    if sj <= si <= ej and si <= sj <= ei:
        return ej - si
    if si <= sj <= ei:
        return ej - sj
    if si <= sj <= ei and sj <= ei <= ej:
        return ei - sj
    if si <= sj and ei <= ej:
        return ei - si
    return ei - si


def test_eq_8_is_right_when_one_runs_within_the_other() -> None:
    assert eq8((0, 9), (2, 5)) == overlap((0, 9), (2, 5)) == 3
    assert eq8((2, 5), (0, 9)) == overlap((2, 5), (0, 9)) == 3


def test_eq_8_is_wrong_where_both_start_together_and_the_other_ends_later() -> None:
    assert overlap((0, 4), (0, 9)) == 4
    assert eq8((0, 4), (0, 9)) == 9
    assert eq8((0, 9), (0, 4)) == 4  # the other way round it is right, and where both end together
    assert eq8((2, 9), (0, 9)) == eq8((0, 9), (2, 9)) == 7


def test_eq_8_is_wrong_for_both_kinds_of_partial_overlap_and_for_none() -> None:
    ends_later, began_earlier, apart = ((0, 4), (2, 9)), ((2, 9), (0, 4)), ((0, 1), (5, 6))
    assert [overlap(*pair) for pair in (ends_later, began_earlier, apart)] == [2, 2, 0]
    assert [eq8(*pair) for pair in (ends_later, began_earlier, apart)] == [7, 7, 1]


def eq7(i: Interval, alone_ms: float, others: list[Interval], slowdown: float) -> float:
    """Eq. 7 as printed, with true overlaps in place of eq. 8's: a mean over the others, weighted by time."""
    return sum(overlap(i, j) * slowdown for j in others) / (alone_ms * len(others))


def test_eq_7_forgets_the_time_without_contention_that_the_judge_counts() -> None:
    """4 ms that share the memory, at slowdown 2, with 1 ms at the start: the truth is 4.5, eq. 7 has 2."""
    work = workload_of(Fixed(2, 1), Job("x", profile_of("x", [(4, 9)])), Job("y", profile_of("y", [(9, 1)])))
    timeline = simulate(work, alone(work, [(0,), (1,)]))
    x, y = ((s.start, s.end) for s in timeline.segments)
    assert timeline.latency_ms[0] == pytest.approx(4 + 1 * (1 - 1 / 2))
    assert 4 * eq7(x, 4, [y], 2) == pytest.approx(2)  # less than the group takes alone
    assert 4 * eq7(x, 4, [y], 2) < 4 < timeline.latency_ms[0]


def test_eq_7_squares_the_slowdown_of_a_group_that_is_never_alone() -> None:
    """4 ms at slowdown 2 throughout take 8; the overlap is of these 8, and eq. 7 makes 16 of it."""
    work = workload_of(Fixed(2, 1), Job("x", profile_of("x", [(4, 9)])), Job("y", profile_of("y", [(9, 20)])))
    timeline = simulate(work, alone(work, [(0,), (1,)]))
    x, y = ((s.start, s.end) for s in timeline.segments)
    assert timeline.latency_ms[0] == pytest.approx(8)
    assert 4 * eq7(x, 4, [y], 2) == pytest.approx(16)


def test_eq_7_dilutes_what_happens_by_groups_that_do_not_overlap() -> None:
    """Where L_s is read as all of them."""
    x, y, later = (0.0, 8.0), (0.0, 8.0), (20.0, 30.0)
    assert eq7(x, 4, [y], 2) == 4
    assert eq7(x, 4, [y, later], 2) == 2


def eq9_forbids(i: Interval, j: Interval, epsilon: float) -> bool:
    """Eq. 9 as printed, with the signs that let epsilon overlap: what no two groups on one unit may do."""
    (si, ei), (sj, ej) = i, j
    return sj < si + epsilon < ei or sj < ei - epsilon < ej


def test_eq_9_bounds_by_the_wrong_end_and_forbids_groups_that_follow_each_other() -> None:
    """The first inequality compares i with its own end, so whatever began earlier is forbidden for ever."""
    work = workload_of(Fixed(1), Job("x", profile_of("x", [(1,)])), Job("y", profile_of("y", [(1,)])))
    timeline = simulate(work, alone(work, [(0,), (0,)]))
    first, second = ((s.start, s.end) for s in timeline.segments)
    assert overlap(first, second) == 0
    assert eq9_forbids(second, first, 0.01)
    assert not (first[0] < second[0] + 0.01 < first[1])  # with the other's end, as it must be, it is allowed


def test_eq_4_and_5_have_no_waiting() -> None:
    """By eq. 4 a group starts when what its own network did before ends, wherever another network runs."""
    work = workload_of(Fixed(1), Job("x", profile_of("x", [(3,)])), Job("y", profile_of("y", [(1,)])))
    timeline = simulate(work, alone(work, [(0,), (0,)]))
    starts = [s.start for s in timeline.segments]
    assert starts == [0, 3]  # eq. 4 says 0 and 0
