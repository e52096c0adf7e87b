"""The example inputs of a program, a pickle: it is examined, and never loaded.

Torch needs only the sizes of an example, and the program states those too.
"""

from __future__ import annotations

import io
import pickletools
import zipfile

from onchip.readers.torch_archive.entries import BROKEN
from onchip.readers.torch_archive.words import Senseless, shown

__all__ = ["check_example"]

MOST_BYTES = 1 << 20

_STORAGES = (
    "Byte Char Short Int Long Half Float Double ComplexHalf ComplexFloat ComplexDouble Bool BFloat16 Untyped"
)
_ELEMENTS = "float32 float64 float16 bfloat16 int8 int16 int32 int64 uint8 bool"
_KNOWN = frozenset(
    {
        "torch._utils _rebuild_tensor_v2",
        "torch._utils _rebuild_parameter",
        "torch._utils _rebuild_meta_tensor_no_storage",
        "torch.storage UntypedStorage",
        "torch Size",
        "torch device",
        "collections OrderedDict",
        *(f"torch {kind}Storage" for kind in _STORAGES.split()),
        *(f"torch {name}" for name in _ELEMENTS.split()),
    }
)
"""The names in a pickle of tensors."""

_OTHER = frozenset({"STACK_GLOBAL", "INST", "OBJ", "NEWOBJ", "NEWOBJ_EX", "EXT1", "EXT2", "EXT4", "PERSID"})
"""Further ways to call something, which torch does not write."""


def check_example(content: bytes) -> None:
    """Raise `Senseless` unless this is empty or `torch.save`'s form of tensors and numbers."""
    if not content:
        return
    try:
        with zipfile.ZipFile(io.BytesIO(content)) as archive:
            entries = [e for e in archive.infolist() if e.filename.rpartition("/")[2] == "data.pkl"]
            if len(entries) != 1 or entries[0].compress_type != zipfile.ZIP_STORED:
                raise Senseless("are no single pickle", "example inputs")
            if entries[0].file_size > MOST_BYTES:
                raise Senseless(f"are a pickle of more than {MOST_BYTES:,} bytes", "example inputs")
            pickled = archive.read(entries[0])
        steps = list(pickletools.genops(pickled))
    except Senseless:
        raise
    except BROKEN as problem:
        raise Senseless("are damaged", "example inputs") from problem
    for step, argument, _ in steps:
        if step.name in _OTHER:
            raise Senseless("are more than tensors", "example inputs")
        if step.name == "GLOBAL" and argument not in _KNOWN:
            raise Senseless(f"are more than tensors: {shown(str(argument))}", "example inputs")
