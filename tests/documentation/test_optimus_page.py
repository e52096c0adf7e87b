"""docs/optimus.md shows what its script measures: rows of some networks are measured again and looked up."""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import pytest

from large_cases import with_campaign
from onchip.network import bits
from onchip.planners.fusion.reproduced.dag import Dag

ROOT = Path(__file__).resolve().parents[2]
sys.path[:0] = [str(ROOT / "benchmarks"), str(ROOT / "benchmarks" / "paper")]

from fusion_graphs import drawn  # noqa: E402
from optimus_causes import CAUSES  # noqa: E402
from optimus_causes_more import MORE_CAUSES  # noqa: E402
from optimus_causes_tried import TRIED  # noqa: E402
from optimus_claims_arrays import batches  # noqa: E402
from optimus_claims_more import dataflows  # noqa: E402
from optimus_claims_sentences import (  # noqa: E402
    buffer_accesses,
    configurations,
    growth,
    marginal,
    small_buffers,
)
from optimus_data import LABELS, Data, mega  # noqa: E402
from optimus_graphs import GRAPHS  # noqa: E402
from optimus_lines import LINE_PARTS, LINES, adjacent, inside  # noqa: E402
from optimus_online import merged, obeying  # noqa: E402
from optimus_parts import PARTS  # noqa: E402
from optimus_schemes import NETWORKS, Bench  # noqa: E402
from optimus_tables import TABLES  # noqa: E402
from optimus_tried_tables import registers, smaller  # noqa: E402
from page_marks import marks  # noqa: E402

# Sections that `make bench-quick` holds to their script and that take more than others are campaigns here.
BENCH = Bench()


@cache
def page(section: str) -> tuple[str, ...]:
    """The lines of a section."""
    begin, end = marks(section)
    text = (ROOT / "docs" / "optimus.md").read_text("utf-8")
    return tuple(text.split(begin, 1)[1].split(end, 1)[0].strip().splitlines())


@cache
def measured(parts: tuple[str, ...], networks: tuple[str, ...]) -> Data:
    every = PARTS | CAUSES | MORE_CAUSES | TRIED | GRAPHS | LINE_PARTS
    return Data(
        {"part": part, "network": name} | record
        for part in parts
        for name in networks
        for record in every[part](BENCH, name)
    )


def rows_of(lines: Iterator[str], networks: tuple[str, ...]) -> list[str]:
    titles = tuple(f"| {NETWORKS[name]}" for name in networks)
    return [line for line in lines if line.startswith(titles)]


def hold(section: str, *networks: str) -> None:
    """Every row of these networks stands on the page, and there are some."""
    table, parts = TABLES[section]
    found = rows_of(table(measured(parts, networks)), networks)
    assert found
    for row in found:
        assert row in page(section)


def test_fig_2() -> None:
    hold("fig2", *NETWORKS)


@pytest.mark.thorough
def test_fig_7() -> None:
    hold("fig7", "vgg16", "squeezenet1_0")


@pytest.mark.campaign
def test_fig_12() -> None:
    hold("fig12", "squeezenet1_0")


@pytest.mark.thorough
def test_the_claim_on_accuracy_is_of_fig_12s_rows() -> None:
    """The claims' row has the figures of the last row of Fig. 12's table."""
    every = page("fig12")[-1].strip("| ").split(" | ")
    groups, least, mean, bands, equation, average = every[1:]
    said = next(line for line in page("claims") if line.startswith("| the model's accuracy (eq. 5)"))
    ours = said.split(" | ")[2]
    assert ours.startswith(f"{least.removesuffix(' %')}-100.00 %, {mean} on average, {groups} groups; ")
    assert ours.endswith(
        f"{equation.removesuffix(' %')} to 100.00 %, {average} on average, of the {bands} groups in bands"
    )


def test_claims_on_the_chips_inside() -> None:
    """Buffer and array of Fig. 17's rows at 64 B; the older fusers' energy at the buffer, VGG16 again."""
    cells = (line.strip("| ").split(" | ") for line in page("claims"))
    claims = {row[0]: row[2] for row in cells if len(row) > 2}
    shares = []
    for row in (line.strip("| ").split(" | ") for line in page("fig17")):
        if row[1:3] == ["64 B", "exact"]:
            share = (float(row[4]) + float(row[5])) / float(row[8])
            shares.append(f"{row[0]} {100 * share:.0f} %")
    said = claims["communication on chip is a small part of the energy (Fig. 17)"]
    assert said == f"{', '.join(shares)}: buffer and array, 64 B"
    alone = buffer_accesses(measured(("fig13",), ("vgg16",)))[2]
    assert "DNNVM, rows 1.03 to 1.03, more on 1; DNNVM, tiles 0.94 to 0.94, more on 0" in alone
    assert "DNNVM, tiles 0.94 to 2.27" in claims["the older fusers spend more energy at the on-chip buffer"]


