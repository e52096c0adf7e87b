"""Schedules for other programs: names that reach no program raw, an order that processes really keep."""

from __future__ import annotations

import json
import re
import shlex
import shutil
import subprocess
import sys
from dataclasses import replace
from itertools import pairwise
from pathlib import Path
from random import Random

import onnx
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import onchip as onchip_package
from multi_dnn.made import crossing, random_judged
from onchip.base.errors import UsageError
from onchip.machines.contention import NO_CONTENTION
from onchip.multi_dnn.export import SCHEDULE_FORMATS, export_schedule
from onchip.multi_dnn.judged import Judged
from onchip.multi_dnn.profile import Profile
from onchip.multi_dnn.published import googlenet
from onchip.multi_dnn.schedule import Schedule, Step
from onchip.multi_dnn.simulate import simulate
from onchip.multi_dnn.stretches import stretches
from onchip.multi_dnn.workload import Workload
from onchip.readers import load
from onchip.readers.source import Executable
from strategies import hostile_names

COMPILER = shutil.which("c++") or shutil.which("g++")


def with_layers(made: Judged, prefix: str = "layer") -> Judged:
    """The same with two layers a group and a tensor between groups."""
    jobs = tuple(
        replace(
            job,
            profile=replace(
                job.profile,
                groups=tuple(
                    replace(g, layers=(f"{prefix}{n}a", f"{prefix}{n}b"), output=f"{prefix}{n}b")
                    for n, g in enumerate(job.profile.groups)
                ),
            ),
        )
        for job in made.workload.jobs
    )
    workload = made.workload
    changed = Workload(workload.soc, jobs, workload.model, workload.frames, workload.pipelined)
    return replace(made, timeline=simulate(changed, made.schedule))


def without_layers(made: Judged) -> Judged:
    """The same by a profile that names its groups by ranges of layers, and says nothing else of them."""
    jobs = tuple(
        replace(
            job,
            profile=replace(
                job.profile, groups=tuple(replace(g, layers=(), output="") for g in job.profile.groups)
            ),
        )
        for job in made.workload.jobs
    )
    changed = replace(made.workload, jobs=jobs)
    return replace(made, timeline=simulate(changed, made.schedule))


@given(st.randoms(use_true_random=False))
@settings(max_examples=20, deadline=None)
def test_trace_and_table_are_the_timeline(rng: Random) -> None:
    made = random_judged(rng)
    line = made.timeline
    table = json.loads(export_schedule(made, "json"))
    assert table["format"] == "onchip.timeline/1"
    assert [(r["start_ms"], r["end_ms"]) for r in table["groups"]] == [
        (s.start, s.end) for s in line.segments
    ]
    for unit, name in enumerate(table["units"]):
        mine = sorted((r for r in table["groups"] if r["unit"] == name), key=lambda r: r["turn"])
        assert [(r["network"], r["run"], r["group"]) for r in mine] == [
            (made.workload.jobs[s.job].name, s.run, made.workload.jobs[s.job].profile.groups[s.group].name)
            for s in made.schedule.order[unit]
        ]
    trace = json.loads(export_schedule(made, "trace"))
    events = [e for e in trace["traceEvents"] if e["ph"] != "M"]
    assert all(a["ts"] <= b["ts"] for a, b in pairwise(events))
    spans = [e for e in events if e["ph"] == "X"]
    assert sum(e["dur"] for e in spans) == pytest.approx(1000 * sum(line.busy_ms))
    assert max(e["ts"] + e["dur"] for e in spans) == pytest.approx(1000 * line.makespan_ms)
    units = {s.step: s.unit for s in line.segments}
    changes = sum(units.get(s._replace(group=s.group + 1), u) != u for s, u in units.items())
    assert sum(e["ph"] == "s" for e in events) == sum(e["ph"] == "f" for e in events) == changes


