"""docs/hax-conn.md is what its script prints, and the script tells a schedule that is worse or wrong."""

from __future__ import annotations

import re
import sys
from dataclasses import replace
from pathlib import Path

import pytest

from large_cases import with_campaign

ROOT = Path(__file__).resolve().parents[2]
sys.path += [str(ROOT / "benchmarks"), str(ROOT / "benchmarks" / "paper")]

from hax_conn import SECTIONS  # noqa: E402
from hax_conn_acceptance import AT_MOST, every_choice, googlenet_twice  # noqa: E402
from hax_conn_alone import at_contention, fitted_at, rivals_at  # noqa: E402
from hax_conn_cases import TITLES, WRONG, XAVIER, pair, violations  # noqa: E402
from hax_conn_figures import beside, best, best_by_rates, lost, slowdowns, stretched  # noqa: E402
from hax_conn_rivals import BY_LISTS, in_ten, loads  # noqa: E402
from hax_conn_setup import on_setup, whole_networks  # noqa: E402
from hax_conn_tables import units_of  # noqa: E402
from hax_conn_timed import long_network  # noqa: E402
from hax_conn_transitions import experiment_at  # noqa: E402
from page_marks import marks, put_into  # noqa: E402

from onchip.multi_dnn.dp import solve_pair  # noqa: E402
from onchip.multi_dnn.published import experiments  # noqa: E402

PAGE = (ROOT / "docs" / "hax-conn.md").read_text(encoding="utf-8")
OTHER = ("pairs", "fig6", "fig7", "planning", "searched", "z3", "z3_long")
"""Sections of times, and of one of several schedules that are as good."""
LONG = (
    *("alone", "claims", "layers", "sensitivity", "setup", "strength", "table6", "table8", "table8_rivals"),
    *("transitions", "vgg19"),
)
"""Sections of some three seconds and more: `benchmarks/paper/hax_conn.py` prints them again."""
QUICK = ("table2", "readings", "table4", "table7", "fig1", "fig3", "fig4")
"""Sections that the quick run prints again; the whole one prints all but `OTHER`."""


def stands(name: str) -> str:
    """What the page has for a section."""
    begin, end = marks(name)
    return PAGE.split(begin)[1].split(end)[0].strip("\n")


def settled(text: str) -> str:
    """What does not hang on which of several schedules of the same cost was found."""
    text = text.split("| planned for |")[0]
    text = re.sub(r"^\| (Fig\. 6:|the same, planned for).*$", "", text, flags=re.MULTILINE)
    return re.sub(r"\b[GD]{7,}\b", "", text)


def test_the_page_has_every_section_once() -> None:
    assert sorted(re.findall(r"<!-- (\w+): begin -->", PAGE)) == sorted(SECTIONS)
    assert all(stands(name) for name in SECTIONS)


@pytest.mark.parametrize(
    "name", [pytest.param(name, marks=pytest.mark.thorough if name == "table7" else ()) for name in QUICK]
)
def test_a_section_is_what_the_script_prints(name: str) -> None:
    assert settled(stands(name)) == settled("\n".join(SECTIONS[name]()))


@pytest.mark.slow
@pytest.mark.parametrize(
    "name", with_campaign([name for name in SECTIONS if name not in (*OTHER, *QUICK)], LONG)
)
def test_every_other_section_is_what_the_script_prints(name: str) -> None:
    assert settled(stands(name)) == settled("\n".join(SECTIONS[name]()))
    assert not WRONG


def cells(name: str) -> list[list[str]]:
    """The cells of a section's rows."""
    lines = [line for line in stands(name).splitlines() if line.startswith("| ")]
    return [[cell.strip() for cell in line.strip("|").split("|")] for line in lines]


