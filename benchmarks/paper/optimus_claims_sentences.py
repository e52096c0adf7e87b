"""Sentences of Optimus' evaluation beside its figures: small buffers, growth, earlier fusers."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from itertools import pairwise

from optimus_data import LABELS, Claim, Data, between, energy, evaluated, verdict
from optimus_schemes import NETWORKS, OLDER
from optimus_tried_tables import saved_in_the_smallest

__all__ = ["buffer_accesses", "configurations", "earlier", "growth", "marginal", "on_chip", "small_buffers"]

TITLES = {
    "dnnvm": "DNNVM (in rows)",
    "dnnvm-tile": "DNNVM (in tiles)",
    "efficient-s": "Efficient-S (in rows)",
    "efficient-s-tile": "Efficient-S (in tiles)",
}


def small_buffers(d: Data) -> Iterator[Claim]:
    """Section 7.5: in too small a buffer neither older fuser is better than no fusion."""
    names = [
        n
        for n in d.names("fig16")
        if d.all("fig16", network=n, buffer=32 << 10, how="exact", reading="paper")
    ]

    def words(name: str, how: str) -> int:
        return d.words("fig16", network=name, buffer=32 << 10, reading="paper", how=how)

    smallest = ""
    if d.all("cause-smaller"):
        kib, saved = saved_in_the_smallest(d)
        smallest = (
            f": [in {kib} KB](#fig-16-buffer-size) {saved:.1f} % are saved at most, on the two networks that"
            " can be tried"
        )
    for how in OLDER:
        none = sum(words(n, how) == words(n, "none") for n in names)
        yield (
            f"in too small a buffer {TITLES[how]} is no better than no fusion",
            "no better",
            f"at 32 KB on {none} of {len(names)} networks",
            verdict(none, len(names)),
            "" if none == len(names) else f"32 KB is not too small for small maps{smallest}",
        )


def marginal(d: Data) -> Iterator[Claim]:
    """Section 7.5: each further KB brings less, and the two better schemes go on until all maps stay."""
    rates = {how: {n: _rates(d, n, how) for n in d.names("fig16")} for how in ("exact", "efficient-s-tile")}
    falling = sum(all(a > b for a, b in pairwise(rate)) for rate in rates["exact"].values())
    yield (
        "a larger buffer brings more where it is small",
        "higher",
        f"with each doubling fewer words are saved for a KB, on {falling} of {len(rates['exact'])} networks",
        verdict(falling, len(rates["exact"])),
        "",
    )
    last = {how: sum(0 < rate[-1] < rate[0] for rate in found.values()) for how, found in rates.items()}
    over = [
        d.words("fig16", network=n, how="exact", reading="paper", buffer=1 << 20)
        / d.all("fig16", network=n, how="exact")[0]["oracle"]
        for n in d.names("fig16")
        if n != "nasnetalarge"
    ]
    yield (
        "Optimus and Efficient-S go on to gain at a lower rate, until all maps stay on chip",
        "go on",
        f"from 512 to 1,024 KB on {last['exact']} and {last['efficient-s-tile']} of {len(rates['exact'])}"
        f" networks; at 1,024 KB {between(over)} times the oracle's words without NASNet",
        verdict(min(last.values()), len(rates["exact"])),
        "",
    )


def _rates(d: Data, name: str, how: str) -> list[float]:
    """Words saved for each KB that the buffer grows, from one size to the next."""
    rows = sorted(d.all("fig16", network=name, how=how, reading="paper"), key=lambda r: int(r["buffer"]))
    return [(a["words"] - b["words"]) / (b["buffer"] - a["buffer"]) for a, b in pairwise(rows)]


def configurations(d: Data) -> Claim:
    """Section 7.6: the best partition is another on another configuration."""
    counts = {
        n: [
            d.all("fig18", network=n, chip=f"optimus-{i}", reading="paper")[-1]["groups"] for i in range(1, 9)
        ]
        for n in evaluated(d, "fig18")
    }
    different = [len(set(groups)) for groups in counts.values()]
    return (
        "the best solution varies with the accelerator's configuration",
        "varies",
        f"{min(different)} to {max(different)} numbers of groups on the eight configurations",
        verdict(sum(n > 1 for n in different), len(different)),
        "",
    )


def growth(d: Data, convex: Mapping[str, int], operators: Mapping[str, int]) -> Claim:
    """Section 4.4: O(2^max|succ| |V|^2) groups; `operators` where another graph was counted."""
    shares = {}
    for r in d.all("cause-directions"):
        name = r["network"]
        count = operators.get(name) or d.all("tab5", network=name, how="exact")[0]["operators"]
        shares[name] = convex[name] / (2 ** r["successors"] * count**2)
    said = ", ".join(f"{NETWORKS[n]} {share:.2f}" for n, share in shares.items())
    return (
        "the algorithm's work is O(2^max succ V^2)",
        "bound",
        f"groups evaluated over 2^max succ V^2: {said}",
        "here" if all(share <= 1 for share in shares.values()) else "in part",
        "GoogLeNet with its pools in their projections, without them it has 111,024 for 104,976; as a bound"
        " it is wrong: a binary tree of 31 operators has 458,329 groups with its root, for 3,844"
        " ([errata](errata.md#optimus-fusion))",
    )


def buffer_accesses(d: Data) -> Claim:
    """Section 7.3: the older fusers access the buffer more often and spend more there."""
    names = evaluated(d, "fig13")
    said, fewest = [], len(names)
    for how in OLDER:
        ratios = [
            d.all("fig13", network=n, reading="paper", how=how)[-1]["buffer"]
            / d.all("fig13", network=n, reading="paper", how="exact")[-1]["buffer"]
            for n in names
        ]
        more = sum(ratio > 1 for ratio in ratios)
        fewest = min(fewest, more)
        said.append(f"{LABELS[how]} {between(ratios)}, more on {more}")
    return (
        "the older fusers spend more energy at the on-chip buffer",
        "more",
        f"times ours, of {len(names)} networks: {'; '.join(said)}",
        verdict(fewest, len(names)),
        "" if fewest == len(names) else "we did not measure why it is less on one: not explained",
    )


def on_chip(d: Data) -> Claim:
    """Section 7.6: moving words on chip takes little where the chip is used well."""
    rows = d.all("fig17", how="exact", register_file=64)
    shares = {r["dataflow"]: 100 * (r["buffer"] + r["array"]) / (energy(r) + r["macs"]) for r in rows}
    array = (100 * r["array"] / (energy(r) + r["macs"]) for r in rows)
    return (
        "communication on chip is a small part of the energy (Fig. 17)",
        "a small portion",
        ", ".join(f"{flow} {share:.0f} %" for flow, share in shares.items()) + ": buffer and array, 64 B",
        "no",
        "prices of a transport are ours; of the array alone, which the sentence may mean,"
        f" {', '.join(f'{share:.0f}' for share in array)} %: not explained",
    )


def earlier(d: Data) -> Claim:
    """Sections 2.2 and 7.9: faster than the earlier fusers, whose times the text does not have."""
    names = evaluated(d, "fig13")

    def seconds(name: str, how: str) -> float:
        return float(d.all("fig13", network=name, reading="paper", how=how)[-1]["seconds"])

    quick = [n for n in names if seconds(n, "exact") < min(seconds(n, h) for h in OLDER)]
    slow = [NETWORKS[n] for n in names if n not in quick]
    return (
        "searches faster than the earlier fusers",
        "even faster",
        f"faster than both of ours, rebuilt in Python, on {len(quick)} of {len(names)} networks",
        verdict(len(quick), len(names)),
        "the text has no time of theirs; our rebuilt ones are in Python, the exact search is in C++; not on"
        f" {', '.join(slow)}",
    )
