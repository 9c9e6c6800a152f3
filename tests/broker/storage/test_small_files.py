"""Every file that a node keeps, with each byte changed, empty, and missing: what must happen is a table
(docs/broker.md, "Bits that change"). Nothing is lost without a line that names the file, nothing is wrong,
and whoever is refused is told the way out.
"""

from __future__ import annotations

import logging
import os
from collections.abc import Callable, Iterator
from enum import Enum
from pathlib import Path
from typing import NamedTuple
from uuid import UUID

import pytest

from tests.broker.storage.batches import batch, run_of
from tests.broker.storage.conftest import TOPIC, TP
from wrackline.broker.model.metadata import snapshot_format
from wrackline.broker.model.metadata.image import ClusterImage
from wrackline.broker.model.types import (
    METADATA,
    METADATA_TOPIC_ID,
    EpochEntry,
    QuorumState,
    SnapshotId,
)
from wrackline.broker.storage import snapshots
from wrackline.broker.storage.logdir import DataDirError, Found, LogDir
from wrackline.broker.storage.logs.log import LogSettings

EPOCHS = (0, 0, 0, 2, 2, 2, 5, 5, 5)
BATCHES = [batch(offset, epoch=epoch) for offset, epoch in enumerate(EPOCHS)]
METADATA_BATCHES = run_of(6)
SNAPSHOT = SnapshotId(0, 0)
BROKER_EPOCH = 42


class Outcome(Enum):
    SAME = "starts with all it had, and as cleanly"
    UNCLEAN = "starts with all it had, and registers as after an unclean stop"
    OFFLINE = "the partition is offline until another replica leads; registers as after an unclean stop"
    SHORTER = "the log ends before the damage, what lay behind is aside; registers as after an unclean stop"
    REFUSED = "does not start, and one line says the way out"


class Row(NamedTuple):
    changed: Outcome
    """What a changed bit may lead to, if anything."""
    empty: Outcome
    missing: Outcome


def all_ways(outcome: Outcome) -> Row:
    return Row(outcome, outcome, outcome)


SEGMENT = f"{0:020d}.log"
EITHER = {
    "meta.properties": all_ways(Outcome.REFUSED),
    ".lock": all_ways(Outcome.SAME),
    f"__cluster_metadata-0/{0:020d}.index": all_ways(Outcome.SAME),
    "__cluster_metadata-0/partition.metadata": all_ways(Outcome.SAME),
    "__cluster_metadata-0/leader-epoch-checkpoint": all_ways(Outcome.SAME),  # six batches against one line
    f"__cluster_metadata-0/{snapshots.file_name(SNAPSHOT)}": all_ways(Outcome.SAME),  # the core looks at it
}
BROKER = {
    **EITHER,
    ".kafka_cleanshutdown": all_ways(Outcome.UNCLEAN),
    "replication-offset-checkpoint": all_ways(Outcome.UNCLEAN),
    "recovery-point-offset-checkpoint": all_ways(Outcome.UNCLEAN),
    "log-start-offset-checkpoint": all_ways(Outcome.UNCLEAN),
    "log-0/partition.metadata": all_ways(Outcome.OFFLINE),
    "log-0/leader-epoch-checkpoint": Row(Outcome.SHORTER, Outcome.SAME, Outcome.SAME),
    f"log-0/{0:020d}.index": all_ways(Outcome.SAME),
    f"log-0/{SEGMENT}": all_ways(Outcome.SHORTER),
    f"__cluster_metadata-0/{SEGMENT}": all_ways(Outcome.SHORTER),
}
CONTROLLER = {
    **EITHER,
    # Its registration asks for no clean stop, and where it has its log and its vote it has all that counts.
    ".kafka_cleanshutdown": all_ways(Outcome.UNCLEAN),
    "replication-offset-checkpoint": all_ways(Outcome.UNCLEAN),
    "recovery-point-offset-checkpoint": all_ways(Outcome.UNCLEAN),
    "log-start-offset-checkpoint": all_ways(Outcome.UNCLEAN),
    "quorum-state": all_ways(Outcome.REFUSED),
    f"__cluster_metadata-0/{SEGMENT}": all_ways(Outcome.REFUSED),
}
TABLES = {"broker": BROKER, "controller": CONTROLLER}
SAYS_THE_WAY_OUT = (
    "write the file with the lines",
    "choose another data_dir",
    "only while a majority of the",
)


def start(path: Path, role: str) -> tuple[LogDir, Found]:
    directory = LogDir(path, LogSettings(), node_id=1, cluster_id="c", voter=role == "controller")
    try:
        return directory, directory.open()
    except DataDirError:
        directory.close()
        raise


