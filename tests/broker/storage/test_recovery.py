"""Recovery copes with whatever a power cut, a kill or a hand leaves behind
(docs/protocol.md 2.14, R05-R10)."""

from __future__ import annotations

import shutil
from pathlib import Path
from uuid import UUID

import pytest
from crc32c import crc32c
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.broker.storage.batches import batch, run_of
from tests.broker.storage.conftest import SMALL, TOPIC, TP, Start
from wrackline.broker.model.batches.batch import split
from wrackline.broker.model.types import METADATA, METADATA_TOPIC_ID, EpochEntry, LogSlice, TopicPartition
from wrackline.broker.storage import checkpoint
from wrackline.broker.storage.logdir import DataDirError, Found, LogDir


def log_dir(path: Path, *, node_id: int = 1, cluster_id: str = "c") -> LogDir:
    return LogDir(path, SMALL, node_id=node_id, cluster_id=cluster_id)


def reopen(path: Path) -> tuple[LogDir, Found]:
    directory = log_dir(path)
    return directory, directory.open()


def whole(directory: LogDir, tp: TopicPartition = TP) -> list[bytes]:
    return directory[tp].batches()


def test_a_clean_stop_is_remembered_once(tmp_path: Path, start: Start) -> None:
    directory, found = start()
    assert found.previous_broker_epoch == -1
    directory.create(TP, TOPIC, 0)
    directory[TP].append(run_of(60, epoch=3))
    directory.close_cleanly(broker_epoch=42, high_watermarks={TP: 55})
    start.stop()
    assert (tmp_path / ".kafka_cleanshutdown").read_text() == '{"version":0,"brokerEpoch":42}'

    directory, found = start()
    assert not (tmp_path / ".kafka_cleanshutdown").exists()
    assert found.previous_broker_epoch == 42
    log = found.logs[TP]
    assert (log.topic_id, log.leo, log.high_watermark, log.flushed) == (TOPIC, 60, 55, 60)
    assert log.epochs == (EpochEntry(3, 0),)

    directory, found = start()
    assert found.previous_broker_epoch == -1, "the second start follows a crash"


def test_the_files_are_in_kafkas_formats(tmp_path: Path, start: Start) -> None:
    directory = start.with_log([batch(0, 5)])
    directory.write_epochs(TP, (EpochEntry(0, 0), EpochEntry(4, 3)))
    directory.write_checkpoint("high-watermark", {TP: 5})
    directory.close_cleanly(7, {})
    start.stop()
    assert (tmp_path / "log-0" / "leader-epoch-checkpoint").read_text() == "0\n2\n0 0\n4 3\n"
    # Kafka's reader takes the last row for a partition of a topic that there cannot be.
    offsets = f"0\n2\nlog 0 5\n#crc32c 0 {crc32c(b'log 0 5')}\n"
    assert (tmp_path / "replication-offset-checkpoint").read_text() == offsets
    assert (tmp_path / "recovery-point-offset-checkpoint").read_text() == offsets
    topic_id = "version: 0\ntopic_id: ABEiM0RVZneImaq7zN3u_w"
    # Kafka's reader stops after the second line.
    checked = f"{topic_id}\ncrc32c: {crc32c(topic_id.encode())}"
    assert (tmp_path / "log-0" / "partition.metadata").read_text() == checked
    identity = checkpoint.read_properties(tmp_path / "meta.properties")
    assert identity["version"] == "1"
    assert (identity["cluster.id"], identity["node.id"]) == ("c", "1")
    assert len(identity["directory.id"]) == 22


