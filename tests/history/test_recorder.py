"""The recorder keeps events whole under threads, is readable after a kill, and reports a full disk."""

from __future__ import annotations

import contextlib
import dataclasses
import os
import signal
import subprocess
import sys
import threading
from pathlib import Path

import pyarrow.parquet as pq
import pytest

from wrackline.history import HistoryError, Recorder, RecordingFailed, history_files, read_info
from wrackline.history.model import CONTROL, Event, Record, RunInfo, TopicInfo, Type, value_of
from wrackline.history.store.schema import SCHEMA


def info(test_id: str = "t1") -> RunInfo:
    return RunInfo(
        test_id=test_id,
        name="t",
        seed=7,
        started_at="2026-01-01T00:00:00+00:00",
        system="stub",
        workload="log",
        acks="all",
        idempotence=False,
        topics=(TopicInfo("log", 2, 3, 2),),
        nodes={"1": "n1"},
        defects=("trunc_hw",),
    )


def send(process: int, counter: int, kind: Type = Type.INVOKE) -> Event:
    record = Record(counter % 2, -1 if kind is Type.INVOKE else counter, value_of(process, counter))
    return Event(process, kind, "send", topic="log", partition=counter % 2, records=(record,))


def rows(run_dir: Path) -> list[dict[str, object]]:
    [file] = history_files(run_dir)
    return pq.read_table(file).to_pylist()


