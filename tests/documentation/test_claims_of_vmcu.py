"""The first table of docs/vmcu.md, and the ranges below its figures, are those of the rows of its tables."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

PAGE = (Path(__file__).parents[2] / "docs" / "vmcu.md").read_text("utf-8")


def table(name: str, width: int) -> Iterator[list[str]]:
    """The rows of a section that have so many cells, without heads."""
    text = PAGE.split(f"<!-- {name}: begin -->")[1].split(f"<!-- {name}: end -->")[0]
    lines = [line for line in text.splitlines() if line.startswith("|")]
    for line, below in zip(lines, [*lines[1:], ""], strict=True):
        cells = [cell.strip() for cell in line.split("|")[1:-1]]
        if len(cells) == width and not set(line) <= set("|-:") and not below.startswith("|--"):
            yield cells


def number(cell: str) -> float:
    return float(re.findall(r"-?[\d.]+", cell.replace(",", ""))[0])


CLAIMS = list(table("claims", 5))


def ours(begins: str, after: str = "") -> str:
    """Our cell of a claim; `of HMCOS's` stands below another row."""
    texts = [row[0] for row in CLAIMS]
    first = next(k for k, text in enumerate(texts) if text.startswith(after)) if after else 0
    return next(row[2] for row in CLAIMS[first:] if row[0].startswith(begins))


def test_shares_of_fig_7_are_those_of_its_bytes() -> None:
    rows = list(table("fig7", 8))
    assert len(rows) == 9
    alone, beside = [], []
    for row in rows:
        whole, overlapped = number(row[2]), number(row[4])
        alone.append(100 * (1 - overlapped / whole))
        beside.append(100 * (whole - overlapped) / (whole + 2257))
        assert row[5:7] == [f"{alone[-1]:.2f}%", f"{beside[-1]:.2f}%"]
    assert ours("RAM saved on single layers") == f"{min(beside):.2f} to {max(beside):.2f} %"
    why = next(row[4] for row in CLAIMS if row[0] == "RAM saved on single layers")
    assert f"the same layers save {min(alone):.2f} to {max(alone):.2f} %" in why


def saved(section: str, theirs: int, mine: int) -> str:
    """The least and the most that a column saves of another, by the shapes of Table 2."""
    rows = [row for row in table(section, 9) if "the network's" not in row[0]]
    shares = [100 * (1 - number(row[mine]) / number(row[theirs])) for row in rows]
    return f"{min(shares):.1f}% to {max(shares):.1f}%"


def test_ranges_of_figs_9_and_10_are_those_of_their_blocks() -> None:
    for section, title in (("fig9", "MCUNet-5fps-VWW, blocks"), ("fig10", "MCUNet-320KB-ImageNet, blocks")):
        of = {row[0]: row[1:3] for row in table(section, 6)}
        for column, words in ((1, "of *order*"), (2, "of *in place*"), (3, "of *in place, buffers*")):
            assert of[words] == [saved(section, column, mine) for mine in (5, 6)]
        window, rings = of["of *in place, buffers*"]
        assert ours(title) == f"window {window}, onchip {rings}"
        window, rings = of["of *order*"]
        assert ours("of HMCOS's", title) == f"window {window}, onchip {rings}"


def test_bottlenecks_are_those_of_the_whole_networks() -> None:
    networks = {row[0]: row[1:] for row in table("networks", 12)}
    place, window, rings = (number(networks["mcunet_vww"][k]) for k in (4, 7, 8))
    said = f"window {100 * (1 - window / place):.1f}%, onchip {100 * (1 - rings / place):.1f}%"
    assert ours("MCUNet-5fps-VWW: bottleneck") == said
    place, window, rings = (number(networks["mcunet_320kb"][k]) for k in (4, 7, 8))
    assert ours("MCUNet-320KB-ImageNet: bottleneck") == (
        f"window {window / 1000:.1f} KB, {100 * (1 - window / place):.1f}%;"
        f" onchip {rings / 1000:.1f} KB, {100 * (1 - rings / place):.1f}%"
    )
    assert ours("HMCOS saves nothing") == ", ".join(
        f"{networks[name][3]} of {networks[name][2]}{' bytes' if name == 'mcunet_vww' else ''}"
        for name in ("mcunet_vww", "mcunet_320kb")
    )


def test_ranges_of_figs_11_and_12_are_those_of_their_blocks() -> None:
    for section, width, first, title in (
        ("fig11", 7, "the image", "larger images"),
        ("fig12", 7, "all channels", "more channels"),
    ):
        rows = [row for row in table(section, 5) if "the network's" not in row[0]]
        ranges = []
        for column in (2, 3, 4):
            found = [number(row[column]) for row in rows]
            ranges.append(f"{min(found):.2f} to {max(found):.2f}")
        (by_buffers,) = (
            row[3:6] for row in table(section, width) if row[:3] == [first, "Table 2", "*in place, buffers*"]
        )
        assert by_buffers == ranges
        assert ours(title) == f"window {ranges[1]} x, onchip {ranges[2]} x"


def test_more_comes_from_how_sums_become_bytes_in_eight_cases() -> None:
    """Of Fig. 8's savings: what rounding as TinyEngine does takes away, over what unrolling adds."""
    shares = {row[0]: [number(cell) for cell in row[1:4]] for row in list(table("fig8", 8))[:9]}
    more = [case for case, (plain, unrolled, rounded) in shares.items() if plain - rounded > unrolled - plain]
    assert more == ["1", "2", "3", "4", "5", "6", "7", "9"]
    why = next(row[4] for row in CLAIMS if row[0].startswith("a reason for the energy: the innermost"))
    assert why.endswith("; in eight of nine cases more comes from how sums become bytes")
    assert "In eight of the nine cases, all but the eighth," in PAGE


def test_widths_of_which_3_17_times_as_many_channels_are_whole() -> None:
    """Table 2's channels in and out of S1 to S8, the factor rounded or cut to two places."""
    widths = (16, 24, 40, 48, 96)
    rounded = {w: n for w in widths for n in range(w, 8 * w) if abs(1000 * n - 3170 * w) < 5 * w}
    cut = {w: n for w in widths for n in range(w, 8 * w) if 100 * n // w == 317}
    assert rounded == {24: 76, 48: 152, 96: 304}
    assert cut == {40: 127, 96: 305}
    words = (
        "it comes of 24, 48 and 96, as 76, 152 and 304, where it is rounded, and of 40 and 96, as 127 and"
        " 305, where it is cut"
    )
    assert words in " ".join(PAGE.split())
