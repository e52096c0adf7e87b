"""A page in headless Chromium: enough to open a file, point at it and look at it.

Playwright (extra `dev`) drives the system's `chromium` (Debian: `apt-get install chromium`); no browser is
downloaded.
"""

from __future__ import annotations

import atexit
import shutil
from functools import cache
from pathlib import Path
from types import TracebackType
from typing import Any

from playwright.sync_api import Page, Playwright, TimeoutError, sync_playwright

FLAGS = ("--no-sandbox", "--disable-gpu", "--disable-quic", "--disable-background-networking")


def find_chromium() -> str | None:
    """The browser's path, or None when none is installed."""
    return next(
        (p for n in ("chromium", "chromium-browser", "google-chrome") if (p := shutil.which(n))), None
    )


@cache
def _driver() -> Playwright:
    """One for the whole process: Playwright allows no second one beside it."""
    driver = sync_playwright().start()
    atexit.register(driver.stop)
    return driver


class Chromium:
    """One page, as a context manager.

    `requests` are the addresses that it asked for since it was opened, `complaints` what it wrote to the
    console or threw.
    """

    page: Page

    def __init__(
        self, width: int = 1400, height: int = 1000, *, dark: bool = False, scale: float = 1
    ) -> None:
        self.size, self.dark, self.scale = (width, height), dark, scale
        self.requests: list[str] = []
        self.complaints: list[str] = []

    def __enter__(self) -> Chromium:
        program = find_chromium()
        if program is None:
            raise FileNotFoundError("chromium is not installed (Debian: apt-get install chromium)")
        self.browser = _driver().chromium.launch(executable_path=program, args=list(FLAGS))
        width, height = self.size
        self.page = self.browser.new_page(
            viewport={"width": width, "height": height},
            device_scale_factor=self.scale,
            color_scheme="dark" if self.dark else "light",
        )
        self.page.on("request", lambda request: self.requests.append(request.url))
        self.page.on("console", lambda message: self.complaints.append(message.text))
        self.page.on("pageerror", lambda error: self.complaints.append(str(error)))
        return self

    def __exit__(
        self, kind: type[BaseException] | None, value: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.browser.close()

    def evaluate(self, expression: str) -> Any:
        """The value of a JavaScript expression in the page; promises are awaited."""
        return self.page.evaluate(expression)

    def open(self, path: Path, fragment: str = "") -> None:
        """Load a file by its file:// address and wait until its script has drawn."""
        self.page.goto("about:blank")  # or a new fragment alone would not load it again
        self.requests.clear()
        self.complaints.clear()
        self.page.goto(path.resolve().as_uri() + fragment)
        try:
            self.page.wait_for_selector("html[data-ready]", state="attached", timeout=20_000)
        except TimeoutError as never:
            raise TimeoutError(f"{path} was not drawn: {'; '.join(self.complaints)}") from never
        self.settle()

    def settle(self) -> None:
        """Wait for two frames, so that what was asked for is on the screen."""
        self.evaluate("new Promise(r => requestAnimationFrame(() => requestAnimationFrame(r)))")

    def point(self, x: float, y: float, *, click: bool = False) -> None:
        """Move the mouse there, in CSS pixels of the window."""
        self.page.mouse.move(x, y)
        if click:
            self.page.mouse.click(x, y)
        self.settle()

    def key(self, key: str) -> None:
        """Press and release one key."""
        self.page.keyboard.press(key)
        self.settle()

    def screenshot(self, path: Path, *, clip: tuple[float, float, float, float] | None = None) -> None:
        """The window as PNG, or the part (x, y, width, height) of the whole page."""
        path.parent.mkdir(parents=True, exist_ok=True)
        if clip is None:
            self.page.screenshot(path=path)
            return
        x, y, width, height = clip
        area = {"x": x, "y": y, "width": width, "height": height}
        self.page.screenshot(path=path, full_page=True, clip=area)  # type: ignore[arg-type]
