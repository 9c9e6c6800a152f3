"""The cluster that the tests start takes no port of another, and it does not outlive the tests."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.broker.clients.loopback import free_ports, wait_for

pytestmark = pytest.mark.real

KILLED = """
import os, sys
from pathlib import Path
from tests.broker.clients.loopback import Node, free_ports
[port] = free_ports(1)
node = Node(1, "broker", port, Path(sys.argv[1]), {"controllers": ["101@127.0.0.1:9093"]})
node.start()
print(port, node.process.pid, flush=True)
os.kill(os.getpid(), 9)
"""


def test_a_node_ends_when_the_tests_are_killed_and_no_other_has_its_port(tmp_path: Path) -> None:
    ours = free_ports(3)
    assert len(set(ours)) == 3
    assert max(ours) < 32_768
    done = subprocess.run(
        [sys.executable, "-c", KILLED, str(tmp_path)],
        env={**os.environ, "PYTHONPATH": str(Path(__file__).parents[3])},
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    port, pid = map(int, done.stdout.split())
    assert port // 100 not in {one // 100 for one in ours}
    status = Path(f"/proc/{pid}/stat")
    wait_for(
        "the end of the node", lambda: not status.exists() or status.read_text().rpartition(")")[2][1] == "Z"
    )