@pytest.mark.thorough
@pytest.mark.parametrize("section", with_campaign(("fig13", "fig14", "fig15"), ("fig14", "fig15")))
def test_figs_13_14_15(section: str) -> None:
    """Words, energy and time of every scheme under both sets of options."""
    hold(section, "squeezenet1_0")


FIGURE_5 = Dag.from_edges(8, [(0, 1), (1, 2), (0, 3), (3, 4), (0, 5), (5, 6), (2, 7), (4, 7), (6, 7)])
"""A concat, three branches of two convolutions, listed branch after branch, and what joins them."""


def test_the_groups_that_efficient_s_never_finds() -> None:
    """{Conv1, Conv4} and its like: intervals of the listing and depth first, none breadth first."""
    assert inside(FIGURE_5) == [(1, 2), (3, 4), (5, 6)]
    found = {title: adjacent(FIGURE_5, order(FIGURE_5)) for title, order in LINES.items()}
    assert found == {"as listed": 3, "breadth first": 0, "depth first": 3}
    for order in LINES.values():
        line = list(order(FIGURE_5))
        assert sorted(line) == list(range(8))
        assert all(line.index(a) < line.index(b) for a in range(8) for b in bits(FIGURE_5.successors[a]))
    hold("line", "squeezenet1_0", "googlenet")


def test_what_is_left_of_the_full_spaces_gain_by_efficient_ss_line() -> None:
    """Something breadth first, and nothing depth first on three networks."""
    rows = [line.strip("| ").split(" | ") for line in page("line")[2:]]
    gains = {(row[0], row[1]): row[8] for row in rows}
    branched = ("GoogLeNet", "ResNet-18", "ResNet-50", "ResNet-152", "SqueezeNet")
    breadth = [gains[name, "breadth first"] for name in branched]
    assert breadth == ["13.4 %", "0.9 %", "0.2 %", "0.1 %", "0.9 %"]
    none = [name for name in branched if gains[name, "depth first"] == "0.0 %"]
    claims = {row[0]: row[4] for row in (x.strip("| ").split(" | ") for x in page("claims")) if len(row) > 4}
    (why,) = (text for claim, text in claims.items() if claim.startswith("branched networks gain"))
    assert f"breadth first the gain is 0.1 % at least, depth first nothing on {', '.join(none)} (" in why


@pytest.mark.thorough
def test_fig_16() -> None:
    hold("fig16", "vgg16", "squeezenet1_0")


@pytest.mark.campaign
def test_fig_17() -> None:
    table, parts = TABLES["fig17"]
    found = [line for line in table(measured(parts, ("squeezenet1_0",))) if line.startswith("| o")]
    assert len(found) == 6 + 6 + 5
    assert set(found) <= set(page("fig17"))


@pytest.mark.thorough
def test_fig_18() -> None:
    hold("fig18", "squeezenet1_0", "mobilenet_v1")


@pytest.mark.thorough
def test_fig_19() -> None:
    hold("fig19", "vgg16", "squeezenet1_0")


def test_words_stop_falling_where_each_image_has_its_buffers() -> None:
    """Beyond a batch of four, on both of the paper's networks: figure 19."""
    for name in ("vgg16", "squeezenet1_0"):
        cells = next(
            line for line in page("fig19") if line.startswith(f"| {NETWORKS[name]} | {LABELS['held']} |")
        )
        held = [float(cell) for cell in cells.strip("| ").split(" | ")[2:]]
        one, _, four, *_, most = held
        assert four < one
        assert most > 0.985 * four


@pytest.mark.thorough
def test_table_4() -> None:
    table, parts = TABLES["tab4"]
    networks = ("alexnet_features", "vgg16", "squeezenet1_0")
    head, *found = (line for line in table(measured(parts, networks)) if line.startswith("| "))
    found = [line for line in found if line.startswith(("| eyeriss", "| shidiannao", "| lower-bound"))]
    there, *rows = (line for line in page("tab4") if line.startswith("| "))
    columns = [there.split(" | ").index(title) for title in head.strip("| ").split(" | ")[2:]]
    at = {line.split(" | ")[0] + line.split(" | ")[1]: line.strip("| ").split(" | ") for line in rows}
    assert len(found) == 12
    for line in found:
        cells = line.strip("| ").split(" | ")
        shown = at["| " + cells[0] + cells[1]]
        assert [shown[column] for column in columns] == cells[2:]


