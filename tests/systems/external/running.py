"""A cluster that runs already: our own brokers as processes of this machine, and the shell commands with
which their owner starts and stops them. They stand in for docker, ssh and the like, which tests cannot
have."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from tests.broker.clients.loopback import Cluster, wait_for

ROOT = Path(__file__).parents[3]
LONGEST_S = 300
"""A broker ends itself then, also when whoever tests was killed."""
_START = """#!/bin/sh
# start.sh FOLDER: starts the node of that folder, unless it runs; pid has its process id.
cd "$1" || exit 1
grep -qs '^State:.[^ZX]' "/proc/$(cat pid 2>/dev/null)/status" && exit 0
PYTHONPATH={root} setsid timeout -s KILL {longest} {python} -m wrackline.broker --config broker.toml \\
    >>stderr.log 2>&1 </dev/null &
for i in $(seq 100); do pgrep -P $! >pid && exit 0; sleep 0.05; done
exit 1
"""


class Running:
    """Brokers 1, 2, ... and their owner's commands."""

    def __init__(self, folder: Path, brokers: int) -> None:
        self.cluster = Cluster(folder, brokers=brokers)
        self.script = folder / "start.sh"
        self.script.write_text(_START.format(root=ROOT, longest=LONGEST_S, python=sys.executable))
        self.script.chmod(0o755)
        self._folder = folder

    @property
    def bootstrap(self) -> list[str]:
        return self.cluster.bootstrap.split(",")

    def start(self) -> None:
        for node in self.cluster.nodes:
            subprocess.run([self.script, node.folder], check=True, env={**os.environ}, timeout=30)
        admin, wanted = self.cluster.admin(), set(self.cluster.brokers)
        wait_for("all brokers", lambda: set(admin.list_topics(timeout=2).brokers) >= wanted)

    def end(self) -> None:
        for node in self.cluster.nodes:
            subprocess.run(
                ["/bin/sh", "-c", "kill -9 $(cat pid)"], cwd=node.folder, stderr=subprocess.DEVNULL
            )

    def pid(self, node: int) -> int:
        return int((self._folder / f"n{node}" / "pid").read_text())

    def topics(self) -> set[str]:
        return set(self.cluster.admin().list_topics(timeout=5).topics)

    def commands(self) -> dict[str, Any]:
        """As a specification says them."""
        pid = f"$(cat {self._folder}/n{{node}}/pid)"
        state = f"/proc/{pid}/status"
        gone = f"! grep -qs '^State:.[^ZX]' {state}"
        return {
            "kill": {
                "run": f"kill -9 {pid}; for i in $(seq 50); do {gone} && exit; sleep 0.1; done",
                "probe": gone,
            },
            "start": f"{self.script} {self._folder}/n{{node}}",
            "pause": {"run": f"kill -STOP {pid}; sleep 0.1", "probe": f"grep -q '^State:.T' {state}"},
            "resume": f"kill -CONT {pid}",
            "logs": f"cat {self._folder}/n{{node}}/stderr.log",
        }


@contextmanager
def running(folder: Path, brokers: int = 3) -> Iterator[Running]:
    made = Running(folder, brokers)
    try:
        made.start()
        yield made
    finally:
        made.end()
