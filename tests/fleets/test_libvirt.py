"""Domains of a real libvirtd, which the tests start in a network of its own.

The watcher asks libvirtd by `virsh`, reads /proc and the guest's files, and has sockets of its own. One
domain serves the tests of every day. The image is built when it is not there: a minute, once."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from pydantic import ValidationError

from tests.fleets.libvirtd import Libvirtd, libvirtd
from tests.fleets.traces import machine_network, traces
from tests.fleets.virtual import obeys_its_hypervisor, silent
from wrackline.fleets.base import Disk, FileLoss, FleetError, Remote
from wrackline.fleets.canary import Canaries
from wrackline.fleets.libvirt.fleet import LibvirtFleet
from wrackline.fleets.libvirt.spec import LibvirtSpec
from wrackline.fleets.local.clean import clean, survey
from wrackline.fleets.qemu.settings import Hardware

pytestmark = [
    pytest.mark.fleet,
    pytest.mark.slow,
    pytest.mark.skipif("ID=debian" not in Path("/etc/os-release").read_text(), reason="no Debian"),
    pytest.mark.skipif(
        shutil.which("libvirtd", path="/usr/sbin:/usr/bin") is None,
        reason="no libvirtd: `./wrack setup` installs it",
    ),
]
SUITE = Path(__file__).parents[2] / "suites/qemu-broker.yaml"

OWNER = """
import sys
from pathlib import Path
from wrackline.fleets.libvirt.fleet import LibvirtFleet
LibvirtFleet(sys.argv[1], ["n1"], uri=sys.argv[3], state_dir=Path(sys.argv[2]), accel="tcg").up()
"""


@pytest.fixture(scope="module")
def hypervisor(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Libvirtd]:
    with libvirtd(tmp_path_factory.mktemp("libvirtd")) as running:
        yield running
        assert running.domains() == []
        assert running.links() == {"lo"}


@pytest.fixture(scope="module")
def fleet(state_root: Path, hypervisor: Libvirtd) -> Iterator[LibvirtFleet]:
    before = machine_network()
    made = LibvirtFleet(f"tl-{os.getpid()}", ["n1"], uri=hypervisor.uri, state_dir=state_root, accel="tcg")
    made.prepare(print)
    with made:
        assert machine_network() == before
        assert hypervisor.links() == {"lo"}, "the domain's link is seen outside of the fleet's network"
        assert hypervisor.domains() == [f"wl-{made.name}-n1"]
        yield made
    assert traces(made.name, state_root) == []
    assert hypervisor.domains() == []


@pytest.fixture
def remote(fleet: LibvirtFleet) -> Remote:
    fleet.power.on(fleet.hosts[0])
    return fleet.remote(fleet.hosts[0])


def test_a_cut_takes_what_was_not_synced_and_the_canary_proves_it(
    fleet: LibvirtFleet, remote: Remote, hypervisor: Libvirtd
) -> None:
    [host] = fleet.hosts
    canaries = Canaries(fleet, fleet.hosts)
    canaries.start_all()
    assert canaries.wait() == []
    remote.run(
        "echo synced >/data/both; echo synced >/data/synced; sync /data/both /data/synced /data;"
        " echo unsynced >>/data/both; echo unsynced >/data/unsynced; echo kept >/root/system; sleep 2"
    )
    cut = fleet.power.cut(host)
    assert hypervisor.domains() == []
    assert not fleet.power.is_on(host)
    silent(fleet)
    back = fleet.power.on(host)
    assert back is not None
    assert back.counted
    ours = {path: loss for path, loss in back.files.items() if not path.startswith(".")}
    assert ours == {"both": FileLoss(16, 7), "unsynced": FileLoss(9, 0)}
    loss = canaries.after(host, cut.decided_ns)
    assert loss.proved, str(loss)
    assert canaries.stop() == []
    left = remote.run("cd /data && cat both synced; ls; cat /root/system").stdout.split()
    assert left == ["synced", "synced", "both", "lost+found", "synced", "kept"]
    assert abs(float(remote.run("date +%s.%N").stdout) - time.time()) < 5.0


def test_what_libvirt_does_to_a_domain_is_seen_from_outside_and_ends(
    fleet: LibvirtFleet, remote: Remote
) -> None:
    obeys_its_hypervisor(fleet, remote)


def kill_an_owner_in_the_midst(name: str, state_root: Path, hypervisor: Libvirtd) -> None:
    command = [sys.executable, "-c", OWNER, name, str(state_root), hypervisor.uri]
    with subprocess.Popen(command) as owner:
        try:
            deadline = time.monotonic() + 60
            # The hypervisor names a domain before its process runs.
            while not any(trace.startswith("process ") for trace in traces(name, state_root)):
                assert time.monotonic() < deadline
                assert owner.poll() is None
                time.sleep(0.1)
            assert [state.kind for state, _ in survey(state_root) if state.name == name] == ["libvirt"]
        finally:
            owner.kill()
    left = {trace.split()[0] for trace in traces(name, state_root)}
    assert left == {"netns", "process", "mount", "file"}


def test_what_an_owner_left_that_was_killed_in_the_midst_is_removed(
    state_root: Path, hypervisor: Libvirtd
) -> None:
    name = f"tm-{os.getpid()}"
    kill_an_owner_in_the_midst(name, state_root, hypervisor)
    assert name in clean(state_root)
    assert traces(name, state_root) == []
    deadline = time.monotonic() + 10
    while f"wl-{name}-n1" in hypervisor.domains():
        assert time.monotonic() < deadline, "libvirt did not notice"
        time.sleep(0.1)


@pytest.mark.nightly
def test_it_is_removed_also_when_libvirtd_has_gone(state_root: Path, tmp_path: Path) -> None:
    name = f"tg-{os.getpid()}"
    with libvirtd(tmp_path) as gone:
        kill_an_owner_in_the_midst(name, state_root, gone)
        os.kill(gone.pid, signal.SIGKILL)
    assert name in clean(state_root)
    assert traces(name, state_root) == []


def test_a_hypervisor_elsewhere_or_silent_is_refused_in_one_line() -> None:
    with pytest.raises(ValidationError, match=r"no hypervisor of this machine.*hosts of the fleet inventory"):
        LibvirtSpec(uri="qemu+ssh://elsewhere/system")
    with pytest.raises(FleetError, match=r"finds no libvirt at .*/none: .*; start libvirtd, or") as caught:
        LibvirtSpec(uri="qemu+unix:///system?socket=/none").prepare(print)
    assert "\n" not in str(caught.value)


@pytest.mark.nightly
@pytest.mark.timeout(900)
def test_two_domains_on_xfs_reach_one_another_and_their_disks_are_exchanged(
    state_root: Path, hypervisor: Libvirtd
) -> None:
    with LibvirtFleet(
        f"tx-{os.getpid()}",
        ["n1", "n2"],
        uri=hypervisor.uri,
        state_dir=state_root,
        hardware=Hardware(disk_mb=320),
        filesystem="xfs",
        accel="tcg",
    ) as fleet:
        one, _ = fleet.hosts
        remote, power = fleet.remote(one), fleet.power
        assert remote.run("findmnt -n -o FSTYPE /data").stdout.strip() == "xfs"
        reach = "bash -c 'exec 3<>/dev/tcp/n2/22; head -c 4 <&3'"
        assert remote.run(reach).stdout == "SSH-"
        remote.run("echo synced >/data/f; sync /data/f /data; echo unsynced >>/data/f")
        lost = power.drop_page_cache(one)
        assert lost.files["f"] == FileLoss(16, 7)
        remote.run("echo old >/data/version")
        power.copy_disk(one)
        remote.run("echo new >/data/version; sync /data/version /data")
        power.cut(one)
        power.swap_disk(one, Disk.STALE)
        power.throttle(one, 500_000)
        power.on(one)
        assert remote.run("cat /data/version").stdout == "old\n"
        began = time.monotonic()
        remote.run("dd if=/dev/zero of=/data/paced bs=64k count=16 oflag=direct 2>&1")
        assert time.monotonic() - began > 1.5, "its disk was to be held back from its power-on"
        assert remote.run(reach).stdout == "SSH-"
        power.pause(one)
        assert not power.cut(one).counted


@pytest.mark.nightly
@pytest.mark.timeout(1800)
def test_our_broker_keeps_what_it_acknowledged_on_domains(tmp_path: Path, hypervisor: Libvirtd) -> None:
    command = [sys.executable, "-m", "wrackline.harness.cli.main", "run", str(SUITE)]
    settings = ["--set", "fleet.kind=libvirt", "--set", f"fleet.uri={hypervisor.uri}"]
    done = subprocess.run(
        [*command, *settings, "--results", str(tmp_path)],
        capture_output=True,
        text=True,
        timeout=1700,
        check=False,
    )
    assert done.returncode == 0, done.stdout[-3000:] + done.stderr[-3000:]
    [verdict] = [json.loads(file.read_text()) for file in tmp_path.glob("*/verdict.json")]
    faults = [fault for fault in verdict["faults"] if fault["asked_for"]]
    assert len(faults) == verdict["planned_faults"]
    assert all(fault["proved"] for fault in faults), faults
    [cut] = [fault for fault in faults if fault["fault"] == "power-cut"]
    [lost] = cut["lost"].values()
    assert sum(lost.values()) > 0
    assert hypervisor.domains() == []
