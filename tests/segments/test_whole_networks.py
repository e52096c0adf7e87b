"""Whole networks in rings: proved by the checker, in no more bytes than were reached before."""

from __future__ import annotations

from functools import cache

import pytest

from onchip.check import check
from onchip.errors import Infeasible
from onchip.mcu.made import made_model
from onchip.mcu.network import network_of
from onchip.mcu.read import model_of
from onchip.network import Network
from onchip.segments import InputMode, SegmentOptions, plan

RAM = 1 << 20

REACHED: dict[str, tuple[int, int, int]] = {
    "made:ad01": (768, 768, 768),
    "made:kws": (4_650, 4_644, 4_544),
    "made:resnet8": (12_672, 12_896, 11_136),
    "made:vww_96": (27_742, 13_568, 12_704),
    "made:mcunet_vww": (21_136, 14_848, 14_128),
}
"""Bytes for tensors and rings: input held, fetched once, fetched again. Workspaces of kernels come on top."""


@cache
def network(name: str) -> Network:
    return network_of(model_of(made_model(name), name=name, where=name))


@pytest.mark.parametrize("mode", ["held", "once", "again"])
@pytest.mark.parametrize("name", REACHED)
def test_networks_for_microcontrollers_stay_as_small_as_they_were(name: str, mode: InputMode) -> None:
    found = plan(network(name), RAM, SegmentOptions(mode))
    assert check(found) == found.result
    largest = max(op.workspace for op in found.network.operators)
    assert found.result.extent_bytes <= REACHED[name][["held", "once", "again"].index(mode)] + largest + 3


def test_once_fetches_every_byte_once_and_again_reloads() -> None:
    once, again = (plan(network("made:kws"), RAM, SegmentOptions(mode)) for mode in ("once", "again"))
    size = next(t.bytes for t in once.network.tensors if t.kind == "input")
    output = once.network.tensors[-1].bytes
    assert (once.result.traffic_bytes, once.result.compulsory_bytes) == (0, size + output)
    assert again.result.reload_bytes > 0


def test_too_little_ram_says_how_much_and_because_of_what() -> None:
    with pytest.raises(Infeasible, match=r"needs 4,[6-9]\d\d bytes, the budget has 4,000"):
        plan(network("made:kws"), 4000)


def test_every_byte_of_the_extent_is_needed_by_the_plan() -> None:
    """A pool one byte smaller than the plan's extent does not hold it."""
    found = plan(network("made:kws"), RAM)
    exact = plan(network("made:kws"), found.result.extent_bytes)
    assert exact.result.extent_bytes == found.result.extent_bytes
    with pytest.raises(Infeasible):
        plan(network("made:kws"), found.result.extent_bytes - 1)
