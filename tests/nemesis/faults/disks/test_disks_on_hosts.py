"""Faults of disks and page caches on real hosts, seen from outside of their own probes."""

from __future__ import annotations

import contextlib
import errno
import os
import re
import shutil
import threading
import time
from pathlib import Path

import pytest

from tests.nemesis.faults.running import assert_soon, fleet, running, system
from tests.nemesis.faults.test_on_hosts import canaries, watched_system
from tests.nemesis.listeners import Listeners
from wrackline.fleets.local import throttle
from wrackline.fleets.local.throttle import FILES, FOLDER
from wrackline.fleets.netns.fleet import NetnsFleet

__all__ = ["canaries", "fleet", "system", "watched_system"]
pytestmark = pytest.mark.fleet


def data(fleet: NetnsFleet, host: str) -> Path:
    """The data disk of a host, seen from the machine."""
    return fleet._machines[host].data


def resident(file: Path) -> int:
    """Bytes of a file that can be read without waiting for the disk."""
    found, page = 0, bytearray(4096)
    with file.open("rb", buffering=0) as opened:
        for at in range(0, file.stat().st_size, len(page)):
            with contextlib.suppress(BlockingIOError):
                found += os.preadv(opened.fileno(), [page], at, os.RWF_NOWAIT)
    return found


def test_evicted_pages_are_not_in_the_page_cache(fleet: NetnsFleet, system: Listeners) -> None:
    file = data(fleet, "n1") / "cold"
    fleet.remote(fleet.hosts[0]).run("head -c 4000000 /dev/urandom >/data/cold; sync /data/cold")
    assert resident(file) > 3_900_000
    with running(fleet, system, {"fault": "evict-cache", "target": "n1", "every_s": 0.2}) as run:
        for _ in range(2):  # a round may meet pages that the kernel is busy with
            deadline = time.monotonic() + 10
            while resident(file):
                assert time.monotonic() < deadline, "it is evicted again and again"
                time.sleep(0.05)
            file.read_bytes()
    ended = run.recorded.assert_proved("f1")
    assert re.search(r"of \d{7,} bytes in the page cache \d+ were left", str(ended["proof"]))
    file.read_bytes()
    time.sleep(0.5)
    assert resident(file) > 3_900_000, "nobody evicts it any more"
    file.unlink()


def test_a_dropped_page_cache_takes_the_node_and_what_it_had_not_synced_and_no_host(
    fleet: NetnsFleet, system: Listeners
) -> None:
    folder, booted = data(fleet, "n2"), fleet._machines["n2"]._init_pid
    fleet.remote(fleet.hosts[1]).run(
        "echo kept >/data/synced; sync /data/synced /data; echo gone >/data/unsynced"
    )
    with running(fleet, system, {"fault": "drop-page-cache", "target": "n2"}) as run:
        assert fleet._machines["n2"]._init_pid == booted
        assert not system.is_running(system.nodes[1])
        assert (folder / "synced").read_text() == "kept\n"
        assert not (folder / "unsynced").exists()
    ended = run.recorded.assert_proved("f1")
    assert ended["lossy"] == ["n2"]
    assert "n2 stayed on" in str(ended["proof"])


def test_hosts_lose_power_together(fleet: NetnsFleet, system: Listeners) -> None:
    with running(fleet, system, {"fault": "power-cut", "target": "all"}) as run:
        assert not any(fleet.power.is_on(host) for host in fleet.hosts)
    ended = run.recorded.assert_proved("f1")
    found = re.search(r"all 3 within ([0-9.]+) ms of one another", str(ended["proof"]))
    assert found is not None, ended
    assert float(found[1]) < 1_000  # 5 to 60 ms where the processors have nothing else to do