def test_who_is_best_in_experiments_4_8_9_and_10() -> None:
    """Herald: paper, in ten, everywhere; then H2H, then H2H's lists; changes in brackets."""
    times = {row[0]: [float(cell.split()[0]) for cell in row[3:]] for row in cells("layers")[1:11]}
    assert len(times) == 10
    ahead = {
        n: [one < other for one, other in ((t[0], t[3]), (t[1], t[4]), (t[2], t[5]), (t[2], t[8]))]
        for n, t in times.items()
    }
    assert ahead["4"] == ahead["9"] == [True, False, False, True]
    assert [n for n in times if ahead[n][3]] == ["3", "4", "9", "10"]
    by_lists = {
        n: t[1] < t[7] for n, t in times.items()
    }  # one change: H2H's last step left out, in ten groups
    assert [n for n in times if by_lists[n]] == ["1", "4", "6", "7", "10"]
    theirs = next(row for row in cells("table6") if row[0] == "10")
    dsp = float(theirs[6])
    assert dsp == min(map(float, theirs[5:9]))
    assert all(time < dsp for k, time in enumerate(times["10"]) if k % 3)
    lines = cells("table6")
    light = lines[next(k for k, row in enumerate(lines) if row[0] == "8") + 1]
    assert light[4] == "light"
    assert float(light[8]) == min(map(float, light[5:9]))


def test_sentences_on_experiments_and_networks() -> None:
    """What the first table says of them, and what longer transitions change."""
    claims = {row[0]: row[1:] for row in cells("claims")}
    assert claims["experiment 4: all layers on the GPU"][1] == "no"
    assert claims["experiments 1 and 6: other schedules for the same networks on another SoC"][1] == "yes"
    both, gpu = (
        float(x) for x in next(r for k, r in claims.items() if k.startswith("experiment 5"))[1].split("; ")
    )
    assert both < gpu
    for network, count in (("VGG19", "0"), ("CaffeNet", "2")):
        row = claims[f"Table 8: {network}'s pairs whose best baseline is the GPU alone, of 10"]
        assert row[:2] == ["10", count]
    times = {
        row[0]: [float(cell) for cell in row[1:]]
        for row in cells("transitions")
        if len(row) == 5 and row[0] != "transitions of `light`, times"
    }
    dsp, herald, h2h, _ = times["1"]
    assert max(herald, h2h) < dsp
    dsp, herald, h2h, ours = times["10"]
    assert ours < dsp < min(herald, h2h)
    assert [n for n in times if n.isdigit() and times[n][2] > times[n][0]] == ["10"]  # nowhere else
    assert experiment_at(10, 10.0).baseline("Herald-like") == pytest.approx(herald, abs=0.005)


def test_z3_proves_most_experiments_in_under_three_seconds() -> None:
    """Read from the page; without contention only. 985 pieces have a schedule without a proof."""
    found = {tuple(row[:3]): row[4:] for row in cells("z3")[1:]}
    numbered = {name: row for (name, _, _), row in found.items() if name.startswith("experiment")}
    assert len(numbered) == 9
    assert all(same == "yes" for _, same in numbered.values())
    seconds = {name: float(spent) for name, (spent, _) in numbered.items()}
    assert sum(spent < 3 for spent in seconds.values()) == 8
    assert all(1 < seconds[f"experiment {n}"] < 3 for n in (1, 2, 5))  # Fig. 7's three
    assert [round(end(seconds.values()), 1) for end in (min, max)] == [0.2, 5.0]
    assert "each of the nine is proved in 0.2 to 5 CPU s" in " ".join(PAGE.split())
    assert all(contention == "none" for name, _, contention in found if name.startswith("experiment"))
    claims = {row[0]: row[1:] for row in cells("claims")}
    assert claims["time to the optimal schedule, most of Table 6"][4] == "within it, by another search"
    long_one = claims["the same for 985 layers; here ten groups in 985 equal pieces"]
    assert long_one[1] == "under 1 s, 0.3 % above its bound"
    assert long_one[4].endswith("the optimum: no")


@pytest.mark.parametrize("contention", ["none", "light"])
def test_the_long_network_has_fifty_groups_and_a_proof(contention: str) -> None:
    """The exact search's proof again; Z3's from the page."""
    workload = long_network(contention)
    assert [len(job.profile.groups) for job in workload.jobs] == [50, 10]
    assert solve_pair(workload).ended == "complete"
    none, light = cells("z3_long")[1:]
    assert none[:3] == ["Inc-res-v2, GoogleNet", "50 + 10", "none"]
    assert none[5] == "yes"
    assert "no proof" not in none[3] + light[3]


