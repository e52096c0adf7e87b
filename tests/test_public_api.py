"""The public surface: every name is there, documented, and importing it is cheap."""

from __future__ import annotations

import doctest
import importlib
import inspect
import pkgutil
import subprocess
import sys
from dataclasses import fields
from importlib import import_module
from pathlib import Path

import pytest

import onchip
import onchip.api
from onchip.plans import Plan, read_plan


def test_every_exported_name_exists_and_is_documented() -> None:
    for name in onchip.__all__:
        assert inspect.getdoc(getattr(onchip, name)), name


@pytest.mark.thorough
def test_importing_onchip_does_not_import_the_heavy_libraries() -> None:
    assert not HEAVY & set(loaded("import onchip.cli; onchip.cli.load_all()"))


HEAVY = {"onnx", "onnxruntime", "ortools", "jinja2", "numpy", "torch", "pandas"}


def loaded(code: str) -> list[str]:
    """The modules that a fresh interpreter has after some code."""
    code += "\nimport sys; print(*sys.modules, file=sys.stderr)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    return done.stderr.split()


def test_importing_onchip_alone_imports_next_to_nothing() -> None:
    assert [name for name in loaded("import onchip") if name.startswith("onchip.")] == ["onchip._renamed"]


@pytest.mark.thorough
@pytest.mark.parametrize("call", [["--help"], ["plan", "--help"], ["--version"], ["chips"]])
def test_light_commands_import_no_heavy_library(call: list[str]) -> None:
    assert not HEAVY & set(loaded(calling(call)))


def test_the_commands_in_python_name_options_and_import_no_planner() -> None:
    found = set(loaded("import onchip.api"))
    assert "onchip.planners.joint.options" in found
    assert not {"onchip.check", "onchip.planners.joint.planning", "onchip.multi_dnn.solve"} & found


@pytest.mark.parametrize(
    "package",
    [
        "onchip.comparison.baselines",
        "onchip.microcontroller.segments",
        "onchip.planners.fusion",
        "onchip.planners.joint",
        "onchip.planners.placement",
        "onchip.report",
    ],
)
def test_an_export_that_is_imported_late_is_there_and_no_module_has_its_name(package: str) -> None:
    made = import_module(package)
    modules = {module.name for module in pkgutil.iter_modules(made.__path__)}
    assert not modules & set(made.__all__)
    assert set(made.__all__) <= set(dir(made))
    assert not any(inspect.ismodule(getattr(made, name)) for name in made.__all__)
    with pytest.raises(AttributeError, match="nothing"):
        _ = made.nothing


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


@pytest.mark.thorough
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
    for group in app.registered_groups:
        below = {c.callback.__module__ for c in group.typer_instance.registered_commands}
        registered[group.name] = below.pop() if len(below) == 1 else "several"
    assert {name: f"onchip.cli.{module}" for name, module in COMMANDS.items()} == registered


def test_a_verb_is_a_function_and_no_package_has_its_name() -> None:
    verbs = [name for name in onchip.__all__ if name in onchip.api.__all__ and name != "Plan"]
    assert {"plan", "fuse", "branches", "corun", "mcu", "chip", "sweep", "compare"} <= set(verbs)
    assert all(inspect.isfunction(getattr(onchip, name)) for name in verbs)
    assert not {module.name for module in pkgutil.iter_modules(onchip.__path__)} & set(verbs)
    with pytest.raises(AttributeError, match="nothing"):
        _ = onchip.nothing
    assert set(onchip.__all__) <= set(dir(onchip))


ALL_OLD_NAMES = """
import warnings
from importlib import import_module
import onchip
from onchip._renamed import NOW
for old, name in sorted(NOW.items()):
    with warnings.catch_warnings(record=True) as said:
        warnings.simplefilter("always")
        package = import_module(f"onchip.{old}")
    now = import_module(f"onchip.{name}")
    assert str(said[-1].message) == f"onchip.{old} is {now.__name__} now", said
    assert set(getattr(now, "__all__", ())) <= set(dir(package)), old
    assert now.__spec__.name == now.__name__ == f"onchip.{name}", old
    assert callable(onchip.plan) and callable(onchip.corun)
from onchip import report
from onchip.microcontroller import segments
from onchip.planners import joint, placement
for package in (report, segments, joint, placement):
    for name in package.__all__:
        assert callable(getattr(package, name)) or name in ("InputMode", "Objective"), name
assert report.timeline(onchip.plan("zoo:squeezenet1_0", budget="MR")).peak_bytes
with warnings.catch_warnings(record=True) as said:
    warnings.simplefilter("always")
    from onchip.export import SCHEDULE_FORMATS, export_schedule
assert "multi_dnn.export" in str(said[-1].message)
"""


@pytest.mark.thorough
def test_an_old_name_of_a_module_is_one_line_of_warning() -> None:
    subprocess.run([sys.executable, "-c", ALL_OLD_NAMES], check=True)


def test_the_stubs_say_what_the_code_says() -> None:
    sys.path.insert(0, str(Path(__file__).parents[1] / "scripts"))
    try:
        stubs = importlib.import_module("stubs")
    finally:
        sys.path.pop(0)
    for path, stub in stubs.STUBS.items():
        assert path.read_text("utf-8") == stubs.formatted(path, stub()), "run scripts/stubs.py"


@pytest.mark.slow
def test_a_type_checker_knows_every_option(tmp_path: Path) -> None:
    right, wrong = tmp_path / "right.py", tmp_path / "wrong.py"
    right.write_text(
        'import onchip\nonchip.plan("zoo:vgg16", budget="1MiB", weights="resident", fuse=True)\n'
    )
    wrong.write_text('import onchip\nonchip.plan("x", weigths="resident")\nonchip.plan("x", seed="one")\n')
    # With the options of `make lint`, whose cache then says what onchip's modules declare.
    command = [sys.executable, "-m", "mypy", "--no-error-summary"]
    config = ["--config-file", str(Path(__file__).parents[1] / "pyproject.toml")]
    done = subprocess.run([*command, *config, str(right), str(wrong)], capture_output=True, text=True)
    lines = done.stdout.splitlines()
    assert [line.split(":")[1] for line in lines if ": error:" in line] == ["2", "3"], done.stdout


def test_the_docstring_example_is_what_it_says() -> None:
    plan = onchip.plan("zoo:squeezenet1_0", budget="MR")
    assert plan.result.status == "optimal"
    assert plan.check() == plan.result
    assert onchip.Plan.from_text(plan.to_text()) == plan == onchip.Plan.from_text(plan.to_json())


def test_a_plan_is_one_record_and_its_verbs_add_nothing_to_it(tmp_path: Path) -> None:
    """What a verb gives, what it recorded and what is read again are equal both ways, and have the verbs."""
    plan = onchip.plan("zoo:squeezenet1_0", budget="MR")
    plan.save(tmp_path / "plan.json")
    read, record = onchip.read(tmp_path / "plan.json"), read_plan(tmp_path / "plan.json")
    assert type(read) is type(plan) is onchip.Plan
    assert plan == read == record == plan
    assert fields(onchip.Plan) == fields(Plan)
    assert "__eq__" not in vars(onchip.Plan)


@pytest.mark.thorough
@pytest.mark.parametrize("module", ["onchip.api", "onchip.at_run_time", "onchip.results.planned"])
def test_the_examples_of_docstrings_say_what_comes(module: str) -> None:
    done = doctest.testmod(import_module(module))
    assert done.attempted
    assert not done.failed
