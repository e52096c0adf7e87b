"""docs/cosma.md and docs/placement-ilp.md have what their scripts print, as far as that comes soon, and the
scripts count what they say."""

from __future__ import annotations

import re
import sys
from pathlib import Path
from random import Random

import pytest

ROOT = Path(__file__).resolve().parents[2]
sys.path += [str(ROOT / "benchmarks"), str(ROOT / "benchmarks" / "paper")]

import cosma_page  # noqa: E402
import cosma_readings  # noqa: E402
import ilp_networks  # noqa: E402
import ilp_size  # noqa: E402
from cosma_arena import FITS, ORDERS, FirstFit, Reading, WorstFit, orders, readings, renumbered  # noqa: E402
from cosma_claims import compared  # noqa: E402
from exhibits import PAPERS  # noqa: E402
from page_marks import marks  # noqa: E402

import onchip  # noqa: E402
from onchip.comparison.baselines.replacement import belady, least_traffic  # noqa: E402
from onchip.comparison.baselines.stepwise import stepwise  # noqa: E402
from onchip.planners.placement import Problem, minimum_peak  # noqa: E402
from strategies import network_of, random_tight_case  # noqa: E402

COSMA = (ROOT / "docs" / "cosma.md").read_text("utf-8")
ILP = (ROOT / "docs" / "placement-ilp.md").read_text("utf-8")


def stands(page: str, name: str) -> str:
    """What a page has for a section."""
    begin, end = marks(name)
    return page.split(begin)[1].split(end)[0].strip("\n")


def rows(page: str, name: str) -> list[list[str]]:
    """The cells of a section's table, its head first."""
    lines = [line for line in stands(page, name).splitlines() if line.startswith("| ")]
    return [[cell.strip() for cell in line.strip("|").split("|")] for line in lines]


def test_the_page_has_every_section_once() -> None:
    named = [*cosma_page.sections({"records": [], "machine": ""}), "ilp"]
    assert sorted(re.findall(r"<!-- (\w+): begin -->", COSMA)) == sorted(named)
    assert sorted(re.findall(r"<!-- (\w+): begin -->", ILP)) == [
        "equal",
        "given",
        "growth",
        "size",
        "solvers",
    ]
    assert all(stands(COSMA, name) for name in named)


def test_the_sentences_hold_as_the_page_says() -> None:
    held = {row[0]: (row[2], row[3]) for row in rows(COSMA, "claims")[1:]}
    assert held["no traffic at MP, ten networks"] == ("40 of 40", "yes")
    assert held["fewer accesses than any other scheme, ten networks"] == (
        "fewer 402, equal 78 of 480",
        "in part",
    )
    ten = next(ours for text, (ours, _) in held.items() if text.startswith("Belady"))
    fourteen = held["the same with the four networks found by search, of which the paper does not say it"][0]
    for said, cases in ((ten, 240), (fourteen, 288)):
        less, equal, more, total = map(int, re.findall(r"\d+", said))
        assert less + equal + more == total == cases
        assert more > less > 0
    assert held[
        "the order of least peak can have less traffic than the own one, same rule, ten networks"
    ] == (
        "less 50, equal 180, more 10 of 240",
        "yes",
    )
    for order in ("own", "least-peak"):
        said, good = next(one for text, one in held.items() if text.startswith(f"the {order} order fixed"))
        assert said.endswith("fewer in 24 of 24")
        assert good == "yes"
    shares = {text.partition(", ten networks, ")[2]: one for text, one in held.items() if "fewer on" in text}
    assert shares["at the tightest limit, MR: activations"] == ("fused 73 %, op 88 %", "between")
    assert shares["at the tightest limit, MR: both settings, as in Fig. 3"] == ("fused 70 %, op 77 %", "no")
    assert shares["over three budgets: both settings, as in Fig. 3"] == ("fused 81 %, op 86 %", "between")


def test_two_ways_are_compared_case_by_case() -> None:
    records = [
        {"rows": {"a": {"traffic": a}, "b": {"traffic": b}}} for a, b in ((1, 2), (2, 2), (3, 2), (4, 2))
    ]
    assert compared(records, "a", "b") == (1, 1, 2)