def test_stronger_contention_leaves_experiment_4_on_the_gpu_and_makes_rivals_slow() -> None:
    """All else as under `light`: at four times the GPU alone is the optimum."""
    found = at_contention(4, 4.0)
    assert found.cost == pytest.approx(found.baseline("gpu alone"))
    assert at_contention(4, 1.0).cost < 0.9 * found.cost
    rows = {row[0]: row[1:] for row in cells("alone") if len(row) == 4}
    assert rows["the paper"] == ["8", "6", "4, 9"]
    herald, h2h = rivals_at(4.0)
    gpu = {row.number: row.ms["gpu_only"] for row in experiments()}
    slow = [str(sum(times[n] > gpu[n] for n in gpu)) for times in (herald, h2h)]
    assert rows["4"][:2] == slow == ["8", "7"]


def test_transitions_of_table_2_against_the_text() -> None:
    """Groups that the text singles out, and means of the first five and the last five."""
    groups = {row[0]: row for row in cells("table2") if "-" in row[0] and row[0][0].isdigit()}
    assert len(groups) == 10
    to_dla, to_gpu = ([float(row[k]) for row in groups.values()] for k in (5, 6))
    said = [sum(to[half]) / 5 for to in (to_dla, to_gpu) for half in (slice(5), slice(5, None))]
    assert [f"{mean:.3f}" for mean in said] == ["0.052", "0.029", "0.084", "0.054"]
    assert [groups[name][5] for name in ("39-52", "95-109", "67-80", "110-123", "124-140")] == [
        "0.011",
        "0.030",
        "0.024",
        "0.024",
        "0.007",
    ]
    assert "39-53" not in groups


def test_best_baselines_are_counted_from_the_cells_of_table_8() -> None:
    """Theirs above ours in each cell: D/G and G/D are whole networks."""
    letters = {"GPU": "G", "D/G": "W", "G/D": "W", "H2H": "2", "Her.": "H"}
    both = [
        [part.split() for part in cell.split("<br>")]
        for row in cells("table8")
        for cell in row
        if "<br>" in cell
    ]
    assert len(both) == 55
    same, rivals, *_ = ([*row] for row in cells("table8_rivals")[1:])
    assert same[2] == str(sum(letters[theirs[0]] == ours[0] for theirs, ours in both)) == "16"
    assert rivals[1] == str(sum(letters[theirs[0]] in "2HM" for theirs, _ in both)) == "5"
    assert rivals[2] == str(sum(ours[0] in "2HM" for _, ours in both)) == "32"
    assert int(rivals[4]) < 55 / 2 < int(rivals[3])


def test_gains_are_counted_from_the_cells_of_table_8() -> None:
    """From 1.04 on, the least gain that the paper prints; an x is none."""
    both = [
        [part.split()[1] for part in cell.split("<br>")]
        for row in cells("table8")
        for cell in row
        if "<br>" in cell
    ]
    gains = [[0.0 if gain == "x" else float(gain) for gain in pair] for pair in both]
    theirs, ours = (sum(pair[at] >= 1.04 for pair in gains) for at in (0, 1))
    claims = {row[0]: row[1:] for row in cells("claims")}
    counted = claims["Table 8: pairs that gain from 1.04 on, rounded, the least gain that it prints, of 55"]
    assert counted[:2] == [str(theirs), str(ours)] == ["45", "46"]
    different = [
        [part.split()[1] for part in cell.split("<br>")]
        for row in cells("table8")
        if "<br>" in row[1]
        for cell in row[1 : int(row[0].split()[0])]
    ]
    assert len(different) == 45
    theirs, ours = (sum(pair[at] != "x" and float(pair[at]) >= 1.04 for pair in different) for at in (0, 1))
    assert [claims["the same of two different networks, of 45"][at].split()[0] for at in (0, 1)] == [
        str(theirs),
        str(ours),
    ]
    assert [theirs, ours] == [36, 40]
    lines = [row for row in cells("table8") if "<br>" in row[1]]
    caffenet = [[part.split()[1] for part in row[1].split("<br>")] for row in lines]
    gaining = [[gain != "x" and float(gain) >= 1.04 for gain in pair] for pair in caffenet]
    assert claims["Table 8: pairs of CaffeNet that gain so, of 10"][:2] == ["7", "7"]
    assert [sum(pair[at] for pair in gaining) for at in (0, 1)] == [7, 7]
    assert sum(map(all, gaining)) == 5
    agree = sum((one >= 1.04) == (other >= 1.04) for one, other in gains)
    assert claims["Table 8: cells that agree on whether there is such a gain, of 55"][1] == str(agree)
    assert claims["Table 8: most gained, as a factor"][:2] == [
        f"{max(pair[at] for pair in gains):.2f}" for at in (0, 1)
    ]


