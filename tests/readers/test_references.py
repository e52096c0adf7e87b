"""`module:function` as a MODEL, as far as it goes without torch."""

from __future__ import annotations

import sys

import pytest

from onchip.errors import MissingExtra
from onchip.readers import load
from onchip.readers.reference import imported, is_reference, split_reference


@pytest.mark.parametrize("text", ["nets:unet", "my.package.nets:make", "a:B.c", "modèle:réseau"])
def test_references(text: str) -> None:
    assert is_reference(text)
    assert ":".join(split_reference(text)) == text


@pytest.mark.parametrize(
    "text",
    ["zoo:resnet50", "zoo:unknown", "C:/nets/net", "nets", "nets:", ":f", "a-b:c", "a:b c", "1a:b", "a::b",
     "x/y:z", "a:b\n", "https://x"],
)  # fmt: skip
def test_what_is_no_reference(text: str) -> None:
    assert not is_reference(text)


@pytest.mark.parametrize("model", ["nets:unet", "net.pt2"])
def test_without_torch_the_error_says_how_to_install_it(model: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "torch", None)
    with pytest.raises(MissingExtra, match=r"torch is not installed: pip install 'onchip\[torch\]'"):
        load(model)
    assert not imported(model)
