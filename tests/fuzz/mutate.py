"""Damage with a view to the form: bytes, lines of words, JSON, protocol buffers, FlatBuffers, archives."""

from __future__ import annotations

import io
import json
import zipfile
from collections.abc import Callable, Iterator
from copy import deepcopy
from random import Random
from typing import Any

__all__ = ["Mutator", "archive", "as_json", "flatbuffer", "protobuf", "raw", "text"]

Mutator = Callable[[Random, bytes], bytes]
"""Another content from a content. Deterministic in the generator."""

NUMBERS = (
    0, 1, -1, 2, 3, 4, 7, 8, 16, 127, 128, 255, 256, 1 << 15, 1 << 16, 1 << 20, 1 << 24, (1 << 31) - 1,
    -(1 << 31), 1 << 31, 1 << 32, 1 << 40, 1 << 62, (1 << 63) - 1, -(1 << 63),
)  # fmt: skip
WORDS = (
    "", "x", "a b", "\n", "\x1b[31m", "\0", "<script>", "../x", "/etc/passwd", "%s", "é", "\u202e", "n" * 300,
    "-1", "nan", "inf", "1e999", "0x10", "9" * 40,
)  # fmt: skip
VALUES: tuple[Any, ...] = (
    None, True, False, -1, 0, 1, 2, 10**17, 10**18, 10**30, -(10**30), 1e308, 1e-308, -0.5, "", "gpu", "a",
    "\ud800", "\n\x1b[31m", [], {}, [[]], {"a": 1}, ["a", 0, "g0"],
)  # fmt: skip
TOKENS = (
    b"nan", b"inf", b"-1", b"1e999", b"0", b"", b",", b"\n", b'"', b"\x00", b"\xff", b"[", b"]", b"{", b"=",
    b"'''", b"#", b"\\", b"\\ud800", b"\xed\xa0\x80", b"9" * 40, b" ", b"\r", b"[" * 5000, b"\xef\xbb\xbf",
)  # fmt: skip


def raw(rng: Random, content: bytes) -> bytes:
    """One to three stretches cut out, replaced, doubled or with a bit turned."""
    for _ in range(rng.randint(1, 3)):
        at = rng.randrange(len(content) + 1)
        match rng.randrange(4):
            case 0:
                content = content[:at] + rng.choice(TOKENS) + content[at + rng.choice((0, 0, 1, 3, 20)) :]
            case 1:
                end = at + rng.choice((1, 4, 16, 200))
                content = content[:end] + content[at:]
            case 2 if at < len(content):
                content = content[:at] + bytes((content[at] ^ 1 << rng.randrange(8),)) + content[at + 1 :]
            case _:
                size = rng.choice((1, 2, 4, 8))
                word = (rng.choice(NUMBERS) % (1 << 8 * size)).to_bytes(size, "little")
                content = content[:at] + word + content[at + size :]
    return content


def text(rng: Random, content: bytes) -> bytes:
    """Lines dropped, doubled or moved; words replaced by others of the file, numbers by other numbers."""
    lines = content.split(b"\n")
    for _ in range(rng.randint(1, 3)):
        i = rng.randrange(len(lines))
        words = lines[i].split(b" ")
        j = rng.randrange(len(words))
        match rng.randrange(8):
            case 0:
                del lines[i]
                lines = lines or [b""]
            case 1:
                lines.insert(rng.randrange(len(lines) + 1), lines[i])
            case 2:
                k = rng.randrange(len(lines))
                lines[i], lines[k] = lines[k], lines[i]
            case 3:
                del words[j]
                lines[i] = b" ".join(words)
            case 4:
                words[j] = rng.choice(rng.choice(lines).split(b" "))
                lines[i] = b" ".join(words)
            case 5:
                words.insert(j, rng.choice(rng.choice(lines).split(b" ")))
                lines[i] = b" ".join(words)
            case 6:
                words[j] = str(rng.choice(NUMBERS)).encode()
                lines[i] = b" ".join(words)
            case _:
                return raw(rng, b"\n".join(lines))
    return b"\n".join(lines)


# ------------------------------------------------------------------------------------------------ JSON


def places(value: Any) -> list[tuple[Any, Any]]:
    """Every (container, key) of a JSON document."""
    found: list[tuple[Any, Any]] = []
    left = [value]
    while left:
        at = left.pop()
        keys = range(len(at)) if isinstance(at, list) else list(at) if isinstance(at, dict) else ()
        for key in keys:
            found.append((at, key))
            left.append(at[key])
    return found


def document(rng: Random, content: Any) -> Any:
    """A document with one to three values replaced, removed, doubled, swapped or given another key."""
    for _ in range(rng.randint(1, 3)):
        there = places(content)
        if not there:
            break
        container, key = rng.choice(there)
        other, place = rng.choice(there)
        copy = json.loads(json.dumps(other[place]))
        match rng.randrange(8):
            case 0:
                container[key] = deepcopy(rng.choice(VALUES))
            case 1:
                del container[key]
            case 2 if isinstance(container, list):
                container.insert(key, json.loads(json.dumps(container[key])))
            case 3 if isinstance(container, dict):
                container[str(place)] = container.pop(key)
            case 4 if isinstance(container[key], int | float):
                container[key] = rng.choice((container[key] + 1, container[key] - 1, rng.choice(NUMBERS)))
            case 5 if isinstance(container[key], str):
                container[key] = rng.choice(WORDS)
            case 6:  # a value of the same type from elsewhere: names that exist, in the wrong place
                alike = [c[k] for c, k in there if type(c[k]) is type(container[key])]
                container[key] = json.loads(json.dumps(rng.choice(alike)))
            case _:
                container[key] = copy
    return content


