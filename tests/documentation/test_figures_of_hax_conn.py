"""What docs/hax-conn.md shows as HaX-CoNN's beside its tables: claims, Herald and H2H, what was tried.
Skipped where the paper's text is not beside the checkout."""

from __future__ import annotations

import re
from statistics import median

from test_figures_of_papers import PAPERS, paper, pytestmark, rows

__all__ = ["pytestmark"]

TEXT = (PAPERS / "hax-conn.txt").read_text("utf-8") if PAPERS.is_dir() else ""


def experiments() -> list[list[str]]:
    """The words of each row of Table 6, from its first time on, and its number before them."""
    words = paper("hax-conn", "Table 6.", "Scenario 1 -").split()
    begins = [i - 1 for i, word in enumerate(words) if word in ("Min", "Max")]
    found = []
    for a, b in zip(begins, [*begins[1:], len(words)], strict=True):
        row = words[a:b]
        found.append([row[0], *row[next(i for i, word in enumerate(row) if "." in word) :]])
    return found


def times() -> list[list[float]]:
    """GPU only, GPU & DSA, Herald, H2H and HaX-CoNN in ms, by experiment."""
    return [[float(word) for word in (*row[1:9:2], row[13])] for row in experiments()]


def page(heading: str) -> dict[str, list[str]]:
    """Rows below a heading by their first cell."""
    return {row[0]: row[1:] for row in rows("hax-conn.md", heading)}


def test_claims_on_table_6_are_computed_from_its_cells() -> None:
    claims = page("The paper's claims")
    naive = [1 - ours / min(gpu, split) for gpu, split, _, _, ours in times()]
    four = [1 - ours / min(others) for *others, ours in times()]
    gpu = [1 - ours / gpu for gpu, _, _, _, ours in times()]
    for begins, shares in (("over the two naive", naive), ("over the GPU", gpu), ("over the best of", four)):
        text = next(text for text in claims if text.startswith("Table 6: time saved") and begins in text)
        assert claims[text][0] == f"{100 * median(shares):.1f}, {100 * max(shares):.1f}"
    for number, words in (("Scenario 2", "up to 23%"), ("Scenario 4", "up to 22%")):
        assert words in TEXT
        text = next(text for text in claims if text.startswith(number))
        assert claims[text][0] == words[-3:-1]


def test_claims_on_table_8_are_counted_from_its_cells() -> None:
    words = paper("hax-conn", "Table 8.", "The DNNs that").split()
    gains = [float(word) for word in words if re.fullmatch(r"1\.\d\d", word)]
    claims = page("The paper's claims")
    assert words.count("x") + len(gains) == 55
    assert min(gains) == 1.04
    printed = {
        text.partition(":")[2]: cells[0] for text, cells in claims.items() if text.startswith("Table 8")
    }
    assert printed[" pairs that gain from 1.04 on, rounded, the least gain that it prints, of 55"] == str(
        len(gains)
    )
    assert printed[" most gained, as a factor"] == f"{max(gains):.2f}"
    vgg = words[words.index("10-VGG19") + 1 :]
    assert claims["Table 8: pairs of VGG19 that gain so, of 10"][0] == str(10 - vgg.count("x")) == "3"
    assert "35 pairs out of 45" in TEXT


def test_shares_that_only_the_text_says() -> None:
    for said in ("up to 45%", "up to 32% and 29%", "by up to 70%", "by up to 75%", "no more than 2%"):
        assert said in TEXT, said
    claims = page("The paper's claims")
    for begins, share in (
        ("Fig. 5: images", "29"),
        ("Fig. 6", "all; 45"),
        ("not knowing", "70"),
        ("Herald and", "75"),
    ):
        assert next(c for text, c in claims.items() if text.startswith(begins))[0] == share
    strengths = next(row for row in rows("hax-conn.md", "How strong contention is") if row[0] == "the paper")
    assert strengths[1:] == ["29", "45", "3", "10", "1.32", "70", "75"]


def test_herald_and_h2h_are_the_papers() -> None:
    below = rows("hax-conn.md", "Table 6")
    both = {width: {row[0]: row for row in below if len(row) == width} for width in (9, 12)}
    for width, places in ((9, (1, 5)), (12, (3, 6)), (12, (3, 9))):
        for words, (_, _, herald, h2h, _) in zip(experiments(), times(), strict=True):
            assert [float(both[width][words[0]][at]) for at in places] == [herald, h2h]
        slower = both[width]["slower than the GPU alone"]
        assert int(slower[places[0]]) == sum(herald > gpu for gpu, _, herald, _, _ in times())
        assert int(slower[places[1]]) == sum(h2h > gpu for gpu, _, _, h2h, _ in times())
    alone = [float(both[12][words[0]][1]) for words in experiments()]
    assert alone == [gpu for gpu, *_ in times()]


def test_vgg19s_pairs_are_the_papers() -> None:
    words = paper("hax-conn", "Table 8.", "The DNNs that").split()
    cells = words[words.index("10-VGG19") + 1 :][1::2]
    networks = [word.split("-", 1)[1] for word in words if re.fullmatch(r"\d+-[A-Z].*", word)]
    gaining = [name for name, cell in zip(networks, cells, strict=True) if cell != "x"]
    assert page("VGG19's pairs")["the paper"] == ["3", ", ".join(gaining)]


def test_the_abstracts_32_is_no_single_figure() -> None:
    """Table 8's most, and what H2H takes in experiment 3 over the result."""
    *_, h2h, ours = times()[2]
    assert f"{h2h / ours:.2f}" == page("The paper's claims")["Table 8: most gained, as a factor"][0] == "1.32"
