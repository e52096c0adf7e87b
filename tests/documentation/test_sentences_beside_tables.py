"""Sentences of the pages that sum up a table beside them say what the table has."""

from __future__ import annotations

import re
from pathlib import Path

import onchip
from onchip.planners.placement import Problem, Rules, minimum_traffic

DOCS = Path(__file__).parents[2] / "docs"


def text(page: str) -> str:
    """A page, its lines joined."""
    return " ".join((DOCS / f"{page}.md").read_text("utf-8").split())


def rows(page: str, begins: str) -> dict[str, list[str]]:
    """The rows of the table whose head begins so, by their first cell."""
    lines = (DOCS / f"{page}.md").read_text("utf-8").splitlines()
    at = next(k for k, line in enumerate(lines) if line.startswith(begins)) + 2
    found = {}
    while lines[at].startswith("|"):
        first, *rest = (cell.strip() for cell in lines[at].strip("|").split("|"))
        found[first] = rest
        at += 1
    return found


def number(cell: str) -> float:
    """The first figure of a cell."""
    return float(re.findall(r"-?[\d,]*\.?\d+", cell)[0].replace(",", ""))


NINE = (
    "inception_v3", "googlenet", "resnet18", "resnet50", "mobilenet_v2", "inception_resnet_v2", "resnet152",
    "resnext50_32x4d", "mobilenet_v3_large",
)  # fmt: skip
"""The Inception, ResNet and MobileNet families."""


def test_planning_times_of_branches_are_those_of_its_figures() -> None:
    beside = rows("branches-figures", "| network | whole |")
    paper, ours = ([number(beside[name][at]) for name in NINE] for at in (6, 7))
    grown = rows("branches-figures", "| network | modules | operators |")["chain-1000"]
    said = text("branches")
    assert f"{min(paper):.0f} to {max(paper):.0f} ms of CPU time for nine networks" in said
    assert f"{min(ours):.0f} to {max(ours):.0f} ms by `--rules ours`" in said
    seconds = [f"{number(grown[at]) / 1e3:.0f}" for at in (2, 4)]
    assert f"{' and '.join(seconds)} seconds for 1,000 modules" in said


def test_what_the_chain_of_a_thousand_modules_moves() -> None:
    """Exact placement, not done in its time, moves nearly what the paper's rules do."""
    grown = rows("branches-figures", "| network | modules | operators |")
    *_, exact_ms, paper, ours, exact = grown["chain-1000"]
    assert exact_ms.endswith("\\*")
    assert 0.9 * number(paper) < number(exact) < number(paper)
    assert number(exact) > 10 * number(ours)
    said = text("branches-figures")
    limit = re.findall(r"not proved least in (\d+) seconds", said)
    assert limit == ["20"]
    assert "has not proved its plan in twenty seconds" in said
    assert all("*" not in row[6] for name, row in grown.items() if name != "chain-1000")


def test_gaps_of_searches_that_end_without_a_proof() -> None:
    said = text("corun-search")
    long = rows("corun-search", "| 985 + 10 groups,").values()
    over = [100 * (number(row[2]) / number(row[6]) - 1) for row in long]
    assert f"{min(over):.0f} to {max(over):.0f} % above the bound" in said
    three = {name: row for name, row in rows("corun-search", "| GoogleNet |").items() if name[:2] == "x3"}
    over = [100 * (number(row[3]) / number(row[6]) - 1) for row in three.values()]
    assert f"three copies of GoogleNet stay {min(over):.0f} to {max(over):.0f} % above the bound" in said


def test_the_window_kernels_instructions_in_the_errata() -> None:
    """Over TinyEngine's, and over those of its kernels in floating point."""
    window = rows("vmcu", "| block | segments of workspace |")
    theirs = rows("vmcu", "| block | onchip: instructions | loads | stores | TinyEngine")
    ratios: tuple[list[float], list[float]] = ([], [])
    for block, row in window.items():
        if row[4] != "-":
            for found, at in zip(ratios, (3, 6), strict=True):
                found.append(number(row[4]) / number(theirs[block][at]))
    integers, floats = (f"{min(found):.1f} to {max(found):.1f} times" for found in ratios)
    assert f"takes {integers} TinyEngine's instructions, {floats} those in floating point" in text("errata")


def test_safe_chains_spare_the_states_that_the_proofs_say() -> None:
    """AmoebaNet-D searched again; PNASNet-5 with the rule as its figures have it."""
    problem = Problem.of(onchip.load("zoo:amoebanet_d").network)
    with_rule, without = (
        minimum_traffic(problem, problem.minimum_budget, Rules(safe_chains=on)).states for on in (True, False)
    )
    said = text("placement-proofs")
    assert f"AmoebaNet-D at MR takes {with_rule:,} states with the rule and {without:,} without" in said
    lines = (DOCS / "placement-figures.md").read_text("utf-8").splitlines()
    (mh,) = (line for line in lines if line.startswith("| pnasnet5large | streamed | MH |"))
    assert f"PNASNet-5 at MH {mh.split(' | ')[5]} and" in said


