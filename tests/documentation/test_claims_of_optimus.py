"""The first table of docs/optimus.md counts what the tables below it have."""

from __future__ import annotations

import re
from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path
from statistics import mean

import onchip

PAGE = (Path(__file__).parents[2] / "docs" / "optimus.md").read_text("utf-8")
TEN = (
    "AlexNet without FC", "VGG16", "GoogLeNet", "ResNet-18", "ResNet-50", "ResNet-152", "MobileNet",
    "SqueezeNet", "NASNet", "ResNet-1202",
)  # fmt: skip
EIGHT = TEN[:8]
"""The networks of Table 4."""


def section(name: str) -> str:
    return PAGE.split(f"<!-- {name}: begin -->")[1].split(f"<!-- {name}: end -->")[0]


def table(name: str, before: str = "") -> Iterator[list[str]]:
    """The rows of the table of a section that follows a line beginning so, its head first."""
    lines = section(name).splitlines()
    at = next(k for k, line in enumerate(lines) if line.startswith(before or "| "))
    at = next(k for k in range(at, len(lines)) if lines[k].startswith("| "))
    while at < len(lines) and lines[at].startswith("|"):
        if not lines[at].startswith("|--"):
            yield [cell.strip() for cell in lines[at].strip("|").split("|")]
        at += 1


def numbers(cells: list[str]) -> list[float]:
    return [float(re.findall(r"-?[\d.]+", cell.replace(",", ""))[0]) for cell in cells]


CLAIMS = {row[0]: row[2:] for row in table("claims")}


def claim(begins: str) -> list[str]:
    """Ours, whether it holds, and why."""
    (found,) = (cells for text, cells in CLAIMS.items() if text.startswith(begins))
    return found


def words() -> dict[str, dict[str, float]]:
    """Mwords under the paper's options by network and scheme."""
    head, *rows = table("fig14", "Mwords, the paper's options")
    return {row[0]: dict(zip(head[1:], numbers(row[1:]), strict=True)) for row in rows}


def test_shares_of_words_and_how_many_lie_in_the_papers_range() -> None:
    for fuser, low, high in (("DNNVM", 19, 75), ("Efficient-S", 17, 58)):
        tiles, rows = (
            [100 * (1 - words()[n]["exact"] / words()[n][f"{fuser}, {how}"]) for n in TEN]
            for how in ("tiles", "rows")
        )
        ours, holds, why = claim(f"fewer DRAM words than {fuser}")
        assert ours == (
            f"{min(tiles):.0f}-{max(tiles):.0f} % in tiles, {min(rows):.0f}-{max(rows):.0f} % in rows"
        )
        inside = sum(low - 0.5 <= share < high + 0.5 for share in tiles)
        assert why.startswith(f"{inside} of 10 networks lie in the paper's range in tiles")
        assert holds == "in part"


def test_energy_as_it_is_and_with_registers_of_one_sum() -> None:
    _, *rows = table("fig13", "Energy over the exact partition's")
    for fuser, low, high in (("DNNVM", 1.89, 3.66), ("Efficient-S", 1.86, 3.47)):
        found = [numbers(row[2:]) for row in rows if row[0] in TEN and row[1] == f"{fuser}, tiles"]
        plain, one = [row[0] for row in found], [row[4] for row in found]
        ours, holds, why = claim(f"{fuser}'s energy over ours")
        assert ours == f"{min(plain):.2f} to {max(plain):.2f} in tiles"
        assert f"{min(one):.2f} to {max(one):.2f}, {sum(low <= x <= high for x in one)} of 10 in" in why
        assert holds == "no"


def test_latency_on_average_by_the_width_of_the_bus() -> None:
    _, *rows = table("fig13", "Latency over the exact partition's")
    cells = {row[0]: numbers(row[1:]) for row in rows}
    for fuser, at in (("DNNVM", 2), ("Efficient-S", 6)):
        wide, narrow = (mean(cells[n][at + k] for n in TEN) for k in (0, 1))
        ours, _, why = claim(f"{fuser}'s latency over ours")
        assert abs(float(ours.removesuffix(" in tiles")) - wide) < 0.011
        (said,) = re.findall(r"with 32 bits, not 64, ([\d.]+)", why)
        assert abs(float(said) - narrow) < 0.011


def test_words_on_line() -> None:
    more = [100 * (words()[n]["on-line"] / words()[n]["exact"] - 1) for n in TEN]
    ours, holds, _ = claim("the on-line variant")
    assert ours.endswith(f"; words {mean(more):.1f} % more on average, {max(more):.1f} % at most")
    assert holds == "yes"
    _, *rows = table(
        "fig13", "Energy without multiply-accumulates, relative to the exact partition, the paper's"
    )
    energy = [100 * (float(row[-1]) - 1) for row in rows if row[0] in TEN]
    average, most = (float(share) for share in re.findall(r"([\d.]+) %", ours.partition(";")[0]))
    assert len(energy) == 10
    assert abs(average - mean(energy)) < 0.5 > abs(most - max(energy)) - 0.01


