"""MODEL strings, and the reader for each."""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path

from onchip.base.allowance import reading
from onchip.base.errors import ModelError, UsageError
from onchip.base.files import read_bytes
from onchip.network.json import read_network
from onchip.readers.reference import is_reference
from onchip.readers.source import MAX_BATCH, ReadOptions, Source

__all__ = ["load"]

_ZOO = re.compile(r"zoo:(?P<name>[^@]*)(?:@(?P<height>[0-9]{1,5})x(?P<width>[0-9]{1,5}))?", re.ASCII)


def load(model: str | Path, options: ReadOptions | None = None) -> Source:
    """Read a model: an `.onnx`, `.pt2`, `.tflite` or `onchip.network/1` (`.json`) file, `module:function`
    that returns a torch module and its example inputs, `zoo:NAME` or `zoo:NAME@HxW`.

    Raises `ModelError` naming the file and the node, tensor or key that cannot be read, `UsageError` for a
    MODEL or an option that makes no sense.
    """
    options = options or ReadOptions()
    text = str(model)
    if options.granularity not in ("fused", "op"):
        raise UsageError(f"{options.granularity!r} is neither fused nor op", item="granularity")
    if options.dtype not in (None, "file", "int8", "int16"):
        raise UsageError(f"{options.dtype!r} is not file, int8 or int16", item="dtype")
    if options.attention not in ("whole", "parts"):
        raise UsageError(f"{options.attention!r} is neither whole nor parts", item="attention")
    if not isinstance(options.cache, str):
        raise UsageError(f"{options.cache!r} is no text like past.*=present.*", item="cache")
    if not isinstance(options.dims, str):
        raise UsageError(f"{options.dims!r} is no text like batch=1,height=224", item="dims")
    if options.batch is not None and (type(options.batch) is not int or not 1 <= options.batch <= MAX_BATCH):
        raise UsageError(f"{options.batch!r} is no number of images from 1 to {MAX_BATCH:,}", item="batch")
    with reading(text, _size(model), error=ModelError):
        return replace(_read(model, text, options), options=options)


def _size(model: str | Path) -> int:
    """Return the bytes of the file, 0 if there is none: its reader reports that."""
    try:
        return Path(model).stat().st_size
    except (OSError, ValueError):
        return 0


def _read(model: str | Path, text: str, options: ReadOptions) -> Source:
    if isinstance(model, str) and text.startswith("zoo:"):
        return _zoo(text, options)
    if isinstance(model, str) and is_reference(text):
        from onchip.readers.torch_reader import read_function

        return read_function(text, options)
    path = Path(model)
    suffix = path.suffix.lower()
    if suffix == ".json":
        _as_it_is(options, text)
        return Source(read_network(path), None)
    if suffix == ".pt2":
        from onchip.readers.torch_reader import read_pt2

        return read_pt2(path, options, where=text)
    if suffix == ".onnx":
        from onchip.readers.onnx_reader import read_onnx

        return read_onnx(
            read_bytes(path, error=ModelError, model=True),
            options,
            name=path.stem,
            where=text,
            folder=path.parent,
            dtype=options.dtype or "file",
        )
    if suffix == ".tflite":
        from onchip.readers.tflite_reader import read_tflite

        _as_it_is(options, text)
        content = read_bytes(path, error=ModelError, model=True)
        return read_tflite(content, options, name=path.stem, where=text, dtype=options.dtype or "file")
    forms = "a path ending in .onnx, .pt2, .tflite or .json, module:function, or zoo:NAME"
    raise UsageError(f"is no model: expected {forms}", item=text)


def _as_it_is(options: ReadOptions, text: str) -> None:
    """Refuse another batch and caches for files that are read as they are."""
    if options.cache:
        raise ModelError("is read as it is; --cache is for .onnx", where=text)
    if options.batch is not None:
        raise ModelError(
            "its sizes follow from the batch it was made for; --batch is for .onnx, torch and zoo:NAME",
            where=text,
        )


def _zoo(text: str, options: ReadOptions) -> Source:
    from onchip import zoo
    from onchip.readers.onnx_reader import read_onnx

    match = _ZOO.fullmatch(text)
    if match is None:
        raise UsageError("expected zoo:NAME or zoo:NAME@HEIGHTxWIDTH", item=text)
    name = match["name"]
    entry = zoo.describe(name)
    resize = (int(match["height"]), int(match["width"])) if match["height"] else None
    if resize is not None and 0 in resize:
        raise UsageError("height and width must be positive", item=text)
    own = None
    if resize in entry.sizes:
        own, resize = resize, None
    elif resize is not None and not entry.resizable:
        also = "".join(f"; it is also there at {height}x{width}" for height, width in entry.sizes)
        raise ModelError(f"{entry.title} cannot be resized{also}", where=text)
    return read_onnx(
        zoo.model_bytes(name, own),
        options,
        name=text[4:],
        where=text,
        folder=None,
        dtype=options.dtype or "int8",
        resize=resize,
        published=True,
    )
