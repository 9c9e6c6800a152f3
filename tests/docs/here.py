"""For the recipe "A system": a fleet of one host, which is a folder here, and a program that only waits."""

from __future__ import annotations

import subprocess
import time
from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from pathlib import Path

from wrackline.fleets.base import FleetError, Host, Result

HOME = "/opt/other"
"""Where the recipe's system lives on a host; here it is the folder."""
PROGRAM = """#!/bin/sh
echo "started with $(head -n 1 "$2")"
trap 'exit 0' TERM
while :; do sleep 0.05; done
"""


class Here:
    """What the recipe needs of a fleet and of the connection to its host."""

    def __init__(self, folder: Path) -> None:
        self.name = "here"
        self.hosts = (Host("n1", "127.0.0.1"),)
        self.folder = folder / "home"
        self.program = folder / "program"
        self.program.write_text(PROGRAM)

    def remote(self, host: Host) -> Here:
        assert host in self.hosts
        return self

    def entered(self) -> AbstractContextManager[None]:
        return nullcontext()

    def run(self, command: str, *, timeout_s: float = 30.0, check: bool = True) -> Result:
        mine = command.replace(HOME, str(self.folder))
        done = subprocess.run(
            ["sh", "-c", mine], capture_output=True, text=True, timeout=timeout_s, check=False
        )
        if check and done.returncode:
            raise FleetError(f"{command}: exit code {done.returncode}: {done.stderr}")
        return Result("n1", command, done.returncode, done.stdout, done.stderr, 0.0)

    def put(self, content: Path | bytes, path: str, *, mode: int = 0o644) -> None:
        file = Path(path.replace(HOME, str(self.folder)))
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_bytes(content.read_bytes() if isinstance(content, Path) else content)
        file.chmod(mode)

    def end(self) -> None:
        """Nothing that was started is left, whatever became of the test."""
        pid = self.folder / "pid"
        if pid.exists():
            self.run(f"kill -KILL {int(pid.read_text())} 2>/dev/null", check=False)

    @staticmethod
    def wait_for(what: Callable[[], bool], timeout_s: float = 30.0) -> bool:
        deadline = time.monotonic() + timeout_s
        while not what():
            if time.monotonic() > deadline:
                return False
            time.sleep(0.05)
        return True
