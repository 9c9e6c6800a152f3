"""One file of a broker is changed, emptied or removed while it is down, two copies are good: the broker comes
back into every ISR, and every record can be read. What each file leads to is the table in
``tests/broker/storage/test_small_files.py``.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.broker.clients.logs import consume, produce
from tests.broker.clients.loopback import Cluster, wait_for
from tests.broker.storage.test_small_files import BROKER

pytestmark = [pytest.mark.real, pytest.mark.slow, pytest.mark.nightly]
EXIT_USAGE = 2
RECORDS = [b"%06d" % n for n in range(200)]


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    keys = {"metadata_log_max_records_between_snapshots": 20}
    with Cluster(tmp_path_factory.mktemp("files"), broker_keys=keys, controller_keys=keys) as running:
        running.create_topic("log")
        for at in range(0, len(RECORDS), 20):
            produce(running.bootstrap, "log", RECORDS[at : at + 20], linger_ms=200)
        yield running


def changed(path: Path) -> None:
    content = bytearray(path.read_bytes())
    for at in range(len(content) // 2, len(content)):
        content[at] ^= 0x21
        path.write_bytes(content)
        return


def emptied(path: Path) -> None:
    path.write_bytes(b"")


def files(data_dir: Path, name: str) -> list[Path]:
    """Of snapshots and of segments of the metadata there may be several, under names of their own."""
    folder, _, file = name.rpartition("/")
    pattern = f"*{Path(file).suffix}" if file[0].isdigit() else file
    return sorted((data_dir / folder).glob(pattern))


@pytest.mark.parametrize("damage", [changed, emptied, Path.unlink], ids=["changed", "empty", "missing"])
@pytest.mark.parametrize("name", BROKER)
def test_the_broker_comes_back(cluster: Cluster, name: str, damage: Callable[[Path], None]) -> None:
    node = cluster.brokers[2]
    wait_for("the file", lambda: name == ".kafka_cleanshutdown" or files(node.data_dir, name), 30)
    assert node.stop() == 0
    damaged = files(node.data_dir, name)
    assert damaged
    for path in damaged:
        damage(path)
    said = node.log.stat().st_size
    node.start()
    if name == "meta.properties":
        assert node.wait() == EXIT_USAGE
        told = node.log.read_text()[said:]
        assert len(told.splitlines()) == 1
        assert "write the file with the lines cluster.id=loopback and node.id=2" in told
        (node.data_dir / name).write_text("cluster.id=loopback\nnode.id=2\n")
        node.start()
    cluster.wait_registered()
    cluster.wait_isr("log")
    assert consume(cluster.bootstrap, "log", len(RECORDS), timeout_s=30) == list(enumerate(RECORDS))
