"""A browser without a window, driven over a pipe: pages as readers see them, measured and photographed.

Chromium's own protocol, in the few commands that pages need. Nothing is injected into a page: it is the file that is
published, with its policy that forbids scripts.
"""

from __future__ import annotations

import base64
import json
import os
import shutil
import subprocess
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

__all__ = ["Browser", "browser"]

NAMES = ("chromium", "chromium-browser", "google-chrome")
OPTIONS = ("--headless=new", "--no-sandbox", "--disable-gpu", "--hide-scrollbars", "--remote-debugging-pipe")
LONGEST = 16_000  # pixels of a picture


@dataclass
class Browser:
    """One tab."""

    told: int  # what is written here reaches the browser
    heard: int
    session: str = ""
    asked: int = 0
    rest: bytes = field(default=b"", repr=False)

    def open(self, page: Path, width: int, height: int, *, dark: bool = False, medium: str = "screen") -> None:
        """Show a page in a window of so many pixels, in light or dark, on a screen or as it is printed."""
        size = {"width": width, "height": height, "deviceScaleFactor": 1, "mobile": width < 600}
        self.ask("Emulation.setDeviceMetricsOverride", **size)
        scheme = [{"name": "prefers-color-scheme", "value": "dark" if dark else "light"}]
        self.ask("Emulation.setEmulatedMedia", media=medium, features=scheme)
        self.visit(page.absolute().as_uri())

    def visit(self, address: str) -> None:
        """Go to an address, and wait until all of its page is there."""
        self.ask("Page.navigate", url=address)
        while self.value("document.readyState + location.href") != f"complete{address}":
            time.sleep(0.005)

    def value(self, expression: str) -> Any:
        """What an expression gives on the page."""
        found = self.ask("Runtime.evaluate", expression=expression, returnByValue=True)
        if "exceptionDetails" in found:
            raise RuntimeError(found["exceptionDetails"]["text"])
        return found["result"].get("value")

    def picture(self, path: Path, whole: bool = True) -> None:
        """A picture of the page: the first screen, or all of it."""
        size = self.value("[innerWidth, Math.max(innerHeight, document.documentElement.scrollHeight), innerHeight]")
        height = min(size[1], LONGEST) if whole else size[2]
        clip = {"x": 0, "y": 0, "width": size[0], "height": height, "scale": 1}
        path.write_bytes(
            self._bytes("Page.captureScreenshot", clip=clip, captureBeyondViewport=True, optimizeForSpeed=True)
        )

    def print(self, path: Path) -> None:
        """The page on paper, as a PDF file of A4 sheets."""
        self.ask("Emulation.setEmulatedMedia", media="print", features=[])
        paper = {"paperWidth": 8.27, "paperHeight": 11.69, "printBackground": False}
        path.write_bytes(self._bytes("Page.printToPDF", **paper))

    def press(self, key: str) -> None:
        """One key."""
        for kind in ("keyDown", "keyUp"):
            self.ask("Input.dispatchKeyEvent", type=kind, key=key, code=key, windowsVirtualKeyCode={"Tab": 9}[key])

    def ask(self, method: str, **parameters: Any) -> dict[str, Any]:
        """A command of the protocol, and its answer."""
        self.asked += 1
        command = {"id": self.asked, "method": method, "params": parameters}
        named = {"sessionId": self.session} if self.session else {}
        os.write(self.told, json.dumps(command | named).encode() + b"\0")
        while (said := self._next()).get("id") != self.asked:  # what else happens is not asked for
            pass
        if "error" in said:
            raise RuntimeError(f"{method}: {said['error']['message']}")
        return dict(said["result"])

    def _bytes(self, method: str, **parameters: Any) -> bytes:
        return base64.b64decode(self.ask(method, **parameters)["data"])

    def _next(self) -> dict[str, Any]:
        while b"\0" not in self.rest:
            part = os.read(self.heard, 2**20)
            if not part:
                raise RuntimeError("the browser ended")
            self.rest += part
        said, _, self.rest = self.rest.partition(b"\0")
        return dict(json.loads(said))


@contextmanager
def browser() -> Iterator[Browser]:
    """A browser with one empty tab, ended afterwards."""
    program = next(filter(None, map(shutil.which, NAMES)), None)
    if program is None:
        raise RuntimeError(f"install a browser: one of {', '.join(NAMES)}")
    read_by_it, told = os.pipe()
    heard, written_by_it = os.pipe()

    def as_its_pipes() -> None:  # it reads from 3 and writes to 4
        one, two = os.dup(read_by_it), os.dup(written_by_it)
        os.dup2(one, 3)
        os.dup2(two, 4)

    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as profile:
        command = [program, *OPTIONS, f"--user-data-dir={profile}", "about:blank"]
        quiet = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}
        running = subprocess.Popen(command, preexec_fn=as_its_pipes, close_fds=False, **quiet)  # type: ignore[call-overload]  # noqa: PLW1509
        os.close(read_by_it)
        os.close(written_by_it)
        try:
            tab = Browser(told, heard)
            target = tab.ask("Target.createTarget", url="about:blank")["targetId"]
            tab.session = tab.ask("Target.attachToTarget", targetId=target, flatten=True)["sessionId"]
            tab.ask("Page.enable")
            yield tab
        finally:
            tab.session = ""
            os.write(told, json.dumps({"id": 0, "method": "Browser.close"}).encode() + b"\0")
            os.close(told)
            try:
                running.wait(10)
            except subprocess.TimeoutExpired:
                running.kill()
            os.close(heard)
