"""Machines of an inventory that reset themselves by sysrq: here a virtual machine, which has a kernel to
reset. QEMU ends when its guest resets, so somebody must switch it on again."""

from __future__ import annotations

import os
import threading
import time
from pathlib import Path

import pytest

from wrackline.fleets.canary import Canaries
from wrackline.fleets.inventory.spec import InventorySpec
from wrackline.fleets.qemu.fleet import QemuFleet

pytestmark = [pytest.mark.fleet, pytest.mark.slow, pytest.mark.nightly]


@pytest.mark.timeout(400)
def test_a_reset_takes_what_was_not_synced(state_root: Path, tmp_path: Path) -> None:
    machines = QemuFleet(f"ts-{os.getpid()}", ["n1"], state_dir=state_root, accel="tcg", snapshots=False)
    machines.prepare(print)
    with machines, machines.entered():
        [machine] = machines.hosts
        key = machines.folder.key
        hosts = tmp_path / "hosts"
        hosts.write_text(
            f"a ansible_host={machine.address} ansible_user=root ansible_ssh_private_key_file={key}\n"
        )
        spec = InventorySpec.model_validate(
            {
                "inventory": str(hosts),
                "known_hosts": str(machines.folder.known_hosts),
                "brokers": 1,
                "combined": True,
                "power": {"sysrq": True, "boot_s": 200},
            }
        )
        with spec.build("reset", tmp_path) as fleet:  # type: ignore[attr-defined]
            [host] = fleet.hosts
            fleet.remote(host).run("echo synced >/data/synced && sync /data/synced")
            canaries = Canaries(fleet, [host])
            canaries.start_all()
            assert canaries.wait() == []
            time.sleep(12)  # the guest syncs its disks once, soon after it has booted
            fleet.remote(host).run("echo lost >/data/lost")
            cut = fleet.power.cut(host)
            assert not fleet.power.is_on(host)
            switched = threading.Thread(target=machines.power.on, args=(machine,))
            switched.start()
            assert fleet.power.on(host) == cut
            switched.join(200)
            loss = canaries.after(host, cut.decided_ns)
            assert loss.proved, loss
            assert (
                fleet.remote(host).run("cd /data && cat synced; cat lost 2>/dev/null; true").stdout
                == "synced\n"
            )
            canaries.stop()