def light_rows() -> dict[str, list[float]]:
    """Table 6 under `light`: GPU only, GPU & DSA, Herald, H2H and the result, by experiment."""
    lines = cells("table6")
    numbered = [k for k, row in enumerate(lines) if row[0].isdigit() and len(row) > 6 and row[4] == "paper"]
    return {lines[k][0]: [float(cell) for cell in lines[k + 1][5:10]] for k in numbered}


def test_scenarios_2_and_4_are_counted_from_table_6() -> None:
    """Over the best of four and over the naive columns; experiment 5 in another reading of its column."""
    light = light_rows()
    claims = cells("claims")
    for scenario, numbers in (("Scenario 2", ("1", "2", "6", "10")), ("Scenario 4", ("5", "8"))):
        at = next(k for k, row in enumerate(claims) if row[0].startswith(scenario))
        assert claims[at + 1][0].startswith("the same over the best naive column")
        for row, columns in ((claims[at], 4), (claims[at + 1], 2)):
            more = [100 * (min(light[n][:columns]) / light[n][4] - 1) for n in numbers]
            assert float(row[2]) == pytest.approx(max(more), abs=0.15)
    at = next(k for k, row in enumerate(claims) if row[0].startswith("Scenario 2"))
    two, naive, four, naive_4 = (row[6] for row in claims[at : at + 4])
    fine = {row[0]: [float(cell.split()[0]) for cell in row[5:9:3]] for row in cells("layers")[1:11]}
    cut = [100 * (min(*light[n][:2], *fine[n]) / light[n][4] - 1) for n in ("1", "2", "6", "10")]
    (everywhere,) = re.findall(r"nothing else changed, ([\d.]+) under", two)
    assert float(everywhere) == pytest.approx(max(cut), abs=0.2)
    assert light["1"][3] == light["1"][4]  # H2H has the result itself
    said = re.search(r"under `light` ([\d.]+) and ([\d.]+) there", naive)
    assert said
    for number, share in zip(("1", "6"), said.groups(), strict=True):
        assert float(share) == pytest.approx(100 * (min(light[number][:2]) / light[number][4] - 1), abs=0.2)
    saved = [100 * (1 - light[n][4] / min(light[n][:2])) for n in ("5", "8")]
    assert float(naive_4.split(",")[0]) == pytest.approx(max(saved), abs=0.1)
    theirs = next(row for row in cells("table6") if row[:1] == ["5"])
    gpu, result = float(theirs[5]), float(theirs[9])
    assert f"{100 * (gpu / result - 1):.1f} % more, and {100 * (1 - result / gpu):.1f} % saved" in four


def test_ratios_of_table_2_are_1_40_to_2_02() -> None:
    groups = [row for row in cells("table2") if re.fullmatch(r"\d+-\d+", row[0])]
    printed, ours = ([float(row[k]) for row in groups] for k in (3, 4))
    assert (min(printed), max(printed)) == (1.40, 2.02)
    assert (min(ours), max(ours)) == (1.40, 2.06)
    for row, ratio in zip(groups, printed, strict=True):  # where the rounding of the times allows
        gpu, dla = map(float, row[1:3])
        assert (dla - 0.005) / (gpu + 0.005) <= ratio <= (dla + 0.005) / (gpu - 0.005)


def test_googlenet_twice_on_orin_has_a_middle_on_the_gpu() -> None:
    units = re.search(r"GoogleNet twice under `light`: ([GD]+), ([GD]+)\.", stands("fig5"))
    assert units
    one, other = sorted(units.groups(), reverse=True)
    assert re.fullmatch("G+D+", one)
    assert re.fullmatch("D+G+", other)
    assert one.count("G") + other.count("G") > len(one)


def strengths_of_fig_6() -> dict[str, list[str]]:
    """Less, of nine; most less; less by the groups' own times; beside: by the strength of contention."""
    return {row[0]: row[1:] for row in cells("fig6") if len(row) == 5 and row[0][0].isdigit()}


def test_the_abstracts_45_is_passed_by_stronger_contention() -> None:
    shares = {at: float(row[1]) for at, row in strengths_of_fig_6().items()}
    assert shares["1.75"] < 45 < shares["2"]