def test_trtexec_gets_every_layers_device() -> None:
    made = with_layers(crossing("first;rm -rf", "$(second)"), "l'$(x) ")
    script = export_schedule(made, "trtexec").decode()
    commands = [shlex.split(row) for row in script.splitlines() if row.startswith("trtexec")]
    assert [c[1] for c in commands] == ["--onnx=first_rm_rf.onnx", "--onnx=second.onnx"]
    for j, command in enumerate(commands):
        (spec,) = (w.partition("=")[2] for w in command if w.startswith("--layerDeviceTypes="))
        devices = dict(pair.rsplit(":", 1) for pair in spec.split(","))
        for n, unit in enumerate(made.schedule.units[j][0]):
            for half in "ab":
                assert devices[f"l'$(x) {n}{half}"] == ("GPU", "DLA")[unit]
    with pytest.raises(UsageError, match="does not say which layers"):
        export_schedule(without_layers(crossing()), "trtexec")
    for bad in ("a,b", "a:DLA", "a\nb"):
        with pytest.raises(UsageError, match="cannot say the layer name"):
            export_schedule(with_layers(crossing(), bad), "trtexec")


def test_the_papers_googlenet_is_exported_with_the_layers_of_the_built_in_one() -> None:
    """Table 2's groups are consecutive nodes of its ONNX file, cut where one tensor crosses."""
    source = load("zoo:googlenet")
    assert isinstance(source.executable, Executable)
    nodes = list(source.executable.model.graph.node)
    groups = googlenet().groups
    assert [name for group in groups for name in group.layers] == [node.name for node in nodes]
    weights = {value.name for value in source.executable.model.graph.initializer}
    at = 0
    for group in groups[:-1]:
        at += len(group.layers)
        made = {name for node in nodes[:at] for name in node.output}
        assert {name for node in nodes[at:] for name in node.input if name in made} == {group.output}
    assert not weights & {group.output for group in groups}
    made_of = crossing()
    script = export_schedule(made_of, "trtexec").decode()
    (spec,) = re.findall(r"--layerDeviceTypes=([^\s']+)", script.splitlines()[6])
    devices = dict(pair.rsplit(":", 1) for pair in spec.split(","))
    assert devices.keys() == {node.name for node in nodes}
    for n, group in enumerate(groups):
        unit = made_of.schedule.units[0][0][n]
        assert {devices[name] for name in group.layers} == {("GPU", "DLA")[unit]}
    assert b"('tensor', 'inception3a.cat')" in export_schedule(made_of, "tensorrt")


def test_a_node_without_a_name_has_the_one_that_tensorrt_gives_it(tmp_path: Path) -> None:
    shape = [1, 4, 8, 8]
    value = onnx.helper.make_tensor_value_info
    graph = onnx.helper.make_graph(
        [
            onnx.helper.make_node("Relu", ["x"], ["first"]),
            onnx.helper.make_node("MaxPool", ["first"], ["y"], name="pool", kernel_shape=[2, 2]),
        ],
        "g", [value("x", 1, shape)], [value("y", 1, [1, 4, 7, 7])],
    )  # fmt: skip
    onnx.save(onnx.helper.make_model(graph), str(tmp_path / "m.onnx"))
    made = onnx_corun(tmp_path / "m.onnx")
    assert [name for group in made.groups for name in group.layers] == ["node_of_first", "pool"]


def onnx_corun(path: Path) -> Profile:
    return onchip_package.corun([path, "zoo:googlenet"]).workload.jobs[0].profile


def test_formats_that_say_no() -> None:
    with pytest.raises(UsageError, match="none of tensorrt, trtexec"):
        export_schedule(crossing(), "tflm")
    other = random_judged(Random(1))
    for to in ("tensorrt", "trtexec"):
        with pytest.raises(UsageError, match=r"gpu and dla|does not say which layers"):
            export_schedule(other, to)
    one = without_layers(crossing())
    renamed = with_layers(one)
    job = one.workload.jobs[0]
    groups = tuple(replace(g, name=f"g{g.name}") for g in job.profile.groups)
    bad = replace(one.workload, jobs=(replace(job, profile=replace(job.profile, groups=groups)),))
    alone = Schedule((one.schedule.units[0],), tuple(
        tuple(s for s in row if s.job == 0) for row in one.schedule.order
    ))  # fmt: skip
    with pytest.raises(UsageError, match="does not say which tensor"):
        export_schedule(Judged(alone, simulate(bad, alone), one.claim), "tensorrt")
    assert b"('tensor', 'layer1b')" in export_schedule(renamed, "tensorrt")
    assert b"('layer', 24)" in export_schedule(one, "tensorrt")


