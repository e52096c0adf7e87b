"""The built-in networks: structure-only ONNX files, so that planning needs no deep-learning framework.

A weight is an initializer with dims and an element type but no data; an executor fills it from a
seed. `names()` lists them, `describe(name)` returns a definition's source, `model_bytes(name)` the
ONNX file. `scripts/make_zoo.py` made them.
"""

from __future__ import annotations

import lzma
import tomllib
from dataclasses import dataclass
from functools import cache
from importlib import resources

from onchip.base.close_names import did_you_mean
from onchip.base.errors import ModelError

__all__ = ["Entry", "describe", "model_bytes", "names"]


@dataclass(frozen=True, slots=True)
class Entry:
    """The source of one built-in network.

    `source` is the public definition that the file was exported from and `licence` its licence; `input` is
    the network's input shape, batch and channels first where there are any, `also` those of further inputs;
    `opset` the ONNX operator set; `resizable` states whether its other shapes follow when the height and
    width of the input change; `sizes` are heights and widths with a file of their own.
    """

    name: str
    title: str
    library: str
    source: str
    licence: str
    input: tuple[int, ...]
    opset: int
    resizable: bool
    also: tuple[tuple[int, ...], ...] = ()
    sizes: tuple[tuple[int, int], ...] = ()


def names() -> tuple[str, ...]:
    """Return the built-in networks, in alphabetical order."""
    return tuple(_catalogue())


def describe(name: str) -> Entry:
    """Return the entry of `name`; raises `ModelError` with the closest names for an unknown network."""
    catalogue = _catalogue()
    if name not in catalogue:
        hint = did_you_mean(name, catalogue, otherwise=f"there are {', '.join(catalogue)}")
        raise ModelError(f"no such built-in network; {hint}", where=f"zoo:{name}")
    return catalogue[name]


def model_bytes(name: str, size: tuple[int, int] | None = None) -> bytes:
    """Return the network as an ONNX file whose weights have no data; `size` is one of the entry's `sizes`.

    Raises `ModelError` for an unknown name, and for a damaged file: each carries the SHA-256 of its content.
    """
    entry = describe(name)
    variant = "" if size is None else f"@{size[0]}x{size[1]}"
    path = resources.files("onchip.zoo") / "models" / f"{entry.name}{variant}.onnx.xz"
    try:
        return lzma.decompress(path.read_bytes(), format=lzma.FORMAT_XZ)
    except (OSError, EOFError, lzma.LZMAError) as problem:
        raise ModelError(f"damaged installation: {problem}", where=f"zoo:{name}") from None


@cache
def _catalogue() -> dict[str, Entry]:
    text = (resources.files("onchip.zoo") / "catalogue.toml").read_text(encoding="utf-8")
    entries = tomllib.loads(text)
    return {
        name: Entry(
            **{
                **entries[name],
                "name": name,
                "input": tuple(entries[name]["input"]),
                "also": tuple(tuple(shape) for shape in entries[name].get("also", ())),
                "sizes": tuple(tuple(size) for size in entries[name].get("sizes", ())),
            }
        )
        for name in sorted(entries)
    }
