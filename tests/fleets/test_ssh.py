"""SSH to a host gives results and files, keeps deadlines, and has one clear line for every failure."""

from __future__ import annotations

import dataclasses
import socket
import threading
import time
from pathlib import Path

import pytest

from wrackline.fleets.base import FleetError, Host, Result
from wrackline.fleets.connection import HostConnection
from wrackline.fleets.local.network.namespaces import namespace_connector, run_tool
from wrackline.fleets.netns.fleet import NetnsFleet
from wrackline.fleets.ssh import SshRemote, run_on_all

pytestmark = pytest.mark.fleet


@pytest.fixture
def host(fleet: NetnsFleet) -> Host:
    return fleet.hosts[0]


def stranger(
    fleet: NetnsFleet, host: Host, *, known_hosts: Path | None = None, **changes: object
) -> SshRemote:
    """A remote that the fleet does not know of, with another host description."""
    changed = dataclasses.replace(host, **changes)  # type: ignore[arg-type]
    return SshRemote(
        changed, namespace_connector(fleet.state.control), known_hosts=known_hosts or fleet.folder.known_hosts
    )


def test_a_command_gives_all_it_said_and_its_exit_code(fleet: NetnsFleet, host: Host) -> None:
    remote = fleet.remote(host)
    result = remote.run("echo out; echo err >&2; exit 3", check=False)
    assert (result.host, result.exit_code, result.stdout, result.stderr) == ("n1", 3, "out\n", "err\n")
    assert result.command == "echo out; echo err >&2; exit 3"
    assert remote.run("cat").stdout == "", "standard input is empty, not a terminal"
    big = remote.run("head -c 3000000 /dev/zero | tr '\\0' x; head -c 3000000 /dev/zero | tr '\\0' y >&2")
    assert (len(big.stdout), len(big.stderr)) == (3_000_000, 3_000_000)
    with pytest.raises(FleetError, match=r"host n1: `ls /nope` ended with exit code 2: .*No such file"):
        remote.run("ls /nope")


def test_a_deadline_ends_the_command_on_the_host_too(fleet: NetnsFleet, host: Host) -> None:
    remote = fleet.remote(host)
    began = time.monotonic()
    with pytest.raises(
        FleetError, match=r"`echo working >&2; sleep 987` did not end within 0.5 s .*: working"
    ):
        remote.run("echo working >&2; sleep 987", timeout_s=0.5)
    assert time.monotonic() - began < 30
    assert not remote.run("pgrep -f 'sleep [9]87'", check=False).ok


def test_a_background_process_that_keeps_the_output_open_does_not_delay_the_result(
    fleet: NetnsFleet, host: Host
) -> None:
    began = time.monotonic()
    result = fleet.remote(host).run("sleep 20 & echo started")
    assert result.stdout == "started\n"
    assert time.monotonic() - began < 15