@given(hostile_names)
@settings(max_examples=12, deadline=None)
def test_hostile_names_are_data(name: str) -> None:
    made = with_layers(crossing(name, name + " #2"), name)
    header = export_schedule(made, "order").decode()
    assert header.isascii()
    code = "\n".join(row.split("//")[0] for row in header.splitlines())
    names = re.findall(r"kNetwork_(\w+)", code)
    assert len(names) == len(set(names)) == 2
    assert all(
        re.fullmatch(r'    "[A-Za-z0-9_]+\.plan",', row) for row in re.findall(r'^    ".*$', code, re.M)
    )
    script = export_schedule(made, "tensorrt").decode()
    assert script.isascii()
    compile(script, "build.py", "exec")
    for to in SCHEDULE_FORMATS:
        if to in ("json", "trace"):
            json.loads(export_schedule(made, to))


FAKE_TENSORRT = '''
"""As much of TensorRT as a builder script meets: a chain of layers, cut and built."""
import json, pathlib
float16 = "half"
class NetworkDefinitionCreationFlag: EXPLICIT_BATCH = 0
class BuilderFlag: FP16, GPU_FALLBACK = "fp16", "fallback"
class DeviceType: GPU, DLA = "GPU", "DLA"
class Logger:
    WARNING = 1
    def __init__(self, level): pass
class Tensor:
    def __init__(self, name): self.name, self.shape, self.dtype = name, (1,), "float"
class Layer:
    num_inputs = num_outputs = 1
    def __init__(self, name, inp, out): self.name, self.inp, self.out = name, inp, out
    def get_input(self, k): return self.inp
    def get_output(self, k): return self.out
    def set_input(self, k, t): self.inp = t
class Network:
    def __init__(self): self.layers, self.outputs = [], []
    num_layers = property(lambda self: len(self.layers))
    num_outputs = property(lambda self: len(self.outputs))
    def get_layer(self, n): return self.layers[n]
    def get_output(self, n): return self.outputs[n]
    def add_input(self, name, dtype, shape): return Tensor(name)
    def unmark_output(self, t): self.outputs.remove(t)
    def mark_output(self, t): self.outputs.append(t)
class OnnxParser:
    def __init__(self, network, logger): self.network = network
    def parse_from_file(self, path):
        last = Tensor("input")
        for name in json.loads(pathlib.Path(path).read_text()):
            layer = Layer(name, last, Tensor(name))
            self.network.layers.append(layer)
            last = layer.out
        self.network.outputs.append(last)
        return True
class Config:
    def __init__(self): self.flags, self.default_device_type, self.DLA_core, self.types = [], "GPU", None, {}
    def set_flag(self, flag): self.flags.append(flag)
    def can_run_on_DLA(self, layer): return not layer.name.endswith("9b")
    def set_device_type(self, layer, device): self.types[layer.name] = device
class Builder:
    num_DLA_cores = 2
    def __init__(self, logger): pass
    def create_network(self, flags): return Network()
    def create_builder_config(self): return Config()
    def build_serialized_network(self, network, config):
        (end,), needed = network.outputs, []
        while end.name not in ("input", "onchip_in"):
            layer = next(l for l in network.layers if l.out is end)
            needed.append(layer.name)
            end = layer.inp
        return json.dumps({"layers": needed[::-1], "from": end.name, "device": config.default_device_type,
                           "core": config.DLA_core, "flags": config.flags, "types": config.types}).encode()
'''