@pytest.mark.thorough
def test_table_5() -> None:
    """All but times: operators, convex groups, candidates, final groups."""
    networks = ("vgg16", "squeezenet1_0", "resnet50")
    table, parts = TABLES["tab5"]
    found = rows_of(table(measured(parts, networks)), networks)
    there = {tuple(row.split(" | ")[:6]) for row in rows_of(iter(page("tab5")), networks)}
    assert {tuple(row.split(" | ")[:6]) for row in found} == there


@pytest.mark.thorough
def test_table_5_final_groups() -> None:
    """GoogLeNet's 21 with its pools in their projections, as in the paper; on-line groups by the limit."""
    data = measured(("cause-groups", "cause-online"), ("googlenet", "vgg16"))
    merged = data.all("cause-groups", change="pools in their projections")[-1]
    assert (merged["operators"], merged["convex"], merged["groups"]) == (72, 50_508, 21)
    shown = "\n".join(page("groups"))
    assert "72 operators, 50,508 convex groups" in shown
    vgg = data.all("cause-online", network="vgg16")[-1]
    assert vgg["counts"][vgg["limit"]] == 80
    for line in rows_of(TABLES["groups"][0](data), ("googlenet", "vgg16")):
        assert line in page("groups")


def test_nasnet_has_the_papers_operators_and_successors() -> None:
    """Where parts of operators are none of their own: convolutions, pools but the last, and sums are left."""
    data = measured(("cause-nasnet",), ("nasnetalarge",))
    *_, least = data.all("cause-nasnet")
    assert (least["operators"], least["successors"]) == (456, 10)
    assert tuple(TABLES["graphs"][0](data)) == page("graphs")
    operators = BENCH.network("nasnetalarge", 4).operators
    windows = sum(op.geometry is not None and op.geometry.kind in ("conv", "pool") for op in operators)
    assert windows - 1 + sum(op.type == "Add" for op in operators) == 456


@pytest.mark.parametrize(
    ("name", "sums", "projections", "left"),
    [("resnet50", 16, 4, 52), ("resnet152", 50, 4, 154), ("resnet1202", 600, 2, 1203)],
)
def test_resnets_have_the_papers_operators_without_sums_and_projections(
    name: str, sums: int, projections: int, left: int
) -> None:
    """A projection reads what another convolution reads, too, and is read by a sum."""
    operators = BENCH.network(name, 4).operators
    readers = Counter(t for op in operators for t in op.inputs)
    added = {t for op in operators if len(op.inputs) > 1 for t in op.inputs}
    conv = [op for op in operators if op.geometry is not None and op.geometry.kind == "conv"]
    found = [op for op in conv if op.outputs[0] in added and readers[op.inputs[0]] > 1]
    assert len(found) == projections
    assert sum(len(op.inputs) > 1 for op in operators) == sums
    assert len(operators) - sums - projections == left


def test_dnnvm_stops_in_larger_buffers() -> None:
    """On GoogLeNet, in larger buffers; a chain's words go on to fall."""
    hold("larger", "googlenet", "alexnet_features")
    larger = (line for line in page("larger") if not line.endswith("% |"))
    stops = {line.split(" | ")[0]: line.split(" | ")[-1] for line in larger}
    assert stops["| GoogLeNet"] == "2,048 KB |"
    assert stops["| AlexNet without FC"] == "- |"


def test_older_fusers_come_down_to_no_fusion_in_small_buffers() -> None:
    """On MobileNet, measured again; on ResNet-1202 as the page has it."""
    lines = [row for row in smaller(measured(("cause-smaller",), ("mobilenet_v1",))) if row.endswith("% |")]
    assert len(lines) == 4
    assert set(lines) <= set(page("larger"))
    saved: dict[str, list[float]] = {}
    for cells in (line.strip("| ").split(" | ") for line in page("larger") if line.endswith("% |")):
        saved.setdefault(cells[0], []).append(max(float(cell.removesuffix(" %")) for cell in cells[2:]))
    for name in ("MobileNet", "ResNet-1202"):
        assert saved[name] == sorted(saved[name], reverse=True)
        assert saved[name][-1] <= 0.1


