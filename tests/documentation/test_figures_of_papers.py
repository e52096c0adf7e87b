"""What our pages show as a paper's own figure stands in that paper's text, in the row of the same name.
Skipped where the texts are not beside the checkout."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

DOCS = Path(__file__).parents[2] / "docs"
PAPERS = Path(__file__).parents[3] / "shared" / "papers"

pytestmark = pytest.mark.skipif(not PAPERS.is_dir(), reason="the papers' texts are not here")


def paper(name: str, begin: str, end: str = "\n\x00") -> str:
    """A part of a paper's text, from a line that begins so, up to the first `end` after it."""
    text = (PAPERS / f"{name}.txt").read_text("utf-8") + "\n\x00"
    found = re.search(rf"^{re.escape(begin)}.*?(?={re.escape(end)})", text, re.S | re.M)
    assert found, f"{name}.txt has no part from {begin!r} to {end!r}"
    return found[0]


def rows(page: str, heading: str) -> list[list[str]]:
    """The cells of every table row below a heading, without heads."""
    below = (DOCS / page).read_text("utf-8").split(f"\n## {heading}", 1)[1].split("\n## ", 1)[0]
    lines = [line for line in below.splitlines() if line.startswith("|")]
    dashes = {i for i, line in enumerate(lines) if re.fullmatch(r"[|:\- ]+", line)}
    return [
        [cell.strip() for cell in line.strip("|").split("|")]
        for i, line in enumerate(lines)
        if i not in dashes and i + 1 not in dashes
    ]


def same(cell: str, printed: str) -> bool:
    """Whether two cells are one figure, or neither is any: 8.70 is 8.7, and an empty cell a dash."""
    try:
        return float(cell.replace(",", "")) == float(printed)
    except ValueError:
        return cell.replace("-", "") == printed.replace("-", "")


def hold(cells: list[str], printed: list[str], what: str) -> None:
    assert len(cells) == len(printed), f"{what}: the page has {cells}, the paper {printed}"
    for cell, there in zip(cells, printed, strict=True):
        assert same(cell, there), f"{what}: the page has {cell} of {cells}, the paper {there} of {printed}"


def test_cosma_table_ii() -> None:
    text = paper("cosma", "TABLE II", "Refer to caption")
    budgets = ("MR", "MH", "MP")
    compared = 0
    for row in rows("cosma.md", "Table II"):
        printed = re.findall(rf"^{row[0]} (.*)$", text, re.M)[0].split()
        hold([row[3], row[5], row[7]], printed[budgets.index(row[1]) :: 3], f"{row[0]} at {row[1]}")
        compared += 1
    assert compared == 12


def test_the_ranges_that_the_index_gives_of_cosmas_table_ii() -> None:
    """With the order given all but one, and by divide and conquer all but one, lie in them."""
    text = paper("cosma", "TABLE II", "Refer to caption")
    found = re.findall(r"^(?:PNASNet-5|AmoebaNet-D|NASNet-A|DARTS) ([\d. ]+)$", text, re.M)
    seconds = [[float(cell) for cell in row.split()] for row in found]
    given, divided = (sorted(x for row in seconds for x in row[part]) for part in (slice(6), slice(6, 9)))
    (index,) = (row for row in rows("exhibits.md", "COSMA") if row[0] == "Table II")
    for some in (given, divided):
        assert f"has {some[0]} to {some[-2]} and one {some[-1]}" in index[6].replace("it has", "has")


def test_quotations_of_the_errata_stand_in_a_paper() -> None:
    texts = [" ".join(path.read_text("utf-8").split()) for path in sorted(PAPERS.glob("*.txt"))]
    quoted = re.findall(r'"([^"\n]+)"', (DOCS / "errata.md").read_text("utf-8"))
    assert len(quoted) >= 4
    assert [words for words in quoted if not any(words in text for text in texts)] == []


def test_cosma_shares_beside_the_papers() -> None:
    """The table above the figures: the paper's two means from its text, ours from the table below."""
    text = (PAPERS / "cosma.txt").read_text("utf-8")
    page = (DOCS / "cosma.md").read_text("utf-8")
    share = {(r[0], r[1], r[2]): (r[3], r[9]) for r in rows("cosma.md", "Traffic removed") if len(r) == 11}
    theirs = {
        "human-designed": re.findall(
            r"on average (\d+)% of non-compulsory data accesses for these ten", text
        ),
        "NAS": re.findall(r"on average, (\d+)% of non-compulsory data accesses for four", text),
    }
    beside = re.findall(
        r"^\| (human-designed|NAS) \| ([\w ]+) \| ((?:\d+ %)?) \|((?: \d+ % \|){4})$", page, re.M
    )
    assert len(beside) == 4
    assert [row[:2] for row in beside if row[2]] == [
        ("human-designed", "both settings"),
        ("NAS", "activations"),
    ]
    for networks, tensors, printed, cells in beside:
        ours = re.findall(r"\d+", cells)
        assert printed in ("", f"{theirs[networks][0]} %")
        fused, op = share[networks, tensors, "fused"], share[networks, tensors, "op"]
        means = [fused[0], op[0], fused[1], op[1]]
        assert ours == [mean.split(" %")[0] for mean in means], (networks, tensors)


