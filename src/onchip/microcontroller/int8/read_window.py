"""The parameters common to operators that slide a window over a map."""

from __future__ import annotations

from onchip.microcontroller.int8.model import Pair, Quad, Shape
from onchip.microcontroller.int8.read_site import Site
from onchip.readers.padding import same_padding

__all__ = ["SAME", "map_shape", "window"]

SAME = 0  # the schema's Padding


def window(site: Site, seen: Shape, kernel: Pair, dilation: Pair) -> tuple[Pair, Quad]:
    """Return (stride, padding) of an operator that slides a kernel over a map."""
    stride = (site.option("StrideH"), site.option("StrideW"))
    if min(*stride, *dilation, *kernel) < 1 or max(*stride, *dilation, *kernel) > 1 << 15:
        raise site.refuse(f"has kernel {list(kernel)}, stride {list(stride)}, dilation {list(dilation)}")
    made = site.made()
    if site.option("Padding") != SAME:
        return stride, (0, 0, 0, 0)
    if made[1:3] != (-(-seen[1] // stride[0]), -(-seen[2] // stride[1])):
        raise site.refuse(f"makes {list(made)} of {list(seen)}, which SAME padding does not")
    return stride, same_padding(seen[1:3], made[1:3], kernel, stride, dilation)


def map_shape(site: Site) -> Shape:
    """Return the shape of an operand that must be a map of rows and columns in the file too."""
    if len(site.row(0).shape) != 4:
        raise site.refuse(f"reads {site.row(0).name} of shape {list(site.row(0).shape)}, which is no map")
    return site.seen(0)