def test_googlenets_slowdown_is_less_in_none_of_nine_and_by_rates_in_all() -> None:
    """Fig. 6's rows, of GoogleNet's time alone on the GPU, and what the first table counts of them."""
    networks = [row[1:] for row in cells("fig6")[1:] if len(row) == 10 and row[1]]
    times = [[float(cell) for cell in row] for row in networks]
    assert len(times) == 9
    claims = {row[0]: row[2:5] for row in cells("claims")}
    (counted,) = (ours for text, ours in claims.items() if text.startswith("Fig. 6: GoogleNet's"))
    for at, (said, expected) in enumerate(zip(counted, (0, 0, 9), strict=True)):
        three = [row[3 * at : 3 * at + 3] for row in times]
        assert sum(ours < naive for naive, ours, _ in three) == expected
        assert all(rates < naive for naive, _, rates in three)
        most = max(0.0, *(1 - ours / naive for naive, ours, _ in three))
        assert said == f"{expected}; {100 * most:.0f}"
    assert claims["the same, planned for the greatest sum of rates (eq. 10)"][0].startswith("9; ")
    rows = strengths_of_fig_6()
    assert [rows[at][0] for at in ("1", "2.5")] == ["0", "9"]
    assert rows["1"][2] == "6"  # by the groups' times alone on the units that they are on
    shares = {row[0]: row[1:] for row in cells("fig6")[1:] if len(row) == 4 and row[0] in TITLES.values()}
    assert len(shares) == 10
    assert {name: light for name, (light, *_) in shares.items() if light != "0"} == {"GoogleNet": "30"}
    assert beside(best_by_rates("resnet50", "light")) == 0


def test_slowdown_is_of_the_time_alone_on_the_gpu() -> None:
    """In our schedule some groups run on the DLA, which takes longer alone: the two bases are apart."""
    naive, ours = slowdowns("resnet18", "light")
    assert naive is not None
    assert 0 < naive < ours
    timeline = best("resnet18", "light")
    groups = timeline.workload.jobs[0].profile.groups
    own = [s for s in timeline.segments if s.step.job == 0]
    alone = sum(groups[s.step.group].ms[s.unit] or 0.0 for s in own)
    gpu = sum(group.ms[0] or 0.0 for group in groups)
    assert lost(timeline) == pytest.approx((stretched(timeline) - 1) * alone / gpu)


def test_experiment_5_in_another_reading_of_its_column() -> None:
    """FCN-ResNet18 on the DLA in GPU & DSA: both columns are the paper's, and so nearly is the result."""
    one = on_setup(5, "light", (0, 0, 1))
    workload = one.found.result.solution.timeline.workload
    assert whole_networks(workload, (0, 0, 1)) == pytest.approx(18.88, abs=0.005)
    assert one.found.baseline("gpu alone") == pytest.approx(15.41, abs=0.005)
    assert f"{one.found.cost:.2f}" == "12.03"
    ahead = [one.found.baseline(name) for name in ("whole networks", "Herald-like", "H2H-like")]
    assert all(time is not None and time < 15.41 for time in ahead)
    (why,) = (row[6] for row in cells("claims") if "with [FCN-ResNet18 on the DLA]" in row[6])
    saved = 1 - one.found.cost / 15.41
    assert f"{100 * saved:.1f} % saved and {100 * (1 / (1 - saved) - 1):.1f} % more" in why


def test_h2h_by_its_lists_alone_in_experiments_4_and_5() -> None:
    """By Table 2's GoogleNet: in 5 both are slower than the GPU alone, in 4 Herald is ahead."""
    assert f"{in_ten(5, BY_LISTS):.2f}" == f"{in_ten(5, 'Herald'):.2f}" == "15.66"
    assert in_ten(4, "Herald") < in_ten(4, BY_LISTS)
    line = next(line for line in stands("layers").splitlines() if "GoogleNet by Table 2" in line)
    for number in (4, 5):
        assert all(f"{who} {in_ten(number, who):.2f}" in line for who in ("Herald", "H2H", BY_LISTS))
    light = light_rows()
    for number in (4, 5):
        columns = light[str(number)][2:4]
        assert columns == [pytest.approx(in_ten(number, who), abs=0.005) for who in ("Herald", "H2H")]


def test_rivals_slower_than_the_gpu_alone_under_heavy() -> None:
    lines = cells("table6")
    heads = [k for k, row in enumerate(lines) if row[0].isdigit() and len(row) > 6 and row[4] == "paper"]
    heavy = [[float(cell) for cell in lines[k + 3][5:9]] for k in heads]
    assert len(heavy) == 10
    assert [sum(row[at] > row[0] for row in heavy) for at in (2, 3)] == [5, 4]
    assert "under `heavy` five and four of ten are slower than the GPU alone" in " ".join(PAGE.split())