def test_simple_method_table_1() -> None:
    text = paper("simple-method", "inception-a1", "Table 1:")
    modules = [row for row in rows("simple-method.md", "Table 1") if row[-1] == "yes"]
    assert len(modules) == 12
    for row in modules:
        hold(row[2:-1], re.findall(rf"^{row[0]} (.*)$", text, re.M)[0].split(), row[0])


def test_hax_conn_table_2() -> None:
    text = paper("hax-conn", "Table 2.", "3.3.")
    groups = [row for row in rows("hax-conn.md", "Table 2") if re.fullmatch(r"\d+-\d+", row[0])]
    assert len(groups) == 10
    for row in groups:
        printed = re.findall(rf"^{row[0]} (.*)$", text, re.M)[0].split()
        hold([*row[1:4], *row[5:8]], printed, row[0])


def test_hax_conn_table_5() -> None:
    words = paper("hax-conn", "Table 5.", "Applications:").split()
    networks = rows("hax-conn.md", "Table 5")
    assert len(networks) == 10
    for row in networks:
        at = words.index(row[0]) + 1
        hold([*row[1:3], *row[6:8]], words[at : at + 4], row[0])


def test_hax_conn_table_6() -> None:
    words = paper("hax-conn", "Table 6.", "Scenario 1 -").split()
    begins = [i - 1 for i, word in enumerate(words) if word in ("Min", "Max")]
    experiments = [words[a:b] for a, b in zip(begins, [*begins[1:], len(words)], strict=True)]
    theirs = [row for row in rows("hax-conn.md", "Table 6") if row[4:5] == ["paper"]]
    changes = {row[0]: row[2] for row in rows("hax-conn.md", "Table 6") if len(row) == 6}
    assert len(theirs) == len(experiments) == 10
    for row, printed in zip(theirs, experiments, strict=True):
        first = next(i for i, word in enumerate(printed) if "." in word)
        hold([row[0], *row[5:9]], [printed[0], *printed[first : first + 8 : 2]], row[0])
        one, other, way, back, took = printed[first + 8 : first + 13]
        hold([row[9]], [took], row[0])
        assert changes[row[0]] == f"{one} {way}, {other} {back}"


def test_hax_conn_table_7() -> None:
    words = paper("hax-conn", "Table 7.", "To evaluate").split()
    ours = {row[0]: row[1] for row in rows("hax-conn.md", "Table 7")}
    named = [word for word in words if word in ours]
    printed = [word.strip("%") for word in words if re.fullmatch(r"%?\d\.\d\d%", word)]
    assert len(named) == len(printed) == len(ours) == 12
    for name, share in zip(named, printed, strict=True):
        hold([ours[name]], [share], name)


def test_hax_conn_table_8() -> None:
    words = paper("hax-conn", "Table 8.", "The DNNs that").split()
    table = [row for row in rows("hax-conn.md", "Table 8") if re.match(r"\d", row[0])]
    begins = [words.index(row[0].replace(" ", "-")) for row in table]
    assert len(table) == 10
    for row, a, b in zip(table, begins, [*begins[1:], len(words)], strict=True):
        ours = [word for cell in row[1:] if cell for word in cell.split("<br>")[0].split()]
        hold(ours, words[a + 1 : b], row[0])


def test_hax_conn_figures_1_and_7() -> None:
    """What the text says: ms of two ways to run two networks, seconds to the optimum."""
    text = paper("hax-conn", "We investigate concurrent execution")
    row = next(row for row in rows("hax-conn.md", "Fig. 1") if row[0] == "paper")
    assert [float(cell) for cell in row[1:3]] == [11.3, 10.6]
    for said in ("11.3ms", "10.6ms", "#28 and #95", "1.9s and 1.3s", "pair (5.8s)"):
        assert said in text, said
    seconds = [row[-1] for row in rows("hax-conn.md", "Fig. 7") if len(row) == 7 and row[0].isdigit()]
    assert seconds == ["5.8", "1.9", "1.3"]


@pytest.mark.parametrize(("page", "name"), [("cosma.md", "cosma"), ("vmcu.md", "vmcu")])
def test_shares_that_a_paper_says_stand_in_it(page: str, name: str) -> None:
    """In prose: shares, ratios and sizes in a sentence that begins with what the paper says."""
    text = (PAPERS / f"{name}.txt").read_text("utf-8")
    said = re.findall(
        r"(?:[Tt]he paper (?:says|saves|reports)|The paper:)((?:[^.;:\n]|\.\d|\n(?!\n))*)",
        (DOCS / page).read_text("utf-8"),
    )
    figures = [figure for part in said for figure in re.findall(r"\d+\.\d+|\d+(?= %|-\d+ %)", part)]
    assert figures
    for figure in figures:
        assert re.search(rf"(?<![\d.]){re.escape(figure)}(?![\d])", text), f"{page}: {figure}"
