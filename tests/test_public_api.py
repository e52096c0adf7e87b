"""The public surface: every name is there, documented, and importing it is cheap."""

from __future__ import annotations

import importlib
import inspect
import pkgutil
import subprocess
import sys

import pytest

import onchip
import onchip.api


def test_every_exported_name_exists_and_is_documented() -> None:
    for name in onchip.__all__:
        assert inspect.getdoc(getattr(onchip, name)), name


def test_importing_onchip_does_not_import_the_heavy_libraries() -> None:
    assert not HEAVY & set(loaded("import onchip.cli; onchip.cli.load_all()"))


HEAVY = {"onnx", "onnxruntime", "ortools", "jinja2", "numpy", "torch", "pandas"}


def loaded(code: str) -> list[str]:
    """The modules that a fresh interpreter has after some code."""
    code += "\nimport sys; print(*sys.modules, file=sys.stderr)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    return done.stderr.split()


def test_importing_onchip_alone_imports_next_to_nothing() -> None:
    assert [name for name in loaded("import onchip") if name.startswith("onchip.")] == ["onchip._verbs"]


@pytest.mark.parametrize("call", [["--help"], ["plan", "--help"], ["--version"], ["chips"]])
def test_light_commands_import_no_heavy_library(call: list[str]) -> None:
    assert not HEAVY & set(loaded(calling(call)))


def calling(call: list[str]) -> str:
    """Code that runs the command and goes on."""
    return f"""
import sys
sys.argv[1:] = {call}
from onchip_command import main
try:
    main()
except SystemExit as end:
    assert not end.code
"""


def test_a_light_command_imports_its_own_module_alone() -> None:
    found = loaded(calling(["chips"]))
    assert "onchip.cli.catalogue" in found
    assert "onchip.api" not in found


def test_every_module_of_the_command_line_is_known_by_its_commands() -> None:
    from onchip.cli import app, load_all
    from onchip.cli.app import COMMANDS

    load_all()
    for module in pkgutil.iter_modules(importlib.import_module("onchip.cli").__path__):
        if module.name != "__main__":
            importlib.import_module(f"onchip.cli.{module.name}")
    registered = {c.name or c.callback.__name__: c.callback.__module__ for c in app.registered_commands}
    assert {name: f"onchip.cli.{module}" for name, module in COMMANDS.items()} == registered


PACKAGES = {module.name for module in pkgutil.iter_modules(onchip.__path__)}
VERBS = [name for name in onchip.__all__ if name in PACKAGES]
"""Verbs that are packages, too: by what is there, so that a new one is held to the same."""


def test_there_are_verbs_that_are_packages() -> None:
    assert {"plan", "branches", "corun", "mcu", "chip"} <= set(VERBS)


@pytest.mark.parametrize("name", VERBS)
@pytest.mark.parametrize(
    "order", ["{name}; import onchip.{name} as package", "{name} as package; import onchip"]
)
def test_a_verb_and_its_package_are_both_there_whichever_comes_first(name: str, order: str) -> None:
    room = importlib.import_module(f"onchip.{name}")
    inside = [module.name for module in pkgutil.iter_modules(getattr(room, "__path__", []))][:1]
    code = f"import onchip.{order.format(name=name)}, inspect\n"
    code += "".join(f"import onchip.{name}.{part} as y; assert package.{part} is y\n" for part in inside)
    code += f"""
assert callable(onchip.{name}) and onchip.{name} is package
from onchip import {name} as again, api
assert again is package
assert inspect.signature(again) == inspect.signature(api.{name})
assert inspect.getdoc(again).startswith(inspect.getdoc(api.{name}))
"""
    loaded(code)


def test_a_verb_that_is_a_package_does_what_the_verb_does() -> None:
    assert onchip.chip("eyeriss") == onchip.api.chip("eyeriss")
    with pytest.raises(AttributeError, match="nothing"):
        _ = onchip.nothing
    assert set(onchip.__all__) <= set(dir(onchip))


def test_the_docstring_example_is_what_it_says() -> None:
    plan = onchip.plan("zoo:squeezenet1_0", budget="MR")
    assert plan.result.status == "optimal"
    assert plan.check() == plan.result
    assert onchip.Plan.from_text(plan.to_text()) == plan == onchip.Plan.from_text(plan.to_json())
