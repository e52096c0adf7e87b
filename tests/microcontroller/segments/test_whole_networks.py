"""Whole networks in rings: proved by the checker, in no more bytes than were reached before."""

from __future__ import annotations

from functools import cache

import pytest

from onchip.base.errors import Infeasible
from onchip.check import check
from onchip.microcontroller.int8.read import model_of
from onchip.microcontroller.made import made_model
from onchip.microcontroller.network import network_of
from onchip.microcontroller.segments import InputMode, SegmentOptions, plan
from onchip.network import Network

RAM = 1 << 20

FREE: dict[str, tuple[int, int, int]] = {
    "made:ad01": (768, 768, 768),
    "made:kws": (6_250, 5_924, 5_864),
    "made:resnet8": (15_296, 12_896, 12_635),
    "made:vww_96": (27_742, 14_528, 14_252),
    "made:mcunet_vww": (21_784, 16_744, 16_051),
}
"""Bytes that cost no instructions: input held, fetched once, fetched again. Workspaces come on top."""

ONCE: dict[str, tuple[int, int, int]] = {
    "made:kws": (4_650, 4_324, 4_224),
    "made:resnet8": (12_672, 11_888, 9_664),
    "made:vww_96": (27_742, 13_568, 12_704),
    "made:mcunet_vww": (21_136, 14_848, 14_128),
}
"""The fewest bytes without making anything twice."""


@cache
def network(name: str) -> Network:
    return network_of(model_of(made_model(name), name=name, where=name))


def own_work(network: Network) -> int:
    return sum(op.work for op in network.operators)


@pytest.mark.thorough
@pytest.mark.parametrize("mode", ["held", "once", "again"])
@pytest.mark.parametrize("name", FREE)
def test_networks_for_microcontrollers_stay_as_small_as_they_were(name: str, mode: InputMode) -> None:
    found = plan(network(name), RAM, SegmentOptions(mode))
    assert check(found) == found.result
    largest = max(op.workspace for op in found.network.operators)
    assert found.result.extent_bytes <= FREE[name][["held", "once", "again"].index(mode)] + largest + 3
    assert found.result.macs in (None, own_work(found.network))


DEAR = {
    ("made:resnet8", "once"),
    ("made:resnet8", "again"),
    ("made:vww_96", "once"),
    ("made:vww_96", "again"),
    ("made:mcunet_vww", "again"),
}
"""Some five seconds and more each: shorter ones are here."""

TIGHT = [
    pytest.param(name, mode, marks=pytest.mark.campaign if (name, mode) in DEAR else ())
    for name in ONCE
    for mode in (("again",) if name == "made:mcunet_vww" else ("held", "once", "again"))
]


@pytest.mark.thorough
@pytest.mark.parametrize(("name", "mode"), TIGHT)
def test_a_tight_limit_is_met_without_making_anything_twice(name: str, mode: InputMode) -> None:
    largest = max(op.workspace for op in network(name).operators)
    limit = ONCE[name][["held", "once", "again"].index(mode)] + largest + 3
    found = plan(network(name), limit, SegmentOptions(mode))
    assert check(found) == found.result
    assert found.result.extent_bytes <= limit
    assert found.result.macs == own_work(found.network)


@pytest.mark.thorough
@pytest.mark.parametrize(
    "name", ["made:ad01", "made:kws", pytest.param("made:vww_96", marks=pytest.mark.campaign)]
)
def test_an_image_that_may_be_fetched_takes_no_more_than_one_that_is_held(name: str) -> None:
    held, once, again = (
        plan(network(name), RAM, SegmentOptions(mode)).result.extent_bytes
        for mode in ("held", "once", "again")
    )
    assert again <= once <= held


@pytest.mark.thorough
def test_no_layers_are_joined_where_that_saves_no_bytes() -> None:
    """The widest layer alone takes as much as all: no group can save anything."""
    assert plan(network("made:ad01"), RAM).groups == ()
    assert plan(network("made:vww_96"), RAM).groups != ()


@pytest.mark.thorough
def test_once_fetches_every_byte_once_and_again_reloads() -> None:
    once, again = (plan(network("made:kws"), RAM, SegmentOptions(mode)) for mode in ("once", "again"))
    size = next(t.bytes for t in once.network.tensors if t.kind == "input")
    output = once.network.tensors[-1].bytes
    assert (once.result.traffic_bytes, once.result.compulsory_bytes) == (0, size + output)
    assert again.result.reload_bytes > 0


@pytest.mark.thorough
def test_too_little_ram_says_how_much_and_because_of_what() -> None:
    with pytest.raises(Infeasible, match=r"needs [34],\d\d\d bytes, the budget has 1,000"):
        plan(network("made:kws"), 1000)


@pytest.mark.thorough
def test_every_byte_of_the_extent_is_needed_by_the_plan() -> None:
    """The least RAM is the limit that is met exactly, and one byte less is too little."""
    least = SegmentOptions(objective="least")
    found = plan(network("made:kws"), RAM, least)
    assert found.result.extent_bytes < ONCE["made:kws"][0]
    exact = plan(network("made:kws"), found.result.extent_bytes)
    assert exact.result.extent_bytes == found.result.extent_bytes
    with pytest.raises(Infeasible):
        plan(network("made:kws"), found.result.extent_bytes - 1)
