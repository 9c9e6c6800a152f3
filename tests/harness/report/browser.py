"""A real browser for pages: Chromium without a window, spoken to over two pipes (the DevTools protocol)."""

from __future__ import annotations

import fcntl
import json
import os
import shutil
import subprocess
import tempfile
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

PROGRAM = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
ANSWER_S = 60.0
UNPACKED = (
    "new Promise(done => { const look = () =>"
    " document.body.dataset.unpacked ? done(1) : setTimeout(look, 20); look(); })"
)
"""Waits until the page's tables can be asked."""
DRAWN = "new Promise(done => requestAnimationFrame(() => requestAnimationFrame(() => done(1))))"
"""Waits for the frame after the next, when a change has been drawn."""


@dataclass
class Browser:
    """One page at a time. ``complaints``: what the console showed of errors and refusals since the last
    ``show``."""

    into: int
    out: int
    session: str = ""
    complaints: list[str] = field(default_factory=list)
    _next: int = 0
    _rest: bytes = b""

    def ask(self, method: str, **parameters: Any) -> dict[str, Any]:
        """Send a command and wait for its answer; complaints that come meanwhile are kept."""
        self._next += 1
        message = {"id": self._next, "method": method, "params": parameters}
        if self.session:
            message["sessionId"] = self.session
        os.write(self.into, json.dumps(message).encode() + b"\0")
        while True:
            said = self._read()
            self._listen(said)
            if said.get("id") == self._next:
                assert "error" not in said, said
                return dict(said["result"])

    def _read(self) -> dict[str, Any]:
        while b"\0" not in self._rest:
            piece = os.read(self.out, 1 << 20)
            assert piece, "the browser is gone"
            self._rest += piece
        message, self._rest = self._rest.split(b"\0", 1)
        return dict(json.loads(message))

    def _listen(self, said: dict[str, Any]) -> None:
        told = said.get("params", {})
        match said.get("method"):
            case "Log.entryAdded" if told["entry"]["level"] in ("error", "warning"):
                self.complaints.append(told["entry"]["text"])
            case "Runtime.exceptionThrown":
                self.complaints.append(str(told["exceptionDetails"]))
            case "Runtime.consoleAPICalled" if told["type"] in ("error", "warning", "assert"):
                self.complaints.append(str(told["args"]))

    def show(self, page: Path, width: int, height: int = 844, theme: str = "light") -> None:
        """Open a file as a phone or a window of this many pixels shows it."""
        self.ask("Emulation.setEmulatedMedia", features=[{"name": "prefers-color-scheme", "value": theme}])
        self.ask(
            "Emulation.setDeviceMetricsOverride",
            width=width,
            height=height,
            deviceScaleFactor=1,
            mobile=width < 600,
        )
        self.complaints.clear()
        self.ask("Page.navigate", url=page.resolve().as_uri())
        ready = (
            "new Promise(done => document.readyState === 'complete'"
            " ? done(1) : addEventListener('load', () => done(1)))"
        )
        self.value(ready)

    def value(self, expression: str) -> Any:
        """Of a JavaScript expression in the page; a promise is waited for."""
        told = self.ask("Runtime.evaluate", expression=expression, returnByValue=True, awaitPromise=True)
        assert "exceptionDetails" not in told, told
        return told["result"].get("value")

    def until(self, expression: str) -> Any:
        """Waits until the expression is true of the page."""
        deadline = time.monotonic() + ANSWER_S
        while not (found := self.value(expression)):
            assert time.monotonic() < deadline, (expression, self.value("document.body?.innerText"))
            time.sleep(0.1)
        return found

    def choose_file(self, selector: str, file: Path) -> None:
        """As a person does with the button."""
        document = self.ask("DOM.getDocument")["root"]["nodeId"]
        field = self.ask("DOM.querySelector", nodeId=document, selector=selector)["nodeId"]
        self.ask("DOM.setFileInputFiles", nodeId=field, files=[str(file)])


def _away(fd: int) -> int:
    """The same file under a number that the browser's own two, 3 and 4, do not need."""
    far = fcntl.fcntl(fd, fcntl.F_DUPFD_CLOEXEC, 10)
    os.close(fd)
    return far


@contextmanager
def browser() -> Iterator[Browser]:
    assert PROGRAM is not None
    to_read, into = map(_away, os.pipe())
    out, to_write = map(_away, os.pipe())
    home = tempfile.mkdtemp(prefix="wl-browser-")
    arguments = [
        "--headless",
        "--no-sandbox",
        "--disable-gpu",
        "--disable-dev-shm-usage",
        "--remote-debugging-pipe",
    ]
    # The browser reads commands from 3 and answers on 4.
    plumbing = f'exec 3<&{to_read} 4>&{to_write} {to_read}<&- {to_write}>&-; exec "$@"'
    begun = subprocess.Popen(
        ["bash", "-c", plumbing, "bash", PROGRAM, *arguments, f"--user-data-dir={home}"],
        pass_fds=(to_read, to_write),
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    os.close(to_read)
    os.close(to_write)
    alarm = threading.Timer(5 * ANSWER_S, begun.kill)  # a browser that hangs ends the reads that wait for it
    alarm.start()
    try:
        found = Browser(into, out)
        target = found.ask("Target.createTarget", url="about:blank")["targetId"]
        found.session = found.ask("Target.attachToTarget", targetId=target, flatten=True)["sessionId"]
        for domain in ("Page", "Runtime", "Log"):
            found.ask(f"{domain}.enable")
        yield found
    finally:
        alarm.cancel()
        begun.kill()
        begun.wait(timeout=30)
        os.close(into)
        os.close(out)
        shutil.rmtree(home, ignore_errors=True)


@pytest.fixture(scope="module")
def chromium() -> Iterator[Browser]:
    if PROGRAM is None:
        pytest.skip("no Chromium here (Debian: apt-get install chromium)")
    with browser() as found:
        yield found
