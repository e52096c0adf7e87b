"""What the text of "A Simple Method ..." claims, ours beside it: the table at the head of its page."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import groupby, pairwise

from simple_method_layers import NETWORKS, rank_correlation, sizes_by_layer
from simple_method_plan import COLUMNS, PAPER, PAPER_ACCESSES, PAPER_REDUCTION, Measured, conclusion

__all__ = ["claims"]


def claims(found: Measured) -> Iterator[str]:
    yield "| claim | the paper | ours | holds | why |"
    yield "|---|---|---|:-:|---|"
    for one in (*_headline(found), *_modules(found), *_branches(found), _shapes()):
        yield "| " + " | ".join(one) + " |"


Claim = tuple[str, str, str, str, str]


def _yes(holds: bool) -> str:
    return "yes" if holds else "no"


def _headline(found: Measured) -> Iterator[Claim]:
    less, times = conclusion(found)
    ours, theirs = (dict(zip(COLUMNS, rows["total"], strict=True)) for rows in (found.rows, PAPER))
    accesses = ours["reads"] + ours["writes"]
    yield (
        "fewer feature-map bytes off chip",
        f"{PAPER_REDUCTION} %",
        f"{less} %",
        _yes(less == PAPER_REDUCTION),
        "",
    )
    yield (
        "off-chip accesses to feature maps",
        f"1/{PAPER_ACCESSES}",
        f"1/{times:g}, {accesses:g} of {ours['naive reads'] + ours['naive writes']:g}",
        _yes(times == PAPER_ACCESSES),
        "",
    )
    for column, what in (("ratio %", "all that crosses, of naive"), ("FM ratio %", "feature maps, of naive")):
        same = ours[column] == theirs[column]
        yield what, f"{theirs[column]:.2f} %", f"{ours[column]:.2f} %", _yes(same), ""


def _modules(found: Measured) -> Iterator[Claim]:
    names = [name for name in PAPER if name != "total"]
    yield "modules of Inception-V3 (Fig. 4)", "11", str(len(found.again)), _yes(len(found.again) == 11), ""
    at = {name: dict(zip(COLUMNS, found.rows[name], strict=True)) for name in names}
    moving = [name for name in names if at[name]["FM"]]
    two = [name for name, p in zip(names, found.again, strict=True) if p.processing == "II"]
    yield (
        "modules whose feature maps cross at all",
        "reduction-a, inception-b1",
        ", ".join(moving),
        _yes(moving == ["reduction-a", "inception-b1"]),
        "the second reads once what the first wrote in three accesses",
    )
    yield (
        "modules with branch processing II (Fig. 10)",
        "reduction-a",
        ", ".join(two),
        _yes(two == ["reduction-a"]),
        "with a copy of a strided layer's input for working memory, which the text leaves open, and which"
        " is not counted in the order of branches where it is of the module's input: counted there,"
        " none without Algorithm 6's IFM.Partial, reduction-a with a quarter or an eighth of the input for it"
        " ([measured](#the-working-memory))",
    )


def _branches(found: Measured) -> Iterator[Claim]:
    falling = 0
    unsorted, level = [], []
    for name, p in zip(PAPER, found.again, strict=False):
        branches = [list(layers) for _, layers in groupby(p.layers, key=lambda layer: layer.branch)]
        falling += all(a > b for a, b in pairwise(layers[0].available for layers in branches))
        if any(a <= b for a, b in pairwise(min(layer.available for layer in one) for one in branches)):
            level.append(name)
        if any(a < b for a, b in pairwise(max(layer.required for layer in one) for one in branches)):
            unsorted.append(name)
    count = len(found.again)
    yield (
        "branches are re-ordered by what they require (Fig. 10)",
        "re-ordered by size_req",
        f"in {count - len(unsorted)} of {count} modules each branch's hungriest layer requires no more than"
        " the one before",
        "yes" if not unsorted else "in part",
        f"not in {', '.join(unsorted)}: ours leaves copies of the module's input out of the order",
    )
    yield (
        "less is available to each later branch (Fig. 10)",
        "decreases",
        f"at the first layer of each branch less in {falling} of {count} modules",
        "yes" if falling == count else "in part",
        f"the least over a branch's layers falls in {count - len(level)}: in {' and '.join(level)} a branch"
        " forks again, and its inner layers have less by that inner module's input and first output",
    )


def _shapes() -> Claim:
    ours, holds = [], True
    for name, title in NETWORKS.items():
        layers = sizes_by_layer(name)
        up = rank_correlation([layer.weights for layer in layers])
        down = rank_correlation([layer.maps for layer in layers])
        holds = holds and up > 0.5 and down < -0.5
        ours.append(f"{title} {up:.2f} and {down:.2f}")
    return (
        "weights grow and feature maps shrink with the index of the layer (Fig. 1)",
        "increases, decreases",
        "; ".join(ours),
        _yes(holds),
        "rank correlations with the index: 1 is always up, -1 always down",
    )
