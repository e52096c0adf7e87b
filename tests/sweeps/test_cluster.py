"""The same spec on a Dask cluster: scheduler and workers as processes of their own, one of them killed."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from importlib.util import find_spec
from pathlib import Path
from shutil import which

import pytest

import onchip
from onchip.base.errors import UsageError, WorkerLost
from onchip.sweeps import cluster as backend
from sweep_processes import SPEC, answers, finish, log_bytes, start, table, until

pytestmark = pytest.mark.skipif(find_spec("distributed") is None, reason="needs dask.distributed")


class Cluster:
    """A scheduler and its workers on this machine, at a port of their own."""

    def __init__(self, folder: Path, protocol: str = "tcp", *more: str) -> None:
        self.folder, self.running = folder, list[subprocess.Popen[bytes]]()
        self.environment = {**os.environ, "DASK_DISTRIBUTED__SCHEDULER__ALLOWED_FAILURES": "0"}
        at = ("--host", "127.0.0.1", "--port", "0", "--protocol", protocol)
        self._run("scheduler", *at, "--no-dashboard", "--no-show", *more)
        log = folder / "0.log"
        until(lambda: re.search(r"Scheduler at:\s+(\w+://\S+)", log.read_text()))
        found = re.search(r"Scheduler at:\s+(\w+://\S+)", log.read_text())
        assert found is not None
        self.address = found[1]

    def _run(self, *words: str) -> subprocess.Popen[bytes]:
        log = self.folder / f"{len(self.running)}.log"
        with log.open("wb") as out:
            command = [sys.executable, "-m", "dask", *words]
            process = subprocess.Popen(command, stdout=out, stderr=out, cwd=self.folder, env=self.environment)
        self.running.append(process)
        return process

    def worker(self, *more: str) -> subprocess.Popen[bytes]:
        where = ("--nthreads", "1", "--no-nanny", "--no-dashboard", "--local-directory", str(self.folder))
        return self._run("worker", self.address, *where, *more)

    def close(self) -> None:
        for process in reversed(self.running):
            process.kill()
            process.wait()


@pytest.fixture
def cluster(tmp_path: Path) -> Iterator[Cluster]:
    made = Cluster(tmp_path)
    yield made
    made.close()


@pytest.mark.slow
def test_a_killed_worker_and_a_killed_coordinator_change_nothing(cluster: Cluster, tmp_path: Path) -> None:
    spec = tmp_path / "spec.toml"
    spec.write_text(SPEC)
    calm, folder = tmp_path / "calm", tmp_path / "cluster"
    assert finish(start(spec, calm)) == 0
    first = cluster.worker()
    cluster.worker()
    process = start(spec, folder, "--dask", cluster.address)
    until(lambda: log_bytes(folder) > 20_000 or process.poll() is not None)
    first.send_signal(signal.SIGKILL)
    until(lambda: log_bytes(folder) > 60_000 or process.poll() is not None)
    process.kill()
    finish(process)
    known = answers(folder)
    assert 0 < len(known) < 120
    again = start(spec, folder, "--dask", cluster.address)
    assert finish(again) == 0
    assert known.items() <= answers(folder).items(), "lost, or computed again"
    assert table(folder) == table(calm)


@pytest.mark.thorough
def test_a_scheduler_that_is_not_there_is_one_line(tmp_path: Path) -> None:
    spec = {"networks": "zoo:squeezenet1_0", "budgets": ["MP"]}
    for address in ("tcp://127.0.0.1:1", "nowhere", "tcp://"):
        with pytest.raises(UsageError, match=re.escape(f"--dask {address}")) as problem:
            onchip.sweep(spec, tmp_path / "s", dask=address)
        assert "\n" not in str(problem.value)


@pytest.mark.slow
def test_waiting_for_workers_obeys_the_time_limit(cluster: Cluster, tmp_path: Path) -> None:
    spec = {"networks": "zoo:squeezenet1_0", "budgets": ["MP"]}
    began = time.monotonic()
    made = onchip.sweep(spec, tmp_path / "s", dask=cluster.address, time_limit=1)
    assert (made.outcome.end, made.complete) == ("time", False)
    assert time.monotonic() - began >= 1


DEADLY = """
import os
from dataclasses import replace
from onchip.planners import registry
own = registry.find("placement")
def solve(network, chip, budget, options, limits, real=own.solve):
    if budget == 6_000_000:
        os.kill(os.getpid(), 9)
    return real(network, chip, budget, options, limits)
