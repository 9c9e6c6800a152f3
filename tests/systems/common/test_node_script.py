"""The script on a host, run for real: it starts a node, and tells how the node has ended."""

from __future__ import annotations

import shutil
import socket
import subprocess
from collections.abc import Callable
from importlib.resources import files
from pathlib import Path

import pytest

Script = Callable[..., subprocess.CompletedProcess[str]]
LISTEN = """
import os, signal, socket, sys
server = socket.create_server(("127.0.0.1", int(sys.argv[1])))
connection, _ = server.accept()
how = connection.recv(9).decode()
os.kill(os.getpid(), getattr(signal, how)) if how.startswith("SIG") else sys.exit(int(how))
"""


@pytest.fixture
def port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as server:
        return int(server.getsockname()[1])


@pytest.fixture
def script(tmp_path: Path, port: int) -> Script:
    """The script of a host that is a folder; its program ends as the first client says."""
    path, configs = tmp_path / "opt/wrackline/node.sh", tmp_path / "etc/wrackline"
    for folder in (path.parent, configs):
        folder.mkdir(parents=True)
    path.write_text(files("wrackline.systems").joinpath("node.sh").read_text())
    (configs / "node.py").write_text(LISTEN)
    program = f"exec {shutil.which('python3')} {configs}/node.py {port}"
    (path.parent / "program").write_text(program)

    def call(*words: object) -> subprocess.CompletedProcess[str]:
        command = ["sh", str(path), *map(str, words)]
        return subprocess.run(command, capture_output=True, text=True, timeout=30, check=False)

    return call


@pytest.mark.parametrize(
    ("how", "code"), [("70", "70"), ("0", "0"), ("SIGSEGV", "139"), ("SIGKILL", "137")], ids=str
)
def test_the_exit_code_of_a_process_that_is_over(script: Script, port: int, how: str, code: str) -> None:
    assert script("start", f"127.0.0.1:{port}", 10).returncode == 0
    pid = script("pid").stdout.strip()
    assert pid
    assert script("code", pid).stdout.strip() == ""
    with socket.create_connection(("127.0.0.1", port)) as client:
        client.sendall(how.encode())
        client.recv(1)
    for _ in range(100):
        if found := script("code", pid).stdout.strip():
            break
    assert found == code
    assert script("pid").stdout == ""
    assert script("code", 1).stdout.strip() == ""


def test_a_program_that_ends_at_once_is_no_start(script: Script, tmp_path: Path, port: int) -> None:
    (tmp_path / "opt/wrackline/program").write_text("echo KeyError; exit 70")
    started = script("start", f"127.0.0.1:{port}", 10)
    assert (started.returncode, started.stdout) == (3, "KeyError\n")
