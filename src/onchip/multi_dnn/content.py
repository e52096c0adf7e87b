"""The kind of a file, by its content: also of a truncated or broken one, or one without a format."""

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
    """Return `schedule`, `profile`, `plan`, `network` or the like for onchip's JSON; empty for others.

    JSON states it under `format`. In broken JSON the first format counts, and in JSON without one the keys.
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