# -- the arena and the orders ----------------------------------------------------------------------------


@pytest.mark.parametrize("seed", range(20))
def test_the_comparisons_own_reading_is_best_fit_and_largest_first(seed: int) -> None:
    case = random_tight_case(Random(seed))
    problem = Problem.of(case.network, case.alignment)
    order = minimum_peak(problem).order
    for rule in (belady, least_traffic):
        own = stepwise(problem, order, case.budget, rule)
        read = Reading(problem, order, case.budget, rule, FITS["best fit"], ORDERS["largest first"]).run()
        assert (read.placed, read.traffic) == (own.placed, own.traffic)


def test_first_fit_takes_the_lowest_gap_and_worst_fit_the_largest() -> None:
    for kind, at in ((FirstFit, 0), (WorstFit, 6)):
        arena = kind(20)
        arena.hold(0, 3, 3)  # gaps: 3 bytes at 0, 8 at 6, 2 at 18
        arena.hold(1, 14, 4)
        assert arena.fit(2) == at
        assert arena.copy().fit(2) == at
        assert arena.fit(9) is None


@pytest.mark.parametrize("seed", range(10))
def test_operators_numbered_anew_have_the_same_peak(seed: int) -> None:
    problem = Problem.of(random_tight_case(Random(seed)).network)
    new = list(range(len(problem.inputs)))
    Random(seed).shuffle(new)
    other = minimum_peak(renumbered(problem, new))
    assert other.value == minimum_peak(problem).value
    again = minimum_peak(problem.in_order(tuple(new[v] for v in other.order)))
    assert again.value == other.value


def test_beladys_rule_by_other_readings() -> None:
    """Less than the greedy rule somewhere by every reading, in all it has more; one case made again."""
    _, *five = rows(COSMA, "belady")
    counts = [[int(n) for n in row[1].split(", ")] for row in five]
    assert [sum(row) for row in counts] == [288] * 5
    assert counts[0] == [14, 234, 40]
    assert all(less > 0 for less, *_ in counts)
    assert all(row[2].startswith("+") for row in five)
    assert five[0][4] == "0"


def test_beladys_rule_on_ten_networks_by_all_readings() -> None:
    """Less nowhere with tensors placed as listed, somewhere by every other reading; with each operator by
    itself nowhere in the comparison's own arena either."""
    nine = rows(COSMA, "arena_all")[1:]
    counts, apart = ({row[0]: [int(n) for n in row[at].split(", ")] for row in nine} for at in (5, 6))
    assert [sum(row) for row in counts.values()] == [240] * 9
    assert [sum(row) for row in apart.values()] == [120] * 9
    assert apart["best fit, largest first"] == [0, 107, 13]
    assert counts["best fit, largest first"] == [4, 218, 18]
    assert counts["best fit, as listed"] == [0, 227, 13]
    assert [arena for arena, (less, *_) in counts.items() if not less] == [
        f"{fit} fit, as listed" for fit in ("best", "first", "worst")
    ]
    assert all(more > less for less, _, more in counts.values())


def test_a_fixed_orders_seconds_are_no_further_apart_than_the_claims_say() -> None:
    """Counted from Table II: divide and conquer's seconds lie furthest apart on two, NASNet-A's do not."""
    apart = {}
    for name in ("PNASNet-5", "AmoebaNet-D", "NASNet-A", "DARTS"):
        mine = [row for row in rows(COSMA, "table2")[1:] if row[0] == name]
        for k, whose in ((0, "ours"), (1, "theirs")):
            columns = ([float(row[at + k]) for row in mine] for at in (2, 4, 6))
            own, least_peak, divided = (round(max(c) - min(c), 2) for c in columns)
            apart[name, whose] = divided - max(own, least_peak)
    assert [n for n, whose in apart if whose == "ours" and apart[n, whose] > 0] == [
        "PNASNet-5",
        "AmoebaNet-D",
    ]
    assert [n for n, whose in apart if whose == "theirs" and apart[n, whose] > 0] == ["PNASNet-5", "NASNet-A"]
    said = next(row for row in rows(COSMA, "claims") if row[0].startswith("divide and conquer: seconds hang"))
    assert said[1:3] == [
        "more (Table II: on PNASNet-5 and NASNet-A, less on AmoebaNet-D)",
        "on PNASNet-5 and AmoebaNet-D, less on NASNet-A; 10.97 s apart at most, PNASNet-5",
    ]


