"""The tensors of a `.pt2` archive: element type, sizes and strides; and the bytes of weights."""

from __future__ import annotations

import math
import re
from typing import TypeVar

import msgspec

from onchip.base.limits import limits
from onchip.readers.torch_archive.entries import Entries
from onchip.readers.torch_archive.schema import Device, Payload, Payloads, SymValue, TensorMeta
from onchip.readers.torch_archive.words import Senseless, check_expression, check_path, shown

T = TypeVar("T")

__all__ = ["ELEMENT_BYTES", "cleaned", "cleaned_device", "cleaned_payloads", "decoded", "is_free", "number"]

ELEMENT_BYTES = {
    1: 1, 2: 1, 3: 2, 4: 4, 5: 8, 6: 2, 7: 4, 8: 8, 9: 4, 10: 8, 11: 16, 12: 1, 13: 2, 28: 2,
    29: 1, 30: 1, 31: 1, 32: 1, 33: 1, 34: 4, 35: 8,
}  # fmt: skip
"""By torch's number of the element type."""

STRIDED = 7
MOST_DIMENSIONS = 64
_DEVICES = re.compile(r"cpu|cuda|mps|xpu|hpu|xla|meta")
_PIECES = {
    "weights": re.compile(r"weight_\d{1,9}", re.ASCII),
    "constants": re.compile(r"tensor_\d{1,9}", re.ASCII),
}
SPREAD = 256 << 20
"""The most bytes of all weights beyond those stored: one value may stand for a whole row."""


def decoded(content: bytes, kind: type[T], item: str) -> T:
    """Return JSON as this part of a program; raises `Senseless` naming the place where it differs."""
    try:
        return msgspec.json.decode(content, type=kind)
    except (msgspec.DecodeError, RecursionError) as problem:
        reason = str(problem) if isinstance(problem, msgspec.DecodeError) else "cannot be read"
        raise Senseless(reason[:300], item) from None


def number(given: SymValue) -> int:
    """Return the whole number, or that at the example's size; raises `Senseless` for anything else."""
    kind, value = given.kind()
    if kind == "as_int":
        return int(value)
    if kind != "as_expr":
        raise Senseless(f"a size is {kind}, not a whole number")
    check_expression(value.expr_str)
    hint = None if value.hint is None else value.hint.kind()
    if hint is None or hint[0] != "as_int":
        raise Senseless("a size depends on data")
    return int(hint[1])


def is_free(meta: TensorMeta) -> bool:
    """Return whether a size of the tensor is a symbol."""
    return any(size.kind()[0] == "as_expr" for size in (*meta.sizes, *meta.strides))


def cleaned_device(given: Device) -> Device:
    """Return the processor, or `meta` for tensors without data: no other device is planned for."""
    if _DEVICES.fullmatch(given.type) is None:
        raise Senseless(f"is on a device {shown(given.type)}, which is not known")
    return Device("meta" if given.type == "meta" else "cpu", None)


def cleaned(meta: TensorMeta) -> TensorMeta:
    """Return the same with numbers for sizes; raises `Senseless` for anything that is not a tensor."""
    sizes, strides = [number(size) for size in meta.sizes], [number(stride) for stride in meta.strides]
    offset = number(meta.storage_offset)
    if meta.dtype not in ELEMENT_BYTES:
        raise Senseless(f"has the unknown element type {meta.dtype}")
    if meta.layout != STRIDED:
        raise Senseless("is no plain tensor: only strided layouts are read")
    if len(sizes) != len(strides) or len(sizes) > MOST_DIMENSIONS:
        raise Senseless(f"has {len(sizes)} sizes and {len(strides)} strides")
    if min([*sizes, *strides, offset], default=0) < 0:
        raise Senseless("has a negative size, stride or offset")
    most = limits().tensor_bytes
    if math.prod(sizes) * ELEMENT_BYTES[meta.dtype] > most or max([*strides, offset], default=0) > most:
        raise Senseless(f"has more than {most:,} bytes")
    return TensorMeta(
        dtype=meta.dtype,
        sizes=[SymValue(as_int=size) for size in sizes],
        requires_grad=meta.requires_grad,
        device=cleaned_device(meta.device),
        strides=[SymValue(as_int=stride) for stride in strides],
        storage_offset=SymValue(as_int=offset),
        layout=STRIDED,
    )


def cleaned_payloads(entries: Entries, label: str, kind: str) -> tuple[Payloads, list[str]]:
    """Return the `weights` or `constants` of a program, and the places of their bytes.

    Raises `Senseless` for pickled ones, and for tensors that are larger than their bytes.
    """
    place = f"data/{kind}/{label}_{kind}_config.json"
    given = decoded(entries.read(place, limits().text_bytes), Payloads, f"entry {place}")
    found, places, spread = {}, dict[str, None](), 0
    for path, payload in given.config.items():
        item = f"tensor {shown(path)}"
        try:
            check_path(path, "it")
            found[path], beyond = _payload(entries, payload, kind)
        except Senseless as problem:
            raise Senseless(problem.reason, problem.item or item) from None
        spread += beyond
        if spread > SPREAD:
            raise Senseless(f"{kind} are {spread:,} bytes larger than what is stored of them", item)
        if not _is_bare(found[path]):
            places[f"data/{kind}/{payload.path_name}"] = None
    return Payloads(found), list(places)


def _is_bare(payload: Payload) -> bool:
    assert payload.tensor_meta is not None
    return payload.tensor_meta.device.type == "meta"


def _payload(entries: Entries, given: Payload, kind: str) -> tuple[Payload, int]:
    """Return the payload as it is passed on, and the bytes of its tensor beyond those stored."""
    if given.use_pickle or given.tensor_meta is None:
        raise Senseless("is pickled: only tensors are loaded")
    if _PIECES[kind].fullmatch(given.path_name) is None:
        raise Senseless(f"is in {shown(given.path_name)}, which is no place of a tensor")
    if is_free(given.tensor_meta) or given.tensor_meta.storage_offset.kind()[0] != "as_int":
        raise Senseless("has a size that is no number")
    meta = cleaned(given.tensor_meta)
    stored = entries.size(f"data/{kind}/{given.path_name}")
    if stored is None:
        raise Senseless("is not there")
    sizes, strides = [number(size) for size in meta.sizes], [number(stride) for stride in meta.strides]
    element = ELEMENT_BYTES[meta.dtype]
    last = number(meta.storage_offset) + sum((n - 1) * s for n, s in zip(sizes, strides, strict=True))
    needs = (last + 1) * element if math.prod(sizes) else 0
    if meta.device.type != "meta" and (needs > stored or stored % element):
        raise Senseless(f"needs {needs:,} bytes, and {stored:,} are stored")
    beyond = 0 if meta.device.type == "meta" else max(0, math.prod(sizes) * element - stored)
    return Payload(given.path_name, given.is_param, False, meta), beyond