def test_producer_state_and_epochs_come_back_from_the_headers(start: Start) -> None:
    directory, _ = start()
    directory.create(TP, TOPIC, 0)
    log = directory[TP]
    for i in range(7):
        log.append([batch(2 * i, 2, epoch=i // 3, producer=(9, 0, 2 * i))])
    log.append([batch(14, 1, epoch=2, producer=(8, 5, 0))])
    log.append([batch(15, 1, epoch=5, producer=(9, 1, 0))])
    directory, found = start()
    recovered = found.logs[TP]
    assert recovered.epochs == (EpochEntry(0, 0), EpochEntry(1, 6), EpochEntry(2, 12), EpochEntry(5, 15))
    assert recovered.producers[8].batches[0].base_offset == 14
    newest = recovered.producers[9]
    assert newest.producer_epoch == 1
    assert [(b.first_sequence, b.base_offset) for b in newest.batches] == [(0, 15)]


def test_the_last_five_batches_of_a_producer_are_kept(start: Start) -> None:
    directory, _ = start()
    directory.create(TP, TOPIC, 0)
    for i in range(9):
        directory[TP].append([batch(i, 1, producer=(9, 0, i))])
    directory, found = start()
    batches = found.logs[TP].producers[9].batches
    assert [b.first_sequence for b in batches][-5:] == [4, 5, 6, 7, 8], "and those a truncation may call for"


def test_the_metadata_log_is_handed_over_whole(start: Start) -> None:
    directory, _ = start()
    directory.create(METADATA, METADATA_TOPIC_ID, 0)
    batches = run_of(40)
    directory[METADATA].append(batches)
    directory, found = start()
    assert list(found.metadata) == batches


@settings(max_examples=60, deadline=None)
@given(
    data=st.data(),
    damage=st.sampled_from(["cut", "zero", "flip", "drop-segment", "empty-index", "garbage-index", "none"]),
)
def test_any_damage_leaves_a_whole_prefix_that_can_be_written_to(
    tmp_path_factory: pytest.TempPathFactory, data: st.DataObject, damage: str
) -> None:
    path = tmp_path_factory.mktemp("data")
    directory, _ = reopen(path)
    directory.create(TP, TOPIC, 0)
    batches = run_of(40, records=2, epoch=1)
    directory[TP].append(batches[:15])
    directory[TP].flush()
    directory.write_checkpoint("recovery-point", {TP: directory[TP].leo})
    safe = 15
    directory[TP].append(batches[15:])
    safe_bases = [s.base_offset for s in directory[TP].segments if s.base_offset >= 30]
    flushed_bytes = {s.path: s.flushed_size for s in directory[TP].segments}
    directory.close()

    segments = sorted((path / "log-0").glob("*.log"))
    hurt = data.draw(st.sampled_from(segments))
    size, synced = hurt.stat().st_size, flushed_bytes[hurt]
    if damage == "cut":
        with hurt.open("r+b") as file:
            file.truncate(data.draw(st.integers(synced, size)))
    elif damage == "zero":
        at = data.draw(st.integers(synced, size))
        with hurt.open("r+b") as file:
            file.seek(at)
            file.write(b"\0" * (size - at + data.draw(st.integers(0, 500))))
    elif damage == "flip" and synced < size:
        # Kafka's CRC leaves the leader epoch out, so that a leader can stamp it: no reader can tell there.
        batch_bytes = len(batches[0])
        at = data.draw(st.integers(synced, size - 1).filter(lambda at: at % batch_bytes not in range(12, 16)))
        raw = bytearray(hurt.read_bytes())
        raw[at] ^= 0x41
        hurt.write_bytes(raw)
    elif damage == "drop-segment" and safe_bases:
        base = data.draw(st.sampled_from(safe_bases))
        (path / "log-0" / f"{base:020d}.log").unlink()
    elif damage.endswith("index"):
        for index in (path / "log-0").glob("*.index"):
            index.write_bytes(b"" if damage == "empty-index" else b"\xff" * 37)

    directory, found = reopen(path)
    kept = whole(directory)
    assert kept == batches[: len(kept)], "what is left is a prefix of what was written"
    assert len(kept) >= safe, "nothing below the recovery point is lost"
    if damage in ("none", "empty-index", "garbage-index"):
        assert len(kept) == len(batches)
    recovered = found.logs[TP]
    assert recovered.leo == recovered.flushed == 2 * len(kept)
    more = batch(recovered.leo, 2, epoch=9)
    directory[TP].append([more])
    assert directory.read(LogSlice(TP, recovered.leo, recovered.leo + 2, 10_000)) == more
    directory.close()

    directory, found = reopen(path)
    assert whole(directory) == [*kept, more]
    assert found.logs[TP].epochs[-1] == EpochEntry(9, recovered.leo)
    directory.close()
    shutil.rmtree(path)


def test_a_hole_between_segments_ends_the_log(tmp_path: Path, start: Start) -> None:
    directory = start.with_log(run_of(60))
    bases = [segment.base_offset for segment in directory[TP].segments]
    start.stop()
    with (tmp_path / "log-0" / f"{bases[1]:020d}.log").open("r+b") as file:
        file.truncate(0)
    directory, found = start()
    assert found.logs[TP].leo == bases[1]
    assert len(sorted((tmp_path / "log-0").glob("*.log"))) == 2


def test_a_log_cut_below_its_recovery_point_counts_as_an_unclean_stop(tmp_path: Path, start: Start) -> None:
    directory = start.with_log(run_of(5))
    directory.close_cleanly(11, {TP: 5})
    start.stop()
    segment = tmp_path / "log-0" / f"{0:020d}.log"
    segment.write_bytes(segment.read_bytes()[:-1])
    directory, found = start()
    assert found.logs[TP].leo == 4
    assert found.previous_broker_epoch == -1


def test_a_truncation_lowers_the_recovery_point_first(tmp_path: Path, start: Start) -> None:
    directory = start.with_log(run_of(10))
    directory[TP].flush()
    directory.write_checkpoint("recovery-point", {TP: 10})
    directory.truncate(TP, 4)
    assert checkpoint.read_offsets(tmp_path / "recovery-point-offset-checkpoint") == {TP: 4}


def test_a_recovery_point_never_passes_what_was_flushed(tmp_path: Path, start: Start) -> None:
    directory = start.with_log(run_of(10))
    directory.write_checkpoint("recovery-point", {TP: 10})
    assert checkpoint.read_offsets(tmp_path / "recovery-point-offset-checkpoint") == {TP: 0}


def test_left_overs_and_half_made_logs_go(tmp_path: Path, start: Start) -> None:
    start.with_log(run_of(3))
    start.stop()
    log = tmp_path / "log-0"
    (log / "00000000000000000000.log.deleted").write_bytes(b"x")
    (log / "leader-epoch-checkpoint.tmp").write_bytes(b"x")
    (log / "00000000000000000099.index").write_bytes(b"")
    (tmp_path / "replication-offset-checkpoint.tmp").write_bytes(b"x")
    (tmp_path / "log-9.0123-delete").mkdir()
    (tmp_path / "log-9.0123-delete" / "f").write_bytes(b"x")
    (tmp_path / "log-7").mkdir()
    _, found = start()
    assert set(found.logs) == {TP}
    assert sorted(path.name for path in log.iterdir()) == [
        "00000000000000000000.index",
        "00000000000000000000.log",
        "leader-epoch-checkpoint",
        "partition.metadata",
    ]
    assert not [path for path in tmp_path.iterdir() if path.name.startswith("log-9") or path.name == "log-7"]


@pytest.mark.parametrize("damage", ["missing", "empty", "garbage", "another id"])
def test_records_without_their_topic_id_are_offline_and_never_thrown_away(
    tmp_path: Path, start: Start, damage: str, caplog: pytest.LogCaptureFixture
) -> None:
    other = TopicPartition("other", 0)
    directory, _ = start()
    directory.create(TP, TOPIC, 0)
    directory.create(other, UUID(int=2), 0)
    directory[TP].append(run_of(3))
    directory.close_cleanly(7, {TP: 3, other: 0})
    start.stop()
    metadata = tmp_path / "log-0" / "partition.metadata"
    content = {
        "missing": None,
        "empty": b"",
        "garbage": b"\xff\x00",
        "another id": metadata.read_bytes().replace(b"ABEi", b"BBEi"),
    }[damage]
    metadata.unlink() if content is None else metadata.write_bytes(content)
    directory, found = start()
    assert found.offline == (TP,)
    assert set(found.logs) == {other}, "the others are served"
    assert found.previous_broker_epoch == -1, "the broker may not stay in the ISR"
    assert "log log-0 is offline" in caplog.text
    directory.write_checkpoint("high-watermark", {other: 0, TP: 0})
    assert (tmp_path / "log-0" / "00000000000000000000.log").stat().st_size > 0
    start.stop()
    checkpoint.write_topic_id(tmp_path / "log-0", TOPIC)
    directory, found = start()
    assert not found.offline
    assert (found.logs[TP].leo, found.logs[TP].high_watermark) == (3, 3), "mended by hand it is what it was"


@pytest.mark.parametrize("how", ["created anew", "deleted"])
def test_records_without_their_topic_id_are_put_aside_when_the_cluster_has_another_use_for_their_name(
    tmp_path: Path, start: Start, how: str, caplog: pytest.LogCaptureFixture
) -> None:
    directory = start.with_log(run_of(3))
    directory.close_cleanly(7, {TP: 3})
    start.stop()
    whole = (tmp_path / "log-0" / "00000000000000000000.log").read_bytes()
    (tmp_path / "log-0" / "partition.metadata").unlink()
    directory, _ = start()
    if how == "deleted":
        directory.delete(TP)
    else:
        directory.create(TP, TOPIC, 0)
        assert directory[TP].leo == 0
    (aside,) = tmp_path.glob("*.damaged")
    assert (aside / "00000000000000000000.log").read_bytes() == whole
    assert str(aside) in caplog.text
    if (job := directory.behind()) is not None:
        job()
    directory, found = start()
    assert found.offline == ()
    assert [(log.leo, log.high_watermark) for log in found.logs.values()] == [(0, 0)] * (how != "deleted")


def test_the_metadata_log_needs_no_stored_topic_id(tmp_path: Path, start: Start) -> None:
    directory, _ = start()
    directory.create(METADATA, METADATA_TOPIC_ID, 0)
    directory[METADATA].append(run_of(3))
    start.stop()
    (tmp_path / "__cluster_metadata-0" / "partition.metadata").write_bytes(b"")
    directory, found = start()
    assert (found.offline, found.logs[METADATA].topic_id, len(found.metadata)) == ((), METADATA_TOPIC_ID, 3)


@pytest.mark.parametrize(
    "content", [b"", b"\0\0\0\0", b"0\n2\nlog 0 5\n", b"1\n0\n", b"0\n1\nlog 0\n", b"\xff\xfe"]
)
def test_an_unreadable_checkpoint_is_reported_and_done_without(
    tmp_path: Path, start: Start, content: bytes, caplog: pytest.LogCaptureFixture
) -> None:
    start.with_log(run_of(3, epoch=2))
    start.stop()
    (tmp_path / "replication-offset-checkpoint").write_bytes(content)
    (tmp_path / "log-0" / "leader-epoch-checkpoint").write_bytes(content)
    _, found = start()
    assert "replication-offset-checkpoint" in caplog.text
    assert found.logs[TP].high_watermark == 0
    assert found.logs[TP].epochs == (EpochEntry(2, 0),)


def test_a_topic_made_again_under_its_name_starts_empty(start: Start) -> None:
    directory = start.with_log(run_of(3))
    directory.delete(TP)
    assert directory.topic_name(TOPIC) is None
    other = UUID(int=7)
    directory.create(TP, other, 0)
    assert directory[TP].leo == 0
    directory[TP].append(run_of(1))
    assert directory.topic_name(other) == "log"
    directory, found = start()
    assert (found.logs[TP].topic_id, found.logs[TP].leo) == (other, 1)


@pytest.mark.parametrize("length", [1, 213, 214, 249])
@pytest.mark.parametrize("partition", [0, 99_999])
def test_a_log_can_be_deleted_whatever_the_length_of_its_topics_name(
    tmp_path: Path, start: Start, length: int, partition: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Also when the process ends between the new name and the removal: the next start removes it."""
    tp = TopicPartition("t" * length, partition)
    directory, _ = start()
    directory.create(tp, TOPIC, 0)
    directory[tp].append(run_of(3))
    with monkeypatch.context() as patch:
        patch.setattr("wrackline.broker.storage.backlog.shutil.rmtree", lambda _: None)
        directory.delete(tp)
        left = directory.behind()
        assert left is not None
        left()
    (doomed,) = (path.name for path in tmp_path.iterdir() if path.is_dir())
    assert doomed.startswith("t")
    assert doomed.endswith("-delete")
    assert f"-{partition}." in doomed
    directory, found = start()
    assert not found.logs
    assert not [path for path in tmp_path.iterdir() if path.is_dir()]


def test_one_process_at_a_time(tmp_path: Path) -> None:
    directory = log_dir(tmp_path)
    with pytest.raises(DataDirError, match="in use by another process"):
        log_dir(tmp_path)
    directory.close()
    log_dir(tmp_path).close()


def test_another_nodes_directory_is_refused(tmp_path: Path) -> None:
    log_dir(tmp_path).close()
    with pytest.raises(DataDirError, match=r"node\.id is 1, the configuration says 2"):
        log_dir(tmp_path, node_id=2)
    with pytest.raises(DataDirError, match=r"cluster\.id is c, the configuration says d"):
        log_dir(tmp_path, cluster_id="d")


def test_recovery_does_not_decompress_batches(start: Start) -> None:
    from tests.broker.storage.batches import foreign_batch

    directory, _ = start()
    directory.create(TP, TOPIC, 0)
    raw = foreign_batch([b"a" * 500] * 10, 0, epoch=1, codec=1)
    directory[TP].append([raw])
    directory, found = start()
    assert found.logs[TP].leo == 10
    assert [header.count for header, _ in split(whole(directory)[0])] == [10]