def test_sentences_by_all_readings_of_the_arena() -> None:
    """What the page says of the nine, whose first row is what the claims say of the comparison's own."""
    _, *nine = rows(COSMA, "arena_all")
    by = {row[0]: row[1:] for row in nine}
    own, smallest, worst = (
        by[name]
        for name in ("best fit, largest first", "best fit, smallest first", "worst fit, largest first")
    )
    assert own == [
        "S3D (2 of 2), ViT (2 of 2); none",
        "S3D (2 of 2), FCN (1 of 2), ViT (1 of 2); DeepLabV3 (1 of 2)",
        "70 %",
        "77 %",
        "4, 218, 18",
        "0, 107, 13",
        "14, 234, 40",
        "9, 9, 7, 0",
        "6, 0, 9, 3",
        "81 %",
        "86 %",
        "81 %",
        "84 %",
    ]
    assert smallest[2:4] == ["80 %", "86 %"]
    assert min(int(row[6].split(",")[0]) for row in by.values()) == 5
    assert max(int(row[6].split(",")[0]) for row in by.values()) == 18
    assert [row[7].split(", ")[3] for row in (worst, by["worst fit, as listed"])] == ["1", "3"]
    fcn = [row[3] for row in rows(COSMA, "arena") if row[0] == "FCN"]
    assert fcn == ["9.6", "3.2", "12.8", "0.0"]  # the three settings with traffic, 3.2 to 12.8 MB


def test_one_reading_of_the_arena_gives_what_the_paper_says_of_the_ten_networks() -> None:
    """Each operator by itself, its tensors as listed: FCN alone has no traffic by any scheme, DeepLabV3 by
    some; 84 % within a point, Belady's never less. The claims say the same of the comparison's own arena."""
    by = {row[0]: row[1:] for row in rows(COSMA, "arena_all")[1:]}
    for fit in ("best", "first"):
        none, share, counts = (by[f"{fit} fit, as listed"][at] for at in (1, 3, 5))
        assert (none, share) == ("FCN (1 of 2); DeepLabV3 (1 of 2)", "83 %")
        assert counts.startswith("0, ")
    said = [row for row in rows(COSMA, "claims") if "MR: both settings" in row[0]]
    assert [
        row[4].endswith("within a point, but over all budgets 89 then: not explained") for row in said
    ] == [True]
    (exceptions,) = (row for row in rows(COSMA, "claims") if row[0].startswith("all other schemes have"))
    assert exceptions[2] == (
        "but for S3D (4 of 4), FCN (1 of 4), ViT (3 of 4), where none of the four has any, and DeepLabV3"
        " (1 of 4), where some have none"
    )
    assert by["worst fit, as listed"][0] == "none; FCN (1 of 2)"
    listed = by["best fit, as listed"]
    assert (listed[2], listed[3], *listed[-4:]) == ("77 %", "83 %", "85 %", "89 %", "83 %", "86 %")
    both = next(
        row for row in rows(COSMA, "claims") if row[0].endswith("three budgets: both settings, as in Fig. 3")
    )
    assert [both[2], *by["best fit, largest first"][-4:-2]] == ["fused 81 %, op 86 %", "81 %", "86 %"]


def test_counts_of_the_arenas_readings() -> None:
    arena = ("best fit", "as listed")
    cases = [
        cosma_readings.Case("s3d", "fused", "streamed", at, 5, {arena: traffic})
        for at, traffic in (("MR", (10, 20, 5, 5)), ("MP", (0, 0, 0, 0)))
    ]
    assert cosma_readings.removed(cases, arena, "fused") == pytest.approx((0.5 + 0.75 + 0 + 0) / 4)
    assert cosma_readings.idle(cases, arena, "fused") == {"s3d": 1}
    assert cosma_readings.idle(cases, arena, "op") == {}
    assert cosma_readings.idle_in_part(cases, arena, "fused") == {}
    some = [cosma_readings.Case("s3d", "fused", "streamed", "MP", 5, {arena: (0, 0, 5, 5)})]
    assert cosma_readings.idle_in_part(some, arena, "fused") == {"s3d": 1}
    assert cosma_readings.idle(some, arena, "fused") == {}
    assert cosma_readings.less_equal_more(cases, arena) == (1, 3, 0)


