"""Ansible's roles, applied twice to hosts in namespaces that are found by the inventory of the fleets that
are up; and the same roles under the strictest profile of its linter."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
import yaml

from tests.harness.playbooks import ANSIBLE, HERE, apply, beside, environment, fleets_up
from wrackline.fleets.become import COMMANDS, sudo_rule
from wrackline.fleets.netns.fleet import NetnsFleet

pytestmark = [pytest.mark.fleet, pytest.mark.slow]

ROLES = ANSIBLE / "roles"
LONG_AGO = 1_500_000_000
RESULTS = "/var/lib/wrackline/results"


@pytest.fixture(scope="module")
def fleet(state_root: Path) -> Iterator[NetnsFleet]:
    with NetnsFleet(f"ta-{os.getpid()}", ["n1", "n2"], state_dir=state_root, disk_mb=64) as made:
        nodes = "mknod /dev/loop-control c 10 237; for n in $(seq 0 63); do mknod /dev/loop$n b 7 $n; done"
        made.remote(made.hosts[1]).run(f"umount /data; {nodes}; rm -f /etc/fstab; touch /etc/fstab")
        yield made
        made.remote(made.hosts[1]).run("umount /data 2>/dev/null; true")


def as_root(fleet: NetnsFleet, number: int, command: str) -> str:
    return fleet.remote(fleet.hosts[number - 1]).run(command).stdout


def variables(folder: Path) -> dict[str, object]:
    return {
        "ansible_python_interpreter": "/usr/bin/python3",
        "host_user": "wl",
        "host_public_keys": ["ssh-ed25519 AAAA somebody"],
        "host_data_file_mb": 64,
        "kafka_folder": str(folder / "kafka"),
        "kafka_version": "9.9.9",
        "nightly_night": {
            "runs": [{"spec": "mine.yaml", "seeds": [1, 2]}],
            "after": {"prune": {"days": 7}, "webhook": {"url_env": "CHAT"}},
        },
        "nightly_after": {"prune": {"days": 14, "max_gb": 5}},
        "nightly_specs": [str(folder / "mine.yaml")],
        "nightly_results": RESULTS,
        "nightly_user": "nights",
        "nightly_environment": {"CHAT": 'https://chat/a\\b"c'},
        "nightly_wrackline": beside("wrackline"),
        "nightly_on_failure": "/usr/bin/echo",
    }


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A site's own files: a playbook of all roles that need no network, groups, and a release of Kafka."""
    folder = tmp_path_factory.mktemp("site")
    release = folder / "kafka" / "9.9.9"
    (release / "libs").mkdir(parents=True)
    (release / "libs" / "a.jar").write_text("jar")
    os.utime(release / "libs" / "a.jar", (LONG_AGO, LONG_AGO))
    (release / "release.json").write_text('{"version": "9.9.9"}\n')
    books = [ANSIBLE / f"{name}.yml" for name in ("hosts", "kafka", "zookeeper", "nightly")]
    (folder / "mine.yaml").write_text((HERE / "suites" / "laptop.yaml").read_text())
    (folder / "site.yml").write_text(yaml.safe_dump([{"import_playbook": str(book)} for book in books]))
    groups = {"zookeeper": {"hosts": {"n1": None}}, "control": {"hosts": {"n1": None}}}
    of_n2 = {"hosts": {"n2": {"host_data_disk": "file"}}}
    site = {"all": {"children": {**groups, "with_a_made_disk": of_n2}, "vars": variables(folder)}}
    (folder / "site.yaml").write_text(yaml.safe_dump(site))
    return folder


@pytest.mark.nightly
@pytest.mark.timeout(900)
def test_roles_make_hosts_and_change_nothing_the_second_time(fleet: NetnsFleet, folder: Path) -> None:
    around = environment(fleet.folder.root, folder)
    hosts = [fleets_up(around), folder / "site.yaml"]
    first = apply(folder / "site.yml", hosts, around)
    assert set(first) == {"n1", "n2"}
    assert all(counts["changed"] for counts in first.values())
    second = apply(folder / "site.yml", hosts, around)
    assert {host: counts["changed"] for host, counts in second.items()} == {"n1": 0, "n2": 0}

    for number in (1, 2):
        assert sudo_rule("wl") in as_root(fleet, number, "cat /etc/sudoers.d/wrackline")
        assert as_root(fleet, number, "su wl -c 'sudo -n iptables -S' | head -1") == "-P INPUT ACCEPT\n"
        assert as_root(fleet, number, "stat -c '%U %a' /home/wl/.ssh/authorized_keys /data").split() == [
            "wl",
            "600",
            "wl",
            "755",
        ]
        assert "wl hard nofile 65536" in as_root(fleet, number, "cat /etc/security/limits.d/wrackline.conf")
        jar = folder / "kafka" / "9.9.9" / "libs" / "a.jar"
        assert as_root(fleet, number, f"stat -c %Y {jar}") == f"{LONG_AGO}\n"
    assert as_root(fleet, 2, "df --output=fstype,target /data | tail -1").split() == ["ext4", "/data"]
    assert "/data ext4 loop,noatime 0 2" in as_root(fleet, 2, "cat /etc/fstab")

    _zookeeper_answers(fleet)
    _the_night_is_written(fleet)


