"""Loops along which windows slide: the worked example of the law, rings, refusals, absurd sizes."""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path

import pytest
from nest_plans import slid

from onchip.check.nests import Nested, nested
from onchip.check.rules import Broken
from onchip.network import Network, OperatorSpec, Reach, Side
from onchip.plans import Group, Leaf, Loop, Nest


def judged(network: Network, nest: Nest) -> Nested:
    members = tuple(op.name for op in network.operators)
    return nested(network, Group("g", members, 0, tiling=nest), range(len(members)), None, 1)


EXAMPLE = slid((8, 8, 4), ((1, 1, 3), (2, 1, 3)))
OVER = (("c1", 0), ("c2", 0))


@pytest.mark.parametrize(
    ("ring", "made", "there", "fetched", "crossing", "scratch"),
    [
        (("h1", "x"), [2, 2, 2, 2], [2, 3, 3, 3], [3, 2, 2, 1], 8 + 4, 8),
        (("h1",), [2, 2, 2, 2], [2, 3, 3, 3], [3, 4, 4, 3], 14 + 4, 7),
        ((), [2, 3, 3, 3], [2, 3, 3, 3], [3, 5, 5, 4], 17 + 4, 8),
    ],
)
def test_the_worked_example(
    ring: tuple[str, ...], made: list[int], there: list[int], fetched: list[int], crossing: int, scratch: int
) -> None:
    law = judged(EXAMPLE, Nest((Loop(OVER, 1, (Leaf("c1"), Leaf("c2")), ("x",), ring),)))
    (windows,) = law.layout.windows
    assert windows.turns == 4
    assert [*windows.made[0].lengths] == made
    assert [*windows.there[1].lengths] == there
    assert [*windows.moved[0].lengths] == fetched
    assert sum(law.crossing.values()) == crossing
    assert law.layout.need == scratch


def test_the_example_of_the_page() -> None:
    page = (Path(__file__).resolve().parents[2] / "docs" / "nests.md").read_text()
    (example,) = re.findall(r"^```python\n(.*?)^```$", page, re.MULTILINE | re.DOTALL)
    exec(example, {})


def test_a_ring_lives_in_the_whole_body() -> None:
    loop = Loop(OVER, 1, (Leaf("c1"), Leaf("c2")), ("x",), ("x",))
    places = {p.buffer: p for p in judged(EXAMPLE, Nest((loop,))).layout.places}
    assert (places[0].ring, places[0].first, places[0].last) == (0, 0, 1)
    assert (places[1].ring, places[1].sides) == (None, (3,))


def test_rows_made_again_are_work_and_rows_never_made_are_none() -> None:
    loop = Loop(OVER, 1, (Leaf("c1"), Leaf("c2")))
    assert judged(EXAMPLE, Nest((loop,))).layout.macs == 2 + 3 + 3 + 3 + 4
    skipping = slid((9, 9, 4), ((1, 0, 1), (2, 0, 1)))
    assert judged(skipping, Nest((replace(loop, ring=("h1",)),))).layout.macs == 7 + 4
    assert judged(skipping, Nest((loop,))).layout.macs == 4 + 4


@pytest.mark.parametrize("ring", [(), ("h1",)])
def test_rows_that_leave_are_stored_once_though_made_again(ring: tuple[str, ...]) -> None:
    both = slid((8, 8, 4), ((1, 1, 3), (2, 1, 3)), ("h1", "h2"))
    law = judged(both, Nest((Loop(OVER, 1, (Leaf("c1"), Leaf("c2")), ("h1",), ring),)))
    assert law.layout.macs - 4 == (8 if ring else 2 + 3 + 3 + 3)
    assert law.crossing[both.tensor_id["h1"]] == 8


def test_a_ring_keeps_what_a_reader_needs_that_begins_late() -> None:
    """c2 needs row j in turn j; c3, which c4 delays by 3 rows, needs it in turn j + 3."""
    exact = Side(6, 0)
    rows = {
        "c1": ("x", (exact,), 6),
        "c2": ("h1", (exact,), 6),
        "c3": ("h1", (exact,), 6),
        "c4": ("h3", (Side(6, 0, before=3),), 6),
    }
    specs = [
        OperatorSpec(name, "Any", [read], [f"h{name[1]}"], reach=Reach((n,), (sides,)))
        for name, (read, sides, n) in rows.items()
    ]
    tensors = [("x", 6, "input"), *((f"h{n}", 6, "activation") for n in range(1, 5))]
    network = Network.build("late", tensors, specs, ["h2", "h4"])  # type: ignore[arg-type]
    loop = Loop(tuple((name, 0) for name in rows), 1, tuple(map(Leaf, rows)), (), ("h1",))
    law = judged(network, Nest((loop,)))
    (windows,) = law.layout.windows
    (h1,) = [n for n, p in enumerate(law.layout.places) if law.layout.axes.buffers[p.buffer].name == "h1"]
    assert [*map(len, (windows.made[2][j] for j in range(6)))] == [0, 0, 0, 1, 1, 1]
    assert [windows.there[h1][j] for j in range(6)] == [range(max(0, j - 3), j + 1) for j in range(6)]


@pytest.mark.parametrize("rows", [10**9, 10**12])
def test_absurdly_many_turns_are_refused_at_once(rows: int) -> None:
    far = slid((rows, rows), ((1, 1, 3),))
    with pytest.raises(Broken, match="group-unproved"):
        judged(far, Nest((Loop((("c1", 0),), 1, (Leaf("c1"),)),)))
    law = judged(far, Nest((Loop((("c1", 0),), rows // 4, (Leaf("c1", ((0, 1),)),)),)))
    assert law.crossing == {0: rows + 6, 1: rows}


def test_absurd_strides_are_refused() -> None:
    n = 40
    far = slid((8,) * n, [(1, 0, 8, 10**12 - 11 - v) for v in range(n - 1)])
    leaves = tuple(Leaf(op.name) for op in far.operators)
    with pytest.raises(Broken, match="of absurd strides"):
        judged(far, Nest((Loop(tuple((leaf.operator, 0) for leaf in leaves), 1, leaves),)))


@pytest.mark.parametrize(("leaves", "legal"), [((), True), (("t",), False)])
def test_a_sum_goes_on_in_every_turn(leaves: tuple[str, ...], legal: bool) -> None:
    """g sums two of the numbers that f makes, every second; if they leave, f makes the others, too."""
    f = OperatorSpec("f", "Any", ["x"], ["t"], reach=Reach((5,), ((Side(5, 0),),)))
    g = OperatorSpec("g", "Any", ["t"], ["y"], reach=Reach((1,), ((Side(5, 1, 2),),), sums=(2,)))
    network = Network.build(
        "sums", [("x", 5, "input"), ("t", 5, "activation"), ("y", 1, "activation")], [f, g], ["y", *leaves]
    )
    nest = Nest((Loop((("f", 0), ("g", 1)), 1, (Leaf("f"), Leaf("g"))),), ("y",))
    if legal:
        assert judged(network, nest).crossing == {0: 2, 2: 1}
    else:
        with pytest.raises(Broken, match="turns g sums nothing"):
            judged(network, nest)
