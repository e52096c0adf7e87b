"""ATen operators that networks of today need besides: indices, grids, windows, recurrences; against torch."""

from __future__ import annotations

from typing import Any

import pytest

torch = pytest.importorskip("torch")

from test_torch_operators import IMAGE, x  # noqa: E402
from torch_modules import Calling, agrees  # noqa: E402

from onchip.base.errors import ModelError  # noqa: E402

pytestmark = pytest.mark.slow

nn = torch.nn


def _picked(t: Any) -> Any:
    return t.abs().mul(3).long().clamp(0, 7)


def _grid(t: Any, indexing: str) -> Any:
    rows, columns = torch.meshgrid(t[0, 0, 0], t[0, 0, 1, :4], indexing=indexing)
    return rows * 10 + columns


FUNCTIONS = {
    "known indices of two axes behind others": lambda t: t[:, :, torch.tensor([0, 3]), torch.tensor([1, -1])],
    "known indices of axes with one between": lambda t: t[:, torch.tensor([0, 3]), :, torch.tensor([1, 2])],
    "computed indices of two axes": lambda t: t[:, _picked(t[0, :2, 0, 0]) % 4, _picked(t[0, 2:, 0, 0])],
    "computed indices that are repeated": lambda t: t[0, 0][_picked(t[0, 0, :3, :1]), _picked(t[0, 1, 0])],
    "windows": lambda t: t.unfold(2, 4, 2),
    "windows of the last axis": lambda t: t.unfold(3, 3, 3),
    "grid": lambda t: _grid(t, "ij"),
    "grid, crossed": lambda t: _grid(t, "xy"),
    "constant grid": lambda t: t + torch.meshgrid(torch.arange(8.0), torch.arange(10.0), indexing="ij")[1],
    "order": lambda t: t.argsort(2, descending=True).float() + t,
    "patches": lambda t: nn.functional.unfold(t, (3, 2), dilation=(2, 1), padding=(2, 0), stride=(1, 2)),
    "constant parts": lambda t: t + torch.arange(20.0).chunk(2)[1],
    "sums at indices": lambda t: t.index_add(2, torch.tensor([0, 3, 3]), t[:, :, :3], alpha=2),
    "sums at computed indices": lambda t: torch.zeros(8, 8).index_add(0, _picked(t[0, 0, 0]), t[0, 0].mT),
    "scattered": lambda t: torch.zeros_like(t).scatter(-1, t.topk(3).indices, t.topk(3).values),
    "a number scattered": lambda t: t.scatter(1, t.argmax(1, keepdim=True), -1.0),
    "added at indices": lambda t: t.scatter_add(3, _picked(t), t),
    "attention with one row of a mask": lambda t: nn.functional.scaled_dot_product_attention(
        t, t, t, attn_mask=(t[:, :1, :1, :8] > 0)
    ),
    "attention with the same row of a mask for all": lambda t: nn.functional.scaled_dot_product_attention(
        t[0], t[0], t[0], attn_mask=t[0, :1, :1, :8]
    ),
    "group norm of rows": lambda t: nn.functional.group_norm(t[:, :, 0], 2) + 1,
    "group norm of maps": lambda t: nn.functional.group_norm(t, 4) * t,
}  # fmt: skip


@pytest.mark.parametrize("name", FUNCTIONS)
def test_function(name: str) -> None:
    agrees(Calling(lambda m, t: FUNCTIONS[name](t + 0.25)), x(*IMAGE))


@pytest.mark.parametrize("bias", [True, False])
@pytest.mark.parametrize("both", [True, False])
@pytest.mark.parametrize("kind", ["LSTM", "GRU", "RNN"])
def test_recurrences(kind: str, both: bool, bias: bool) -> None:
    """All outputs and last states of two layers, images first and steps first."""
    torch.manual_seed(0)
    for first in (True, False):
        part = getattr(nn, kind)(5, 6, 2, bias=bias, bidirectional=both, batch_first=first)

        def function(m: Any, t: Any) -> Any:
            made, state = m.part(t)
            return (made, *state) if isinstance(state, tuple) else (made, state)

        agrees(Calling(function, part=part), x(3, 4, 5))


@pytest.mark.parametrize("bias", [True, False])
@pytest.mark.parametrize("kind", ["LSTMCell", "GRUCell", "RNNCell"])
def test_cells(kind: str, bias: bool) -> None:
    """Two steps, the second one from what the first one made."""
    torch.manual_seed(0)
    part = getattr(nn, kind)(5, 6, bias=bias)

    def function(m: Any, t: Any) -> Any:
        state = m.part(t[1], m.part(t[0]))
        return state if isinstance(state, tuple) else (state,)

    agrees(Calling(function, part=part), x(2, 4, 5))


@pytest.mark.parametrize("mode", ["sum", "mean", "max"])
def test_bags_of_rows(mode: str) -> None:
    torch.manual_seed(0)
    part = nn.EmbeddingBag(9, 6, mode=mode)
    agrees(Calling(lambda m, t: m.part((t * 4).abs().long().clamp(max=8)), part=part), x(3, 4))


@pytest.mark.parametrize(
    ("call", "reason"),
    [
        (lambda m, t: m.part(t.long(), torch.tensor([0, 1])), "has bags of several sizes"),
        (lambda m, t: m.part(t.long(), t[:2].long()), "bags of sizes that only their contents tell"),
        (lambda m, t: m.part(t.long()[None], per_sample_weights=t[None]), "weighs its rows"),
    ],
)
def test_bags_that_have_no_counterpart(call: Any, reason: str) -> None:
    with pytest.raises(ModelError, match=reason):
        agrees(Calling(call, part=nn.EmbeddingBag(9, 6, mode="sum")), x(4).abs())


def test_a_recurrence_that_starts_somewhere() -> None:
    torch.manual_seed(0)
    part = nn.GRU(5, 6, 2)
    agrees(Calling(lambda m, t, s: m.part(t, s.tanh())[0], part=part), x(3, 4, 5), x(2, 4, 6))


@pytest.mark.parametrize(
    ("call", "reason"),
    [
        (lambda t: t.scatter_reduce(1, t.argmax(1, keepdim=True), t[:, :1], "mean"), "reduces in a way"),
        (lambda t: t.scatter(1, t.argmax(1, keepdim=True), t), "takes a part of what it scatters"),
    ],
)
def test_what_has_no_counterpart_is_one_line(call: Any, reason: str) -> None:
    with pytest.raises(ModelError, match=reason):
        agrees(Calling(lambda m, t: call(t + 0.25)), x(*IMAGE))
