"""The role `nightly` on a virtual machine whose first process is systemd: the clock starts the night, and it
goes on after it was stopped, killed, and after a power cut.

Wrackline itself is not on the machine: a program stands in for `wrackline suite`, and ends when told so.
How a night goes on is tried with real runs in `tests/harness/nights/`.
"""

from __future__ import annotations

import os
import re
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
import yaml

from tests.harness.playbooks import ANSIBLE, apply, environment, fleets_up
from wrackline.fleets.qemu.fleet import QemuFleet
from wrackline.fleets.qemu.settings import Hardware

pytestmark = [
    pytest.mark.fleet,
    pytest.mark.slow,
    pytest.mark.nightly,
    pytest.mark.timeout(3600),
    pytest.mark.skipif("ID=debian" not in Path("/etc/os-release").read_text(), reason="no Debian"),
]

BOOT_S, PLAY_S, UNIT_S = 400.0, 1500.0, 300.0
NIGHT = "wrackline-nightly"
AT = int(time.time() + 13 * 3600) // 3600 * 3600
"""Far from now, and so from a real two o'clock: only the clock that the test sets comes there."""
RESULTS = "/srv/results"
DISK = "/dev/vdc"
BEGAN = f"{RESULTS}/nights/nightly-1/began"
MARK = f"{RESULTS}/.under-way"
STAND_IN = """#!/bin/sh
# suite FILE --results FOLDER [--list]
[ "$1" = suite ] && [ -r "$2" ] || exit 2
[ "${5:-}" != --list ] || exit 0
mkdir -p "$4/nights/nightly-1"
echo "$$ $CHAT" >>"$4/nights/nightly-1/began"
trap 'echo "$$ healed" >>"$4/nights/nightly-1/began"; exit 130' INT
until [ -e /root/finish ]; do sleep 0.5; done
exit 1
"""
TELL = """#!/bin/sh
echo "$1" >/root/told
"""


@pytest.fixture(scope="module")
def fleet(state_root: Path) -> Iterator[QemuFleet]:
    made = QemuFleet(
        f"an-{os.getpid()}",
        ["n1"],
        state_dir=state_root,
        hardware=Hardware(memory_mb=512),
        accel="tcg",
        boot_s=BOOT_S,
        init="systemd",
    )
    made.prepare(print)
    with made:
        yield made


def on(fleet: QemuFleet, command: str, *, check: bool = True) -> str:
    return fleet.remote(fleet.hosts[0]).run(command, timeout_s=120, check=check).stdout.strip()


def until(fleet: QemuFleet, command: str, wanted: str) -> str:
    """What the command says as soon as the regular expression is found in it."""
    deadline = time.monotonic() + UNIT_S
    while not re.search(wanted, said := on(fleet, command, check=False)):
        assert time.monotonic() < deadline, f"no {wanted!r} within {UNIT_S:g} s; last: {said}"
        time.sleep(0.5)
    return said


def began(fleet: QemuFleet, times: int) -> str:
    """The process of the night, when it has begun so often; the secret was handed to each."""
    until(fleet, f"grep -c secret {BEGAN}", f"^{times}$")
    pid, secret = on(fleet, f"grep secret {BEGAN} | tail -1").split()
    assert secret == "https://chat/secret"
    assert on(fleet, f"systemctl show -p MainPID --value {NIGHT}") == pid
    return pid