def test_events_of_many_threads_are_in_one_order_on_one_clock(tmp_path: Path) -> None:
    def client(process: int) -> None:
        for counter in range(2_000):
            given = recorder.record(send(process, counter))
            assert given.index >= 0
            recorder.record(send(process, counter, Type.OK))

    with Recorder(tmp_path / "run", info()) as recorder:
        threads = [threading.Thread(target=client, args=(process,)) for process in range(6)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()

    found = rows(tmp_path / "run")
    assert [row["index"] for row in found] == list(range(6 * 2_000 * 2))
    times = [row["time_ns"] for row in found]
    assert times == sorted(times)
    for process in range(6):
        mine = [row for row in found if row["process"] == process]
        assert [row["type"] for row in mine] == ["invoke", "ok"] * 2_000
        assert [row["records"][0]["value"] for row in mine[::2]] == [
            value_of(process, counter) for counter in range(2_000)
        ]


def test_every_column_comes_back_as_it_was_recorded(tmp_path: Path) -> None:
    event = Event(
        3,
        Type.FAIL,
        "poll",
        topic="log",
        partition=1,
        offset=0,
        value=value_of(5, 6),
        key='k\u00e9\n"',
        leader_epoch=4,
        high_watermark=2**53 - 1,
        records=(Record(1, 9, -1, 4, 1_700_000_000_000), Record(0, 2, -2)),
        error="NOT_LEADER",
        node="n2",
        latency_ns=12,
        extra={"positions": {"1": 10}, "text": "\u20ac\x00"},
    )
    with Recorder(tmp_path / "run", info()) as recorder:
        recorder.record(event)
        recorder.record(Event(CONTROL, Type.INFO, "phase", extra={"phase": "main"}))
    [first, second] = rows(tmp_path / "run")
    assert first["test_id"] == "t1"
    for name in (
        "topic",
        "partition",
        "offset",
        "value",
        "key",
        "leader_epoch",
        "high_watermark",
        "error",
        "node",
    ):
        assert first[name] == getattr(event, name), name
    assert first["records"] == [record._asdict() for record in event.records]
    assert first["extra"] == '{"positions":{"1":10},"text":"\u20ac\\u0000"}'
    assert second["topic"] is None
    assert second["records"] == []


def test_the_information_of_the_run_travels_with_the_file(tmp_path: Path) -> None:
    recorder = Recorder(tmp_path / "run", info())
    assert read_info(tmp_path / "run") == info()
    recorder.close("interrupted at 3.0 s")
    assert not (tmp_path / "run" / "history.wal").exists()
    found = read_info(tmp_path / "run")
    assert found.notes == ("interrupted at 3.0 s",)
    schema = pq.read_schema(tmp_path / "run" / "history.parquet")
    assert RunInfo.from_json(schema.metadata[b"wrackline"]) == found
    assert schema.names == SCHEMA.names


def test_what_is_learned_while_the_run_goes_on_is_part_of_its_information(tmp_path: Path) -> None:
    client = {"library": "librdkafka", "version": "2.16.0"}
    recorder = Recorder(tmp_path / "run", info())
    recorder.learn(client=client)
    recorder.learn(features={"transaction.version": 2}, client={"end_txn_version": 1})
    wanted = dataclasses.replace(
        info(), features={"transaction.version": 2}, client={**client, "end_txn_version": 1}
    )
    assert read_info(tmp_path / "run") == wanted  # as if the recording process had been killed now
    recorder.close()
    assert read_info(tmp_path / "run") == wanted


def test_a_directory_holds_one_history(tmp_path: Path) -> None:
    Recorder(tmp_path / "run", info()).close()
    with pytest.raises(FileExistsError):
        Recorder(tmp_path / "run", info())


def test_a_line_longer_than_a_window_is_recorded(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("wrackline.history.journal.WINDOW_BYTES", 4096)
    monkeypatch.setattr("wrackline.history.store.recorder.CHUNK_BYTES", 1000)
    with Recorder(tmp_path / "run", info()) as recorder:
        for counter in range(50):
            recorder.record(send(1, counter))
            big = tuple(Record(0, offset, value_of(1, offset)) for offset in range(counter * 20))
            recorder.record(Event(2, Type.OK, "poll", topic="log", records=big))
    found = rows(tmp_path / "run")
    assert [len(row["records"]) for row in found[1::2]] == [counter * 20 for counter in range(50)]


KILLED = """
import os, sys, threading
sys.path.insert(0, {root!r})
from pathlib import Path
from tests.history.test_recorder import info, send
from wrackline.history import Recorder
from wrackline.history.model import Type
recorder = Recorder(Path({run!r}), info())
def client(process):
    counter = 0
    while True:
        recorder.record(send(process, counter))
        if process == 0:
            print(counter, flush=True)  # only what is on record is told
        recorder.record(send(process, counter, Type.OK))
        counter += 1
for process in range(3):
    threading.Thread(target=client, args=(process,), daemon=True).start()
threading.Event().wait()
"""


def test_a_killed_recorder_leaves_every_event_it_had_accepted(tmp_path: Path) -> None:
    script = KILLED.format(root=str(Path(__file__).parents[2]), run=str(tmp_path / "run"))
    with subprocess.Popen([sys.executable, "-c", script], stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        told = -1
        for line in process.stdout:
            told = int(line)
            if told >= 3_000:
                os.kill(process.pid, signal.SIGKILL)
                break
        told = max([told, *(int(line) for line in process.stdout if line.strip().isdigit())])

    found = rows(tmp_path / "run")
    assert [row["index"] for row in found] == list(range(len(found)))
    invoked = [row["records"][0]["value"] for row in found if row["process"] == 0 and row["type"] == "invoke"]
    assert value_of(0, told) in invoked
    assert "the recording process died" in read_info(tmp_path / "run").notes[0]
    assert not (tmp_path / "run" / "history.wal").exists()
    assert [file.name for file in (tmp_path / "run").iterdir() if file.suffix == ".part"] == []


def test_a_run_that_is_still_recorded_is_left_alone(tmp_path: Path) -> None:
    with Recorder(tmp_path / "run", info()) as recorder:
        recorder.record(send(1, 0))
        with pytest.raises(HistoryError, match="still being recorded"):
            history_files(tmp_path / "run")
        recorder.record(send(1, 0, Type.OK))
    assert len(rows(tmp_path / "run")) == 2


def test_a_full_disk_stops_the_recording_and_keeps_what_is_there(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Space runs out where it runs out in life: when the file must grow."""
    monkeypatch.setattr("wrackline.history.journal.WINDOW_BYTES", 8192)
    real = os.posix_fallocate

    def limited(fd: int, offset: int, length: int) -> None:
        if offset + length > 40_000:
            raise OSError(28, os.strerror(28))
        real(fd, offset, length)

    recorder = Recorder(tmp_path / "run", info())
    monkeypatch.setattr("wrackline.history.journal.os.posix_fallocate", limited)
    recorded = 0
    with contextlib.suppress(RecordingFailed):
        while recorded < 10_000:
            recorder.record(send(1, recorded))
            recorded += 1
    with pytest.raises(RecordingFailed, match="No space left on device; the run is stopped"):
        recorder.record(send(1, recorded))
    with pytest.raises(RecordingFailed, match="free some space"):
        recorder.close()
    assert 100 < recorded < 10_000
    assert len(rows(tmp_path / "run")) == recorded