@pytest.mark.parametrize("disk", ["stale", "wiped"])
def test_a_host_comes_back_with_another_disk(fleet: NetnsFleet, system: Listeners, disk: str) -> None:
    remote = fleet.remote(fleet.hosts[2])
    remote.run("echo early >/data/early; sync /data/early /data")
    cut = {"fault": "power-cut", "target": "n3", "disk": disk, "age_s": 2.5, "at_s": 0.5}
    with running(fleet, system, cut) as run:
        assert not fleet.power.is_on(fleet.hosts[2])
    ended = run.recorded.assert_proved("f1")
    assert ended["damaged"] == {"n3": {}}
    assert ended["lossy"] == ["n3"]
    left = remote.run("ls -A /data").stdout.split()
    assert ("early" in left) is (disk == "stale")
    assert ".wrack-witness" not in left


def writes(fleet: NetnsFleet, host: str, name: str = "outside") -> OSError | None:
    """What comes of writing to a host's data disk from the machine."""
    file = data(fleet, host) / name
    try:
        with file.open("wb") as opened:
            opened.write(b"x" * 65_536)
            os.fsync(opened.fileno())
    except OSError as wrong:
        return wrong
    finally:
        with contextlib.suppress(OSError):
            file.unlink(missing_ok=True)
    return None


def test_a_full_disk_has_room_again(fleet: NetnsFleet, system: Listeners) -> None:
    with running(fleet, system, {"fault": "disk-full", "target": "n1"}) as run:
        wrong = writes(fleet, "n1")
        assert wrong is not None
        assert wrong.errno == errno.ENOSPC
        assert writes(fleet, "n2") is None
    run.recorded.assert_proved("f1")
    assert writes(fleet, "n1") is None
    assert not list(data(fleet, "n1").glob(".wrack-[fp]*"))


def took_s(fleet: NetnsFleet, host: str, size: int) -> float:
    """How long a sync of so many bytes takes, from the machine."""
    file, began = data(fleet, host) / "timed", time.monotonic()
    with file.open("wb") as opened:
        opened.write(os.urandom(size))
        os.fsync(opened.fileno())
    file.unlink()
    return time.monotonic() - began


def test_a_slow_disk_keeps_its_limit_and_loses_it(fleet: NetnsFleet, system: Listeners) -> None:
    if why := throttle.missing():
        pytest.skip(why)
    limit = FOLDER / FILES[1]
    before = limit.read_text()
    with running(fleet, system, {"fault": "slow-disk", "target": "n2", "bytes_per_s": 1_000_000}) as run:
        assert took_s(fleet, "n2", 1_000_000) > 0.6
        assert_soon(lambda: took_s(fleet, "n1", 1_000_000) < 0.6)
    run.recorded.assert_proved("f1")
    assert limit.read_text() == before
    assert_soon(lambda: took_s(fleet, "n2", 1_000_000) < 0.6)


def test_a_host_that_loses_power_meanwhile_stays_slow(fleet: NetnsFleet, system: Listeners) -> None:
    if why := throttle.missing():
        pytest.skip(why)
    host, before = fleet.hosts[1], (FOLDER / FILES[1]).read_text()
    fleet.power.throttle(host, 1_000_000)
    fleet.power.cut(host)
    assert (FOLDER / FILES[1]).read_text() == before, "whoever gets the device next is not held back"
    fleet.power.on(host)
    assert took_s(fleet, "n2", 1_000_000) > 0.6
    fleet.power.throttle(host, None)
    assert (FOLDER / FILES[1]).read_text() == before
    system.start(system.nodes[1])
    assert system.canaries is not None
    system.canaries.start(host)


def traced(fleet: NetnsFleet, host: str, pid: int) -> str:
    """The process's tracer as the host's own /proc says."""
    status = Path(f"/proc/{fleet._machines[host]._init_pid}/root/proc/{pid}/status").read_text()
    return next(line for line in status.splitlines() if line.startswith("TracerPid")).split()[1]


SYNCER = """
import os, time
file = os.open("/data/syncer/bytes", os.O_CREAT | os.O_WRONLY | os.O_APPEND)
while True:
    began = time.monotonic()
    try:
        os.pwrite(file, b"x", 0)
        os.fsync(file)
        said = "ok"
    except OSError as wrong:
        said = os.strerror(wrong.errno)
    with open("/run/syncs", "a") as log:
        log.write(f"{time.monotonic() - began:.3f} {said}\\n")
    time.sleep(0.02)
"""


