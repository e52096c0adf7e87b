"""The access relation of an operator in a tiled group, or the refusal of a group of which it is not known."""

from __future__ import annotations

from onchip.check.rules import broken
from onchip.network.access import Access, access_of
from onchip.network.maps import Map, Maps

__all__ = ["access_in", "map_in"]


def access_in(maps: Maps, operator: int, group: str) -> Access:
    """The access relation of an operator. Raises `Broken` (`group-unproved`) where nothing is sure."""
    found = access_of(maps, operator)
    if isinstance(found, str):
        broken("group-unproved", f"group {group} runs in tiles, and {found}")
    return found


def map_in(maps: Maps, tensor: int) -> Map:
    """The map of a tensor that an operator with an access relation reads or writes."""
    found = maps.of(tensor)
    assert found is not None  # `access_of` knows the maps of all operands
    return found
