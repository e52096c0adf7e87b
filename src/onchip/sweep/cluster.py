"""The same points on a Dask cluster: the scheduler hands them to its workers, the answers come back here.

Points go out a few at a time with their network's JSON, so a worker needs onchip and nothing else: no shared
folder. Dask hands what a dead worker had to others. When workers die too often, Dask accuses all that they
had at hand; those points go out again at the end, each with nothing else under way, and one that kills its
workers then is answered as failed.
"""

from __future__ import annotations

import logging
import queue
import time
import zlib
from collections import deque
from collections.abc import Callable, Sequence
from contextlib import suppress
from functools import lru_cache
from typing import Any, Self

import msgspec

from onchip.errors import InputError, MissingExtra, UsageError, WorkerLost
from onchip.network import Network
from onchip.sweep.compute import KEPT, compute, failed, read_json
from onchip.sweep.points import Done, Task, version

__all__ = ["Cluster", "answer"]

BATCH_SECONDS = 2.0
"""About how long a batch should take: what a dead worker takes with it."""

MOST_IN_BATCH = 64

PATIENCE = 30.0
"""Seconds without a scheduler after which it is taken to be gone."""


@lru_cache(maxsize=KEPT)
def _network(key: str, packed: bytes) -> Network:
    """The network that was sent along; a worker keeps the last ones."""
    return read_json(zlib.decompress(packed))


def answer(asked: bytes, packed: bytes) -> tuple[str, bytes]:
    """Runs on a worker: the answers to points of one network, and the version that gave them."""
    tasks = msgspec.json.decode(asked, type=list[Task])
    return version(), msgspec.json.encode(
        [compute(task, lambda key: _network(key, packed)) for task in tasks]
    )


class Cluster:
    """The cluster of the scheduler at `address`; `content` gives a network's JSON by its key."""

    def __init__(self, tasks: Sequence[Task], address: str, content: Callable[[str], bytes]) -> None:
        self._again: deque[list[Task]] = deque()
        self._accused: deque[Task] = deque()
        self._alone = ""
        self._families: dict[tuple[str, str], deque[Task]] = {}
        for task in tasks:
            self._families.setdefault(task.family, deque()).append(task)
        self.address = address
        self._content = lru_cache(maxsize=4)(lambda key: zlib.compress(content(key), 1))
        self._out: dict[Any, list[Task]] = {}
        self._ended: queue.SimpleQueue[Any] = queue.SimpleQueue()
        self._size: dict[tuple[str, str], int] = {}
        self._threads, self._count, self._looked = 0, 0, 0.0
        self._gone_since: float | None = None

    def __enter__(self) -> Self:
        try:
            import distributed
        except ImportError:
            raise MissingExtra("sweep", "dask.distributed") from None
        logging.getLogger("distributed").setLevel(logging.CRITICAL)
        self._dask = distributed
        try:
            self._client = distributed.Client(self.address, timeout=5, set_as_default=False)
        except (OSError, ValueError, TimeoutError, RuntimeError) as problem:
            reason = str(problem).splitlines()[0] if str(problem) else type(problem).__name__
            raise UsageError(f"no Dask scheduler answers: {reason}", item=f"--dask {self.address}") from None
        return self

    def __exit__(self, *_: object) -> None:
        with suppress(Exception):  # of a scheduler that is gone nothing can be asked
            self._client.cancel(list(self._out), force=True)
        with suppress(Exception):
            self._client.close(timeout=5)

    @property
    def workers(self) -> str:
        return f"{self._count} Dask {'worker' if self._count == 1 else 'workers'}"

    def wait(self, seconds: float) -> list[Done]:
        if not self._look():
            time.sleep(seconds)
            return []
        while len(self._out) < 2 * self._threads and (batch := self._next()):
            asked, network = msgspec.json.encode(batch), self._content(batch[0].network)
            future = self._client.submit(answer, asked, network, pure=False)
            self._out[future] = batch
            future.add_done_callback(self._ended.put)
        found: list[Done] = []
        with suppress(queue.Empty):
            future = self._ended.get(timeout=seconds)
            while True:
                found += self._answers(future, self._out.pop(future))
                future = self._ended.get_nowait()
        return found

    def _look(self) -> bool:
        """Is the scheduler there, and who else? Raises when it is gone for good."""
        now = time.monotonic()
        if self._client.status != "running":
            self._gone_since = now if self._gone_since is None else self._gone_since
            if now - self._gone_since > PATIENCE:
                raise WorkerLost(f"the Dask scheduler at {self.address} is gone; run again to go on")
            return False
        self._gone_since = None
        if now - self._looked > 0.5:
            self._looked = now
            found = self._client.scheduler_info(n_workers=-1)["workers"].values()
            self._count, self._threads = len(found), sum(worker["nthreads"] for worker in found)
        return True

    def _next(self) -> list[Task]:
        """The next batch: of one network and planner, as many points as take a while."""
        if self._alone and self._out:
            return []
        self._alone = ""
        if self._again:
            return self._again.popleft()
        if not self._families:
            if self._out or not self._accused:
                return []
            task = self._accused.popleft()
            self._alone = task.key
            return [task]
        family = max(self._families, key=lambda f: len(self._families[f]))
        tasks = self._families[family]
        fair = -(-len(tasks) // max(1, 4 * self._threads))
        batch = [tasks.popleft() for _ in range(min(len(tasks), fair, self._size.get(family, 1)))]
        if not tasks:
            del self._families[family]
        return batch

    def _answers(self, future: Any, batch: list[Task]) -> list[Done]:
        if future.status == "finished":
            theirs, answers = future.result()
            if theirs != version():
                raise UsageError(
                    f"a worker has onchip {theirs or 'without a version'}, here is {version()}",
                    item=f"--dask {self.address}",
                )
            found = msgspec.json.decode(answers, type=list[Done])
            took = sum(done.figures["seconds"] for done in found) / len(found)
            size = max(1, min(MOST_IN_BATCH, int(BATCH_SECONDS / max(took, 1e-3))))
            self._size[batch[0].family] = size
            return found
        if future.status == "error":
            problem = future.exception()
            if not isinstance(problem, self._dask.KilledWorker):
                reason = f"{type(problem).__name__}: {problem}".splitlines()[0]
                raise InputError(f"a worker cannot compute points: {reason}", where=self.address)
            if self._alone == batch[0].key:
                reason = "its Dask workers died of it, as often as the scheduler allows"
                return [Done(batch[0].key, failed(reason))]
            self._accused.extend(batch)
            return []
        self._again.append(batch)  # cancelled or lost with the scheduler: again
        return []