@pytest.mark.slow
@pytest.mark.campaign
def test_the_arena_and_the_orders_are_what_the_script_prints() -> None:
    assert stands(COSMA, "arena") == "\n".join(readings())
    assert stands(COSMA, "orders") == "\n".join(orders())
    assert stands(COSMA, "arena_all") == "\n".join(cosma_readings.all_readings())


def test_nasnets_orders_at_mr_and_mh() -> None:
    """Orders of least peak that have more than the network's own, counted from their rows."""
    _, own, *others, said = rows(COSMA, "orders")
    assert len(others) == 9
    figures = [[int(cell.replace(",", "")) for cell in row[1:]] for row in (own, *others)]
    more = [sum(row[k] > figures[0][k] for row in figures[1:]) for k in range(6)]
    assert said[1:] == [f"{count} of 9" for count in more]
    assert more == [9, 9, 9, 7, 0, 0]


# -- the size of the program -----------------------------------------------------------------------------


def test_models_encoding_of_a_chain_by_hand() -> None:
    """x -> a -> b: a and x meet, a and b meet; C for each, P for x and a; two addresses more than pairs."""
    problem = Problem.of(network_of({"x": 1, "a": 1, "b": 1}, ["x -> a", "a -> b"], "b"))
    variables, constraints = ilp_size.modelled(problem)
    assert variables == 3 + 1 + 1 + 3 + 2 * 2  # C; P of a; the peak; L; u and d of two pairs
    created, kept, one_a_step, reads, bounds = 3, 1, 2, 2, 3
    pairs = 2 * (1 + 2) + 2
    assert constraints == created + kept + one_a_step + reads + bounds + pairs


def test_spills_and_time_make_the_program_about_three_times_as_large() -> None:
    problem = Problem.of(ilp_size.Transformer(False, True, True).network())
    here, there = ilp_size.cosma(problem), ilp_size.modelled(problem)
    assert f"| {here[0]:,} | {here[1]:,} | {there[0]:,} | {there[1]:,} |" in stands(ILP, "size")
    assert 2.5 < here[0] / there[0] < 3.5
    assert 2.5 < here[1] / there[1] < 3.5
    for ours, theirs in zip((*here, *there), (7_500, 15_000, 2_000, 5_000), strict=True):
        assert abs(ours / theirs - 1) < 0.2
    parts = ilp_size.cosma(Problem.of(onchip.load("zoo:transformer", granularity="op").network))
    (by_parts,) = (row for row in rows(ILP, "size") if row[0] == "the zoo's, op")
    assert by_parts[2:4] == [f"{parts[0]:,}", f"{parts[1]:,}"]


def test_attention_as_one_operator_keeps_what_goes_in_and_out() -> None:
    network = onchip.load("zoo:transformer").network
    whole = ilp_networks.attention_whole(network)
    attentions = [op for op in whole.operators if op.name.endswith("_attn")]
    assert len(attentions) == 18
    assert all(len(op.outputs) == 1 for op in attentions)
    assert sum(op.weight_bytes for op in whole.operators) == sum(op.weight_bytes for op in network.operators)
    kept = {t.name: t.bytes for t in whole.tensors}
    assert kept.items() <= {t.name: t.bytes for t in network.tensors}.items()
    assert [whole.tensors[t].name for t in whole.outputs] == [
        network.tensors[t].name for t in network.outputs
    ]