@pytest.fixture
def syncer(fleet: NetnsFleet, system: Listeners, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A process on n3 that syncs without end takes the place of its node; what came of each sync."""
    remote = fleet.remote(fleet.hosts[2])
    remote.put(SYNCER.encode(), "/opt/syncer.py")
    start = "setsid python3 /opt/syncer.py >/dev/null 2>&1 </dev/null & echo $! >/run/syncer"
    remote.run(f"mkdir -p /data/syncer; {start}")
    pid = int(remote.run("cat /run/syncer").stdout)
    of_node = system.pid
    monkeypatch.setattr(system, "pid", lambda node: pid if node.host.name == "n3" else of_node(node))
    monkeypatch.setattr(system, "start", lambda _node: None)
    return Path(f"/proc/{fleet._machines['n3']._init_pid}/root/run/syncs")


def last_syncs(file: Path, number: int) -> list[str]:
    """The next so many that are made from now on."""
    seen, deadline = len(file.read_text().splitlines()), time.monotonic() + 20
    while len(lines := file.read_text().splitlines()) < seen + number + 1:
        assert time.monotonic() < deadline
        time.sleep(0.05)
    return lines[seen + 1 :]


def test_syncs_of_a_running_process_fail_or_take_long_and_do_not_any_more(
    fleet: NetnsFleet, system: Listeners, syncer: Path
) -> None:
    node = system.nodes[2]
    pid = system.pid(node)
    assert pid is not None
    with running(fleet, system, {"fault": "disk-errors", "target": "n3"}) as run:
        assert traced(fleet, "n3", pid) != "0"
        assert {line.split(maxsplit=1)[1] for line in last_syncs(syncer, 5)} == {"Input/output error"}
    ended = run.recorded.assert_proved("f1")
    assert re.search(r"\d+ calls of fsync and fdatasync on n3 met error=EIO", str(ended["proof"]))
    assert traced(fleet, "n3", pid) == "0"
    assert {line.split(maxsplit=1)[1] for line in last_syncs(syncer, 5)} == {"ok"}
    some = {"fault": "disk-errors", "target": "n3", "calls": ["pwrite64"], "error": "ENOSPC", "every": 2}
    with running(fleet, system, some) as run:
        assert {line.split(maxsplit=1)[1] for line in last_syncs(syncer, 10)} == {
            "ok",
            "No space left on device",
        }
    run.recorded.assert_proved("f1")
    with running(fleet, system, {"fault": "slow-fsync", "target": "n3", "delay_s": 0.3}) as run:
        assert all(float(line.split()[0]) > 0.3 for line in last_syncs(syncer, 2))
    run.recorded.assert_proved("f1")
    assert_soon(lambda: all(float(line.split()[0]) < 0.3 for line in last_syncs(syncer, 2)))
    fleet.remote(node.host).run(f"kill {pid}")


def test_a_file_system_goes_read_only_and_comes_back(fleet: NetnsFleet, system: Listeners) -> None:
    sys_options = "grep ' /sys ' /proc/mounts"
    before = fleet.remote(fleet.hosts[0]).run(sys_options).stdout
    with running(fleet, system, {"fault": "read-only", "target": "n1"}) as run:
        wrong = writes(fleet, "n1")
        assert wrong is not None
        assert wrong.errno == errno.EROFS
        assert fleet.remote(fleet.hosts[0]).run(sys_options).stdout == before
    run.recorded.assert_proved("f1")
    assert writes(fleet, "n1") is None


BYTES = "node/seg/*"


@pytest.fixture
def segments(fleet: NetnsFleet) -> dict[str, bytes]:
    """Files on the disk of n2, by their names."""
    content = {f"0{number}.log": os.urandom(20_000 + number) for number in range(3)}
    folder = data(fleet, "n2") / "node/seg"
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir()
    for name, whole in content.items():
        (folder / name).write_bytes(whole)
    return content


def now(fleet: NetnsFleet) -> dict[str, bytes]:
    return {file.name: file.read_bytes() for file in (data(fleet, "n2") / "node/seg").iterdir()}


@pytest.mark.parametrize(("segment", "name"), [("open", "02.log"), ("closed", "01.log")])
def test_one_bit_of_one_file_is_flipped(
    fleet: NetnsFleet, system: Listeners, segments: dict[str, bytes], segment: str, name: str
) -> None:
    flip = {
        "fault": "bit-flip",
        "target": "n2",
        "files": BYTES,
        "segment": segment,
        "permille": 250,
        "bit": 3,
    }
    with running(fleet, system, flip) as run:
        assert not system.is_running(system.nodes[1])
        seen = now(fleet)
    ended = run.recorded.assert_proved("f1")
    at = (len(segments[name]) - 1) * 250 // 1000
    flipped = bytearray(segments[name])
    flipped[at] ^= 8
    assert seen == {**segments, name: bytes(flipped)}
    assert ended["damaged"] == {"n2": {f"node/seg/{name}": 1}}
    assert ended["lossy"] == ["n2"]


def test_a_file_loses_its_end_while_the_node_runs(
    fleet: NetnsFleet, system: Listeners, segments: dict[str, bytes]
) -> None:
    cut = {"fault": "truncate", "target": "n2", "files": BYTES, "cut_bytes": 777, "running": True}
    with running(fleet, system, cut) as run:
        assert system.is_running(system.nodes[1])
    assert run.recorded.ended("f1")["damaged"] == {"n2": {"node/seg/02.log": 777}}
    run.recorded.assert_proved("f1")
    assert now(fleet) == {**segments, "02.log": segments["02.log"][:-777]}


@pytest.mark.parametrize("chunk_kb", [None, 4])
def test_files_are_as_they_were(
    fleet: NetnsFleet, system: Listeners, segments: dict[str, bytes], chunk_kb: int | None
) -> None:
    later = os.urandom(30_000)
    file = data(fleet, "n2") / "node/seg/02.log"
    back = {"fault": "roll-back", "target": "n2", "files": BYTES, "age_s": 1.5, "chunk_kb": chunk_kb}
    timer = threading.Timer(1.0, lambda: file.write_bytes(later))
    timer.start()
    with running(fleet, system, back) as run:
        timer.join()
    ended = run.recorded.assert_proved("f1")
    expected = segments["02.log"]
    if chunk_kb:
        mixed = bytearray(later)
        for at in range(0, len(expected), 8192):
            mixed[at : min(at + 4096, len(expected))] = expected[at : at + 4096]
        expected = bytes(mixed)
    assert now(fleet) == {**segments, "02.log": expected}
    assert list(ended["damaged"]["n2"]) == ["node/seg/02.log"]  # type: ignore[index]
    assert not list(data(fleet, "n2").glob(".wrack-chunks*"))


def test_files_that_are_not_there_cannot_be_changed(fleet: NetnsFleet, system: Listeners) -> None:
    with running(fleet, system, {"fault": "bit-flip", "target": "n2", "files": "none/*"}) as run:
        pass
    ended = run.recorded.ended("f1")
    assert ended["proved"] is False
    assert "n2 has no open file none/*" in str(ended["error"])


def test_a_node_is_killed_each_time_it_comes_up(fleet: NetnsFleet, system: Listeners) -> None:
    first = system.pid(system.nodes[0])
    seen = {first}
    planned = {"fault": "crash-loop", "target": "n1", "times": 3, "up_s": 0.4, "duration_s": 0.3}
    over = threading.Event()

    def watch() -> None:
        folder = Path(f"/proc/{fleet._machines['n1']._init_pid}/root/run/node.pid")
        while not over.wait(0.05):
            with contextlib.suppress(OSError, ValueError):
                seen.add(int(folder.read_text()))

    watcher = threading.Thread(target=watch)
    watcher.start()
    try:
        with running(fleet, system, planned) as run:
            run.recorded.wait_for(lambda: "ended" in run.recorded.phases("f1"), timeout_s=20)
    finally:
        over.set()
        watcher.join()
    run.recorded.assert_proved("f1")
    assert len(seen) == 4
