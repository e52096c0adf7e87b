"""The worked example of docs/kernels.md: it runs, and its C is what stands there."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from onchip.microcontroller.kernel_language import Fault, Pointer, Ram, c_source, run

PAGE = (Path(__file__).resolve().parents[2] / "docs" / "kernels.md").read_text()


def example() -> Any:
    """The function of the page."""
    found = re.search(r"```python\n(.*?)```", PAGE, re.DOTALL)
    assert found
    names: dict[str, Any] = {}
    exec(found[1], names)
    return names["fully_connected"]


def test_the_c_of_the_page_is_the_kernel_s() -> None:
    found = re.search(r"```c\n(.*?)```", PAGE, re.DOTALL)
    assert found
    assert c_source(example()(16, 4)) == found[1]


def test_the_kernel_of_the_page_multiplies_and_frees_its_input() -> None:
    rng = np.random.default_rng(0)
    x = rng.integers(-128, 128, 16).astype(np.int8)
    weights = rng.integers(-128, 128, (4, 16)).astype(np.int8)
    ram, source, target = Ram(20), Pointer("source", 4), Pointer("target", 0)
    ram.put(source, x.tobytes())
    words = weights.reshape(-1).view("<i4").tolist()
    run(example()(16, 4), ram, {"source": source, "target": target, "shift": 8, "weights": words})
    expected = np.clip((weights.astype(int) @ x.astype(int)) >> 8, -128, 127)
    assert np.frombuffer(ram.get(target, 4), np.int8).tolist() == expected.tolist()
    with pytest.raises(Fault, match="freed"):
        ram.get(source, 1)
