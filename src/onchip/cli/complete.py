"""Shell completion: networks, chips, boards, SoCs and formats by name, files by path.

`onchip --install-completion` installs it. No function here may raise: a prompt must not show errors.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, MutableMapping
from pathlib import Path

__all__ = ["boards", "chips", "files", "int8_models", "mend_colons", "models", "socs", "zoo_names"]

PREFIX = "ONCHIP_COMPLETES"
"""The environment variable with the beginning of the completed word that the shell keeps to itself."""

MOST = 200
"""The most files offered."""


def mend_colons(environment: MutableMapping[str, str]) -> None:
    """Restore what bash cuts: it takes the colon of `zoo:alex` for the end of a word.

    The words before the colon become a prefix (see `PREFIX`); the text behind it is completed.
    """
    words = environment.get("COMP_WORDS", "").split(" ")
    at = environment.get("COMP_CWORD", "")
    if environment.get("_ONCHIP_COMPLETE") != "complete_bash" or not at.isdigit():
        return
    before, word = words[: int(at)], (words[int(at) :] or [""])[0]
    if word == ":" and len(before) > 1:
        word = ""
    elif len(before) > 2 and before[-1] == ":":
        before.pop()
    else:
        return
    environment[PREFIX] = before.pop() + ":"
    environment["COMP_WORDS"], environment["COMP_CWORD"] = " ".join([*before, word]), str(len(before))


def files(*suffixes: str) -> Callable[[str], list[str]]:
    """Return a completer of paths of files with these suffixes, and of folders."""

    def complete(incomplete: str) -> list[str]:
        head, _, _ = incomplete.rpartition("/")
        folder = Path(f"{head}/" if "/" in incomplete else ".")
        try:
            entries = sorted(folder.iterdir())[: 100 * MOST]
            found = [
                f"{incomplete[: len(head) + 1] if '/' in incomplete else ''}{path.name}{'/' * path.is_dir()}"
                for path in entries
                if path.is_dir() or path.suffix.lower() in suffixes
            ]
        except (OSError, ValueError):  # a null byte is in no name
            return []
        return [name for name in found if name.startswith(incomplete)][:MOST]

    return complete


def _offered(incomplete: str, names: Iterable[str], *suffixes: str) -> list[str]:
    """Return the names with this beginning, without the shell's prefix, and files."""
    prefix = os.environ.get(PREFIX, "")
    found = [name[len(prefix) :] for name in names if name.startswith(prefix + incomplete)]
    return found if prefix else found + files(*suffixes)(incomplete)


def models(incomplete: str) -> list[str]:
    """Return networks: the zoo's, and files."""
    from onchip import zoo

    names = [f"zoo:{name}" for name in zoo.names()]
    return _offered(incomplete, names, ".onnx", ".tflite", ".pt2", ".json")


def zoo_names(incomplete: str) -> list[str]:
    """Return the zoo's networks, by their bare names."""
    from onchip import zoo

    return [name for name in zoo.names() if name.startswith(incomplete)]


def int8_models(incomplete: str) -> list[str]:
    """Return networks for a microcontroller: the made ones, and files."""
    from onchip.microcontroller.made.networks import NAMES

    return _offered(incomplete, NAMES, ".tflite", ".onnx")


def chips(incomplete: str) -> list[str]:
    """Return the built-in chips, and files."""
    return _offered(incomplete, _names("chips"), ".toml")


def boards(incomplete: str) -> list[str]:
    """Return the built-in boards, and files."""
    return _offered(incomplete, _names("boards"), ".toml")


def socs(incomplete: str) -> list[str]:
    """Return the built-in SoCs, and files."""
    return _offered(incomplete, _names("socs"), ".toml")


def _names(room: str) -> list[str]:
    """Return the names of the built-in files of a folder, which are those of their contents."""
    from importlib.resources import files as resources

    return sorted(
        entry.name.removesuffix(".toml")
        for entry in resources("onchip.machines").joinpath(room).iterdir()
        if entry.name.endswith(".toml")
    )