def _zookeeper_answers(fleet: NetnsFleet) -> None:
    as_root(fleet, 1, "setsid wrackline-zookeeper >/var/log/zookeeper.log 2>&1 </dev/null &")
    ask = "import socket; s = socket.create_connection(('127.0.0.1', 2181)); s.send(b'srvr')"
    until = time.monotonic() + 40
    while "Mode: standalone" not in (
        said := as_root(fleet, 1, f'python3 -c "{ask}; print(s.recv(999))" 2>&1; true')
    ):
        assert time.monotonic() < until, said + as_root(fleet, 1, "tail -n 5 /var/log/zookeeper.log")
        time.sleep(0.5)


def _the_night_is_written(fleet: NetnsFleet) -> None:
    """The host sees this machine's programs, so that the night can be made was asked of Wrackline itself."""
    remote, folder = fleet.remote(fleet.hosts[0]), "/etc/wrackline/nightly"
    night = yaml.safe_load(remote.run(f"cat {folder}/night.yaml").stdout)
    assert night == {
        "name": "nightly",
        "runs": [{"spec": "mine.yaml", "seeds": [1, 2]}],
        "after": {"prune": {"days": 7, "max_gb": 5}, "webhook": {"url_env": "CHAT"}},
    }
    environment = remote.run(f"cat {folder}/environment; stat -c %a {folder}/environment").stdout
    assert environment.splitlines()[1:] == ['CHAT="https://chat/a\\\\b\\"c"', "600"]
    assert remote.run(f"stat -c '%U %a' {RESULTS}").stdout == "nights 700\n"

    mark = f"{RESULTS}/.under-way"
    ended = "/usr/local/bin/wrackline-nightly-ended"
    for code, status, stays in (("exited", 130, True), ("killed", "KILL", True), ("exited", 1, False)):
        remote.run(f"touch {mark}; EXIT_CODE={code} EXIT_STATUS={status} {ended}")
        assert remote.run(f"test -e {mark}", check=False).ok is stays, (code, status)
    remote.run(f"mkdir -p {RESULTS}/nights/n-1 {RESULTS}/nights/n-2; touch -d @1 {RESULTS}/nights/n-2")
    assert remote.run("wrackline-nightly-failed").stdout == f"{RESULTS}/nights/n-1/\n"

    verified = remote.run(
        "systemd-analyze verify --man=no /etc/systemd/system/wrackline-*.service "
        "/etc/systemd/system/wrackline-*.timer 2>&1",
        check=False,
    )
    ours = [line for line in verified.stdout.splitlines() if "wrackline" in line]
    assert ours == [], verified.stdout


@pytest.mark.nightly
@pytest.mark.timeout(900)
def test_a_control_node_is_made_of_this_machine_with_a_wheel(tmp_path: Path) -> None:
    """This machine has the packages (`./wrack setup`). What the wheel needs is not fetched again."""
    builds = [sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", str(tmp_path)]
    subprocess.run(builds, cwd=HERE, check=True, capture_output=True, timeout=900)
    [wheel] = tmp_path.glob("*.whl")
    folder = tmp_path / "opt"
    settings = {
        "ansible_connection": "local",
        "control_hosts": "all",
        "control_wheel": str(wheel),
        "control_folder": str(folder),
        "control_pip_arguments": "--no-deps --no-index",
    }
    inventory = tmp_path / "site.yaml"
    inventory.write_text(yaml.safe_dump({"all": {"hosts": {"localhost": None}, "vars": settings}}))
    around = environment(tmp_path, tmp_path)
    first, second = (
        apply(ANSIBLE / "control.yml", [inventory], around, timeout_s=800)["localhost"] for _ in "12"
    )
    assert first["changed"] >= 4
    assert (first["failed"], second["failed"], second["changed"]) == (0, 0, 0)
    first_line = (folder / "bin" / "wrackline").read_text().splitlines()[0]
    found = [first_line.removeprefix("#!"), "-c", "import wrackline; print(wrackline.__file__)"]
    where = subprocess.run(found, cwd="/", capture_output=True, text=True, check=True, timeout=180).stdout
    assert Path(where).is_relative_to(folder)


@pytest.mark.nightly
def test_the_linter_has_nothing_to_say(tmp_path: Path) -> None:
    command = [beside("ansible-lint"), "--offline", "--profile", "production", "--nocolor", "-q", "ansible"]
    around = {**os.environ, "ANSIBLE_HOME": str(tmp_path), "XDG_CACHE_HOME": str(tmp_path)}
    done = subprocess.run(
        command, cwd=HERE, env=around, capture_output=True, text=True, timeout=600, check=False
    )
    assert done.returncode == 0, done.stdout + done.stderr


def test_the_role_writes_the_rule_that_wrackline_prints() -> None:
    defaults = yaml.safe_load((ROLES / "host" / "defaults" / "main.yml").read_text())
    assert defaults["host_become_commands"] == list(COMMANDS)


def test_the_inventory_of_fleets_is_one_for_ansible(fleet: NetnsFleet, tmp_path: Path) -> None:
    around = environment(fleet.folder.root, tmp_path)
    path = fleets_up(around)
    listed = subprocess.run(
        [beside("ansible-inventory"), "-i", str(path), "--list"],
        env=around,
        capture_output=True,
        text=True,
        timeout=180,
        check=True,
    )
    found = json.loads(listed.stdout)
    assert fleet.name.replace("-", "_") in found
    assert any(name.endswith("n1") for name in found["brokers"]["hosts"])
