"""MODELs of PyTorch: read, planned, executed, compared with torch; and refused in one line."""

from __future__ import annotations

import io
import pickle
import subprocess
import sys
import zipfile
from pathlib import Path
from typing import Any

import pytest

torch = pytest.importorskip("torch")

from torch_modules import agrees, outputs  # noqa: E402

import onchip  # noqa: E402
from onchip.base.errors import ModelError, UsageError  # noqa: E402
from onchip.readers import ReadOptions, load  # noqa: E402

FOLDER = Path(__file__).parent


@pytest.fixture(autouse=True)
def in_folder(monkeypatch: pytest.MonkeyPatch) -> None:
    """Where torch_networks.py lies: the current directory is importable."""
    monkeypatch.chdir(FOLDER)


def example(name: str) -> tuple[Any, tuple[Any, ...]]:
    import torch_networks

    module, given = getattr(torch_networks, name)()
    if isinstance(given, dict):
        return module, tuple(given.values())
    return module, given if isinstance(given, tuple) else (given,)


@pytest.mark.parametrize("name", ["small", pytest.param("llama", marks=pytest.mark.slow),
                                  pytest.param("unet", marks=pytest.mark.slow),
                                  pytest.param("mobilevit", marks=pytest.mark.slow)])  # fmt: skip
def test_a_module_is_read_planned_and_executed(name: str) -> None:
    source = load(f"torch_networks:{name}")
    module, inputs = example(name)
    agrees(module, *inputs)
    agrees(module, *inputs, attention="parts")
    for budget in ("MR", "MP"):
        plan = onchip.plan(source, budget=budget)
        assert plan.network.source == f"torch_networks:{name}"
        report = plan.run()
        assert report.bit_exact
        assert not any("filled from the seed" in note for note in report.notes)


def test_one_operator_for_each_call() -> None:
    op = load("torch_networks:small", ReadOptions(granularity="op")).network
    assert [o.type for o in op.operators] == [
        "Conv", "BatchNormalization", "Swish", "GlobalAveragePool", "Gemm",
    ]  # fmt: skip
    assert [o.name for o in op.operators] == ["0", "1", "2", "3", "5"]
    fused = load("torch_networks:small").network
    assert [o.type for o in fused.operators] == ["Conv+BatchNormalization+Swish", "GlobalAveragePool", "Gemm"]
    assert fused.weight_bytes == 4 * (16 * 27 + 16 + 4 * 16 + 170)
    assert (
        load("torch_networks:small", ReadOptions(dtype="int8")).network.weight_bytes * 4 == fused.weight_bytes
    )


@pytest.mark.slow
def test_a_module_without_weights_is_read_alike() -> None:
    network = load("torch_networks:llama_without_weights", ReadOptions(dtype="int8")).network
    block = 2 * 512 * 512 + 2 * 512 * 256 + 3 * 512 * 1536 + 2 * 512
    rotary = 4 * 64 * 128  # sines and cosines, of queries and of keys: constants, so parameters
    assert network.weight_bytes == 2 * 32000 * 512 + 4 * (block + rotary) + 512
    attentions = [o for o in network.operators if o.type == "Attention"]
    assert len(attentions) == 4


@pytest.mark.slow
def test_a_response_norm_is_one_operator() -> None:
    norm = torch.nn.LocalResponseNorm(5, 2e-4, 0.5, 2.0)
    source = agrees(torch.nn.Sequential(torch.nn.Conv2d(3, 12, 3), norm), torch.randn(1, 3, 8, 9))
    assert [o.type for o in source.network.operators] == ["Conv", "LRN"]
    assert source.network.operators[1].name == "1"


@pytest.mark.slow
def test_a_pt2_file_is_read_like_the_module(tmp_path: Path) -> None:
    for name in ("small", "llama"):
        module, inputs = example(name)
        path = tmp_path / f"{name}.pt2"
        torch.export.save(torch.export.export(module.eval(), inputs), path)
        source = load(path)
        assert source.network.weight_bytes == load(f"torch_networks:{name}").network.weight_bytes
        with torch.no_grad():
            torch.testing.assert_close(
                torch.from_numpy(outputs(source, *inputs)[0]), module(*inputs), atol=1e-4, rtol=1e-4
            )
        plan = onchip.plan(path, budget="MR")
        assert plan.run().bit_exact


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore::FutureWarning")
def test_free_sizes_of_a_pt2_file_are_those_of_its_example(tmp_path: Path) -> None:
    module, inputs = example("unet")
    free = ({0: torch.export.Dim("batch", min=1, max=8)},)
    batch = torch.cat([inputs[0], inputs[0]])
    path = tmp_path / "unet.pt2"
    torch.export.save(torch.export.export(module.eval(), (batch,), dynamic_shapes=free), path)
    network = load(path).network
    assert [t.bytes for t in network.tensors if t.kind == "input"] == [4 * batch.numel()]
    decomposed = torch.export.export(module.eval(), inputs).run_decompositions()
    torch.export.save(decomposed, path)
    source = load(path)
    assert source.network.weight_bytes == network.weight_bytes
    with torch.no_grad():
        found = torch.from_numpy(outputs(source, *inputs)[0])
        torch.testing.assert_close(found, module(*inputs), atol=1e-4, rtol=1e-4)