def as_json(rng: Random, content: bytes) -> bytes:
    """Damage to the document where it is one, at times to its bytes."""
    if rng.random() < 0.15:
        return raw(rng, content)
    try:
        made = json.loads(content)
    except (ValueError, RecursionError):
        return raw(rng, content)
    return json.dumps(document(rng, made)).encode()


# ---------------------------------------------------------------------------------------- protocol buffers


def _sites(message: Any, most: int = 20_000) -> Iterator[tuple[Any, Any, Any]]:
    """(message, field, index or None) of all that is set, from the root."""
    left = [message]
    while left and most:
        at = left.pop()
        for field, value in at.ListFields():
            many = not isinstance(value, str | bytes) and hasattr(value, "__len__")
            for i, item in enumerate(value) if many else ((None, value),):
                yield at, field, i
                most -= 1
                if hasattr(item, "ListFields"):
                    left.append(item)


def protobuf(rng: Random, content: bytes) -> bytes:
    """An ONNX model with fields set, removed, doubled, swapped or copied from elsewhere in it."""
    import onnx

    model = onnx.ModelProto()
    try:
        model.ParseFromString(content)
    except Exception:
        return raw(rng, content)
    if rng.random() < 0.1:
        return raw(rng, content)
    for _ in range(rng.randint(1, 4)):
        by_kind: dict[str, list[tuple[Any, Any, Any]]] = {}
        for site in _sites(model):
            by_kind.setdefault(site[1].full_name, []).append(site)
        if not by_kind:
            break
        kinds = sorted(by_kind)
        # What nodes compute and which values they read decides most.
        likely = [k for k in kinds if ".NodeProto." in k or ".AttributeProto." in k or "Dimension" in k]
        kind = rng.choice(likely if likely and rng.random() < 0.6 else kinds)
        try:
            _protobuf_step(rng, *rng.choice(by_kind[kind]), by_kind)
        except (ValueError, TypeError, IndexError):
            continue  # a number that the field does not take
    return bytes(model.SerializeToString())


def _protobuf_step(rng: Random, message: Any, field: Any, index: int | None, by_kind: Any) -> None:
    value = getattr(message, field.name)
    action = rng.randrange(6)
    if index is not None:
        if action == 0:
            del value[index]
            return
        if action == 1 and field.message_type is not None:
            value.add().CopyFrom(value[index])
            return
        if action == 1:
            value.insert(index, value[index])
            return
        if action == 2:
            other = rng.randrange(len(value))
            if field.message_type is None:
                value[index], value[other] = value[other], value[index]
            else:
                value[index].CopyFrom(value[other])
            return
    elif action == 0:
        message.ClearField(field.name)
        return
    if field.message_type is not None:
        if action == 3:
            other, where, at = rng.choice(by_kind[field.full_name])
            source = getattr(other, where.name)
            (value if index is None else value[index]).CopyFrom(source if at is None else source[at])
        elif hasattr(value, "attribute") or (index is not None and hasattr(value[index], "attribute")):
            node = value if index is None else value[index]
            made = node.attribute.add(name=rng.choice(ATTRIBUTES), type=rng.choice((1, 2, 3, 6, 7)))
            made.i, made.f = rng.choice(NUMBERS), 0.5
            made.ints.extend(rng.choice((0, 1, 2, -1, rng.choice(NUMBERS))) for _ in range(rng.randrange(5)))
        return
    made = _scalar(rng, field, value if index is None else value[index], by_kind)
    if index is None:
        setattr(message, field.name, made)
    else:
        value[index] = made


ATTRIBUTES = (
    "axis", "axes", "perm", "pads", "strides", "kernel_shape", "dilations", "group", "auto_pad", "ceil_mode",
    "keepdims", "to", "alpha", "beta", "transA", "transB", "split", "mode", "value", "epsilon", "blocksize",
    "output_shape",
)  # fmt: skip


def _scalar(rng: Random, field: Any, value: Any, by_kind: Any) -> Any:
    if isinstance(value, bytes):
        return raw(rng, value) if rng.random() < 0.7 else b"\0" * rng.choice((0, 1, 8, 64))
    if isinstance(value, str):
        if field.name == "op_type":
            import onnx.defs

            return rng.choice(sorted({s.name for s in onnx.defs.get_all_schemas() if not s.domain}))
        there = [
            getattr(m, f.name) if i is None else getattr(m, f.name)[i]
            for kind in by_kind
            for m, f, i in by_kind[kind][:50]
        ]
        names = [text for text in there if isinstance(text, str)]
        return rng.choice(WORDS) if rng.random() < 0.2 else rng.choice(names)
    if isinstance(value, float):
        return rng.choice((0.0, -1.0, 0.5, float("nan"), float("inf"), 1e30))
    return rng.choice((value + 1, value - 1, rng.randrange(25), rng.choice(NUMBERS)))


