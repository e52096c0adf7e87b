"""`.pt2` archives of `torch.export.save`, read by code of onchip's before torch sees anything of them.

Torch's own loader runs parts of a file: expressions of sizes, guards, types of trees, pickles, names that
become source code. Here the archive is read as data, anything unknown is refused, and a new archive is
written from the parts that were understood. Torch receives that one and never the file. Nothing here needs
torch.
"""

from onchip.readers.torch_archive.clean import Clean, clean_archive
from onchip.readers.torch_archive.program import Leaf

__all__ = ["Clean", "Leaf", "clean_archive"]
