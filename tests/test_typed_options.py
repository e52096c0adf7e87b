"""Options are visible to type checkers: pyright in strict mode finds a misspelt one in a user's script."""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path

import pytest

PYRIGHT = shutil.which("pyright")

SCRIPT = """# pyright: strict
import onchip

plan = onchip.plan("zoo:resnet50", budget="MR", {option}=10.0)
print(plan.result.dram_bytes)
"""


@pytest.mark.thorough
@pytest.mark.skipif(PYRIGHT is None, reason="pip install 'pyright[nodejs]'")
@pytest.mark.parametrize("option", ["time_limit", "time_limt"])
def test_pyright_finds_a_misspelt_option_and_takes_the_right_one(option: str, tmp_path: Path) -> None:
    script = tmp_path / "user.py"
    script.write_text(SCRIPT.format(option=option))
    done = subprocess.run(
        [str(PYRIGHT), "--pythonpath", sys.executable, str(script)],
        capture_output=True,
        text=True,
        check=False,
        timeout=300,
    )
    if option == "time_limit":
        assert done.returncode == 0, done.stdout
    else:
        assert done.returncode == 1
        assert 'No parameter named "time_limt"' in done.stdout