@pytest.fixture(scope="module")
def applied(fleet: QemuFleet, tmp_path_factory: pytest.TempPathFactory) -> list[dict[str, int]]:
    """What Ansible counted the first time, and the second."""
    remote = fleet.remote(fleet.hosts[0])
    remote.put(STAND_IN.encode(), "/usr/local/bin/wrackline-stand-in", mode=0o755)
    remote.put(TELL.encode(), "/usr/local/bin/tell", mode=0o755)
    until(fleet, "systemctl is-system-running", "running|degraded")
    on(fleet, f"umount /data && wipefs -qa {DISK} && sed -i '/ .data /d' /etc/fstab")
    folder = tmp_path_factory.mktemp("site")
    settings = {
        "nightly_when": time.strftime("*-*-* %H:%M:%S UTC", time.gmtime(AT)),
        "nightly_night": {"runs": [{"spec": "laptop.yaml"}]},
        "nightly_wrackline": "/usr/local/bin/wrackline-stand-in",
        "nightly_results": RESULTS,
        "nightly_results_disk": DISK,
        "nightly_environment": {"CHAT": "https://chat/secret"},
        "nightly_on_failure": "/usr/local/bin/tell",
    }
    groups = {"control": {"hosts": {"n1": None}}}
    (folder / "site.yaml").write_text(yaml.safe_dump({"all": {"children": groups, "vars": settings}}))
    around = {**environment(fleet.folder.root, folder), "ANSIBLE_GATHERING": "smart"}
    hosts = [fleets_up(around), folder / "site.yaml"]
    return [apply(ANSIBLE / "nightly.yml", hosts, around, timeout_s=PLAY_S)["n1"] for _ in range(2)]


def test_the_second_time_nothing_changes(applied: list[dict[str, int]]) -> None:
    first, second = applied
    assert first["changed"] > 5
    assert (first["failed"], second["failed"], second["changed"]) == (0, 0, 0)


@pytest.mark.usefixtures("applied")
def test_a_night_begins_by_the_clock_and_outlives_all_that_interrupts_it(fleet: QemuFleet) -> None:
    units = f"{NIGHT}.timer {NIGHT}-resume.service"
    assert on(fleet, f"systemctl is-enabled {units}").split() == ["enabled", "enabled"]
    on(fleet, f"systemd-analyze verify --man=no /etc/systemd/system/{NIGHT}*")
    assert on(fleet, f"findmnt -n -o SOURCE,FSTYPE {RESULTS}").split() == [DISK, "ext4"]
    assert on(fleet, f"stat -c '%U %a' {RESULTS} /etc/wrackline/nightly/environment").split() == [
        *("root", "700"),
        *("root", "600"),
    ]
    assert on(fleet, f"systemctl show -p ConditionResult --value {NIGHT}-resume; ls {RESULTS}") in (
        "no\nlost+found",
        "yes\nlost+found",  # of a unit that was never asked for
    )

    on(fleet, f"date -s @{AT - 5}")
    first = began(fleet, 1)
    assert on(fleet, f"ls {MARK}") == MARK
    on(fleet, f"systemctl stop {NIGHT}")
    assert on(fleet, f"tail -1 {BEGAN}") == f"{first} healed", "it is asked as by Ctrl-C"
    assert on(fleet, f"ls {MARK}") == MARK
    on(fleet, f"date -s @{time.time():.0f}; sync")

    fleet.power.cut(fleet.hosts[0])
    at = time.monotonic()
    fleet.power.on(fleet.hosts[0])
    second = began(fleet, 2)
    print(f"the night went on {time.monotonic() - at:.0f} s after the power came back")

    on(fleet, f"kill -9 {second}")
    third = began(fleet, 3)
    assert third != second
    assert not on(fleet, "ls /root/told 2>/dev/null", check=False), "nobody is told of what goes on"

    on(fleet, "touch /root/finish")
    assert until(fleet, "cat /root/told 2>&1", "^/").startswith(f"{RESULTS}/nights/nightly-1"), "it failed"
    assert on(fleet, f"systemctl is-failed {NIGHT}", check=False) == "failed"
    assert not on(fleet, f"ls {MARK} 2>/dev/null", check=False)
    on(fleet, f"systemctl start {NIGHT}-resume")
    assert on(fleet, f"systemctl show -p ConditionResult --value {NIGHT}-resume") == "no"
    assert on(fleet, f"grep -c secret {BEGAN}") == "3", "a night that is over does not begin again"
