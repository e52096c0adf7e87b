"""Schedules in real processes: right outputs, right order, and nothing left whatever happens."""

from __future__ import annotations

import errno
import os
import resource
import signal
import subprocess
import sys
import textwrap
import threading
import time
from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path
from random import Random
from typing import Any

import numpy as np
import pytest

from multi_dnn.local.local_work import UNITS, in_groups, is_gone, shared_memory, two_cores, workload_of
from multi_dnn.workloads import random_schedule
from onchip.base.errors import IllegalSchedule, Mismatch, MissingExtra, ModelError, UsageError, WorkerLost
from onchip.multi_dnn.local import LocalReport, Runtime, engines, outputs, processes, run_schedule
from onchip.multi_dnn.local.engines import is_installed
from onchip.multi_dnn.local.memory import Segment
from onchip.multi_dnn.local.order import violations
from onchip.multi_dnn.local.pieces import Cut
from onchip.multi_dnn.local.processes import UnitProcesses
from onchip.multi_dnn.schedule import Schedule, Step
from run.models import source

pytestmark = two_cores


@pytest.fixture(scope="module")
def cuts(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Cut]:
    folder = tmp_path_factory.mktemp("models")
    return {name: in_groups(source(name, folder), 3) for name in ("residual", "outputs", "attention")}


@pytest.fixture(scope="module")
def runtime() -> Iterator[Runtime]:
    """Two processes that serve several tests."""
    with Runtime(UNITS, patience=60) as made:
        yield made


@pytest.mark.thorough
def test_random_schedules_give_the_outputs_of_a_plain_run(cuts: dict[str, Cut], runtime: Runtime) -> None:
    rng = Random(7)
    for _ in range(4):
        chosen = [rng.choice(list(cuts.values())) for _ in range(rng.choice((1, 2, 3)))]
        jobs = [
            (cut, rng.choice((1, 2)), tuple(f"n{m}" for m in range(n) if rng.random() < 0.4))
            for n, cut in enumerate(chosen)
        ]
        workload = workload_of(*jobs, frames=rng.choice((1, 3)), pipelined=rng.random() < 0.7)
        schedule = random_schedule(rng, workload, idle=True)
        named = {f"n{n}": cut for n, cut in enumerate(chosen)}
        report = run_schedule(workload, schedule, named, rounds=3, runtime=runtime)
        runs = [(cut, workload.runs(n)) for n, cut in enumerate(chosen)]
        assert report.outputs_compared == 3 * sum(len(cut.outputs) * count for cut, count in runs)
        assert report.order_violations == 0
        assert not report.interrupted
        assert all(network.difference is not None for network in report.networks)
        assert report.measured_ms > 0
        assert 0 <= report.undisturbed <= report.rounds
        assert report.data()["rounds"] == 3


@pytest.mark.thorough
def test_many_frames_stay_in_order(cuts: dict[str, Cut], runtime: Runtime) -> None:
    """A thousand frames that go back and forth between the units."""
    first, second = cuts["residual"], cuts["attention"]
    workload = workload_of((first, 1, ()), (second, 1, ("n0",)), frames=100)
    schedule = random_schedule(Random(1), workload)
    inputs = {cut: [cut.draw_inputs(n) for n in range(2)] for cut in (first, second)}
    execution = runtime.run(workload, schedule, [first, second], inputs, rounds=10)
    for number in range(10):
        assert violations(workload, schedule, execution.times(number)) == []
    timeline = execution.timeline(execution.best)
    assert timeline.makespan_ms == pytest.approx(min(execution.makespans_ms()))
    assert len(timeline.segments) == sum(map(len, schedule.order))
    assert all(a.start <= b.start for a, b in pairwise(timeline.segments))


def test_every_run_has_an_input_of_its_own(cuts: dict[str, Cut], runtime: Runtime) -> None:
    """What a run before left behind would be seen: neighbours in run and round differ."""
    cut = cuts["residual"]
    workload = workload_of((cut, 1, ()), frames=3)
    inputs = {cut: [cut.draw_inputs(n) for n in range(2)]}
    found: dict[int, set[bytes]] = {}
    chosen: list[int] = []

    def seen(job: int, run: int, number: int, outputs: Any) -> None:
        chosen.append(number)
        found.setdefault(number, set()).add(b"".join(value.tobytes() for value in outputs.values()))

    orders = [tuple(Step(0, r, g) for r in range(3) for g in groups) for groups in ((0, 2), (1,))]
    schedule = Schedule((((0, 1, 0),) * 3,), tuple(orders))
    runtime.run(workload, schedule, [cut], inputs, rounds=2, seen=seen)
    assert chosen == [0, 1, 0, 1, 0, 1]
    assert {n: len(values) for n, values in found.items()} == {0: 1, 1: 1}
    assert found[0] != found[1]