# ------------------------------------------------------------------------------------------- FlatBuffers


def flatbuffer(rng: Random, content: bytes) -> bytes:
    """A TFLite file with fields of its tables changed, or words of its bytes."""
    if rng.random() < 0.4:
        return _words(rng, content)
    import flatbuffers
    from ai_edge_litert import schema_py_generated as schema

    try:
        model = schema.ModelT.InitFromObj(schema.Model.GetRootAs(content, 0))
        for _ in range(rng.randint(1, 4)):
            _table_step(rng, model)
        builder = flatbuffers.Builder(len(content) + 1024)
        builder.Finish(model.Pack(builder), b"TFL3")
        return bytes(builder.Output())
    except Exception:  # the generated code takes nothing amiss
        return _words(rng, content)


def _words(rng: Random, content: bytes) -> bytes:
    """One to four aligned words set to numbers, to other words of the file, or moved a little."""
    made = bytearray(content)
    for _ in range(rng.randint(1, 4)):
        size = rng.choice((1, 2, 4, 4, 4, 8))
        if len(made) < size:
            break
        at = rng.randrange(len(made) // size) * size
        old = int.from_bytes(made[at : at + size], "little")
        other = rng.randrange(len(made) // size) * size
        new = rng.choice((
            rng.choice(NUMBERS), old + rng.choice((-4, -1, 1, 4)),
            int.from_bytes(made[other : other + size], "little"),
        ))  # fmt: skip
        made[at : at + size] = (new % (1 << 8 * size)).to_bytes(size, "little")
    return raw(rng, bytes(made)) if rng.random() < 0.1 else bytes(made)


def _table_step(rng: Random, model: Any) -> None:
    by_kind: dict[str, list[tuple[Any, str]]] = {}
    left = [model]
    while left:
        at = left.pop()
        for key, value in vars(at).items():
            by_kind.setdefault(f"{type(at).__name__}.{key}", []).append((at, key))
            for item in value if isinstance(value, list) else (value,):
                if type(item).__name__.endswith("T") and hasattr(item, "__dict__"):
                    left.append(item)
    kind = rng.choice(sorted(by_kind))
    table, key = rng.choice(by_kind[kind])
    value = getattr(table, key)
    if isinstance(value, bool):
        setattr(table, key, not value)
    elif isinstance(value, int):
        setattr(table, key, rng.choice((value + 1, value - 1, rng.randrange(160), rng.choice(NUMBERS))))
    elif isinstance(value, float):
        setattr(table, key, rng.choice((0.0, -1.0, 1e30, float("nan"), float("inf"), value * 2)))
    elif isinstance(value, str | bytes):
        setattr(table, key, rng.choice(WORDS).encode("utf-8", "replace"))
    elif hasattr(value, "__len__") and len(value):
        made = list(value)
        i, j = rng.randrange(len(made)), rng.randrange(len(made))
        match rng.randrange(5):
            case 0:
                del made[i]
            case 1:
                made.insert(i, made[j])
            case 2:
                made[i], made[j] = made[j], made[i]
            case 3 if isinstance(made[i], str | bytes) or hasattr(made[i], "__dict__"):
                made[i] = made[j]
            case _ if not hasattr(made[i], "__dict__"):
                made[i] = rng.choice((int(made[i]) + 1, -1, 0, 1, rng.choice(NUMBERS)))
        setattr(table, key, made)
    else:
        other, place = rng.choice(by_kind[kind])
        setattr(table, key, getattr(other, place))


# ---------------------------------------------------------------------------------------------- archives


def archive(rng: Random, content: bytes) -> bytes:
    """A zip whose JSON entries are damaged as JSON and whose others as bytes; entries dropped or renamed."""
    if rng.random() < 0.15:
        return raw(rng, content)
    try:
        with zipfile.ZipFile(io.BytesIO(content)) as old:
            entries = [(name, old.read(name)) for name in old.namelist()]
    except Exception:
        entries = []
    if not entries:
        return raw(rng, content)
    i = rng.randrange(len(entries))
    big = [k for k, (name, _) in enumerate(entries) if name.endswith(".json") and "/models/" in name]
    if big and rng.random() < 0.7:
        i = rng.choice(big)
    name, data = entries[i]
    match rng.randrange(12):
        case 0:
            del entries[i]
        case 1:
            entries[i] = (rng.choice(entries)[0], data)
        case 2:
            entries[i] = (rng.choice(("../x", "/x", "archive/data.pkl", "")) + name, data)
        case _:
            entries[i] = (name, as_json(rng, data) if name.endswith(".json") else raw(rng, data))
    made = io.BytesIO()
    import warnings

    with warnings.catch_warnings(), zipfile.ZipFile(made, "w") as new:
        warnings.simplefilter("ignore")  # two entries of one name
        for name, data in entries:
            new.writestr(name, data)
    return made.getvalue()
