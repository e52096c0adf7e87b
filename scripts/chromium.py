"""A headless Chromium driven over its debugging pipe: enough to open a file, point at it and look at it.

Needs the program `chromium` (Debian: `apt-get install chromium`) and nothing from PyPI.
"""

from __future__ import annotations

import base64
import json
import os
import select
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from types import TracebackType
from typing import Any

FLAGS = (
    "--headless --no-sandbox --disable-gpu --disable-quic --no-first-run --disable-background-networking"
    " --disable-component-update --disable-sync --hide-scrollbars --remote-debugging-pipe"
)

# Chromium reads commands from descriptor 3 and answers on 4; pipes get whatever numbers are free.
_ON_3_AND_4 = """
import fcntl, os, sys
commands, answers = (fcntl.fcntl(int(n), fcntl.F_DUPFD, 10) for n in sys.argv[1:3])
os.dup2(commands, 3)
os.dup2(answers, 4)
os.execv(sys.argv[3], sys.argv[3:])
"""


def find_chromium() -> str | None:
    """The browser's path, or None when none is installed."""
    return next(
        (p for n in ("chromium", "chromium-browser", "google-chrome") if (p := shutil.which(n))), None
    )


class Chromium:
    """One page in a headless browser, as a context manager. `events` keeps what the page reported."""

    def __init__(
        self, width: int = 1400, height: int = 1000, *, dark: bool = False, scale: float = 1
    ) -> None:
        self.size, self.dark, self.scale = (width, height), dark, scale
        self.events: list[dict[str, Any]] = []

    def __enter__(self) -> Chromium:
        program = find_chromium()
        if program is None:
            raise FileNotFoundError("chromium is not installed (Debian: apt-get install chromium)")
        self.folder = tempfile.TemporaryDirectory(prefix="onchip-chromium-", ignore_cleanup_errors=True)
        (child_in, self.out), (self.incoming, child_out) = os.pipe(), os.pipe()
        arguments = [program, *FLAGS.split(), f"--user-data-dir={self.folder.name}", "about:blank"]
        self.process = subprocess.Popen(
            [sys.executable, "-c", _ON_3_AND_4, str(child_in), str(child_out), *arguments],
            pass_fds=(child_in, child_out),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        os.close(child_in)
        os.close(child_out)
        self.buffer, self.number, self.session = b"", 0, ""
        try:
            self._prepare()
        except BaseException:
            self.__exit__(None, None, None)
            raise
        return self

    def _prepare(self) -> None:
        target = self.send("Target.createTarget", url="about:blank")["targetId"]
        self.session = self.send("Target.attachToTarget", targetId=target, flatten=True)["sessionId"]
        for domain in ("Page", "Runtime", "Network", "Log"):
            self.send(f"{domain}.enable")
        width, height = self.size
        self.send(
            "Emulation.setDeviceMetricsOverride",
            width=width,
            height=height,
            deviceScaleFactor=self.scale,
            mobile=False,
        )
        scheme = {"name": "prefers-color-scheme", "value": "dark" if self.dark else "light"}
        self.send("Emulation.setEmulatedMedia", features=[scheme])

    def __exit__(
        self, kind: type[BaseException] | None, value: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.process.kill()
        self.process.wait()
        os.close(self.out)
        os.close(self.incoming)
        self.folder.cleanup()

    def send(self, method: str, **params: Any) -> dict[str, Any]:
        """One command of the DevTools protocol, and its result."""
        self.number += 1
        message: dict[str, Any] = {"id": self.number, "method": method, "params": params}
        if self.session:
            message["sessionId"] = self.session
        os.write(self.out, json.dumps(message).encode() + b"\0")
        deadline = time.monotonic() + 60
        while True:
            answer = self._receive(deadline)
            if answer.get("id") == self.number:
                if "error" in answer:
                    raise RuntimeError(f"{method}: {answer['error']}")
                return dict(answer["result"])
            self.events.append(answer)

    def _receive(self, deadline: float) -> dict[str, Any]:
        while b"\0" not in self.buffer:
            if not select.select([self.incoming], [], [], max(0.0, deadline - time.monotonic()))[0]:
                raise TimeoutError("chromium did not answer")
            data = os.read(self.incoming, 1 << 20)
            if not data:
                raise RuntimeError("chromium ended")
            self.buffer += data
        message, _, self.buffer = self.buffer.partition(b"\0")
        return dict(json.loads(message))

    def evaluate(self, expression: str) -> Any:
        """The value of a JavaScript expression in the page; promises are awaited."""
        answer = self.send("Runtime.evaluate", expression=expression, returnByValue=True, awaitPromise=True)
        if "exceptionDetails" in answer:
            raise RuntimeError(answer["exceptionDetails"])
        return answer["result"].get("value")

    def open(self, path: Path, fragment: str = "") -> None:
        """Load a file by its file:// address and wait until its script has drawn."""
        self.send("Page.navigate", url=path.resolve().as_uri() + fragment)
        for _ in range(200):
            if self.evaluate("document.readyState === 'complete' && document.documentElement.dataset.ready"):
                break
            time.sleep(0.05)
        else:
            raise TimeoutError(f"{path} was not drawn")
        self.settle()

    def settle(self) -> None:
        """Wait for two frames, so that what was asked for is on the screen."""
        self.evaluate("new Promise(r => requestAnimationFrame(() => requestAnimationFrame(r)))")

    def point(self, x: float, y: float, *, click: bool = False) -> None:
        """Move the mouse there, in CSS pixels of the window."""
        self.send("Input.dispatchMouseEvent", type="mouseMoved", x=x, y=y)
        if click:
            for kind in ("mousePressed", "mouseReleased"):
                self.send("Input.dispatchMouseEvent", type=kind, x=x, y=y, button="left", clickCount=1)
        self.settle()

    def key(self, key: str, text: str = "") -> None:
        """Press and release one key."""
        self.send("Input.dispatchKeyEvent", type="keyDown", key=key, **({"text": text} if text else {}))
        self.send("Input.dispatchKeyEvent", type="keyUp", key=key)
        self.settle()

    def screenshot(self, path: Path, *, clip: tuple[float, float, float, float] | None = None) -> None:
        """The window as PNG, or the part (x, y, width, height) of it."""
        area = (
            {}
            if clip is None
            else {"clip": dict(zip(("x", "y", "width", "height"), clip, strict=True), scale=1)}
        )
        shot = self.send("Page.captureScreenshot", format="png", captureBeyondViewport=bool(area), **area)
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(base64.b64decode(shot["data"]))
