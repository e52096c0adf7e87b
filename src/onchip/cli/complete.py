"""What the shell offers for an argument: networks, chips, boards, SoCs and formats by name, files by path.

`onchip --install-completion` puts it into the shell. Nothing here may raise: a prompt is no place for errors.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, MutableMapping
from pathlib import Path

__all__ = ["boards", "chips", "files", "int8_models", "mend_colons", "models", "socs", "zoo_names"]

PREFIX = "ONCHIP_COMPLETES"
"""Set while the word that is completed has a beginning which the shell keeps to itself."""

MOST = 200
"""Files offered."""


def mend_colons(environment: MutableMapping[str, str]) -> None:
    """Give bash back what it cuts: it takes the colon of `zoo:alex` for the end of a word.

    The words before the colon become a prefix (see `PREFIX`), what stands behind it is completed.
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
    """Completes paths of files with these suffixes, and folders on the way there."""

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
    """The names that begin so, less what the shell has already; and files."""
    prefix = os.environ.get(PREFIX, "")
    found = [name[len(prefix) :] for name in names if name.startswith(prefix + incomplete)]
    return found if prefix else found + files(*suffixes)(incomplete)


def models(incomplete: str) -> list[str]:
    """Networks: the zoo's, and files."""
    from onchip import zoo

    names = [f"zoo:{name}" for name in zoo.names()]
    return _offered(incomplete, names, ".onnx", ".tflite", ".pt2", ".json")


def zoo_names(incomplete: str) -> list[str]:
    """The zoo's networks, by their bare names."""
    from onchip import zoo

    return [name for name in zoo.names() if name.startswith(incomplete)]


def int8_models(incomplete: str) -> list[str]:
    """Networks for a microcontroller: those made here, and files."""
    from onchip.microcontroller.made.networks import NAMES

    return _offered(incomplete, NAMES, ".tflite")


def chips(incomplete: str) -> list[str]:
    """Built-in chips, and files."""
    return _offered(incomplete, _names("chips"), ".toml")


def boards(incomplete: str) -> list[str]:
    """Built-in boards, and files."""
    return _offered(incomplete, _names("boards"), ".toml")


def socs(incomplete: str) -> list[str]:
    """Built-in SoCs, and files."""
    return _offered(incomplete, _names("socs"), ".toml")


def _names(room: str) -> list[str]:
    """The built-in files of a room are called as what they describe."""
    from importlib.resources import files as resources

    return sorted(
        entry.name.removesuffix(".toml")
        for entry in resources("onchip.machines").joinpath(room).iterdir()
        if entry.name.endswith(".toml")
    )
