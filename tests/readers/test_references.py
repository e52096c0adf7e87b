"""`module:function` as a MODEL, as far as it goes without torch."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
from hostile.archives import archive, program
from onchip.base.errors import MissingExtra, UsageError
from onchip.readers import load
from onchip.readers.reference import check_named, is_reference, split_reference


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
def test_without_torch_the_error_says_how_to_install_it(
    model: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("net.pt2").write_bytes(archive(program()))
    monkeypatch.setitem(sys.modules, "torch", None)
    with pytest.raises(MissingExtra, match=r"torch is not installed: pip install 'onchip\[torch\]'"):
        load(model)


def test_what_may_run_code_is_named_by_the_user_and_not_by_a_file() -> None:
    for model in ("nets:none", "a/none.pt2", "NONE.PT2"):
        with pytest.raises(UsageError, match="name it with --model"):
            check_named(model)
        with pytest.raises(UsageError, match=r"spec.toml: .*name it with --trust"):
            check_named(model, "--trust", where="spec.toml")
    for model in ("zoo:alexnet", "net.onnx", "net.tflite", "net.json"):
        check_named(model)


@pytest.mark.parametrize("model", ["never/named.pt2/", "never/named.pt2/.", "never/./NAMED.Pt2", "n\0.pt2"])
def test_every_spelling_of_an_archive_is_one(model: str) -> None:
    """What the reader takes for an archive has to be named, however its path ends."""
    with pytest.raises(UsageError, match="name it with --model"):
        check_named(model)
