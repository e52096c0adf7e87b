"""A case of `scripts/golden.py`: commands that run one after the other."""

from __future__ import annotations

import importlib.util
import re
import shutil
from collections.abc import Mapping
from dataclasses import dataclass, field

from golden_inputs import INPUTS, fixture

CROSS = "arm-none-eabi-gcc tflite flatbuffers"
"""What a case needs that builds and runs firmware."""


@dataclass(frozen=True)
class Case:
    """Commands that run one after the other in one folder.

    A call is a command's words, without `onchip`, or a Python program: then it begins with a line break.
    """

    name: str
    calls: tuple[str, ...]
    needs: tuple[str, ...] = ()
    """Programs and packages."""
    env: Mapping[str, str] = field(default_factory=dict)

    def inputs(self) -> list[str]:
        """The inputs that the calls name."""
        found = [name for name in INPUTS if any(name in call for call in self.calls)]
        if any("nets:" in call for call in self.calls):
            found.append("nets.py")
        if any("joint.toml" in call for call in self.calls):
            found += ["maps.json", "mine.toml"]
        if any("sweep.toml" in call for call in self.calls):
            found.append("net.json")
        return sorted({*found})

    def missing(self) -> list[str]:
        """What the case needs and is not there."""
        found = [name for name in self.inputs() if fixture(name) is None]
        for name in self.needs:
            package = importlib.util.find_spec(name) if re.fullmatch(r"\w+", name) else None
            if package is None and shutil.which(name) is None:
                found.append(name)
        return found


def case(name: str, *calls: str, needs: str = "", **env: str) -> Case:
    """A case; `needs` are words, `env` is added to the environment."""
    return Case(name, calls, tuple(needs.split()), env)