def test_the_ilps_cells_are_proved_where_the_page_says_so() -> None:
    cases = rows(ILP, "equal")[1:]
    of_ten = [row for row in cases if row[1] != "attention whole"]
    assert len(of_ten) == 120
    assert len({(row[0], row[1], row[2], row[3]) for row in cases}) == len(cases) == 126
    assert all(row[10] == "yes" or "no proof" in row[8] for row in cases)
    proved = sum("no proof" not in row[8] for row in of_ten)
    said = next(row for row in rows(COSMA, "ilp") if row[0] == "cases proved")
    assert sum(int(cell.split(" of ")[0]) for cell in (said[2], said[4])) == proved >= 116
    whole = [row for row in cases if row[1] == "attention whole"]
    assert all(float(row[8]) < 2 for row in whole)
    parts = [row for row in cases if row[0] == "Transformer" and row[1] == "fused"]
    assert [row[7] for row in whole] == [row[7] for row in parts]
    assert all(
        int(a[4].replace(",", "")) < int(b[4].replace(",", "")) / 3 for a, b in zip(whole, parts, strict=True)
    )


def test_the_ilps_mean_is_under_a_second_with_attention_whole() -> None:
    """Counted from every case of the long table; of the shorter one the paper's nine."""
    cases = [row for row in rows(ILP, "equal")[1:] if row[1] == "attention whole"]
    cases += [row for row in rows(ILP, "equal")[1:] if row[1] == "fused" and row[0] != "Transformer"]
    assert len(cases) == 60
    mean = sum(float(row[8]) for row in cases) / 60
    said = next(row for row in rows(COSMA, "ilp") if row[0].startswith("all ten"))
    assert said[2].endswith("(60 of 60)")
    nothing = [row for row in cases if "no proof" not in row[9]]
    assert said[3].endswith(f"({len(nothing)} of 60)")
    parts = [row for row in rows(ILP, "equal")[1:] if row[1] == "fused" and "no proof" not in row[9]]
    proved = next(row for row in rows(COSMA, "ilp") if row[0] == "cases proved")
    assert proved[3] == f"{len(parts)} of 60"
    assert abs(float(said[2].split()[0]) - mean) < 0.05
    assert mean < 1


def test_presolve_and_attention_make_the_ilps_mean() -> None:
    """The paper's 0.296 s: what one change does, and both; the first figure of each is the long table's."""
    held = {row[0].partition(";")[0]: row[2] for row in rows(COSMA, "ilp") if "presolve" in row[0]}
    plain, unreduced = held["the nine: mean, most"].split("; ")
    long = [row for row in rows(ILP, "equal")[1:] if row[1] == "fused" and row[0] != "DeepLabV3"]
    took = [float(row[8]) for row in long if "no proof" not in row[8]]
    assert abs(float(plain.split(",")[0]) - sum(took) / len(took)) < 0.05
    assert plain.endswith(f"({len(took)} of {len(long)})")
    both = held["the same, attention whole"].split("; ")[1]
    assert 0.296 < float(both.split(",")[0]) < 0.5 < float(unreduced.split(",")[0])
    assert both.endswith("(54 of 54)")
    said = " ".join(COSMA.split())
    assert f"the nine's mean is {unreduced.split(',')[0]} where it was {plain.split(',')[0]}" in said
    assert f"in {both.split(',')[0]} on average for the paper's 0.296" in said
    dense = held["DenseNet: most"].split("; ")
    assert float(dense[1]) < float(dense[0]) / 2


def test_the_sentences_on_the_ilps_time_are_the_tables() -> None:
    """Cells of the shorter table, and what the longer one has of S3D and of DenseNet and the Transformer."""
    said = " ".join(COSMA.split())
    cells = {row[0]: row[1:] for row in rows(COSMA, "ilp")[1:]}
    mr, mh = (cells[f"DeepLabV3 with parameters at {at}"] for at in ("MR", "MH"))
    assert mr[4].startswith("no proof in 10 s")
    assert f"takes {mh[4]} s at MH, and from the plan {mr[3]} and {mh[3]}, where" in said
    whole = cells["the Transformer with attention whole: most"]
    assert f"is proved from nothing, too, in {whole[2].split()[0]} s at most" in said
    proved = sum(int(cells["cases proved"][at].split(" of ")[0]) for at in (1, 3))
    assert proved == 118
    assert "it proves all but two of the 120 cases" in said
    cases = rows(ILP, "equal")[1:]
    s3d = [row for row in cases if row[:2] == ["S3D", "op"]]
    assert all("no proof" in row[9] for row in s3d)
    least, most = (f(float(row[8]) for row in s3d) for f in (min, max))
    assert f"takes {least:.0f} to {most:.0f} s from the plan" in said
    parts = [row for row in cases if row[0] in ("DenseNet", "Transformer") and row[1] != "attention whole"]
    assert len(parts) == 24
    assert all("no proof" in row[9] for row in parts)
    reason = next(one for one in PAPERS[0].exhibits if one.name == "6.96, 17.242 and 0.12 s").reason
    merged, apart = ([cells[f"DeepLabV3 with parameters at {at}"] for at in ("MR", "MH", "MP")],) * 2
    assert f"from nothing {merged[0][2]}, {merged[1][2]} and {merged[2][2]} CPU s" in reason
    assert (
        f"{apart[1][4]} and {apart[2][4]}; from the exact plan, too, {apart[0][3]}, {apart[1][3]}" in reason
    )