registry.section = lambda key: replace(own, solve=solve)
"""


@pytest.mark.slow
def test_a_point_that_kills_its_workers_fails_and_no_other_does(cluster: Cluster, tmp_path: Path) -> None:
    (tmp_path / "deadly.py").write_text(DEADLY)
    for _ in range(3):  # nobody starts them again
        cluster.worker("--preload", str(tmp_path / "deadly.py"))
    spec = {
        "networks": "zoo:squeezenet1_0",
        "budgets": [{"from": 4_000_000, "to": 8_000_000, "step": 1_000_000}],
    }
    made = onchip.sweep(spec, tmp_path / "s", dask=cluster.address, time_limit=120)
    assert [row["status"] for row in made.rows] == ["optimal", "optimal", "failed", "optimal", "optimal"]
    assert "died of it" in made.rows[2]["reason"]


@pytest.mark.slow
def test_a_scheduler_that_goes_away_is_one_line(
    cluster: Cluster, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(backend, "PATIENCE", 0.5)
    spec = {"networks": "zoo:squeezenet1_0", "budgets": ["MP"]}

    def say(line: str) -> None:
        if "Dask" in line:  # it has been reached
            cluster.close()

    with pytest.raises(WorkerLost, match="gone"):
        onchip.sweep(spec, tmp_path / "s", dask=cluster.address, progress=say)


@pytest.mark.slow
def test_a_scheduler_that_never_answers_is_one_line(
    cluster: Cluster, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(backend, "PATIENCE", 2.0)
    monkeypatch.setattr(backend, "CLOSING", 0.5)
    spec = {"networks": "zoo:squeezenet1_0", "budgets": ["MP"]}
    scheduler = cluster.running[0]

    def stop(line: str) -> None:
        if "Dask" in line:  # it has been reached, and has no workers
            scheduler.send_signal(signal.SIGSTOP)

    try:
        with pytest.raises(WorkerLost, match="does not answer; run again to go on"):
            onchip.sweep(spec, tmp_path / "s", dask=cluster.address, progress=stop, time_limit=300)
    finally:
        scheduler.send_signal(signal.SIGCONT)


@pytest.mark.slow
def test_workers_with_other_code_are_refused(
    cluster: Cluster, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    cluster.worker()
    monkeypatch.setattr(backend, "code", lambda: "other")
    spec = {"networks": "zoo:squeezenet1_0", "budgets": ["MP"]}
    with pytest.raises(UsageError, match="runs another onchip"):
        onchip.sweep(spec, tmp_path / "s", dask=cluster.address, time_limit=60)


def test_tls_needs_three_files_and_an_address_for_it(tmp_path: Path) -> None:
    file = tmp_path / "ca.pem"
    file.write_text("")
    for more in (
        {"dask": "tcp://127.0.0.1:1", "dask_tls": (str(file),) * 3},
        {"dask": "tls://127.0.0.1:1", "dask_tls": (str(file),)},
        {"dask": "tls://127.0.0.1:1", "dask_tls": (str(file), str(file), str(tmp_path / "missing"))},
    ):
        with pytest.raises(UsageError, match="dask_tls"):
            onchip.sweep({"networks": "zoo:alexnet", "budgets": ["MP"]}, tmp_path / "s", **more)


@pytest.mark.slow
@pytest.mark.skipif(which("openssl") is None, reason="needs openssl")
def test_a_cluster_over_tls_computes_the_same(tmp_path: Path) -> None:
    """Certificates of an authority of one's own; without them nobody answers."""
    for name, more in (
        ("ca", ["-subj", "/CN=ca"]),
        ("own", ["-subj", "/CN=own", "-CA", "ca.pem", "-CAkey", "ca.key"]),
    ):
        command = ["openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "2", *more]
        command += ["-keyout", f"{name}.key", "-out", f"{name}.pem"]
        subprocess.run(command, cwd=tmp_path, check=True, capture_output=True)
    files = tuple(str(tmp_path / name) for name in ("ca.pem", "own.pem", "own.key"))
    flags = ["--tls-ca-file", files[0], "--tls-cert", files[1], "--tls-key", files[2]]
    cluster = Cluster(tmp_path, "tls", *flags)
    try:
        cluster.worker(*flags)
        spec = {"networks": "zoo:squeezenet1_0", "budgets": ["MP"]}
        made = onchip.sweep(spec, tmp_path / "s", dask=cluster.address, dask_tls=files, time_limit=120)
        assert [row["status"] for row in made.rows] == ["optimal"]
        with pytest.raises(UsageError, match="needs certificates"):
            onchip.sweep(spec, tmp_path / "t", dask=cluster.address)
    finally:
        cluster.close()
