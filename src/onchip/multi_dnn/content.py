"""What a file is, told by its content: also when it is cut off, broken, or does not say."""

from __future__ import annotations

import re

import msgspec

__all__ = ["kind_of"]

_SAID = re.compile(rb'"format"\s*:\s*"onchip\.([a-z]{1,20})/')
_KEYS = {
    "schedule": {"profiles", "networks", "order"},
    "profile": {"units", "groups", "soc"},
    "plan": {"program", "budget", "chip"},
    "network": {"tensors", "operators"},
}


class _Kind(msgspec.Struct):
    format: str = ""


def kind_of(content: bytes) -> str:
    """`schedule`, `profile`, `plan`, `network` or the like for JSON of onchip's; empty for anything else.

    JSON says it under `format`. Of broken JSON the first format in it counts, and of JSON without one the
    keys that it has.
    """
    if content.lstrip(b"\xef\xbb\xbf \t\r\n")[:1] != b"{":
        return ""
    try:
        said = msgspec.json.decode(content.removeprefix(b"\xef\xbb\xbf"), type=_Kind).format
        if said:
            name, slash, _ = said.partition("/")
            return name.removeprefix("onchip.") if slash and name.startswith("onchip.") else ""
        keys = msgspec.json.decode(content.removeprefix(b"\xef\xbb\xbf"), type=dict[str, msgspec.Raw]).keys()
    except msgspec.ValidationError:
        return ""
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        found = _SAID.search(content)
        return found[1].decode() if found else ""
    return next((kind for kind, has in _KEYS.items() if len(has & keys) >= 2), "")