class Bomb:
    def __reduce__(self) -> Any:
        return (exec, ("raise SystemExit('went off')",))


def test_a_pt2_file_that_would_run_code_is_refused(tmp_path: Path) -> None:
    module, inputs = example("small")
    path, bad = tmp_path / "good.pt2", tmp_path / "bad.pt2"
    torch.export.save(torch.export.export(module.eval(), inputs), path)
    with zipfile.ZipFile(path) as good:
        entries = {name: good.read(name) for name in good.namelist()}
    prefix = next(iter(entries)).split("/")[0]
    changes: list[dict[str, bytes]] = [
        {f"{prefix}/data/constants/opaque_obj_0": pickle.dumps(Bomb())},
        {f"{prefix}/data/aotinductor/model/a.so": b"\x7fELF"},
        {f"{prefix}/data/sample_inputs/model.pt": _saved(Bomb())},
        {f"{prefix}/models/model.json": b"{}"},
    ]
    for change in changes:
        with zipfile.ZipFile(bad, "w") as archive:
            for name, content in {**entries, **change}.items():
                archive.writestr(name, content)
        with pytest.raises(ModelError, match=r"^[^\n]*bad\.pt2[^\n]*$"):
            load(bad)
    bad.write_bytes(path.read_bytes()[:1000])
    for broken in (bad, tmp_path / "missing.pt2"):
        with pytest.raises(ModelError, match=rf"{broken.name}"):
            load(broken)


def _saved(thing: Any) -> bytes:
    buffer = io.BytesIO()
    torch.save(thing, buffer)
    return buffer.getvalue()


@pytest.mark.parametrize(
    ("model", "reason"),
    [
        ("no_such_module_at_all:f", "cannot import no_such_module_at_all: ModuleNotFoundError"),
        ("torch_networks:no_such", "torch_networks has no function no_such"),
        ("torch_networks:number", "torch_networks has no function number"),
        ("torch_networks:nothing", "returned NoneType"),
        ("torch_networks:one_thing", "returned ReLU"),
        ("torch_networks:wrong_example", "gives int as example inputs"),
        ("torch_networks:fails", "the function fails: ValueError: no such"),
        ("torch_networks:of_no_size", "torch_networks:of_no_size"),
        ("torch_networks:branches", "torch.export refuses it"),
        ("torch_networks:unknown_operator", r"node linalg_svd\w* \(aten.linalg_svd\w*"),
        ("torch_networks:random_numbers", "draws random numbers"),
    ],
)
def test_what_cannot_be_read_is_refused_in_one_line(model: str, reason: str) -> None:
    with pytest.raises(ModelError, match=reason) as refused:
        load(model)
    assert "\n" not in str(refused.value)
    assert str(refused.value).startswith(f"{model}: ")
    assert refused.value.exit_code == 2


def test_a_plan_file_imports_nothing_unless_told(tmp_path: Path) -> None:
    path = tmp_path / "plan.json"
    onchip.plan("torch_networks:small", budget="MR").save(path)
    assert onchip.read(path).run().bit_exact  # this process has been asked to import it
    command = [sys.executable, "-m", "onchip.cli", "run", str(path)]
    refused = subprocess.run(command, capture_output=True, text=True, cwd=FOLDER, check=False)
    assert refused.returncode == 2
    assert refused.stderr.count("\n") == 1
    assert "name it with --model" in refused.stderr
    told = [*command, "--model", "torch_networks:small"]
    assert subprocess.run(told, capture_output=True, cwd=FOLDER, check=False).returncode == 0


def test_plans_of_python_code_name_the_code() -> None:
    plan = onchip.plan("torch_networks:small", budget="MR")
    with pytest.raises(UsageError, match="name it with --model"):
        onchip.Plan.from_text(plan.to_json().replace("torch_networks:small", "os:abort")).run(checked=False)


def test_the_example_of_the_documentation(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    page = (FOLDER.parents[1] / "docs" / "models.md").read_text(encoding="utf-8")
    section = page.split("## PyTorch")[1]
    (tmp_path / "nets.py").write_text(section.split("```python")[1].split("```")[0])
    monkeypatch.chdir(tmp_path)
    monkeypatch.delitem(sys.modules, "nets", raising=False)
    commands = [line.split()[1:] for line in section.splitlines() if line.startswith("    onchip ")]
    assert [command[0] for command in commands] == ["plan", "run"]
    for command in commands:
        done = subprocess.run(
            [sys.executable, "-m", "onchip.cli", *command], capture_output=True, check=False
        )
        assert done.returncode == 0, done.stderr
