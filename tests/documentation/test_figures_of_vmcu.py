"""What docs/vmcu.md shows as the paper's own stands in the paper's text. Skipped where that is not here."""

from __future__ import annotations

import re
from pathlib import Path
from statistics import mean

import pytest
from test_figures_of_papers import PAPERS, hold, paper, rows

from onchip.machines.board import load_board

pytestmark = pytest.mark.skipif(not PAPERS.is_dir(), reason="the papers' texts are not here")

DOCS = Path(__file__).parents[2] / "docs"


def text() -> str:
    return (PAPERS / "vmcu.txt").read_text("utf-8")


def test_table_3() -> None:
    table = paper("vmcu", "Table 3:", "The evaluation results")
    planned = [row for row in rows("vmcu.md", "Table 3, as planned") if re.fullmatch(r"S\d", row[0])]
    beside = [row for row in rows("vmcu.md", "Table 3: blocks") if re.fullmatch(r"S\d", row[0])]
    assert len(planned) == len(beside) == 8
    for row, other in zip(planned, beside, strict=True):
        took, _, theirs = re.findall(rf"^{row[0]} (.*)$", table, re.M)[0].split()
        hold(row[4:6], [took, theirs], row[0])
        assert other[11] == f"{int(theirs) / int(took):.2f}"
    mean = next(row for row in rows("vmcu.md", "Table 3: blocks") if row[0] == "mean")
    assert f"TinyEngine ({mean[11]}" in text()


def test_throughput_of_table_3_is_its_latency_again() -> None:
    found = re.findall(r"^S\d (\d+) (\d+) \d+$", paper("vmcu", "Table 3:", "The evaluation results"), re.M)
    images = [int(per_second) for _, per_second in found]
    assert images == [1000 // int(took) for took, _ in found]
    page = (DOCS / "vmcu.md").read_text("utf-8")
    assert f"cut to whole images a second, {min(images)} to {max(images)}," in page
    assert "HMCOS fails to reduce memory space for such linear structure DNNs" in text()


def test_tinyengine_takes_longer_than_vmcu_in_table_3() -> None:
    """The 1.03 is TinyEngine's time over vMCU's, not the other way round: whose it is the pages say."""
    found = re.findall(r"^S\d (\d+) \d+ (\d+)$", paper("vmcu", "Table 3:", "The evaluation results"), re.M)
    assert len(found) == 8
    ratio = mean(int(theirs) / int(own) for own, theirs in found)
    assert f"{ratio:.2f}" == "1.03"
    index = (DOCS / "exhibits.md").read_text("utf-8")
    assert f"TinyEngine takes {ratio:.2f} times vMCU's" in index
    assert f"| TinyEngine's latency of fused blocks over vMCU's | {ratio:.2f} x |" in (
        DOCS / "vmcu.md"
    ).read_text("utf-8")


def test_table_2() -> None:
    table = paper("vmcu", "Table 2:", "Table 3:")
    blocks = [row for row in rows("vmcu.md", "Where the paper errs") if re.fullmatch(r"[SB]\d+", row[0])]
    assert len(blocks) == 5
    for row in blocks:
        side, *channels, window, strides = re.findall(rf"^{row[0]} (.*)$", table, re.M)[0].split()
        assert row[1] == (
            f"{side} x {side}, channels {', '.join(channels)}, {window} x {window}, strides {strides}"
        )


def test_the_memories_of_table_1() -> None:
    """The board's two memories; the layer of ResNet-50 that the introduction names, in and out."""
    table = paper("vmcu", "Table 1:", "2.1")
    ram, flash = (int(n) for n in re.findall(r"F411RE (\d+)KB (\d+)KB", table)[0])
    board = load_board("nucleo-f411re")
    assert (board.ram_bytes, board.flash_bytes) == (ram << 10, flash << 10)
    assert f"{2 * 56 * 56 * 64 / 1000:.1f}KB RAM" in text()
    assert re.findall(r"(?:A100|990)\W+(\d+)GB", table) == ["40", "8"]
    page = (DOCS / "vmcu.md").read_text("utf-8")
    for said in ("4-5 orders of magnitudes smaller", "2-3 orders of magnitude smaller"):
        assert said in text()
    assert "5.5 orders of magnitude below an A100, where the text has 4-5, and 4.8 below" in page


CLAIMS = (
    ("RAM saved on single layers", "12.0%percent12.012.0", "49.5%percent49.549.5"),
    ("latency saved on single layers", "18.5%percent18.518.5", "40.0%percent40.040.0"),
    ("energy saved on single layers", "20.6%percent20.620.6", "53.0%percent53.053.0"),
    ("MCUNet-5fps-VWW, blocks: RAM saved of TinyEngine's", "13.0", "61.5%percent13.0percent61.5"),
    ("MCUNet-320KB-ImageNet, blocks: RAM saved of TinyEngine's", "11.2", "78.5%percent11.2percent78.5"),
    ("larger images in TinyEngine's RAM", "1.29", "2.58"),
    ("more channels in it", "1.26", "3.17"),
)


def test_claims() -> None:
    """Every figure of the paper's column is in the text, and those with two ends are where both stand."""
    table = rows("vmcu.md", "The paper's claims")
    assert len(table) == 23
    theirs = {row[0]: row[1] for row in table}
    for claim, low, high in CLAIMS:
        said = re.findall(r"\d+\.\d+", theirs[claim])
        assert [re.match(r"[\d.]+", part)[0] for part in (low, high)] == said, claim  # type: ignore[index]
        assert low in text()
        assert high in text()
    for row in table:
        for figure in re.findall(r"\d+\.\d+|\d+", row[1]):
            assert re.search(rf"(?<![\d.]){re.escape(figure)}", text()), (row[0], figure)
        assert row[3], row[0]


@pytest.mark.parametrize(
    ("heading", "words"),
    [
        ("Fig. 9", ("28.8-71.6 %", "13.0-61.5 %")),
        ("Fig. 10", ("26.5-89.6 %", "11.2-78.5 %")),
    ],
)
def test_ranges_of_blocks(heading: str, words: tuple[str, str]) -> None:
    """The paper's column of the ranges: what it saves of HMCOS and of TinyEngine."""
    found = [row[-1] for row in rows("vmcu.md", heading) if row[0].startswith("of *")]
    of_order, of_place = words
    assert found == [of_order, of_place, of_place]
    for word in words:
        low, high = re.findall(r"[\d.]+", word)
        assert re.search(rf"{low}\D+{high}", text())


def test_fig_8_and_grown() -> None:
    prices = [row[-1] for row in rows("vmcu.md", "Fig. 8") if re.fullmatch(r"\d instructions", row[0])]
    assert prices[0].startswith("18.5-40.0 %")
    assert set(prices[1:]) == {"20.6-53.0 % of the energy"}
    grown = [row for row in rows("vmcu.md", "Fig. 11, 12") if "in place" in row[2]]
    assert {row[-1] for row in grown if row[0] == "the image"} == {"1.29 to 2.58"}
    assert {row[-1] for row in grown if row[0] != "the image"} == {"1.26 to 3.17"}
    assert len(grown) == 12