@pytest.mark.thorough
@pytest.mark.parametrize("of", ["pieces", "whole"])
def test_a_wrong_bit_is_a_mismatch(
    of: str, cuts: dict[str, Cut], runtime: Runtime, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The plain run is changed, in one bit or by more than the tolerance: the execution differs from it."""
    true_runs = outputs.plain_runs
    runs_of_pieces = 1

    def wrong_runs(*arguments: Any) -> list[list[dict[str, np.ndarray[Any, Any]]]]:
        results = true_runs(*arguments)
        changed = results[0 if of == "pieces" else runs_of_pieces][1]
        array = next(iter(changed.values())).reshape(-1)
        if of == "pieces":
            array.view(np.uint8)[-4] ^= 1
        else:
            array += 1e-2
        return results

    monkeypatch.setattr(outputs, "plain_runs", wrong_runs)
    cut = cuts["residual"]
    workload = workload_of((cut, 1, ()))
    schedule = Schedule((((0, 1, 0),),), ((Step(0, 0, 0), Step(0, 0, 2)), (Step(0, 0, 1),)))
    match = "bit for bit" if of == "pieces" else "differs from the whole network"
    with Runtime(UNITS) as own:
        with pytest.raises(Mismatch, match=match):
            run_schedule(workload, schedule, {"n0": cut}, rounds=2, runtime=own)
        assert own.pids == ()


@pytest.mark.slow
@pytest.mark.skipif(not is_installed("openvino"), reason="OpenVINO is not installed")
def test_two_engines_agree(cuts: dict[str, Cut]) -> None:
    units = ("onnxruntime", "openvino")
    both = [cuts["residual"], cuts["attention"]]
    workload = workload_of(*((cut, 1, ()) for cut in both), frames=2, units=units)
    schedule = random_schedule(Random(5), workload)
    report = run_schedule(workload, schedule, {"n0": both[0], "n1": both[1]}, rounds=2)
    assert all(network.difference is not None for network in report.networks)
    assert any("OpenVINO" in line for line in report.lines())


# -- what cannot be run -----------------------------------------------------------------------------------


def test_a_schedule_that_waits_for_itself_is_refused(cuts: dict[str, Cut], runtime: Runtime) -> None:
    cut = cuts["residual"]
    workload = workload_of((cut, 1, ()))
    steps = tuple(Step(0, 0, g) for g in (2, 1, 0))
    with pytest.raises(IllegalSchedule, match="wait for each other"):
        run_schedule(workload, Schedule((((0, 0, 0),),), (steps, ())), {"n0": cut}, runtime=runtime)
    assert len(runtime.pids) == 2


def test_what_does_not_fit_together_is_one_line(cuts: dict[str, Cut], runtime: Runtime) -> None:
    cut = cuts["residual"]
    workload = workload_of((cut, 1, ()))
    schedule = random_schedule(Random(0), workload)
    with pytest.raises(UsageError, match="network n0: there is no model to run"):
        run_schedule(workload, schedule, {}, runtime=runtime)
    with pytest.raises(UsageError, match="rounds: must be at least 1"):
        run_schedule(workload, schedule, {"n0": cut}, rounds=0, runtime=runtime)
    other = workload_of((cut, 1, ()), units=("openvino", "onnxruntime"))
    with pytest.raises(UsageError, match="is for units openvino, onnxruntime; running are"):
        runtime.run(other, random_schedule(Random(0), other), [cut], {cut: [cut.draw_inputs(0)]})
    with pytest.raises(UsageError, match="unit gpu: is no engine of this machine"):
        Runtime(("gpu", "onnxruntime"))
    with pytest.raises(UsageError, match="patience"):
        Runtime(UNITS, patience=0)


def test_two_cpus_are_needed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "sched_getaffinity", lambda _: {1})
    with pytest.raises(
        UsageError, match=r"local: needs 2 CPUs, one for each unit; this process may use 1 CPU"
    ):
        Runtime(UNITS)


def test_the_right_to_pin_is_needed(monkeypatch: pytest.MonkeyPatch) -> None:
    """A core that the process may not have: the kernel refuses."""
    monkeypatch.setattr("onchip.multi_dnn.local.runtime.pick_cores", lambda _: (0, 100_000))
    with (
        pytest.raises(UsageError, match=r"local: needs the right to pin .*onnxruntime-plain"),
        Runtime(UNITS),
    ):
        pass


def test_missing_packages_are_said(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(engines, "is_installed", lambda name: name != "openvino")
    made = Runtime(("onnxruntime", "openvino"))
    assert made.engines == ("onnxruntime", "onnxruntime-plain")
    assert "OpenVINO is not installed" in made.notes[0]
    monkeypatch.setattr(engines, "is_installed", lambda name: False)
    with pytest.raises(MissingExtra, match=r"onchip\[corun\]"):
        Runtime(UNITS)


def test_a_piece_that_an_engine_refuses_is_named(
    cuts: dict[str, Cut], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Cut, "model", lambda *_: b"no model")
    cut = cuts["residual"]
    workload = workload_of((cut, 1, ()))
    with Runtime(UNITS) as own:
        with pytest.raises(ModelError, match=r"group \d on onnxruntime.*cannot run it") as caught:
            own.run(workload, random_schedule(Random(1), workload), [cut], {cut: [cut.draw_inputs(0)]})
        assert "\n" not in str(caught.value)
        assert own.pids == ()
        with pytest.raises(UsageError, match="have ended"):
            own.run(workload, random_schedule(Random(1), workload), [cut], {cut: [cut.draw_inputs(0)]})


# -- processes that die ------------------------------------------------------------------------------------


def shoot_amid(runtime: Runtime, cut: Cut, with_signal: signal.Signals, rng: Random) -> WorkerLost:
    """The error that running gives when a process gets a signal at a random moment."""
    workload = workload_of((cut, 1, ()), (cut, 1, ()), frames=50)
    schedule = random_schedule(rng, workload)
    victim = rng.choice(runtime.pids)
    timer = threading.Timer(rng.random() * 0.3, os.kill, (victim, with_signal))
    timer.start()
    inputs = {cut: [cut.draw_inputs(0)]}
    try:
        with pytest.raises(WorkerLost) as caught:
            runtime.run(workload, schedule, [cut, cut], inputs, rounds=10**9)
    finally:
        timer.join()
    assert f"process {victim}" in str(caught.value)
    return caught.value


def warm_up(runtime: Runtime, cut: Cut) -> None:
    """Have every unit run every group once."""
    workload = workload_of((cut, 1, ()), (cut, 1, ()))
    units = tuple(((unit,) * len(cut.groups),) for unit in (0, 1))
    order = tuple(tuple(Step(job, 0, g) for g in range(len(cut.groups))) for job in (0, 1))
    runtime.run(workload, Schedule(units, order), [cut, cut], {cut: [cut.draw_inputs(0)]})


@pytest.mark.parametrize("phase", ["load", "take", "go", "between rounds"])
def test_a_worker_killed_in_any_phase_is_one_clear_error(
    phase: str, cuts: dict[str, Cut], monkeypatch: pytest.MonkeyPatch
) -> None:
    cut, before = cuts["residual"], shared_memory()
    workload = workload_of((cut, 1, ()), (cut, 1, ()))
    send = UnitProcesses._send

    def killing(crew: UnitProcesses, unit: int, message: tuple[object, ...], doing: Any) -> None:
        if message[0] == phase and unit == 1:
            os.kill(crew.pids[unit], signal.SIGKILL)
        send(crew, unit, message, doing)

    def seen(*_: object) -> None:
        if phase == "between rounds":
            os.kill(pids[1], signal.SIGKILL)

    monkeypatch.setattr(UnitProcesses, "_send", killing)
    with Runtime(UNITS) as own:
        pids = own.pids
        units = (((0, 1, 0),), ((1, 0, 1),))
        order = (
            (Step(0, 0, 0), Step(1, 0, 1), Step(0, 0, 2)),
            (Step(1, 0, 0), Step(0, 0, 1), Step(1, 0, 2)),
        )
        inputs = {cut: [cut.draw_inputs(0)]}
        with pytest.raises(WorkerLost, match=r"unit onnxruntime-plain \(process \d+\) was killed") as caught:
            own.run(workload, Schedule(units, order), [cut, cut], inputs, rounds=2, seen=seen)
        assert f"process {pids[1]}) was killed by SIGKILL while " in str(caught.value)
        assert own.pids == ()
        assert all(map(is_gone, pids))
    assert shared_memory() <= before


def test_a_worker_killed_before_it_answers_is_one_clear_error(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(processes, "_BOOT", "import os, signal; os.kill(os.getpid(), signal.SIGKILL)")
    with pytest.raises(WorkerLost, match="was killed by SIGKILL while starting"), Runtime(UNITS):
        pass


def test_a_plain_run_that_is_killed_is_one_clear_error(
    cuts: dict[str, Cut], runtime: Runtime, monkeypatch: pytest.MonkeyPatch
) -> None:
    send = UnitProcesses._send

    def killing(crew: UnitProcesses, unit: int, message: tuple[object, ...], doing: Any) -> None:
        if crew.names == ("plain",) and message[0] == "go":
            os.kill(crew.pids[unit], signal.SIGKILL)
        send(crew, unit, message, doing)

    monkeypatch.setattr(UnitProcesses, "_send", killing)
    cut = cuts["residual"]
    workload = workload_of((cut, 1, ()))
    with pytest.raises(WorkerLost, match=r"unit plain .* was killed by SIGKILL while .*the plain run"):
        run_schedule(workload, random_schedule(Random(2), workload), {"n0": cut}, runtime=runtime)
    assert len(runtime.pids) == 2  # nothing is wrong with these


def test_no_room_for_the_tensors_is_one_line(cuts: dict[str, Cut], monkeypatch: pytest.MonkeyPatch) -> None:
    """No more than the models fit: the kernel says so when the memory is reserved, not by a signal later."""
    cut = cuts["residual"]
    workload = workload_of((cut, 1, ()), frames=200)
    schedule = random_schedule(Random(1), workload)
    reserve = os.posix_fallocate

    def limited(descriptor: int, offset: int, size: int) -> None:
        if size > 100_000:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        reserve(descriptor, offset, size)

    with Runtime(UNITS) as own:
        pids = own.pids
        monkeypatch.setattr(os, "posix_fallocate", limited)
        match = r"local: there is no room for [\d,]+ bytes of shared memory \(No space left on device\)"
        with pytest.raises(UsageError, match=match):
            own.run(workload, schedule, [cut], {cut: [cut.draw_inputs(0)]})
        assert own.pids == ()
        assert all(map(is_gone, pids))


def test_a_limit_of_the_system_is_one_line() -> None:
    """The same with a limit that the kernel really has."""
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    segment = Segment()
    resource.setrlimit(resource.RLIMIT_FSIZE, (1 << 20, before[1]))
    try:
        with pytest.raises(UsageError, match="there is no room for 2,097,152 bytes"):
            segment.resize(2 << 20)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)
        segment.close()


def test_a_worker_without_memory_is_one_line(cuts: dict[str, Cut]) -> None:
    """Its address space ends where it is: whatever fails in it, one line says so and nothing is left."""
    cut = cuts["residual"]
    workload = workload_of((cut, 1, ()))
    with Runtime(UNITS) as own:
        pids = own.pids
        resource.prlimit(pids[0], resource.RLIMIT_AS, (1 << 20, 1 << 20))
        schedule = Schedule((((0,) * 3,),), (tuple(Step(0, 0, g) for g in range(3)), ()))
        with pytest.raises((ModelError, WorkerLost), match="onnxruntime") as caught:
            own.run(workload, schedule, [cut], {cut: [cut.draw_inputs(0)]})
        assert "\n" not in str(caught.value)
        assert own.pids == ()
        assert all(map(is_gone, pids))


@pytest.mark.thorough
def test_a_killed_worker_is_one_clear_error_and_leaves_nothing(cuts: dict[str, Cut]) -> None:
    rng, before = Random(3), shared_memory()
    for _ in range(3):
        with Runtime(UNITS, patience=60) as own:
            pids = own.pids
            error = shoot_amid(own, cuts["residual"], signal.SIGKILL, rng)
            assert "was killed by SIGKILL while" in str(error)
            assert "\n" not in str(error)
            assert error.exit_code == 1
            assert own.pids == ()
            assert all(map(is_gone, pids))
        assert shared_memory() <= before
        assert not any("onchip" in line for pid in pids for line in _maps(pid))


def _maps(pid: int) -> list[str]:
    try:
        return Path(f"/proc/{pid}/maps").read_text().splitlines()
    except OSError:
        return []


@pytest.mark.slow
def test_a_worker_that_hangs_is_ended(cuts: dict[str, Cut], monkeypatch: pytest.MonkeyPatch) -> None:
    """Stopped, it answers nothing and holds everything."""
    with Runtime(UNITS) as own:
        pids = own.pids
        warm_up(own, cuts["residual"])  # engines may take long to come up on a busy machine
        monkeypatch.setattr(own._crew, "patience", 1.0)
        error = shoot_amid(own, cuts["residual"], signal.SIGSTOP, Random(4))
        assert "nothing moved for 1 s: unit " in str(error)
        assert all(map(is_gone, pids))


SCRIPT = """
    import signal
    import sys
    from pathlib import Path
    from random import Random
    from multi_dnn.workloads import random_schedule
    from onchip.multi_dnn.local import Runtime, run_schedule
    from onchip.multi_dnn.local.outputs import Comparison
    from multi_dnn.local.local_work import UNITS, in_groups, workload_of
    from run.models import source

    signal.signal(signal.SIGINT, signal.default_int_handler)  # in the background, shells have it ignored
    cut = in_groups(source("residual", Path(sys.argv[1])), 3)
    workload = workload_of((cut, 1, ()), (cut, 1, ()), frames=20)
    schedule = random_schedule(Random(1), workload)
    with Runtime(UNITS) as runtime:
        runtime.run(workload, schedule, [cut, cut], {cut: [cut.draw_inputs(0)]}, rounds=2)
        print(*runtime.pids, flush=True)
        named, calls, compare = {"n0": cut, "n1": cut}, [], Comparison.compare

        def told(self, *arguments):
            compare(self, *arguments)
            calls.append(1)
            if len(calls) == 2 * workload.runs(0) + 1:  # of the second round
                print("running", flush=True)

        Comparison.compare = told
        report = run_schedule(workload, schedule, named, rounds=10**9, runtime=runtime)
        print(report.interrupted, report.rounds > 0, *runtime.pids, flush=True)
"""


def start_script(folder: Path) -> tuple[subprocess.Popen[str], list[int]]:
    """A program that runs a schedule for ever, and its workers."""
    script = subprocess.Popen(
        [sys.executable, "-c", textwrap.dedent(SCRIPT), str(folder)],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env={**os.environ, "PYTHONPATH": str(Path(__file__).parents[2])},
    )
    assert script.stdout is not None
    return script, [int(pid) for pid in script.stdout.readline().split()]


@pytest.mark.slow
def test_workers_do_not_outlive_a_killed_parent(tmp_path: Path) -> None:
    before = shared_memory()
    script, pids = start_script(tmp_path)
    with script:
        assert len(pids) == 2
        assert not any(map(is_gone, pids))
        script.kill()
        script.wait()
        for _ in range(1000):
            if all(map(is_gone, pids)):
                break
            time.sleep(0.01)
        assert all(map(is_gone, pids))
    assert shared_memory() <= before


@pytest.mark.slow
def test_control_c_gives_the_rounds_up_to_then(tmp_path: Path) -> None:
    script, pids = start_script(tmp_path)
    with script:
        assert script.stdout is not None
        assert script.stderr is not None
        assert script.stdout.readline() == "running\n"  # before, there is nothing to give
        script.send_signal(signal.SIGINT)
        try:
            said, errors = script.communicate(timeout=60)
        finally:
            script.kill()
        assert (said.split(), errors) == (["True", "True"], "")
        assert all(map(is_gone, pids))


def test_reports_keep_hostile_names_to_one_line() -> None:
    from onchip.multi_dnn.local import NetworkOutcome

    report = LocalReport(
        "local",
        (),
        (NetworkOutcome("a\nb\x1b[2J", 1.0, 1.0, None),),
        2,
        1,
        3,
        1,
        0,
        2.0,
        1.0,
        1.0,
        1.0,
        1.0,
        1e-4,
    )
    assert all(line.isprintable() for line in report.lines())
    assert report.error == -0.5