@pytest.fixture(params=TABLES)
def role(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture
def stopped(tmp_path: Path, role: str, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The data directory of a node after a clean stop. Nothing here loses power, so a sync costs nothing."""
    for sync in ("fsync", "fdatasync"):
        monkeypatch.setattr(os, sync, lambda _: None)
    directory, _ = start(tmp_path, role)
    directory.create(METADATA, METADATA_TOPIC_ID, 0)
    directory.write_epochs(METADATA, [EpochEntry(0, 0)])
    directory[METADATA].append(METADATA_BATCHES)
    directory.snapshot_writer(SNAPSHOT, snapshot_format.write(ClusterImage(), SNAPSHOT, 0))()
    if role == "controller":
        directory.write_quorum_state(QuorumState(0, 1, 1, UUID(int=5), UUID(int=0)))
    else:
        directory.create(TP, TOPIC, 0)
        directory.write_epochs(TP, [EpochEntry(e, EPOCHS.index(e)) for e in sorted(set(EPOCHS))])
        directory[TP].append(BATCHES)
    directory.close_cleanly(BROKER_EPOCH, {TP: len(BATCHES)} if role == "broker" else {})
    directory.close()
    return tmp_path


def flips(path: Path) -> Iterator[bytes]:
    """Each byte with one bit changed, and the bit that makes it no text any more; of a segment some bytes
    (``test_damage`` takes all)."""
    content = path.read_bytes()
    for at in range(0, len(content), 1 if len(content) < 300 else 13):
        for bit in {at % 7, 7}:
            yield content[:at] + bytes([content[at] ^ (1 << bit)]) + content[at + 1 :]


def outcome(path: Path, role: str, caplog: pytest.LogCaptureFixture) -> tuple[Outcome, str]:
    """What a start comes to, and every word of it; wrong records or a wrong topic are no outcome at all."""
    caplog.clear()
    try:
        directory, found = start(path, role)
    except DataDirError as refused:
        return Outcome.REFUSED, str(refused)
    try:
        return _looked_at(directory, found, role), caplog.text
    finally:
        directory.close()


def _looked_at(directory: LogDir, found: Found, role: str) -> Outcome:
    clean = found.previous_broker_epoch == BROKER_EPOCH
    wanted = {METADATA: METADATA_BATCHES, **({TP: BATCHES} if role == "broker" else {})}
    missing = wanted.keys() - found.logs.keys()
    assert missing == set(found.offline)
    assert missing <= {TP}
    shorter = False
    for tp in wanted.keys() - missing:
        batches = directory[tp].batches()
        assert batches == wanted[tp][: len(batches)]
        assert directory[tp].topic_id == (METADATA_TOPIC_ID if tp == METADATA else TOPIC)
        kept = b"".join(path.read_bytes() for path in directory[tp].directory.glob("*.damaged*"))
        shorter |= len(batches) < len(wanted[tp])
        assert shorter or not kept
    if not shorter and role == "broker" and not missing:
        log = found.logs[TP]
        assert (log.leo, log.log_start) == (len(BATCHES), 0)
        assert log.high_watermark in (0, len(BATCHES))
        assert [entry.epoch for entry in log.epochs] == sorted(set(EPOCHS))
    if role == "controller":
        state = found.quorum_state
        assert state is not None
        assert (state.epoch, state.voted_for, state.voted_directory) == (0, 1, UUID(int=5))
    assert not (clean and (shorter or missing)), "it may not stay in the ISR"
    if missing:
        return Outcome.OFFLINE
    if shorter:
        return Outcome.SHORTER
    return Outcome.SAME if clean else Outcome.UNCLEAN


def hold(wanted: Outcome, came: Outcome, said: str, path: Path) -> None:
    assert came is wanted, said
    if came is Outcome.REFUSED:
        assert "\n" not in said
        assert any(words in said for words in SAYS_THE_WAY_OUT)
    if came is not Outcome.SAME and path.name != ".kafka_cleanshutdown":
        named = path.name if came is Outcome.REFUSED and "log" not in path.name else path.parent.name
        assert path.name in said or named in said, said


def test_every_file_has_its_row(stopped: Path, role: str) -> None:
    """A file that is new is nothing that nobody has thought about."""
    found = {str(path.relative_to(stopped)) for path in stopped.rglob("*") if path.is_file()}
    assert found == TABLES[role].keys()


def test_an_empty_or_a_missing_file_does_what_the_table_says(
    stopped: Path, role: str, pristine: Callable[[], None], caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.WARNING)
    assert outcome(stopped, role, caplog)[0] is Outcome.SAME
    pristine()
    for name, row in TABLES[role].items():
        path = stopped / name
        path.write_bytes(b"")
        hold(row.empty, *outcome(stopped, role, caplog), path)
        pristine()
        path.unlink()
        hold(row.missing, *outcome(stopped, role, caplog), path)
        pristine()


def test_a_changed_byte_does_what_the_table_says_or_nothing(
    stopped: Path, role: str, pristine: Callable[[], None], caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.WARNING)
    for name, row in TABLES[role].items():
        path, seen = stopped / name, set()
        for content in flips(path):
            path.write_bytes(content)
            came, said = outcome(stopped, role, caplog)
            seen.add(came)
            if came is not Outcome.SAME:
                hold(row.changed, came, said, path)
            pristine()
        assert row.changed in seen or path.stat().st_size == 0, f"{name} is not looked at"


def test_a_changed_byte_of_a_snapshot_is_noticed(stopped: Path) -> None:
    path = stopped / "__cluster_metadata-0" / snapshots.file_name(SNAPSHOT)
    whole = snapshot_format.read(path.read_bytes(), SNAPSHOT)
    noticed = 0
    for content in flips(path):
        try:
            assert snapshot_format.read(content, SNAPSHOT) == whole
        except ValueError:
            noticed += 1
    assert noticed > 10


def test_an_identity_without_a_checksum_is_taken_as_it_is(stopped: Path, role: str) -> None:
    """Of Kafka's making, or older than the checksum; and what a person writes whom a refusal has told to."""
    path = stopped / "meta.properties"
    lines = path.read_text().splitlines()
    for kept in (lines[:-1], ["#Thu Jan 01", *lines[1:-1], ""], ["cluster.id=c", "node.id=1"]):
        path.write_text("\n".join(kept))
        directory, found = start(stopped, role)
        directory.close()
        assert found.logs[METADATA].leo == len(METADATA_BATCHES)
