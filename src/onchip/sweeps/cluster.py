"""The same points on a Dask cluster: its scheduler hands them to its workers, and collects the answers.

Points are sent a few at a time with their network's JSON, so a worker needs only onchip and no shared
folder. Dask hands the points of a dead worker to others. When workers die too often, Dask blames all the
points that they held; those points are sent again at the end, each with no other under way, and one that
kills its workers then is answered as failed.
"""

from __future__ import annotations

import logging
import queue
import threading
import time
import zlib
from collections import deque
from collections.abc import Callable, Sequence
from contextlib import suppress
from functools import lru_cache
from typing import Any, Self

import msgspec

from onchip.base.errors import InputError, MissingExtra, UsageError, WorkerLost
from onchip.network import Network
from onchip.sweeps.code import content as code
from onchip.sweeps.compute import KEPT, compute, failed, read_json
from onchip.sweeps.points import Done, Task

__all__ = ["Cluster", "answer"]

BATCH_SECONDS = 2.0
"""The target duration of a batch in seconds: a dead worker loses about this much work."""

MOST_IN_BATCH = 64

PATIENCE = 30.0
"""Seconds without a scheduler, or without its answer, after which it is taken to be gone."""

LOOKS = 0.5
"""Seconds between two requests to the scheduler."""

CLOSING = 5.0
"""Seconds that the end of a sweep waits for a scheduler that does not answer."""


class _Watch(threading.Thread):
    """Repeatedly asks the scheduler for its workers, in a thread: a scheduler that hangs never answers.

    `answered` is the time of its last answer (`time.monotonic`), `threads` the number of threads of each
    worker.
    """

    def __init__(self, ask: Callable[[], Any]) -> None:
        super().__init__(name="onchip-dask", daemon=True)
        self._ask, self._over = ask, threading.Event()
        self.answered, self.threads = time.monotonic(), list[int]()

    def run(self) -> None:
        while not self._over.is_set():
            with suppress(Exception):  # the client's own state says whether the scheduler is gone
                self.threads = [worker["nthreads"] for worker in self._ask()["workers"].values()]
                self.answered = time.monotonic()
            self._over.wait(LOOKS)

    def end(self) -> None:
        self._over.set()


def _within(seconds: float, *calls: Callable[[], object]) -> None:
    """Make the calls in turn, and wait no longer than `seconds`; ignore what they raise."""

    def make() -> None:
        for call in calls:
            with suppress(Exception):
                call()

    thread = threading.Thread(target=make, name="onchip-dask-end", daemon=True)
    thread.start()
    thread.join(seconds)


@lru_cache(maxsize=KEPT)
def _network(key: str, packed: bytes) -> Network:
    """Return the network of a message; a worker keeps the last ones."""
    return read_json(zlib.decompress(packed))


def answer(asked: bytes, packed: bytes) -> tuple[str, bytes]:
    """Answer points of one network, on a worker; return the answers and the hash of the worker's code."""
    tasks = msgspec.json.decode(asked, type=list[Task])
    return code(), msgspec.json.encode([compute(task, lambda key: _network(key, packed)) for task in tasks])


def _security(distributed: Any, tls: Sequence[str]) -> dict[str, Any]:
    """Return the client's security arguments for an authority's, an own certificate and a key; or none."""
    if not tls:
        return {}
    authority, certificate, key = tls
    return {
        "security": distributed.security.Security(
            tls_ca_file=authority,
            tls_client_cert=certificate,
            tls_client_key=key,
            require_encryption=True,
        )
    }


class Cluster:
    """The cluster of the scheduler at `address`; `content` returns a network's JSON by its key.

    Dask's messages are pickles: anyone who can send one to the scheduler, a worker or this process runs code
    there. With `tls`, the paths of an authority's certificate, a certificate and its key, all messages are
    encrypted, and only holders of a certificate of that authority are accepted.
    """

    def __init__(
        self, tasks: Sequence[Task], address: str, content: Callable[[str], bytes], tls: Sequence[str] = ()
    ) -> None:
        self._again: deque[list[Task]] = deque()
        self._accused: deque[Task] = deque()
        self._alone = ""
        self._families: dict[tuple[str, str], deque[Task]] = {}
        for task in tasks:
            self._families.setdefault(task.family, deque()).append(task)
        self.address, self._tls = address, tls
        self._content = lru_cache(maxsize=4)(lambda key: zlib.compress(content(key), 1))
        self._out: dict[Any, list[Task]] = {}
        self._ended: queue.SimpleQueue[Any] = queue.SimpleQueue()
        self._size: dict[tuple[str, str], int] = {}
        self._threads, self._count = 0, 0
        self._gone_since: float | None = None

    def __enter__(self) -> Self:
        try:
            import distributed
        except ImportError:
            raise MissingExtra("sweep", "dask.distributed") from None
        logging.getLogger("distributed").setLevel(logging.CRITICAL)
        if self.address.startswith("tls://") and not self._tls:
            known = distributed.security.Security().get_connection_args("client")  # Dask's own configuration
            if known["ssl_context"] is None:
                reason = "needs certificates: --dask-tls, or Dask's configuration"
                raise UsageError(reason, item=f"--dask {self.address}")
        self._dask = distributed
        try:
            self._client = distributed.Client(
                self.address, timeout=5, set_as_default=False, **_security(distributed, self._tls)
            )
        except (OSError, ValueError, TimeoutError, RuntimeError) as problem:
            reason = str(problem).splitlines()[0] if str(problem) else type(problem).__name__
            raise UsageError(f"no Dask scheduler answers: {reason}", item=f"--dask {self.address}") from None
        self._watch = _Watch(lambda: self._client.scheduler_info(n_workers=-1))
        self._watch.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._watch.end()
        client, out = self._client, list(self._out)
        # A scheduler that is gone answers no request, and one that hangs never answers.
        _within(2 * CLOSING, lambda: client.cancel(out, force=True), lambda: client.close(timeout=CLOSING))

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
        """Return whether the scheduler answers, and update its workers; raise when it is gone for good."""
        now = time.monotonic()
        if self._client.status != "running":
            self._gone_since = now if self._gone_since is None else self._gone_since
            if now - self._gone_since > PATIENCE:
                raise WorkerLost(f"the Dask scheduler at {self.address} is gone; run again to go on")
            return False
        self._gone_since = None
        if now - self._watch.answered > PATIENCE:
            raise WorkerLost(f"the Dask scheduler at {self.address} does not answer; run again to go on")
        threads = self._watch.threads
        self._count, self._threads = len(threads), sum(threads)
        return True

    def _next(self) -> list[Task]:
        """Return the next batch: points of one network and planner, for about the target duration."""
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
            if theirs != code():
                reason = "a worker runs another onchip than this: its sources or its compiled core differ"
                raise UsageError(reason, item=f"--dask {self.address}")
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
        self._again.append(batch)  # cancelled or lost with the scheduler: send it again
        return []
