"""Real power cuts: an ext4 of its own on a loop device is shut down under a process that writes (R05-R08).

``FS_IOC_SHUTDOWN`` without a log flush loses dirty pages and the journal's tail, as pulling the plug does.
"""

from __future__ import annotations

import fcntl
import os
import signal
import struct
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.broker.storage.batches import batch
from wrackline.broker.model.types import TopicPartition
from wrackline.broker.storage.logdir import LogDir
from wrackline.broker.storage.logs.log import LogSettings

pytestmark = pytest.mark.fleet

FS_IOC_SHUTDOWN = 0x8004587D
NO_LOG_FLUSH = 2
TP = TopicPartition("log", 0)
SETTINGS = LogSettings(segment_bytes=32_768, index_interval_bytes=1_024)
RECORD_BYTES = 700

WRITER = """
import os, random, sys
from pathlib import Path
from uuid import UUID
from tests.broker.storage.batches import batch
from tests.broker.storage.test_power_cut import SETTINGS, TP, RECORD_BYTES
from wrackline.broker.storage.logdir import LogDir
from wrackline.broker.model.types import EpochEntry

chance = random.Random(int(sys.argv[2]))
logs = LogDir(Path(sys.argv[1]), SETTINGS, node_id=1, cluster_id="c")
found = logs.open()
epoch = int(sys.argv[2])
if TP not in found.logs:
    logs.create(TP, UUID(int=5), 0)
log = logs[TP]
logs.write_epochs(TP, (*(found.logs[TP].epochs if TP in found.logs else ()), EpochEntry(epoch, log.leo)))
progress = os.open(sys.argv[3], os.O_WRONLY)
print("began", log.leo, flush=True)
while True:
    log.append([batch(log.leo, epoch=epoch, size=RECORD_BYTES)])
    os.pwrite(progress, log.leo.to_bytes(8, "big"), 0)
    if chance.random() < 0.02:
        job = log.prepare_flush()
        job.run()
        upto = log.flushed(job)
        logs.write_checkpoint("recovery-point", {TP: upto})
        logs.write_checkpoint("high-watermark", {TP: upto})
        print("flushed", upto, flush=True)
    if chance.random() < 0.005 and log.leo > 40:
        to = logs.truncate(TP, log.leo - chance.randrange(1, 40))
        print("truncated", to, flush=True)
"""


def unmount_orphans() -> None:
    """A killed test run leaves its disk mounted; once pytest has thrown its folder away the image is a
    deleted file."""
    for line in Path("/proc/self/mounts").read_text().splitlines():
        device, where = map(Path, line.split(" ")[:2])
        backing = Path("/sys/block", device.name, "loop/backing_file")
        if backing.exists() and "disk.img (deleted)" in backing.read_text():
            subprocess.run(["umount", where], check=False, timeout=30, stderr=subprocess.DEVNULL)


@pytest.fixture
def disk(tmp_path: Path) -> Iterator[Path]:
    unmount_orphans()
    image, where = tmp_path / "disk.img", tmp_path / "disk"
    with image.open("wb") as file:
        file.truncate(64 << 20)
    subprocess.run(["mkfs.ext4", "-q", "-F", str(image)], check=True, timeout=30)
    where.mkdir()
    mount(image, where)
    yield where
    subprocess.run(["umount", str(where)], check=False, timeout=30, stderr=subprocess.DEVNULL)


def mount(image: Path, where: Path) -> None:
    # A commit interval far away: what reaches the disk is what was synced, and what the kernel chose to
    # write.
    subprocess.run(["mount", "-o", "loop,commit=300", str(image), str(where)], check=True, timeout=30)


def pull_the_plug(where: Path) -> None:
    fd = os.open(where, os.O_RDONLY)
    try:
        fcntl.ioctl(fd, FS_IOC_SHUTDOWN, struct.pack("I", NO_LOG_FLUSH))
    finally:
        os.close(fd)


def written_past(progress: Path, offset: int) -> None:
    """Wait until the writer has come so far: about one append in fifty is followed by a flush."""
    deadline = time.monotonic() + 60
    while (reached := int.from_bytes(progress.read_bytes(), "big")) < offset:
        assert time.monotonic() < deadline, f"the writer is at {reached} of {offset}"
        time.sleep(0.002)


def test_what_was_flushed_survives_and_the_rest_is_cut_cleanly(disk: Path) -> None:
    safe, lost = 0, 0
    progress = disk.parent / "progress"
    progress.write_bytes(bytes(8))
    environment = {**os.environ, "PYTHONPATH": str(Path(__file__).parents[3])}
    for seed in range(4):
        writer = subprocess.Popen(
            [sys.executable, "-c", WRITER, str(disk / "data"), str(seed), str(progress)],
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            text=True,
            env=environment,
        )
        assert writer.stdout is not None
        assert writer.stdout.readline().split() == ["began", str(safe)]
        written_past(progress, safe + 150 + 50 * seed)
        pull_the_plug(disk)
        writer.send_signal(signal.SIGKILL)
        said = [line.split() for line in writer.stdout.read().splitlines() if len(line.split()) == 2]
        writer.wait(10)
        writer.stdout.close()
        low = safe
        for word, offset in said:
            # A truncation after the last flush may or may not have come through: both ends are right.
            low = int(offset) if word == "flushed" else min(low, int(offset))
        subprocess.run(["umount", str(disk)], check=True, timeout=30)
        mount(disk.parent / "disk.img", disk)

        logs = LogDir(disk / "data", SETTINGS, node_id=1, cluster_id="c")
        found = logs.open()
        recovered = found.logs[TP]
        assert recovered.leo >= low, (said[-3:], recovered)
        assert found.previous_broker_epoch == -1
        offsets = [offset for raw in logs[TP].batches() for offset in [struct.unpack_from(">q", raw)[0]]]
        assert offsets == list(range(recovered.leo))
        assert recovered.high_watermark <= recovered.leo
        for raw in logs[TP].batches():
            header_epoch = struct.unpack_from(">i", raw, 12)[0]
            assert raw == batch(struct.unpack_from(">q", raw)[0], epoch=header_epoch, size=RECORD_BYTES)
        lost += max(0, int.from_bytes(progress.read_bytes(), "big") - recovered.leo)
        safe = recovered.leo
        logs.close()
    assert safe > 0
    assert lost > 0, "a cut that loses nothing proves nothing"
