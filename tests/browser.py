"""A headless Chromium that tests drive through a pipe, by the DevTools protocol."""

import fcntl
import itertools
import json
import os
import select
import shutil
import subprocess
import sys
import tempfile
import time
from base64 import b64decode
from pathlib import Path
from types import TracebackType
from typing import Any

NAMES = ("chromium", "chromium-browser", "google-chrome")

PATIENCE = 60.0
"""Seconds until something that a page has to do is taken for failed, on a loaded machine."""


def find_browser() -> str | None:
    return next((found for name in NAMES if (found := shutil.which(name))), None)


START = """
import os, sys
os.dup2(int(sys.argv[1]), 3)
os.dup2(int(sys.argv[2]), 4)
os.execv(sys.argv[3], sys.argv[3:])
"""
"""A program that becomes the browser, with the ends of two pipes where it looks for them."""


class Browser:
    """One browser with one page; a context manager that ends it."""

    def __init__(self, program: str, width: int = 1280, height: int = 800) -> None:
        self.profile = tempfile.TemporaryDirectory(ignore_cleanup_errors=True)
        commands, self.write = os.pipe()
        self.read, answers = os.pipe()
        # Above 4: the browser reads at 3 and writes at 4, which may be ends of the pipes now.
        ends = [fcntl.fcntl(end, fcntl.F_DUPFD, 10) for end in (commands, answers)]
        self.process = subprocess.Popen(
            [
                sys.executable, "-S", "-c", START, *map(str, ends), program,
                "--headless", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage",
                "--remote-debugging-pipe", f"--user-data-dir={self.profile.name}", "about:blank",
            ],
            pass_fds=ends, stderr=subprocess.DEVNULL,
        )  # fmt: skip
        for end in (commands, answers, *ends):
            os.close(end)
        self.numbers = itertools.count(1)
        self.rest = b""
        self.errors: list[str] = []
        self.session: str | None = None
        (page,) = (
            target
            for target in self.call("Target.getTargets")["targetInfos"]
            if target["type"] == "page"
        )
        attached = self.call("Target.attachToTarget", targetId=page["targetId"], flatten=True)
        self.session = attached["sessionId"]
        for domain in ("Page", "Runtime", "Log", "Inspector"):
            self.call(f"{domain}.enable")
        self.resize(width, height)

    def __enter__(self) -> "Browser":
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.process.kill()
        self.process.wait()
        os.close(self.write)
        os.close(self.read)
        self.profile.cleanup()

    def call(self, method: str, **parameters: Any) -> dict[str, Any]:
        """The result of a command."""
        number = next(self.numbers)
        message: dict[str, Any] = {"id": number, "method": method, "params": parameters}
        if self.session is not None:
            message["sessionId"] = self.session
        os.write(self.write, json.dumps(message).encode() + b"\0")
        while True:
            answer = self._next()
            if answer.get("id") == number:
                if "error" in answer:
                    raise RuntimeError(f"{method}: {answer['error']}")
                return dict(answer["result"])
            self._note(answer)

    def open(self, file: Path, fragment: str = "") -> None:
        """A page from the file system, when its script has run."""
        self.call("Page.navigate", url=f"{file.resolve().as_uri()}{fragment}")
        self.wait("document.readyState === 'complete'")

    def value(self, expression: str) -> Any:
        """What an expression or a promise is in the page."""
        found = self.call(
            "Runtime.evaluate", expression=expression, returnByValue=True, awaitPromise=True
        )
        if "exceptionDetails" in found:
            raise RuntimeError(f"{expression}: {found['exceptionDetails']}")
        return found["result"].get("value")

    def wait(self, condition: str) -> None:
        """Until an expression is true."""
        end = time.monotonic() + PATIENCE
        while not self.value(f"Boolean({condition})"):
            if time.monotonic() > end:
                raise TimeoutError(f"{condition}; errors of the page: {self.errors}")
            time.sleep(0.02)

    def resize(self, width: int, height: int, dark: bool = False) -> None:
        metrics = {"width": width, "height": height, "deviceScaleFactor": 1, "mobile": False}
        self.call("Emulation.setDeviceMetricsOverride", **metrics)
        scheme = {"name": "prefers-color-scheme", "value": "dark" if dark else "light"}
        self.call("Emulation.setEmulatedMedia", features=[scheme])

    def press(self, key: str, modifiers: int = 0) -> None:
        """A key of the keyboard, by its name."""
        text = {"Enter": "\r", " ": " "}.get(key, "")
        code = {"Enter": 13, " ": 32, "ArrowLeft": 37, "ArrowUp": 38, "ArrowRight": 39,
                "ArrowDown": 40, "Tab": 9}[key]  # fmt: skip
        common = {"key": key, "windowsVirtualKeyCode": code, "modifiers": modifiers}
        self.call("Input.dispatchKeyEvent", type="keyDown", text=text, **common)
        self.call("Input.dispatchKeyEvent", type="keyUp", **common)

    def drag(self, selector: str, *shares: tuple[float, float]) -> None:
        """The mouse over an element, pressed, from share to share of its sides."""
        left, top, width, height = self.value(
            f"(e => {{ e.scrollIntoView({{block: 'center'}}); const r = e.getBoundingClientRect();"
            f" return [r.left, r.top, r.width, r.height]; }})(document.querySelector({selector!r}))"
        )
        kinds = ["mousePressed", *["mouseMoved"] * (len(shares) - 1)]
        for kind, (across, down) in zip(kinds, shares, strict=True):
            self._mouse(kind, left + across * width, top + down * height)
        across, down = shares[-1]
        self._mouse("mouseReleased", left + across * width, top + down * height)

    def click(self, selector: str) -> None:
        self.drag(selector, (0.5, 0.5))

    def picture(self, file: Path, whole: bool = False) -> None:
        """A screenshot, of the whole page or of what is seen."""
        found = self.call("Page.captureScreenshot", format="png", captureBeyondViewport=whole)
        file.write_bytes(b64decode(found["data"]))

    def _mouse(self, kind: str, x: float, y: float) -> None:
        self.call(
            "Input.dispatchMouseEvent", type=kind, x=x, y=y, button="left", buttons=1, clickCount=1
        )

    def _next(self) -> dict[str, Any]:
        while b"\0" not in self.rest:
            if not select.select([self.read], [], [], PATIENCE)[0]:
                raise TimeoutError(f"the browser is silent; errors of the page: {self.errors}")
            part = os.read(self.read, 2**16)
            if not part:
                raise RuntimeError("the browser has ended")
            self.rest += part
        message, self.rest = self.rest.split(b"\0", 1)
        return dict(json.loads(message))

    def _note(self, event: dict[str, Any]) -> None:
        parameters = event.get("params", {})
        if event.get("method") == "Inspector.targetCrashed":
            raise RuntimeError("the page crashed, which a lack of memory may do")
        if event.get("method") == "Runtime.exceptionThrown":
            details = parameters["exceptionDetails"]
            self.errors.append(str(details.get("exception", {}).get("description", details)))
        if event.get("method") == "Log.entryAdded" and parameters["entry"]["level"] == "error":
            self.errors.append(parameters["entry"]["text"])
