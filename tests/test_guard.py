"""Limits, signals and crashes of the whole process: faults are planted in front of the console's command."""

from __future__ import annotations

import contextlib
import json
import os
import random
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from every_command import CALLS, COMMANDS, START, arguments, prepare
from onchip.microcontroller.made import Builder

PLAN = ("plan", "net.json", "--budget", "MP")


@pytest.fixture(scope="module")
def given(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("given")
    prepare(folder)
    (folder / "out").mkdir()
    return folder


def begin(
    folder: Path, call: tuple[str, ...] | list[str], temporary: Path, first: str = ""
) -> subprocess.Popen[str]:
    """The console's command, with a folder of its own for what is temporary, as HOME too."""
    temporary.mkdir(exist_ok=True)
    return subprocess.Popen(
        [sys.executable, "-c", first + START, *call],
        cwd=folder,
        env={**os.environ, "TMPDIR": str(temporary), "HOME": str(temporary)},
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


def family(process: int) -> set[int]:
    """The process's descendants."""
    found: set[int] = set()
    with contextlib.suppress(OSError):
        for thread in os.listdir(f"/proc/{process}/task"):
            text = Path(f"/proc/{process}/task/{thread}/children").read_text()
            for child in map(int, text.split()):
                found |= {child, *family(child)}
    return found


def alive(processes: set[int]) -> set[int]:
    """Those that run: a zombie that waits for its new parent does not."""
    left = set()
    for process in processes:
        with contextlib.suppress(OSError):
            if Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()[0] not in "ZX":
                left.add(process)
    return left


def soon_gone(processes: set[int]) -> bool:
    for _ in range(100):
        if not alive(processes):
            return True
        time.sleep(0.1)
    return False


DEAF = """
from importlib import import_module
def deaf(*given, **more):
    sum(range(10**12))  # holds the interpreter
import_module("onchip.planners.placement.planning")._plan = deaf
"""


@pytest.mark.thorough
def test_a_time_limit_ends_what_asks_no_clock(given: Path, tmp_path: Path) -> None:
    process = begin(given, (*PLAN[:3], "64", "--time-limit", "0.5"), tmp_path, DEAF)
    out, err = process.communicate(timeout=600)  # the sum alone takes hours
    assert (process.returncode, out) == (1, "")
    assert err == "onchip: the time limit of 0.5 s ended while planning; no plan was found in that time\n"


SLOW = """
import os, time
sync = os.fsync
def slow(handle):
    time.sleep(4)  # counts, as the disk's own slowness does
    sync(handle)
os.fsync = slow
"""


@pytest.mark.thorough
def test_an_answer_is_written_though_the_time_limit_ends_meanwhile(given: Path, tmp_path: Path) -> None:
    process = begin(given, (*PLAN, "--time-limit", "1.5", "-o", "slow.json"), tmp_path, SLOW)
    _, err = process.communicate(timeout=600)
    assert (process.returncode, err) == (0, "")
    assert json.loads((given / "slow.json").read_text())["format"] == "onchip.plan/1"


@pytest.mark.thorough
def test_a_deaf_process_ends_on_a_signal(given: Path, tmp_path: Path) -> None:
    process = begin(
        given, (*PLAN[:3], "64"), tmp_path, DEAF.replace("sum(", "print('here', flush=True); sum(")
    )
    assert process.stdout is not None
    assert process.stdout.readline() == "here\n"
    process.send_signal(signal.SIGTERM)
    _, err = process.communicate(timeout=600)
    assert (process.returncode, err) == (130, "onchip: interrupted\n")


SWALLOWED = """
import os, signal, time, weakref
from importlib import import_module
class Thing: pass
def heedless(*given, **more):
    thing = Thing()
    held = weakref.ref(thing, lambda _: os.kill(os.getpid(), signal.SIGINT))
    del thing  # what its callback raises goes nowhere
    for _ in range(30_000):
        time.sleep(0.01)
import_module("onchip.planners.placement.planning")._plan = heedless
"""


@pytest.mark.thorough
def test_ctrl_c_that_was_swallowed_comes_again(given: Path, tmp_path: Path) -> None:
    process = begin(given, PLAN, tmp_path, SWALLOWED)
    _, err = process.communicate(timeout=600)
    assert (process.returncode, err) == (130, "onchip: interrupted\n")


GREEDY = """
from importlib import import_module
def greedy(*given, **more):
    import time
    held = []
    while len(held) < 2000:
        held.append(b"x" * (1 << 20))
        time.sleep(0.001)
import_module("onchip.planners.placement.planning")._plan = greedy
"""


@pytest.mark.thorough
def test_a_memory_limit_ends_what_does_not_count(given: Path, tmp_path: Path) -> None:
    process = begin(given, (*PLAN[:3], "64", "--memory-limit", "64MiB"), tmp_path, GREEDY)
    peak = 0
    while process.poll() is None:
        with contextlib.suppress(OSError, IndexError, ValueError):
            status = Path(f"/proc/{process.pid}/status").read_text()
            peak = max(peak, int(status.split("VmHWM:")[1].split()[0]))
        time.sleep(0.002)
    _, err = process.communicate()
    assert err.startswith("onchip: the memory limit of 67,108,864 bytes was reached")
    assert process.returncode == 1
    assert peak < 1_000_000  # KB, of 2 GB that are asked for


@pytest.mark.thorough
@pytest.mark.parametrize("fault", ["MemoryError()", "RecursionError('deep')", "KeyError('x')"])
def test_an_unexpected_exception_has_its_own_exit_code_and_a_log(
    fault: str, given: Path, tmp_path: Path
) -> None:
    first = f"import onchip.api as api\ndef broken(*a, **k): raise {fault}\napi.load = broken\n"
    process = begin(given, PLAN, tmp_path, first)
    out, err = process.communicate(timeout=600)
    assert (process.returncode, out) == (70, "")
    [log] = tmp_path.glob("onchip-crash-*.log")
    assert len(err.splitlines()) == 1
    assert str(log) in err
    assert "report" in err
    assert "Traceback" in log.read_text()
    assert "in broken" in log.read_text()


@pytest.mark.thorough
def test_an_interruption_that_python_wraps_is_no_crash(given: Path, tmp_path: Path) -> None:
    """As where it comes while a class is made."""
    first = "import onchip.api as api\ndef broken(*a, **k):\n    try:\n        raise KeyboardInterrupt\n"
    first += "    except KeyboardInterrupt as pressed:\n        raise RuntimeError('wrapped') from pressed\n"
    process = begin(given, PLAN, tmp_path, first + "api.load = broken\n")
    _, err = process.communicate(timeout=600)
    assert process.returncode == 130
    assert err.endswith("onchip: interrupted\n")
    assert not list(tmp_path.glob("onchip-crash-*.log"))


@pytest.mark.thorough
@pytest.mark.skipif("asan" in os.environ.get("LD_PRELOAD", ""), reason="the sanitizer reports crashes itself")
@pytest.mark.parametrize("fault", ["ctypes.string_at(0)", "os.abort()"])
def test_a_crash_of_native_code_has_them_too(fault: str, given: Path, tmp_path: Path) -> None:
    first = f"import ctypes, os, onchip.api as api\ndef broken(*a, **k): {fault}\napi.load = broken\n"
    process = begin(given, PLAN, tmp_path, first)
    out, err = process.communicate(timeout=600)
    assert (process.returncode, out) == (70, "")
    [log] = tmp_path.glob("onchip-crash-*.log")
    assert len(err.splitlines()) == 1
    assert str(log) in err
    assert "in broken" in log.read_text()


@pytest.mark.thorough
def test_an_ignored_hangup_stays_ignored(given: Path, tmp_path: Path) -> None:
    """As under nohup."""
    first = "import os, signal\nsignal.signal(signal.SIGHUP, signal.SIG_IGN)\n"
    first += "import onchip.api as api\nload = api.load\n"
    first += "def hang_up(*a, **k):\n    os.kill(os.getpid(), signal.SIGHUP)\n    return load(*a, **k)\n"
    process = begin(given, PLAN, tmp_path, first + "api.load = hang_up\n")
    process.communicate(timeout=600)
    assert process.returncode == 0


def signalled(folder: Path, call: list[str], temporary: Path, number: int, seconds: float) -> None:
    """Nothing but what the call names is left after the signal, and no traceback is shown."""
    process = begin(folder, call, temporary)
    children: set[int] = set()
    end = time.monotonic() + seconds
    while time.monotonic() < end and process.poll() is None:
        children |= family(process.pid)
        time.sleep(0.01)
    process.send_signal(number)
    try:
        _, err = process.communicate(timeout=120)
    finally:
        process.kill()
    # Before Python has started no handler is there, and nothing else either.
    assert process.returncode in (0, 1, 130, -number), (call, number, seconds, err)
    assert "Traceback" not in err, (call, number, seconds, err)
    assert soon_gone(children)
    assert not list(temporary.iterdir()), (call, number, seconds)
    assert not list(folder.rglob(".onchip-*"))


SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGQUIT)
ANY = [pytest.param(n, marks=pytest.mark.campaign if n in SIGNALS[2:] else ()) for n in SIGNALS]
"""The other two are among those that come at random moments of every command."""


@pytest.mark.thorough
@pytest.mark.parametrize("number", ANY)
def test_signals_at_a_random_moment_of_a_plan(number: int, given: Path, tmp_path: Path) -> None:
    # Later than imports: a signal within that of a native library may abort it, which is not ours to catch.
    signalled(given, arguments("plan"), tmp_path, number, random.Random(int(number)).uniform(1, 3))


@pytest.mark.thorough
@pytest.mark.parametrize("number", ANY)
def test_a_compiler_that_is_killed_leaves_nothing(number: int, tmp_path: Path) -> None:
    if shutil.which("arm-none-eabi-gcc") is None or shutil.which("qemu-system-arm") is None:
        pytest.skip("no cross compiler")
    b = Builder()
    (tmp_path / "small.tflite").write_bytes(b.file(b.conv(b.input((1, 8, 8, 3)), 8, 3)))
    process = begin(tmp_path, ("mcu", "small.tflite", "--run"), tmp_path / "temporary")
    while process.poll() is None and not list((tmp_path / "temporary").rglob("cc*")):
        time.sleep(0.002)
    assert process.poll() is None, "no compiler was seen at work"
    children = family(process.pid)
    process.send_signal(number)
    process.communicate(timeout=120)
    assert process.returncode in (0, 130)  # 0: it was done before it heard
    assert soon_gone(children)
    assert not list((tmp_path / "temporary").iterdir())


@pytest.mark.slow
@pytest.mark.parametrize("seed", [0, pytest.param(1, marks=pytest.mark.campaign)])
@pytest.mark.parametrize("command", COMMANDS)
def test_signals_at_random_moments_leave_nothing(
    command: str, seed: int, given: Path, tmp_path: Path
) -> None:
    shutil.rmtree(given / "out")  # another command's folder is not replaced
    (given / "out").mkdir()
    pick = random.Random(f"{command} {seed}")
    signalled(given, arguments(command), tmp_path, pick.choice(SIGNALS), pick.uniform(0, 8))


KILLED = {
    "sweep": ("sweep", "many.toml", "--jobs", "2", "-o", "swept"),
    "ilp": ("plan", "net.json", "--budget", "MR", "--strategy", "ilp", "--solver", "highs"),
}


@pytest.mark.thorough
@pytest.mark.parametrize("what", KILLED)
def test_children_die_with_a_parent_that_is_killed(what: str, given: Path, tmp_path: Path) -> None:
    if what == "ilp":
        pytest.importorskip("ortools")
    budgets = json.dumps([f"{n}KiB" for n in range(1, 400)])
    (given / "many.toml").write_text(f'networks = ["net.json"]\nbudgets = {budgets}\n')
    process = begin(given, KILLED[what], tmp_path)
    children: set[int] = set()
    while process.poll() is None and not (children := family(process.pid)):
        time.sleep(0.005)
    assert children, "it started none"
    process.kill()
    process.communicate()
    assert soon_gone(children)


def test_limits_stay_with_the_searches_in_somebodys_own_process() -> None:
    from onchip.base import guard

    assert not guard.started()
    assert guard.left(3.0) == 3.0
    guard.bounded(0.0, 1)
    guard.searching()
    assert guard.left(3.0) == 3.0


@pytest.mark.thorough
@pytest.mark.parametrize(
    "call",
    [
        ("run", "plan.json"),
        pytest.param(
            ("corun", "net.onnx", "net.onnx", "--soc", "local", "--time-limit", "60"), marks=pytest.mark.slow
        ),
    ],
)
def test_libraries_leave_nothing_in_the_users_home(
    call: tuple[str, ...], given: Path, tmp_path: Path
) -> None:
    """Neither a device id nor a database of events."""
    if call[0] == "corun":
        pytest.importorskip("openvino")
    process = begin(given, call, tmp_path)
    _, err = process.communicate(timeout=600)
    assert process.returncode == 0, err
    assert not list(tmp_path.iterdir())


def test_every_command_is_signalled() -> None:
    assert set(CALLS) == set(COMMANDS)