def test_one_connection_serves_many_threads(fleet: NetnsFleet, host: Host) -> None:
    remote = fleet.remote(host)
    seen: dict[int, str] = {}

    def ask(number: int) -> None:
        remote.put(b"%d" % number, f"/tmp/threads/{number}")
        seen[number] = remote.run(f"cat /tmp/threads/{number}; sleep 0.1").stdout

    threads = [threading.Thread(target=ask, args=(number,)) for number in range(12)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(30)
    assert seen == {number: str(number) for number in range(12)}
    assert remote.run("ss -Htn state established sport = :22 | wc -l").stdout.strip() == "1"


def test_files_go_over_whole_with_their_mode_and_come_back(
    fleet: NetnsFleet, host: Host, tmp_path: Path
) -> None:
    remote = fleet.remote(host)
    content = bytes(range(256)) * 4096
    (tmp_path / "local").write_bytes(content)
    remote.put(tmp_path / "local", "/opt/deep/er/file", mode=0o750)
    remote.put(b"short", "/opt/deep/er/file2", mode=0o600)
    assert remote.get("/opt/deep/er/file") == content
    assert remote.run("stat -c %a /opt/deep/er/*; ls -A /opt/deep/er").stdout.split() == [
        "750",
        "600",
        "file",
        "file2",
    ]
    remote.put(b"again", "/opt/deep/er/file")
    assert remote.get("/opt/deep/er/file") == b"again"
    with pytest.raises(FleetError, match="host n1: cannot read /opt/none: No such file"):
        remote.get("/opt/none")


def test_a_tree_comes_in_one_piece(fleet: NetnsFleet, host: Host, tmp_path: Path) -> None:
    remote = fleet.remote(host)
    remote.run(
        "mkdir -p '/data/tree/a b/c' && cd /data/tree && echo 1 > x.log && echo 2 > 'a b/c/y.log' && echo 3 "
        "> z.tmp"
    )
    paths = remote.get_tree("/data/tree", tmp_path, patterns=["*.log", "*.index"])
    assert {str(path.relative_to(tmp_path)): path.read_text() for path in paths} == {
        "x.log": "1\n",
        "a b/c/y.log": "2\n",
    }
    assert remote.get_tree("/data/tree", tmp_path, patterns=["*.none"]) == []
    with pytest.raises(FleetError, match="host n1: cannot fetch /data/none"):
        remote.get_tree("/data/none", tmp_path)


def test_a_full_disk_is_called_by_its_name(fleet: NetnsFleet, host: Host) -> None:
    remote = fleet.remote(host)
    try:
        with pytest.raises(FleetError, match="host n1: cannot write /data/full/much: no space left on /data"):
            remote.put(bytes(100 * 2**20), "/data/full/much")
        assert remote.run("ls -A /data/full").stdout == "", "no half-written file stays"
        with pytest.raises(FleetError, match="No space left on device"):
            remote.run("head -c 200M /dev/zero > /data/full/more")
    finally:
        remote.run("rm -rf /data/full")


def test_the_connection_is_made_again_after_a_power_cut(fleet: NetnsFleet, host: Host) -> None:
    unaware = stranger(fleet, host)
    try:
        assert unaware.run("true").ok
        unaware.put(b"first", "/opt/first")
        fleet.power.cut(host)
        began = time.monotonic()
        with pytest.raises(FleetError, match="host n1: "):
            unaware.run("true", timeout_s=1)
        assert time.monotonic() - began < 30
        fleet.power.on(host)
        unaware.put(b"second", "/opt/second")
        assert unaware.get("/opt/first") == b"first"
        assert unaware.run("cat /opt/second").stdout == "second"
        fleet.power.cut(host)
        fleet.power.on(host)
        assert unaware.run("hostname").stdout == "n1\n", "nobody told it of a cut that is over already"
        assert fleet.remote(host).run("hostname").stdout == "n1\n"
    finally:
        fleet.power.on(host)
        unaware.close()


def test_a_command_cut_short_is_not_sent_again(fleet: NetnsFleet, host: Host) -> None:
    remote = fleet.remote(host)
    failures: list[FleetError] = []

    def run() -> None:
        try:
            remote.run("echo once >> /opt/runs; sync /opt/runs; sleep 30")
        except FleetError as error:
            failures.append(error)

    thread = threading.Thread(target=run)
    thread.start()
    deadline = time.monotonic() + 10
    while not stranger(fleet, host).run("test -s /opt/runs", check=False).ok:
        assert time.monotonic() < deadline
    fleet.power.cut(host)
    thread.join(10)
    fleet.power.on(host)
    assert [str(error).partition(" (")[0] for error in failures] == [
        "host n1: connection lost during `echo once >> /opt/runs; sync /opt/runs; sleep 30`"
    ]
    assert remote.get("/opt/runs") == b"once\n"


def test_a_failure_ends_the_connection_that_failed_and_no_newer_one(fleet: NetnsFleet, host: Host) -> None:
    connection = HostConnection(
        host, namespace_connector(fleet.state.control), known_hosts=fleet.folder.known_hosts
    )
    try:
        failed = connection.channel(10, "the first").get_transport()
        connection.drop(failed)
        newer = connection.channel(10, "the second").get_transport()
        connection.drop(failed)  # another thread met the failure later
        assert newer.is_active()
        assert connection.channel(10, "the third").get_transport() is newer
        connection.drop(newer)
        assert not newer.is_active()
    finally:
        connection.drop()


def test_a_wrong_key_is_called_a_wrong_key(fleet: NetnsFleet, host: Host, tmp_path: Path) -> None:
    key = tmp_path / "other"
    run_tool(["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", str(key)])
    with pytest.raises(FleetError, match=f"host n1: 198.18.0.11 does not let root in with the key {key}"):
        stranger(fleet, host, key_file=key).run("true")
    with pytest.raises(FleetError, match=r"host n1: the key .*/missing does not exist"):
        stranger(fleet, host, key_file=tmp_path / "missing").run("true")
    key.write_text("no key at all")
    with pytest.raises(FleetError, match=r"host n1: SSH to 198.18.0.11:22 failed"):
        stranger(fleet, host, key_file=key).run("true")


def test_a_changed_or_unknown_host_key_is_refused(fleet: NetnsFleet, host: Host, tmp_path: Path) -> None:
    known = tmp_path / "known_hosts"
    run_tool(["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", str(tmp_path / "other")])
    public = " ".join((tmp_path / "other.pub").read_text().split()[:2])
    known.write_text(f"{host.address} {public}\n")
    with pytest.raises(FleetError, match=r"shows another host key than .*known_hosts has"):
        stranger(fleet, host, known_hosts=known).run("true")
    known.write_text("")
    with pytest.raises(FleetError, match=r"shows a host key \(.*\) and .*known_hosts has none for it"):
        stranger(fleet, host, known_hosts=known).run("true")


def test_every_way_not_to_answer_has_its_own_line(fleet: NetnsFleet, host: Host) -> None:
    with pytest.raises(FleetError, match=r"198.18.0.11:1 refused the connection; is sshd running"):
        stranger(fleet, host, port=1).run("true")
    with pytest.raises(FleetError, match=r"no (answer from|connection to) 198\.18\.0\.77:22"):
        stranger(fleet, host, address="198.18.0.77").run("true", timeout_s=1)

    def nobody(_host: Host, _timeout_s: float) -> socket.socket:
        raise socket.gaierror(socket.EAI_NONAME, "Name or service not known")

    nowhere = SshRemote(
        dataclasses.replace(host, address="nowhere"), nobody, known_hosts=fleet.folder.known_hosts
    )
    with pytest.raises(FleetError, match="unknown host nowhere: Name or service not known"):
        nowhere.run("true")


def test_one_command_on_all_hosts_gives_each_its_result(fleet: NetnsFleet) -> None:
    dead = stranger(fleet, dataclasses.replace(fleet.hosts[1], name="n9"), port=1)
    results = run_on_all([*(fleet.remote(host) for host in fleet.hosts), dead], "hostname")
    assert list(results) == ["n1", "n2", "n9"]
    assert [result.stdout for result in results.values() if isinstance(result, Result)] == ["n1\n", "n2\n"]
    assert isinstance(results["n9"], FleetError)