def test_results_of_table_6_with_the_set_up_fitted_again() -> None:
    """Experiment 4 at three times `light`, its naive columns the paper's again, and rows far off."""
    four = fitted_at(4, 3.0)
    assert four.found.baseline("whole networks") == pytest.approx(7.37, abs=0.005)
    assert set("".join(units_of(four.found).split(", "))) == {"D"}
    rows = {row[0]: row[1:] for row in cells("alone") if len(row) == 8}
    assert rows["3"][4:6] == [f"{four.factors[1]:.2f}", f"{four.found.cost:.2f}"] == ["0.37", "5.39"]
    lines = cells("table6")
    heads = [k for k, row in enumerate(lines) if row[0].isdigit() and len(row) > 6 and row[4] == "paper"]
    off = {lines[k][0]: abs(float(lines[k + 1][10])) for k in heads}
    assert [n for n, one in off.items() if one > 5] == ["4", "5", "6", "9", "10"]
    assert rows["1"][3] == "5"
    assert float(rows["1"][2]) == max(off.values()) == 12.9


def test_h2h_does_not_over_subscribe_the_dla_in_experiment_8() -> None:
    gpu, dla = loads(8, "H2H")
    assert [f"{x:.2f}" for x in gpu] == ["4.48", "4.48", "0.37"]
    assert [f"{x:.2f}" for x in dla] == ["3.41", "4.48", "0.00"]
    rows = {row[0]: row[1:] for row in cells("rivals") if len(row) == 4}
    assert [rows["GPU"], rows["DLA"]] == [[f"{x:.2f}" for x in unit] for unit in (gpu, dla)]


def test_rivals_take_longer_than_they_expect_by_the_most_of_their_own_table() -> None:
    """First come over expected in scenario 2, as the table has both, is what the first table says at most."""
    shares = [
        float(come) / float(expected) - 1
        for row in cells("rivals")
        if row[0] in ("1", "2", "6", "10")
        for expected, come in ((row[2], row[4]), (row[6], row[8]))
    ]
    assert min(shares) >= 0
    claims = {row[0]: row[2] for row in cells("claims")}
    said = float(claims["Herald and H2H take longer than they expect, %: most of scenario 2"])
    assert said == pytest.approx(100 * max(shares), abs=0.3)
    strengths = {row[0]: row[-2:] for row in cells("strength")}
    assert float(strengths["1"][1]) == said
    for begins, more in zip(("not knowing contention", "Herald and H2H take"), strengths["4"], strict=True):
        why = next(row[6] for row in cells("claims") if row[0].startswith(begins))
        longer = 1 + float(more) / 100
        assert f" {100 * (1 - 1 / longer):.1f} at four" in why


def test_a_section_is_put_between_its_own_marks() -> None:
    page = "\n".join(("head", *marks("fig1"), "between", *marks("fig3"), "tail"))
    new = put_into(page, "fig3", "rows")
    assert new == page.replace(marks("fig3")[0], f"{marks('fig3')[0]}\nrows")
    with pytest.raises(SystemExit, match="no <!-- fig4: begin -->"):
        put_into(page, "fig4", "rows")


def test_googlenet_twice_is_as_good_as_every_choice() -> None:
    found = googlenet_twice()
    assert not WRONG
    assert found.cost <= AT_MOST
    workload = pair(XAVIER, "googlenet", "googlenet", "light")
    assert found.cost == pytest.approx(every_choice(workload, bounds=False))


def test_the_sweep_tells_a_schedule_that_is_worse_and_one_that_is_not_its_own() -> None:
    result = googlenet_twice().result
    assert [*violations(result, "light")] == []
    gpu = next(one for one in result.baselines if one.name == "gpu alone")
    worse = replace(result.solution, schedule=gpu.schedule, timeline=gpu.timeline, lower_bound_ms=0.0)
    assert "4.6400 ms, contention-blind is better" in violations(replace(result, solution=worse), "light")
    mixed = replace(result.solution, schedule=gpu.schedule)
    (refused,) = violations(replace(result, solution=mixed), "light")
    assert "illegal schedule" in refused