def test_cosmas_means_with_parameters_beside_their_bytes() -> None:
    """By the granularity of the graph, at MR and MH."""
    lines = (DOCS / "cosma.md").read_text("utf-8").splitlines()
    cells = {
        tuple(row[:3]): [number(cell) for cell in row[3:7]]
        for line in lines
        if len(row := [cell.strip() for cell in line.strip("|").split("|")]) == 11
        and row[2] in ("fused", "op")
    }
    fused, op = (cells["human-designed", "with parameters", graph] for graph in ("fused", "op"))
    assert (
        f"the means are {op[0]:.0f} and {op[2]:.0f} instead of {fused[0]:.0f} and {fused[2]:.0f} %, though of"
        f" the bytes {op[1]:.0f} and {op[3]:.0f} % go instead of {fused[1]:.0f} and {fused[3]:.0f}"
    ) in text("cosma")


def test_words_of_held_batches_beyond_four_images() -> None:
    lines = (DOCS / "optimus.md").read_text("utf-8").splitlines()
    at = next(k for k, line in enumerate(lines) if line.startswith("| network | buffer | 1 | 2 | 4 |"))
    later: dict[str, list[float]] = {}
    for line in lines[at + 2 :]:
        if not line.startswith("| "):
            break
        name, kib, *_, falls = (cell.strip() for cell in line.strip("|").split("|"))
        if kib != "128 KB":
            later.setdefault(name, []).append(number(falls))
    vgg, squeeze = (f"{min(shares)} to {max(shares)} %" for shares in later.values())
    assert f"VGG16's by {vgg}, SqueezeNet's by {squeeze}" in text("optimus")


def test_experiments_that_balance_by_table_5s_times() -> None:
    """As many are named as the first table counts, and they are those that gain next to nothing."""
    said = text("hax-conn")
    (named,) = re.findall(r"Table 5's six \(([\d, ]+)\) balance", said)
    lines = (DOCS / "hax-conn.md").read_text("utf-8").split("<!-- totals: begin -->")[1].splitlines()
    light = [
        line.strip("| ").split(" | ") for line in lines if line.count(" | ") == 12 and "| light |" in line
    ]
    gains = {row[0]: 1 - number(row[9]) / min(number(row[5]), number(row[6])) for row in light}
    assert named.split(", ") == [name for name, gain in gains.items() if gain < 0.02]
    assert "optimal or nearly in 6 of ten" in said


def test_cosmas_claims_on_the_networks_found_by_search() -> None:
    """Counted from Fig. 4's rows, activations only: divide and conquer, the order given, and the optimum."""
    page = (DOCS / "cosma.md").read_text("utf-8")
    lines = page.split("<!-- fig4: begin -->")[1].split("<!-- fig4: end -->")[0].splitlines()
    cells = [[cell.strip() for cell in line.strip("|").split("|")] for line in lines if "activations" in line]
    bytes_ = [[number(cell) for cell in row[4:12]] for row in cells]
    assert len(bytes_) == 12
    first = page.split("<!-- claims: begin -->")[1].split("<!-- claims: end -->")[0].splitlines()
    claims = {row[1].strip(): row[3].strip() for row in (line.split("|") for line in first) if len(row) == 7}
    exact, given, least_peak, divided, *schemes = zip(*bytes_, strict=True)
    least = sum(one <= min(rest) for one, *rest in zip(divided, given, least_peak, *schemes, strict=True))
    assert claims["divide and conquer has the least of all that it is compared with"] == f"{least} of 12"
    none = sum(one == 0 for one, row in zip(divided, cells, strict=True) if row[2] == "MP")
    assert claims["divide and conquer has no traffic at MP"] == f"{none} of 4"
    plans = [
        line
        for line in page.split("<!-- plans: begin -->")[1].splitlines()
        if "| fused | activations |" in line
    ]
    names = {row[0] for row in cells}
    proved = sum("| optimal |" in line for line in plans if line.split(" | ")[0].strip("| ") in names)
    assert claims["the optimum for these four"].startswith(f"{proved} of {len(exact)} proved")
    for order, ours, rivals in (("own", given, schemes[:2]), ("least-peak", least_peak, schemes[2:])):
        shares = [1 - a / b for theirs in rivals for a, b in zip(ours, theirs, strict=True)]
        said = claims[
            f"the {order} order fixed: accesses fewer than by the arena and either rule, mean, least"
        ]
        fewer = sum(share > 0 for share in shares)
        assert said == (
            f"{100 * sum(shares) / 24:.0f} %, {100 * min(shares):.0f} %, fewer in {fewer} of {len(shares)}"
        )