def test_presolve_changes_no_optimum(monkeypatch: pytest.MonkeyPatch) -> None:
    problem = Problem.of(network_of({"x": 1, "a": 1, "b": 1}, ["x -> a", "a -> b"], "b"))
    found = []
    for presolve in (True, False):
        monkeypatch.setattr(ilp_networks.cp_sat, "PRESOLVE", presolve)
        found.append(ilp_networks.minimum_traffic(problem, 2))
    assert found[0].value == found[0].bound == found[1].value == found[1].bound == 0


def test_a_limit_in_cpu_time_does_not_end_by_the_wall_clock(monkeypatch: pytest.MonkeyPatch) -> None:
    spent = [5.0]
    monkeypatch.setattr(ilp_networks, "cpu_seconds", lambda: spent[0])
    limits = ilp_networks.within_cpu(20.0)
    assert limits.time_limit is None
    assert not limits.stopped()
    spent[0] = 24.9
    assert not limits.stopped()
    spent[0] = 25.0
    assert limits.stopped()


def test_cells_of_the_ilp_say_what_was_proved() -> None:
    proved = {"value": 6, "bound": 6, "exact": 6, "seconds": 1.26, "limit": 20.0}
    assert ilp_networks.told(proved) == "1.3"
    assert ilp_networks.told({**proved, "bound": 4}) == "no proof in 20 s: 6, bound 4"
    assert ilp_networks.told({**proved, "value": None, "bound": 0}) == "no proof in 20 s: none, bound 0"
    assert "**NO**" not in stands(ILP, "equal")


def test_an_exponent_is_a_slope_of_logarithms() -> None:
    assert ilp_size.exponent([1, 2, 4], [5, 40, 320]) == "3.00"
    members = [row for row in rows(ILP, "growth")[1:] if "to the power of" not in row[0]]
    slopes = [row for row in rows(ILP, "growth") if "to the power of" in row[0]]
    assert len(slopes) == 2
    counts = {row[0]: [] for row in members}
    for family, *cells in members:
        steps, tensors, law, whole, here, there = (int(cells[k].replace(",", "")) for k in (0, 1, 2, 3, 6, 7))
        assert law == steps * tensors**2
        assert cells[4] == f"{whole / law:.2f}"
        counts[family].append((steps, whole, here, there))
    for row in slopes:
        steps, *sizes = zip(*counts[row[0].partition(":")[0]], strict=True)
        assert [row[k] for k in (4, 7, 8)] == [ilp_size.exponent(steps, size) for size in sizes]
        assert all(0.9 < float(slope) < 1.1 for slope in row[7:])


def test_models_encoding_unpruned_grows_as_t_a() -> None:
    """Of one operator and two tensors: C and P of each, two addresses, a pair's u and d, the peak."""
    assert ilp_size.models_unpruned(1, 2) == 2 * 2 + 2 + 2 + 1
    members = [row for row in rows(ILP, "growth")[1:] if "to the power of" not in row[0]]
    assert [row[6] for row in members] == [
        f"{ilp_size.models_unpruned(int(row[1]), int(row[2])) / (int(row[1]) * int(row[2])):.2f}"
        for row in members
    ]
    assert all(3 <= float(row[6]) < 3.1 for row in members)