def test_registers_of_one_sum_cost_the_exact_partition_nearly_twice_its_energy() -> None:
    (said,) = (line for line in page("fig13") if line.startswith("The exact partition's own energy"))
    (again,) = registers(measured(("cause-registers",), ("squeezenet1_0",)))
    assert again.strip().rpartition(": ")[2].removesuffix(".") in said


def test_dnnvm_is_below_no_fusion_with_tiles() -> None:
    """On the networks on which whole rows fuse nothing at 128 KB, under the paper's options."""
    cells = {line.split(" | ")[0]: line.split(" | ") for line in page("fig14")[:14]}
    head = cells["| network"]
    none, rows, tiles = (head.index(LABELS[how]) for how in ("none", "dnnvm", "dnnvm-tile"))
    for name in ("alexnet_features", "vgg16", "resnet50", "resnet152"):
        row = cells[f"| {NETWORKS[name]}"]
        assert row[none] == row[rows]
        assert float(row[tiles]) < float(row[none])
    assert float(cells["| MobileNet"][tiles]) < float(cells["| MobileNet"][rows])
    assert mega(int(7.74e6)) == cells["| AlexNet without FC"][tiles]


@pytest.mark.thorough
def test_claims_on_dataflows_and_batches() -> None:
    """The rows at the head of the page, from what is measured now."""
    data = measured(
        ("fig17", "cause-dataflow", "cause-flows", "fig19", "cause-batch"), ("vgg16", "squeezenet1_0")
    )
    for claim in (*dataflows(data), *batches(data)):
        assert "| " + " | ".join(claim) + " |" in page("claims")


def test_directions() -> None:
    """Table 5: the most successors of an operator are the paper's, and top-down is the slower one."""
    row = measured(("cause-directions",), ("squeezenet1_0",)).all("cause-directions")[-1]
    shown = [line.strip("| ").split(" | ") for line in page("directions")[2:]]
    at = {cells[0]: cells for cells in shown}
    assert at["SqueezeNet"][1] == str(row["successors"]) == "2"
    for cells in (one for one in at.values() if one[1] != "not tried"):
        assert cells[1] == cells[4]
        assert float(cells[3]) < float(cells[2])


def test_energy_by_time_lets_every_larger_array_take_less() -> None:
    """Figure 18: a share of energy that goes by time, and nothing else changed. The paper has no share."""
    shares = {
        cells[0]: cells[1:] for line in page("fig18") if len(cells := line.strip("| ").split(" | ")) == 5
    }
    falls = [shares[f"{share} %"][0] for share in (0, 10, 20, 30)]
    assert falls == [f"{pairs} of 40" for pairs in (18, 31, 38, 40)]
    (claim,) = (line for line in page("claims") if line.startswith("| a larger array takes less energy |"))
    assert "not explained" in claim
    assert "it falls in 31, 38 and 40, with blocks of sums of least energy in 28," in claim


@pytest.mark.thorough
def test_sentences_beside_the_figures() -> None:
    """Small buffers, their marginal benefit, configurations and growth, on SqueezeNet."""
    data = measured(("fig16", "fig18", "tab5", "cause-directions"), ("squeezenet1_0",))
    none = {claim: ours for claim, _, ours, *_ in small_buffers(data)}
    assert none["in too small a buffer Efficient-S (in tiles) is no better than no fusion"].endswith(
        "0 of 1 networks"
    )
    assert none["in too small a buffer DNNVM (in tiles) is no better than no fusion"].endswith(
        "1 of 1 networks"
    )
    falling, _ = marginal(data)
    assert "on 1 of 1 networks" in falling[2]
    assert configurations(data)[2].startswith("4 to 4 numbers of groups")
    (share,) = growth(data, {"squeezenet1_0": 1057}, {})[2].rsplit(" ", 1)[1:]
    assert share == f"{1057 / (4 * 38**2):.2f}"


def test_sums_within_convolutions_are_272_groups_apart_and_42_short() -> None:
    """On-line groups of ResNet-50 and -152 by VGG16's limit, beside 195 and 467."""
    counts = [obeying(merged(drawn(name)), 5)[-1] for name in ("resnet50", "resnet152")]
    assert counts == [195 - 42, 467 - 42]
    assert [obeying([[], [0], [1]], n)[-1] for n in (1, 2, 3)] == [3, 5, 6]


def test_eyeriss_gains_on_all_by_a_ratio_of_1_2() -> None:
    rows = [line.strip("| ").split(" | ") for line in page("tab4") if line.startswith("| 1.")]
    by = {row[0]: [float(cell) for cell in row[1:-1]] for row in rows}
    assert min(by["1.2"]) > 0 > min(by["1.4"])