def test_register_files_of_the_papers_table_3() -> None:
    """Less energy at 32 B than at 64 B on two of three dataflows; 64 B beside 512 B, which is ours."""
    cells = {(row[0], row[1]): row for row in table("fig17") if row[2] == "exact"}
    flows = ("ow-cout", "oh-ow", "cin-cout")
    small, paper, large = (
        {flow: float(cells[flow, f"{size} B"][8]) for flow in flows} for size in (32, 64, 512)
    )
    ours, holds, why = claim("a smaller register file takes less energy")
    less, least = (sum(a[flow] < b[flow] for flow in flows) for a, b in ((small, paper), (paper, large)))
    assert f"Table 3's sizes: {less} of 3 dataflows; 64 B against 512 B, a size of ours: {least} of 3" in ours
    assert holds == "in part"
    (worse,) = (flow for flow in flows if small[flow] > paper[flow])
    array = [cells[worse, f"{size} B"][5] for size in (32, 64)]
    assert why.startswith(
        f"{worse} takes {small[worse]:.2f} at 32 B and {paper[worse]:.2f} at 64 B, its array"
        f" {' and '.join(array)}"
    )


def test_the_whole_vgg16s_maps_are_fewer_than_its_parameters() -> None:
    """With its classifier, as the text cites it: one image and the evaluation's four."""
    network = onchip.load("zoo:vgg16").network
    maps = sum(network.tensors[t].bytes for op in network.operators for t in op.outputs)
    assert f"{maps / network.weight_bytes:.2f}" == "0.11"
    assert f"{4 * maps / network.weight_bytes:.2f}" == "0.44"


def test_shares_of_figures_1_2_and_7() -> None:
    shares = {row[0]: numbers(row[1:]) for row in list(table("fig1"))[1:]}
    dram, fewer = ([row[k] for row in shares.values()] for k in (0, 5))
    ours, _, why = claim("DRAM takes most of the energy")
    above = ", ".join(name for name, row in shares.items() if row[0] > 50)
    assert ours == f"above half on {above}; {min(dram):.0f} to {max(dram):.0f} %"
    assert (
        f"{min(fewer):.0f} to {max(fewer):.0f} %, more than half on {sum(s > 50 for s in fewer)} of 11" in why
    )
    maps = {row[0]: numbers(row[1:3]) for row in list(table("fig2"))[1:]}
    ours, _, why = claim("feature maps far exceed")
    for name in ("MobileNet", "SqueezeNet", "VGG16"):
        times = maps[name][0] / maps[name][1]
        assert f"{name} {times:.1f} times" in ours
        (said,) = re.findall(rf"{name} ([\d.]+) times", why)
        assert abs(float(said) - 4 * times) < 0.06
    groups = {row[0]: numbers(row[1:]) for row in list(table("fig7"))[1:]}
    all_, few = (
        100 * sum(sum(groups[n][4::3]) for n in names) / sum(sum(groups[n][3::3]) for n in names)
        for names in (TEN, [n for n in TEN if n != "ResNet-1202"])
    )
    said = f"{all_:.0f} % of groups of 2 to 4 operators fit 128 KB, {few:.0f} % without ResNet-1202"
    assert claim("buffers often cannot hold")[0] == said


def curves() -> dict[tuple[str, str], list[float]]:
    """Mwords by network and scheme, from the smallest buffer that the row has."""
    _, *rows = table("fig16")
    return {(row[0], row[1]): numbers([cell for cell in row[2:] if cell != "-"]) for row in rows}


OLDER = ("DNNVM, rows", "DNNVM, tiles", "Efficient-S, rows", "Efficient-S, tiles")
EXACT = "exact, the paper's options"


def test_claims_on_buffers() -> None:
    found = curves()
    names = list(dict.fromkeys(name for name, _ in found))
    margins = [
        min(found[n, how][k] for how in OLDER) - found[n, EXACT][k]
        for n in names
        for k in range(len(found[n, EXACT]))
    ]
    ahead, equal = sum(m > 0 for m in margins), sum(m == 0 for m in margins)
    assert claim("ahead of both at every buffer size")[0] == (
        f"{ahead} of {len(margins)} networks and sizes, in both readings; equal in {equal}"
    )
    small = [n for n in names if n != "NASNet"]
    for how in OLDER:
        fuser, reading = how.split(", ")
        none = sum(found[n, how][0] == found[n, "no fusion"][0] for n in small)
        ours, holds, _ = claim(f"in too small a buffer {fuser} (in {reading})")
        assert ours == f"at 32 KB on {none} of {len(small)} networks"
        assert holds == ("in part" if 2 * none >= len(small) else "no")
    asked = [found[n, how] for n in names for how in (EXACT, *OLDER)]
    falling = sum(all(a >= b for a, b in pairwise(curve)) for curve in asked)
    assert claim("larger buffers reduce words")[0] == f"{falling} of {len(asked)} curves never rise"
    stopped = [n for n in names if found[n, "DNNVM, tiles"][-1] >= 0.95 * found[n, "DNNVM, tiles"][-3]]
    goes = sum(found[n, EXACT][-1] < 0.95 * found[n, EXACT][-3] for n in names)
    ours = claim("larger buffers stop to help DNNVM")[0]
    assert f"on {len(stopped)} of {len(names)} networks ({', '.join(stopped)})" in ours
    assert ours.endswith(f"falls further on {goes}")


