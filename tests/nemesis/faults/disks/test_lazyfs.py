"""Faults of LazyFS: against itself where WRACKLINE_LAZYFS names its program, with its library beside it, and
always against a reader of its pipe that stands for it."""

from __future__ import annotations

import os
import subprocess
import threading
import time
from pathlib import Path

import pytest

from tests.nemesis.doubles import context
from tests.nemesis.faults.test_on_hosts import canaries, fleet, running, system
from tests.nemesis.listeners import Listeners
from wrackline.fleets.netns.fleet import NetnsFleet
from wrackline.nemesis.faults.disks.lazyfs import GONE, Lazy, LazyfsSpec
from wrackline.nemesis.faults.steps import ProbeLog, Shell, StepResult

__all__ = ["canaries", "fleet", "system"]
PROGRAM = Path(os.environ.get("WRACKLINE_LAZYFS", "/none"))


class StandIn:
    """Reads the pipe as LazyFS does, forgets what a test says is not synced, and answers."""

    def __init__(self, folder: Path, *, forgets: bool = True) -> None:
        self.fifo, self.completed, self.data = (folder / name for name in ("fifo", "completed", "data"))
        os.mkfifo(self.fifo)
        os.mkfifo(self.completed)
        self.data.mkdir()
        (self.data / "log").write_bytes(b"x" * 500)
        self.heard: list[str] = []
        self._forgets = forgets
        threading.Thread(target=self._serve, daemon=True).start()

    def _serve(self) -> None:
        self.heard.append(self.fifo.read_text().strip())
        if self.heard == ["lazyfs::clear-cache"]:
            if self._forgets:
                (self.data / ".wrack-probe").write_text("synced\n")
                os.truncate(self.data / "log", 200)
            self.completed.write_text("finished::clear-cache\n")

    def fault(self) -> Lazy:
        spec = LazyfsSpec(
            fault="lazyfs", fifo=str(self.fifo), completed=str(self.completed), folder=str(self.data)
        )
        return spec.build()


@pytest.mark.parametrize("forgets", [True, False])
def test_what_was_not_synced_is_forgotten_by_order(tmp_path: Path, forgets: bool) -> None:
    stand_in = StandIn(tmp_path, forgets=forgets)
    fault = stand_in.fault()
    [step] = fault.commands(context("n1", pid=None)).do
    assert isinstance(step, Shell)
    done = subprocess.run(["sh", "-c", step.command], capture_output=True, text=True, timeout=90, check=False)
    assert done.returncode == 0, done.stderr
    assert stand_in.heard == ["lazyfs::clear-cache"]
    proof = fault.prove(context("n1"), ProbeLog(do=[StepResult(step, done.stdout)]))
    assert proof.proved is forgets, proof
    assert proof.lost == ({"n1": {"log": 300}} if forgets else {})
    assert not list(stand_in.data.glob(".wrack-*"))


def test_hosts_without_lazyfs_say_so(tmp_path: Path) -> None:
    [step] = Lazy("clear-cache", f"{tmp_path}/fifo", str(tmp_path)).commands(context("n1")).do
    assert isinstance(step, Shell)
    done = subprocess.run(["sh", "-c", step.command], capture_output=True, text=True, timeout=90, check=False)
    assert done.returncode == 1
    assert "is LazyFS mounted?" in done.stderr


TORN = {"fault": "lazyfs", "file": "/root/bytes", "remount": "mount-it", "persist": [1, 3]}


def test_torn_writes_are_ordered_in_lazyfs_own_words_and_its_crash_is_the_proof() -> None:
    operation = LazyfsSpec.model_validate({**TORN, "kind": "torn-op", "parts": 3}).build()
    assert operation.order == "lazyfs::torn-op::file=/root/bytes::persist=1,3::parts=3"
    sequence = LazyfsSpec.model_validate({**TORN, "kind": "torn-seq"}).build()
    assert sequence.order == "lazyfs::torn-seq::op=write::file=/root/bytes::persist=1,3"
    with pytest.raises(ValueError, match="needs file"):
        LazyfsSpec(fault="lazyfs", kind="torn-op")

    def proof(final: str, control: str) -> bool:
        final_, after, undo = ([StepResult(Shell("n1", ""), text)] for text in (final, control, ""))
        probe_log = ProbeLog(active=after, final=final_, undo=undo, control=after)
        return sequence.prove(context("n1"), probe_log).proved

    crashed, there = f"ls: cannot access '/data/broker/.': {GONE}\n", "/data/broker/.\n"
    assert proof(crashed, there)
    assert not proof(there, there)
    assert not proof(crashed, crashed)


CONFIG = """[faults]
fifo_path="/run/lazyfs/faults.fifo"
fifo_path_completed="/run/lazyfs/completed.fifo"
[cache]
apply_eviction=false
[cache.simple]
custom_size="32Mb"
blocks_per_page=1
[filesystem]
log_all_operations=false
logfile="/run/lazyfs/log"
"""
MOUNT = """
mkdir -p /run/lazyfs /data/node /data/node.root
[ -e /dev/fuse ] || mknod /dev/fuse c 10 229
rm -f /run/lazyfs/*.fifo
LD_LIBRARY_PATH=/opt/lazyfs setsid /opt/lazyfs/lazyfs /data/node --config-path /opt/lazyfs/config.toml \\
    -o allow_other -o modules=subdir -o subdir=/data/node.root >/run/lazyfs/said 2>&1 </dev/null &
for i in $(seq 100); do
    grep -q ' /data/node fuse' /proc/mounts && [ -p /run/lazyfs/faults.fifo ] && exit 0
    sleep 0.1
done
cat /run/lazyfs/said; exit 1
"""


@pytest.mark.nightly
@pytest.mark.fleet
@pytest.mark.skipif(not PROGRAM.exists(), reason="LazyFS is not installed (WRACKLINE_LAZYFS)")
def test_lazyfs_itself_forgets_and_tears(fleet: NetnsFleet, system: Listeners) -> None:
    node, remote = system.nodes[0], fleet.remote(fleet.hosts[0])
    system.kill(node)
    for file in PROGRAM.parent.iterdir():
        remote.put(file, f"/opt/lazyfs/{file.name}", mode=0o755)
    remote.put(CONFIG.encode(), "/opt/lazyfs/config.toml")
    remote.put(MOUNT.encode(), "/opt/lazyfs/mount.sh", mode=0o755)
    remote.run("rm -rf /data/node; sh /opt/lazyfs/mount.sh")
    system.start(node)
    folder = {"folder": "/data/node", "completed": "/run/lazyfs/completed.fifo"}
    under = Path(f"/proc/{fleet._machines['n1']._init_pid}/root/data/node.root/bytes")
    time.sleep(1.0)
    with running(fleet, system, {"fault": "lazyfs", "target": "n1", **folder}) as run:
        assert not system.is_running(node)
        assert not under.exists() or under.stat().st_size == 0, "nobody had synced it"
    ended = run.recorded.assert_proved("f1")
    assert ended["lossy"] == ["n1"]
    torn = {"kind": "torn-op", "file": "/data/node.root/bytes", "parts": 2, "persist": [1]}
    remount = {"remount": "sh /opt/lazyfs/mount.sh", "duration_s": 3.0}
    with running(fleet, system, {"fault": "lazyfs", "target": "n1", **folder, **torn, **remount}) as run:
        run.recorded.wait_for(lambda: "ended" in run.recorded.phases("f1"), timeout_s=30)
    run.recorded.assert_proved("f1")
    system.kill(node)
    remote.run("umount -l /data/node; rm -rf /data/node /data/node.root")
    system.start(node)