def test_the_builder_script_covers_every_layer_once_on_its_device(tmp_path: Path) -> None:
    """Against a stand-in for TensorRT: no board is here."""
    made = with_layers(crossing("one", "two"))
    (tmp_path / "build.py").write_bytes(export_schedule(made, "tensorrt"))
    (tmp_path / "tensorrt.py").write_text(FAKE_TENSORRT)
    layers = [f"layer{n}{half}" for n in range(10) for half in "ab"]
    (tmp_path / "model.onnx").write_text(json.dumps(layers))

    def build(*args: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [sys.executable, "-B", "build.py", *args],
            cwd=tmp_path,
            capture_output=True,
            text=True,
            check=False,
        )

    assert build("one=model.onnx").returncode
    done = build("one=model.onnx", "two=model.onnx", "--out", str(tmp_path))
    assert done.returncode == 0, done.stderr
    for j, name in enumerate(("one", "two")):
        found = sorted(tmp_path.glob(f"{name}_*.plan"), key=lambda p: int(p.stem.split("_")[1]))
        built = [json.loads(path.read_text()) for path in found]
        assert [x for engine in built for x in engine["layers"]] == layers
        assert [e["from"] for e in built] == ["input", "onchip_in"]
        for engine in built:
            for layer in engine["layers"]:
                unit = made.schedule.units[j][0][int(layer[5:-1])]
                assert engine["device"] == ("GPU", "DLA")[unit]
                assert engine["core"] == (None, 0)[unit]
            if engine["device"] == "DLA":
                assert "fallback" in engine["flags"]
                assert engine["types"] == dict.fromkeys(("layer9b",), "GPU")


def on_units(made: Judged, names: tuple[str, ...], rows: tuple[tuple[int, ...], ...]) -> Judged:
    """One run of each network on units of these names, group by group as `rows` say, one after the other."""
    soc = made.workload.soc
    alike = [soc.units[1] if name.lower().startswith("dla") else soc.units[0] for name in names]
    profiles = []
    for job in made.workload.jobs:
        old = [int(name.lower().startswith("dla")) for name in names]
        groups = tuple(
            replace(g, **{key: tuple(getattr(g, key)[u] for u in old)
                          for key in ("ms", "gb_per_second", "out_ms", "in_ms")})
            for g in job.profile.groups
        )  # fmt: skip
        profiles.append(replace(job, profile=replace(job.profile, units=names, groups=groups)))
    units = tuple(replace(unit, name=name) for unit, name in zip(alike, names, strict=True))
    workload = Workload(replace(soc, units=units, contention={}), tuple(profiles), NO_CONTENTION)
    order = tuple(
        tuple(Step(j, 0, g) for j, row in enumerate(rows) for g, on in enumerate(row) if on == unit)
        for unit in range(len(names))
    )
    schedule = Schedule(tuple((row,) for row in rows), order)
    return Judged(schedule, simulate(workload, schedule), made.claim)


TWO_DLAS = ("gpu", "dla", "dla1")


def test_every_dla_has_its_own_core(tmp_path: Path) -> None:
    """Boards have two: `dla` or `dla0` is core 0, `dla1` core 1, in every command and engine."""
    rows = ((0, 0, *(1,) * 8), (*(2,) * 5, *(0,) * 5))
    made = on_units(with_layers(crossing("one", "two")), TWO_DLAS, rows)
    script = export_schedule(made, "trtexec").decode()
    assert re.findall(r"--onnx=(\w+)\.onnx .*--useDLACore=(\d)", script) == [("one", "0"), ("two", "1")]
    (tmp_path / "build.py").write_bytes(export_schedule(made, "tensorrt"))
    (tmp_path / "tensorrt.py").write_text(FAKE_TENSORRT)
    (tmp_path / "model.onnx").write_text(json.dumps([f"layer{n}{half}" for n in range(10) for half in "ab"]))
    command = [sys.executable, "-B", "build.py", "one=model.onnx", "two=model.onnx"]
    subprocess.run(command, cwd=tmp_path, check=True, capture_output=True)
    built = {path.stem: json.loads(path.read_text()) for path in tmp_path.glob("*.plan")}
    assert {name: (engine["device"], engine["core"]) for name, engine in built.items()} == {
        "one_0_1_gpu": ("GPU", None),
        "one_2_9_dla": ("DLA", 0),
        "two_0_4_dla1": ("DLA", 1),
        "two_5_9_gpu": ("GPU", None),
    }
    header = export_schedule(made, "order").decode()
    assert all(f'"{name}.plan"' in header for name in built)
    (tmp_path / "tensorrt.py").write_text(FAKE_TENSORRT.replace("num_DLA_cores = 2", "num_DLA_cores = 1"))
    refused = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert refused.returncode == 1
    assert refused.stderr == "two_0_4_dla1.plan is for DLA core 1; here are 1 cores\n"


