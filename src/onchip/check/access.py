"""The access relations of a tiled group's operators. A group with an unknown one is refused."""

from __future__ import annotations

from onchip.check.rules import broken
from onchip.network.access import Access, access_of
from onchip.network.maps import Map, Maps

__all__ = ["access_in", "map_in"]


def access_in(maps: Maps, operator: int, group: str) -> Access:
    """Return the access relation of an operator. Raises `Broken` (`group-unproved`) if it is unknown."""
    found = access_of(maps, operator)
    if isinstance(found, str):
        broken("group-unproved", f"group {group} runs in tiles, and {found}")
    return found


def map_in(maps: Maps, tensor: int) -> Map:
    """Return the map of a tensor that an operator with an access relation reads or writes."""
    found = maps.of(tensor)
    assert found is not None  # `access_of` knows the maps of all operands
    return found
