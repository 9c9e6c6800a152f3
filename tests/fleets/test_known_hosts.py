"""No host is spoken to whose key is not known beforehand: not the first time either."""

from __future__ import annotations

import inspect
import socket
import threading
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

import paramiko
import pytest

from wrackline.fleets.base import FleetError, Host
from wrackline.fleets.ssh import SshRemote


@dataclass
class Door(paramiko.ServerInterface):
    """An SSH server on loopback that lets everybody in, and remembers who came as far as to knock."""

    key: paramiko.PKey
    port: int = 0
    logins: list[str] = field(default_factory=list)

    def check_auth_publickey(self, username: str, key: paramiko.PKey) -> int:
        del key
        self.logins.append(username)
        return paramiko.AUTH_SUCCESSFUL

    def get_allowed_auths(self, username: str) -> str:
        del username
        return "publickey"

    def check_channel_request(self, kind: str, chanid: int) -> int:
        del kind, chanid
        return paramiko.OPEN_SUCCEEDED

    def check_channel_exec_request(self, channel: paramiko.Channel, command: bytes) -> bool:
        del command
        threading.Timer(
            0.1, lambda: (channel.send(b"in\n"), channel.send_exit_status(0), channel.close())
        ).start()
        return True

    def serve(self, listening: socket.socket) -> None:
        transports = []
        while True:
            try:
                connection, _ = listening.accept()
            except OSError:
                for transport in transports:
                    transport.close()
                return
            transport = paramiko.Transport(connection)
            transport.add_server_key(self.key)
            transports.append(transport)
            threading.Thread(target=self._begin, args=(transport,), daemon=True).start()

    def _begin(self, transport: paramiko.Transport) -> None:
        try:
            transport.start_server(server=self, event=threading.Event())
        except (paramiko.SSHException, EOFError, OSError):
            transport.close()


@pytest.fixture
def door() -> Iterator[Door]:
    with socket.create_server(("127.0.0.1", 0)) as listening:
        door = Door(paramiko.ECDSAKey.generate(), listening.getsockname()[1])
        serving = threading.Thread(target=door.serve, args=(listening,), daemon=True)
        serving.start()
        yield door
        listening.shutdown(socket.SHUT_RDWR)
        serving.join(timeout=10)


@pytest.fixture
def host(door: Door, tmp_path: Path) -> Host:
    paramiko.ECDSAKey.generate().write_private_key_file(str(tmp_path / "key"))
    return Host("n1", "127.0.0.1", port=door.port, key_file=tmp_path / "key")


def knows(path: Path, host: Host, key: paramiko.PKey) -> Path:
    path.write_text(f"[{host.address}]:{host.port} {key.get_name()} {key.get_base64()}\n")
    return path


def test_a_host_with_the_key_that_is_known_is_let_in_to(door: Door, host: Host, tmp_path: Path) -> None:
    remote = SshRemote(host, known_hosts=knows(tmp_path / "known", host, door.key))
    assert remote.run("true", timeout_s=20).stdout == "in\n"
    remote.close()
    assert door.logins == ["root"]


@pytest.mark.parametrize(
    ("known", "said"),
    [
        (
            "nothing",
            r"shows a host key \(ecdsa\S+ SHA256:\S+\) and \S+known has none for it; compare the key",
        ),
        ("another", r"shows another host key than \S+known has"),
        ("missing", r"known, which names the keys of hosts, cannot be read: No such file"),
    ],
)
def test_any_other_is_refused_before_anybody_logs_in(
    door: Door, host: Host, tmp_path: Path, known: str, said: str
) -> None:
    path = tmp_path / "known"
    if known == "nothing":
        path.write_text("")
    if known == "another":
        knows(path, host, paramiko.ECDSAKey.generate())
    with pytest.raises(FleetError, match=rf"^host n1: .*{said}"):
        SshRemote(host, known_hosts=path).run("true", timeout_s=20)
    assert door.logins == []


def test_a_remote_cannot_be_made_without_known_hosts(host: Host) -> None:
    [needed] = [p for p in inspect.signature(SshRemote).parameters.values() if p.name == "known_hosts"]
    assert needed.default is inspect.Parameter.empty
    with pytest.raises(TypeError, match="known_hosts"):
        SshRemote(host)  # type: ignore[call-arg]