@pytest.mark.parametrize("name", ["dla", "DLA0", "dla-0", "dla_1", "dla1"])
def test_a_dlas_core_is_the_number_in_its_name(name: str) -> None:
    made = on_units(with_layers(crossing("one", "two")), ("gpu", name), ((1,) * 10, (0,) * 10))
    assert f"--useDLACore={int(name.endswith('1'))} " in export_schedule(made, "trtexec").decode()


def test_one_engine_on_two_dlas_is_refused_for_trtexec_alone() -> None:
    made = on_units(with_layers(crossing("one", "two")), TWO_DLAS, ((*(1,) * 5, *(2,) * 5), (0,) * 10))
    with pytest.raises(UsageError, match=r"^--to: one runs on DLA cores 0 and 1; trtexec builds one engine"):
        export_schedule(made, "trtexec")
    assert b"('one_5_9_dla1.plan', 'DLA', 1," in export_schedule(made, "tensorrt")


@pytest.mark.parametrize(
    ("names", "what"),
    [(("gpu", "dla", "dla0"), "units dla and dla0 are both DLA core 0"),
     (("gpu", "gpu1", "dla"), "units gpu and gpu1 are both the GPU")],
)  # fmt: skip
def test_two_units_that_are_one_device_are_refused(names: tuple[str, ...], what: str) -> None:
    made = on_units(with_layers(crossing("one", "two")), names, ((*(0,) * 5, *(1,) * 5), (2,) * 10))
    for to in ("trtexec", "tensorrt"):
        with pytest.raises(UsageError, match=what):
            export_schedule(made, to)
    idle = on_units(with_layers(crossing("one", "two")), ("gpu", "dla", "dla0"), ((0,) * 10, (1,) * 10))
    assert b"--useDLACore=0" in export_schedule(idle, "trtexec")


DRIVER = r"""
#include "order.h"
#include <cstdio>
#include <cstdlib>
#include <sys/wait.h>
using namespace onchip_order;
struct Log { std::atomic<unsigned> next; unsigned rows[1 << 16][3]; };
int main(int argc, char** argv) {
    const char* name = argv[1];
    const unsigned periods = std::atoi(argv[2]);
    Shared* flags = open_flags(name, true);
    if (flags == nullptr || open_flags(name, true) != nullptr) return 3;
    const int both = PROT_READ | PROT_WRITE;
    Log* log = static_cast<Log*>(mmap(nullptr, sizeof(Log), both, MAP_SHARED | MAP_ANONYMOUS, -1, 0));
    for (unsigned n = 0; n < kNetworks; ++n)
        if (fork() == 0) {
            Shared* mine = open_flags(name, false);
            if (argc > 3 && n == 0) { stop(*mine); _exit(0); }
            for (std::uint64_t p = 0; p < periods; ++p)
                for (unsigned i = kFirst[n]; i < kFirst[n + 1]; ++i) {
                    if (!begin(*mine, kStretches[i], p, 5000000000u)) _exit(4);
                    const unsigned row = log->next++;
                    log->rows[row][0] = 0; log->rows[row][1] = i; log->rows[row][2] = unsigned(p);
                    const unsigned after = log->next++;
                    log->rows[after][0] = 1; log->rows[after][1] = i; log->rows[after][2] = unsigned(p);
                    end(*mine, kStretches[i], p);
                }
            _exit(0);
        }
    int worst = 0, status = 0;
    for (unsigned n = 0; n < kNetworks; ++n) {
        wait(&status);
        if (WEXITSTATUS(status) > worst) worst = WEXITSTATUS(status);
    }
    shm_unlink(name);
    for (unsigned n = 0; n < log->next; ++n)
        std::printf("%u %u %u\n", log->rows[n][0], log->rows[n][1], log->rows[n][2]);
    return worst;
}
"""