def test_words_saved_for_a_kilobyte() -> None:
    """Fewer with each doubling of the buffer; at the end some are saved still, and how many are left."""
    found = curves()
    names = list(dict.fromkeys(name for name, _ in found))
    rates = {}
    for n, how in ((n, how) for n in names for how in (EXACT, "Efficient-S, tiles")):
        curve = found[n, how]
        first = 7 - len(curve)  # a row of four sizes begins at 128 KB
        rates[n, how] = [(a - b) / (16 * 2 ** (first + k)) for k, (a, b) in enumerate(pairwise(curve))]
    falling = sum(all(a > b for a, b in pairwise(rates[n, EXACT])) for n in names)
    assert claim("a larger buffer brings more")[0].endswith(f"on {falling} of {len(names)} networks")
    last = [sum(0 < rates[n, how][-1] < rates[n, how][0] for n in names) for how in (EXACT, OLDER[-1])]
    over = [found[n, EXACT][-1] / oracle for n, oracle in oracles().items() if n != "NASNet"]
    assert claim("Optimus and Efficient-S go on to gain")[0] == (
        f"from 512 to 1,024 KB on {last[0]} and {last[1]} of {len(names)} networks; at 1,024 KB"
        f" {min(over):.2f} to {max(over):.2f} times the oracle's words without NASNet"
    )


def oracles() -> dict[str, float]:
    return {name: row["oracle"] for name, row in words().items()}


def test_milliseconds_of_the_searches() -> None:
    """Of the seven networks of Table 5, under the paper's options."""
    _, *rows = table("tab5")
    seven = [row for row in rows if row[1] == "paper" and row[-5] != "-"]
    proved = {row[0]: float(row[6].replace(",", "")) for row in seven if row[8] == "proved"}
    line = [float(row[7].replace(",", "")) for row in seven]
    ours, _, why = claim("milliseconds to the optimum, bottom-up")
    assert ours.startswith(
        f"{min(proved.values()):.2f} to {max(proved.values()):.2f}; NASNet ends by the clock"
    )
    (nasnet,) = (row for row in table("intervals", "| network | Mwords") if row[0] == "NASNet")
    assert why.endswith(f"NASNet takes {float(nasnet[2]):.0f} ms")
    assert claim("milliseconds on line")[0] == f"{min(line):.2f} to {max(line):.2f}"
    each = [proved[row[0]] / numbers(row[4:5])[0] for row in seven if row[0] in proved]
    ours, holds, _ = claim("milliseconds to cost a group")
    assert ours == f"at most {max(each):.3f} for each candidate"
    assert holds == "yes"


def test_words_of_larger_arrays() -> None:
    _, *rows = table("fig18", "Mwords / energy in 10^9 multiply-accumulates / ms, the paper's options")
    more = []
    for name, *cells in rows:
        if name in TEN:
            at = numbers(cells)
            more += [at[b] / at[a] - 1 for a, b in ((0, 1), (2, 3), (4, 5), (6, 7))]
    said = f"{100 * mean(more):.1f} % more on average"
    assert claim("a larger array asks for slightly more words")[0].startswith(said)


def test_points_away_from_table_4() -> None:
    head, *rows = table("tab4")
    by = {tuple(row[:2]): dict(zip(head[2:], row[2:], strict=True)) for row in rows}
    for chip, title in (("eyeriss", "Eyeriss"), ("shidiannao", "ShiDianNao"), ("lower-bound", "[7]")):
        theirs, ours = by[chip, "the paper"], by[chip, "the paper's options"]
        apart = [abs(float(theirs[n]) - float(ours[n])) for n in EIGHT if ours[n] != "-"]
        said = f"{mean(apart):.0f} points away on average ({len(apart)} of 8 networks)"
        assert claim(f"DRAM words saved on {title}")[0] == said
    better = sum(float(by["eyeriss", "the paper's options"][n]) > 0 for n in EIGHT)
    assert claim("on Eyeriss Optimus")[:2] == [f"on {better} of 8 networks", "in part"]


def test_the_index_says_of_the_searches_what_the_claims_do() -> None:
    ours = claim("searches faster than the earlier fusers")[0]
    (count,) = re.findall(r"on (\d+ of 10 networks)", ours)
    index = (Path(__file__).parents[2] / "docs" / "exhibits.md").read_text("utf-8")
    (row,) = (line for line in index.splitlines() if line.startswith("| faster than earlier fusers |"))
    assert row.endswith(f"is faster on {count} |")
