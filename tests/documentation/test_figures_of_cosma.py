"""What docs/cosma.md and docs/placement-ilp.md show as COSMA's: its sentences and the size of its program.
Skipped where the paper's text is not beside the checkout."""

from __future__ import annotations

import re

from test_figures_of_papers import PAPERS, paper, pytestmark, rows

__all__ = ["pytestmark"]

TEXT = (PAPERS / "cosma.txt").read_text("utf-8") if PAPERS.is_dir() else ""
SAID = {
    "accesses fewer on average, ten networks, at the": "under the tightest memory limit",
    "the same, four networks found by search": "reduce, on average, 85% of non-compulsory data accesses",
    "no traffic at MP": "can always eliminate the non-compulsory",
    "all other schemes have traffic at MP": "all other schemes incur non-compulsory data accesses except for"
    " the model FCN",
    "fewer accesses than any other scheme": "COSMA always generates fewer off-chip data accesses",
    "order of least peak alone": "it still generates significantly more",
    "Belady's rule": "it generates more off-chip data accesses than even the greedy",
    "NASNet-A at MH": "in the case of NASNet-A under tighter memory budgets",
    "divide and conquer, seconds": "average solution time of one minute",
    "the optimum for these four": "within a 24-hour time limit",
    "order fixed, seconds": "under 30 seconds for most cases",
    "divide and conquer: seconds hang more": "the time-to-solution is more sensitive to different memory",
    "the own order fixed": "that greatly reduces the off-chip data accesses",
    "the least-peak order fixed": "given the same fixed operator schedules",
    "the order of least peak can have less": "can reduce the off-chip data accesses compared to the default",
    "order fixed, seconds apart": "with marginal variance between different memory budgets",
}
"""The beginning of a claim's row, and the words that it is of."""


def test_every_claim_is_a_sentence_of_the_paper() -> None:
    claims = [row[0] for row in rows("cosma.md", "The paper's claims")]
    for begins, words in SAID.items():
        assert words in TEXT, words
        assert any(claim.startswith(begins) for claim in claims), begins
    assert "takes 84.4 seconds" in TEXT
    assert "within 2 minutes" in TEXT


def test_means_of_table_ii_are_those_of_its_cells() -> None:
    cells = [
        line.split()[1:]
        for line in paper("cosma", "TABLE II", "Refer").splitlines()
        if len(line.split()) == 10
    ]
    seconds = [float(word) for row in cells for word in row[6:]]
    assert len(seconds) == 12
    row = next(
        row for row in rows("cosma.md", "The paper's claims") if row[0].startswith("divide and conquer, s")
    )
    assert f"Table II: {sum(seconds) / 12:.0f}, {max(seconds):.0f}" in row[1]


def test_seconds_of_the_program_are_the_papers() -> None:
    summary = {row[0]: row[1] for row in rows("cosma.md", "The ILP's time")}
    assert "0.296s on average, for nine of the ten DNNs" in TEXT
    assert "takes 6.96s and 17.242s under memory budgets" in TEXT
    assert "(0.12s for" in TEXT
    assert summary["the nine but DeepLabV3: mean, where proved"] == "0.296"
    deeplab = [summary[f"DeepLabV3 with parameters at {at}"] for at in ("MR", "MH", "MP")]
    assert deeplab == ["6.96", "17.242", "0.12"]


def test_sizes_of_the_program_are_the_papers() -> None:
    row = next(row for row in rows("placement-ilp.md", "How large it is") if row[0] == "the paper's")
    printed = re.search(r"from about ([\d,]+) with .*? to ([\d,]+) in .*? from ([\d,]+) to ([\d,]+)\.", TEXT)
    assert printed
    assert row[2:6] == [printed[2], printed[4], printed[1], printed[3]]
    assert row[6] == "3"
