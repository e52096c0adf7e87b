"""Parts of one tensor that a nest reads beside each other."""

from __future__ import annotations

from pathlib import Path

from onchip.plans import Leaf, Nest
from run.nested import Alone, model

PARTS = """g (float[1,17,8] x) => (float[1,21,8] z) {
    first = Constant<value_ints = [0]>() one = Constant<value_ints = [1]>()
    all = Constant<value_ints = [17]>() a = Abs(x)
    word = Slice(a, first, one, one) rest = Slice(a, one, all, one) z = Concat<axis = 1>(word, R, rest) }"""


def test_parts_of_several_sizes_are_joined_as_they_lie(tmp_path: Path) -> None:
    """A row and the sixteen behind it: as parts of one tensor they have no sides in common."""
    net = Alone(model(PARTS, tmp_path, R=(1, 4, 8)))
    first, last = (op.name for op in net.network.operators)
    net.lawful(Nest((Leaf(first), Leaf(last, ((1, 1),)))))
    assert net.comparison is not None
    assert net.comparison.comparisons > 0
