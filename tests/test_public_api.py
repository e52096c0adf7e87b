"""The public surface: every name is there, documented, and importing it is cheap."""

from __future__ import annotations

import inspect
import subprocess
import sys

import onchip


def test_every_exported_name_exists_and_is_documented() -> None:
    for name in onchip.__all__:
        assert inspect.getdoc(getattr(onchip, name)), name


def test_importing_onchip_does_not_import_the_heavy_libraries() -> None:
    code = "import sys, onchip, onchip.cli; print(*sys.modules)"
    loaded = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True
    ).stdout.split()
    assert not {"onnx", "onnxruntime", "ortools", "jinja2", "numpy"} & set(loaded)


def test_the_docstring_example_is_what_it_says() -> None:
    plan = onchip.plan("zoo:squeezenet1_0", budget="MR")
    assert plan.result.status == "optimal"
    assert plan.check() == plan.result
    assert onchip.Plan.from_text(plan.to_text()) == plan == onchip.Plan.from_text(plan.to_json())
