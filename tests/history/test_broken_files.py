"""A corrupt or truncated history gives one clear line, and everything that is whole is kept."""

from __future__ import annotations

import logging
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.history.test_recorder import info, send
from wrackline.history import HistoryError, Recorder, history_files, read_info
from wrackline.history.model import Type
from wrackline.history.store.wal import encode_tail, header_line, with_beginning

EVENTS = 200


def leftover(run_dir: Path, events: int = EVENTS) -> Path:
    """A killed run's write-ahead file."""
    run_dir.mkdir(parents=True)
    lines = [
        with_beginning(
            index, index * 1000, encode_tail(send(1, index // 2, (Type.INVOKE, Type.OK)[index % 2]))
        )
        for index in range(events)
    ]
    path = run_dir / "history.wal"
    path.write_bytes(header_line(info()) + b"".join(lines) + b"\0" * 5000)
    return path


def indexes(run_dir: Path) -> list[int]:
    [file] = history_files(run_dir)
    return pq.read_table(file).column("index").to_pylist()


def test_a_leftover_file_is_converted_once_and_without_a_warning(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    leftover(tmp_path / "run")
    assert indexes(tmp_path / "run") == list(range(EVENTS))
    assert [record for record in caplog.records if record.name.startswith("wrackline.history")] == []
    assert sorted(file.name for file in (tmp_path / "run").iterdir()) == ["history.parquet", "run.json"]
    assert indexes(tmp_path / "run") == list(range(EVENTS))


def test_a_cut_off_last_line_is_dropped_with_one_warning(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    path = leftover(tmp_path / "run")
    content = path.read_bytes().rstrip(b"\0")
    path.write_bytes(content[:-20])
    with caplog.at_level(logging.WARNING):
        assert indexes(tmp_path / "run") == list(range(EVENTS - 1))
    ours = [record for record in caplog.records if record.name.startswith("wrackline.history")]
    [warning] = [record.getMessage() for record in ours]
    assert "the last line is cut off" in warning
    [note] = read_info(tmp_path / "run").notes
    assert f"{EVENTS - 1} events were recovered" in note
    assert (tmp_path / "run" / "history.wal.broken").exists()


def test_what_follows_a_garbled_line_is_left_out_so_that_no_hole_accuses_the_system(tmp_path: Path) -> None:
    path = leftover(tmp_path / "run")
    lines = path.read_bytes().split(b"\n")
    lines[101] = lines[101].replace(b'"process":1', b'"process":\xff')
    path.write_bytes(b"\n".join(lines))
    assert indexes(tmp_path / "run") == list(range(100))


def test_a_missing_line_ends_the_history_there(tmp_path: Path) -> None:
    path = leftover(tmp_path / "run")
    lines = path.read_bytes().split(b"\n")
    del lines[51]
    path.write_bytes(b"\n".join(lines))
    assert indexes(tmp_path / "run") == list(range(50))


@settings(max_examples=60, deadline=None)
@given(st.integers(0, 10**9), st.integers(0, 255))
def test_any_broken_byte_gives_a_prefix_or_one_line_of_error(
    tmp_path_factory: pytest.TempPathFactory, place: int, byte: int
) -> None:
    run_dir = tmp_path_factory.mktemp("wal") / "run"
    path = leftover(run_dir, 20)
    content = bytearray(path.read_bytes().rstrip(b"\0"))
    content[place % len(content)] = byte
    path.write_bytes(content)
    found, wrong = [], ""
    try:
        found = indexes(run_dir)
    except HistoryError as error:
        wrong = str(error)
    assert "\n" not in wrong
    assert found == list(range(len(found)))


@pytest.mark.parametrize(
    ("content", "said"),
    [
        (b"", "not even its first line is whole"),
        (b"{}\n", "no header"),
        (b"nonsense\n", "history.wal"),
        (b'{"wrackline":{},"format":9}\n', "format 9 is not known"),
        (b'{"wrackline":{"test_id":"x"},"format":1}\n', "incomplete"),
    ],
)
def test_a_file_that_is_no_history_is_one_line_of_error(tmp_path: Path, content: bytes, said: str) -> None:
    (tmp_path / "history.wal").write_bytes(content)
    with pytest.raises(HistoryError, match=said) as wrong:
        history_files(tmp_path)
    assert "\n" not in str(wrong.value)
    assert str(tmp_path / "history.wal") in str(wrong.value)


def finished(run_dir: Path) -> Path:
    with Recorder(run_dir, info()) as recorder:
        for counter in range(3_000):
            recorder.record(send(1, counter))
    return run_dir / "history.parquet"


@pytest.mark.parametrize("keep", [0, 3, 1000, -1])
def test_a_truncated_parquet_file_is_one_line_of_error(tmp_path: Path, keep: int) -> None:
    path = finished(tmp_path / "run")
    path.write_bytes(path.read_bytes()[:keep])
    with pytest.raises(HistoryError, match="corrupt or truncated") as wrong:
        history_files(tmp_path / "run")
    assert "\n" not in str(wrong.value)


def test_a_flipped_bit_in_a_page_is_found_before_anybody_judges_it(tmp_path: Path) -> None:
    path = finished(tmp_path / "run")
    content = bytearray(path.read_bytes())
    content[len(content) // 3] ^= 1
    path.write_bytes(content)
    with pytest.raises(HistoryError, match="corrupt or truncated"):
        history_files(tmp_path / "run")


def test_a_strangers_parquet_file_is_not_taken_for_a_history(tmp_path: Path) -> None:
    pq.write_table(pa.table({"a": [1]}), tmp_path / "history.parquet")
    with pytest.raises(HistoryError, match="no history of ours"):
        history_files(tmp_path)


def test_an_empty_directory_says_what_is_missing(tmp_path: Path) -> None:
    with pytest.raises(HistoryError, match="is it a run's directory"):
        history_files(tmp_path)
    with pytest.raises(HistoryError, match="is it a run's directory"):
        read_info(tmp_path)
