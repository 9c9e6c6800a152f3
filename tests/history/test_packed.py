"""Logs and traces that are kept compressed are read as if they were not."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from wrackline.history.store import packed

LINES = [f'{{"time_ns":{number},"kind":"append","offset":{number * 3}}}\n' for number in range(9000)]


@pytest.fixture
def trace(tmp_path: Path) -> Path:
    file = tmp_path / "nodes" / "n1" / "trace.jsonl"
    file.parent.mkdir(parents=True)
    file.write_text("".join(LINES))
    file.chmod(0o640)
    return file


def test_what_is_packed_is_read_line_by_line_as_before(trace: Path, tmp_path: Path) -> None:
    was = trace.stat()
    saved = packed.pack([trace])
    [file] = packed.found(tmp_path, "nodes/*/trace.jsonl")
    now = file.stat()
    assert saved == was.st_size - now.st_size > 0.9 * was.st_size
    assert (now.st_mode, now.st_uid) == (was.st_mode, was.st_uid)
    assert not trace.exists()
    assert packed.plain_name(file) == trace
    with packed.opened(file) as lines:
        assert [line.decode() for line in lines] == LINES


def test_the_packed_form_is_everybodys_zstandard(trace: Path) -> None:
    packed.pack([trace])
    command = ["zstd", "-dc", f"{trace}.zst"]
    assert subprocess.run(command, capture_output=True, text=True, check=True).stdout == "".join(LINES)


def test_small_files_links_and_what_is_packed_stay_as_they_are(trace: Path) -> None:
    small = trace.with_name("listing.txt")
    small.write_text("12 /data\n")
    link = trace.with_name("link.log")
    link.symlink_to(trace)
    packed.pack([trace])
    twice = trace.with_name("trace.jsonl.zst")
    before = twice.read_bytes()
    assert packed.pack([small, link, twice, trace]) == 0
    assert small.read_text() == "12 /data\n"
    assert link.is_symlink()
    assert twice.read_bytes() == before


def test_of_a_packing_that_was_interrupted_the_plain_file_counts(trace: Path, tmp_path: Path) -> None:
    trace.with_name("trace.jsonl.zst").write_bytes(b"half")
    [file] = packed.found(tmp_path, "nodes/*/trace.jsonl")
    assert file == trace
    packed.pack([trace])
    [file] = packed.found(tmp_path, "nodes/*/trace.jsonl")
    with packed.opened(file) as lines:
        assert sum(1 for _ in lines) == len(LINES)


def test_without_room_a_file_stays_as_it_is(trace: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(_fd: int) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("wrackline.history.store.packed.os.fsync", full)
    assert packed.pack([trace]) == 0
    assert trace.read_text() == "".join(LINES)
    assert [file.name for file in trace.parent.iterdir()] == ["trace.jsonl"]


def test_a_damaged_one_is_said_to_be_damaged(trace: Path) -> None:
    packed.pack([trace])
    file = trace.with_name("trace.jsonl.zst")
    file.write_bytes(file.read_bytes()[:2000] + b"\0" * 500)
    with packed.opened(file) as lines, pytest.raises(OSError):
        list(lines)
