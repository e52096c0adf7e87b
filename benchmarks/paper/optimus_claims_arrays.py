"""Claims of Optimus on the size of the array and on batches."""

from __future__ import annotations

from collections.abc import Iterator

from optimus_data import Claim, Data, evaluated, verdict
from optimus_more_tables import PAIRS, grown
from optimus_schemes import NETWORKS, OLDER

__all__ = ["arrays", "batches"]


def arrays(d: Data) -> Iterator[Claim]:
    up = []
    for name in evaluated(d, "fig18"):
        for pair in PAIRS:
            a, b = (d.words("fig18", network=name, chip=f"optimus-{i}", reading="paper") for i in pair)
            up.append(b / a - 1)
    yield (
        "a larger array asks for slightly more words (Fig. 18)",
        "slight increase",
        f"{100 * sum(up) / len(up):.1f} % more on average (configurations 1 to 2, 3 to 4, 5 to 6, 7 to 8)",
        "yes" if 0 < sum(up) / len(up) < 0.1 else "in part",
        "",
    )
    plain, least = grown(d, 0.0, least=False), grown(d, 0.0, least=True)
    ten, twenty, thirty = (_fall(grown(d, share, least=False)) for share in (0.1, 0.2, 0.3))
    both = grown(d, 0.1, least=True)
    smaller, larger = (grown(d, 0.0, least=False, pairs=p) for p in (PAIRS[:2], PAIRS[2:]))
    yield (
        "a larger array takes less energy",
        "decreases",
        f"it {_moves(plain)} on average and falls in {_fall(plain)} of {len(plain)}",
        verdict(_fall(plain), len(plain)),
        f"it falls from 5 to 6 and 7 to 8 in {_fall(larger)} of {len(larger)}, in the smaller buffers in"
        f" {_fall(smaller)} of {len(smaller)}; not explained: the sentence names computation efficiency and"
        " time, and section 7.1's energy has no part that goes by time; with 10, 20 or 30 % of the smaller"
        f" array's, shares that nobody measured, it falls in {ten}, {twenty} and {thirty}, with blocks of"
        f" sums of least energy in {_fall(least)}, with these and 10 % by time in {_fall(both)}"
        " ([tried](#fig-18-the-eight-configurations))",
    )


def _fall(shares: list[float]) -> int:
    return sum(x < 0 for x in shares)


def _moves(shares: list[float]) -> str:
    mean = 100 * sum(shares) / len(shares)
    return f"{'rises' if mean > 0 else 'falls'} by {abs(mean):.1f} %"


def batches(d: Data) -> Iterator[Claim]:
    names = d.names("fig19")

    def image(name: str, how: str, batch: int) -> float:
        return d.words("fig19", network=name, how=how, reading="paper", batch=batch) / batch

    def later(name: str, how: str) -> float:
        return 100 * (1 - image(name, how, 32) / image(name, how, 4))

    def held(name: str, kib: int) -> str:
        one, four, most = (d.words("cause-batch", network=name, kib=kib, batch=b) / b for b in (1, 4, 32))
        return f"{NETWORKS[name]} {100 * (1 - four / one):.0f} %, then {100 * (1 - most / four):.0f} %"

    yield (
        "beyond four images words fall no more (Fig. 19)",
        "stops dropping",
        ", ".join(f"{NETWORKS[n]} falls another {later(n, 'exact'):.0f} % to 32 images" for n in names),
        "no",
        "the buffer of one image serves all (`shared`); with buffers for all (`held`) half of the sentence"
        f" comes: they stop at four, but hardly fall before: {', '.join(held(n, 128) for n in names)};"
        f" `held` in 512 KB: {', '.join(held(n, 512) for n in names)}; not explained",
    )
    points = sorted({(r["network"], r["batch"]) for r in d.all("fig19", how="exact", reading="paper")})
    behind = [(n, b) for n, b in points if min(image(n, how, b) for how in OLDER) <= image(n, "exact", b)]
    yield (
        "ahead of both under a variety of batch sizes (Fig. 19)",
        "significantly superior",
        f"{len(points) - len(behind)} of {len(points)} networks and batches, in both readings",
        verdict(len(points) - len(behind), len(points)),
        "; ".join(
            f"{NETWORKS[n]} at batch {b}: {image(n, 'exact', b) / 1e6:.2f} Mwords against"
            f" {min(image(n, how, b) for how in OLDER) / 1e6:.2f} in tiles, which nothing can run"
            for n, b in behind
        ),
    )