def driven(made: Judged, folder: Path) -> Path:
    assert COMPILER is not None
    folder.mkdir(exist_ok=True)
    (folder / "order.h").write_bytes(export_schedule(made, "order"))
    (folder / "main.cpp").write_text(DRIVER)
    command = [COMPILER, "-std=c++17", "-O1", "-Wall", "-Wextra", "-Wno-unused-parameter", "-Werror"]
    subprocess.run([*command, "main.cpp", "-o", "main", "-lrt"], cwd=folder, check=True)
    return folder / "main"


@pytest.mark.thorough
@pytest.mark.skipif(COMPILER is None, reason="no C++ compiler")
@pytest.mark.parametrize("seed", [21, *(pytest.param(seed, marks=pytest.mark.slow) for seed in (0, 17, 24))])
def test_processes_keep_the_order(seed: int, tmp_path: Path) -> None:
    """Processes as fast as they can: every unit's order, every network's, and what waits for others."""
    made = crossing() if not seed else random_judged(Random(seed), in_flight=2 * (seed == 24))
    program = driven(made, tmp_path / "built")
    periods = 40
    ran = subprocess.run(
        [program, f"/onchip-test-{tmp_path.name}", str(periods)],
        capture_output=True,
        text=True,
        check=True,
        timeout=60,
    )
    every = sorted(
        (s for row in stretches(made.schedule) for s in row), key=lambda s: (s.job, s.run, s.first)
    )
    rows = [tuple(map(int, row.split())) for row in ran.stdout.splitlines()]
    assert len(rows) == 2 * periods * len(every)
    workload = made.workload
    turn = [0] * len(workload.soc.units)
    busy: dict[int, int] = {}
    ended = [0] * len(workload.jobs)
    position: dict[int, list[tuple[int, Step]]] = {j: [] for j in range(len(workload.jobs))}
    for is_end, index, period in rows:
        s = every[index]
        job = workload.jobs[s.job]
        if is_end:
            assert busy.pop(s.unit) == index
            if s.last == len(job.profile.groups) - 1:
                ended[s.job] += 1
            continue
        assert s.unit not in busy
        busy[s.unit] = index
        count = len(stretches(made.schedule)[s.unit])
        assert divmod(turn[s.unit], count) == (period, s.turn)
        turn[s.unit] += 1
        position[s.job].append((period, Step(s.job, s.run, s.first)))
        frame, iteration = divmod(s.run, job.iterations)
        if s.first == 0 and iteration == 0:
            frames = period * workload.frames + frame
            for other in workload.waits_for[s.job]:
                assert ended[other] >= (frames + 1) * workload.jobs[other].iterations
            most = workload.frames_at_once
            if most:
                assert all(
                    ended[j] >= (frames + 1 - most) * x.iterations for j, x in enumerate(workload.jobs)
                )
    for steps in position.values():
        assert steps == sorted(steps)


@pytest.mark.slow
@pytest.mark.skipif(COMPILER is None, reason="no C++ compiler")
def test_when_one_stops_nobody_waits_for_ever(tmp_path: Path) -> None:
    program = driven(crossing(), tmp_path / "built")
    ran = subprocess.run(
        [program, f"/onchip-stop-{tmp_path.name}", "100", "stop"],
        capture_output=True,
        check=False,
        timeout=60,
    )
    assert ran.returncode == 4


def test_a_networks_own_file_gives_layers_and_tensors() -> None:
    made = onchip_package.corun(["zoo:resnet18", "zoo:resnet18"], prove=False)
    for job in made.workload.jobs:
        groups = job.profile.groups
        assert all(g.layers for g in groups)
        assert [bool(g.output) for g in groups] == [True] * (len(groups) - 1) + [False]
    assert made.export("trtexec").count(b"\ntrtexec ") == 2
    assert b"ENGINES" in made.export("tensorrt")
