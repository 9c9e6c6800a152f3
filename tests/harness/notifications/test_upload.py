"""A night's folder copied to another folder, and to a storage that has no folders."""

from __future__ import annotations

from pathlib import Path

import pytest
from upath import UPath

from wrackline.harness.notifications.upload import check, upload


@pytest.fixture
def night(tmp_path: Path) -> Path:
    folder = tmp_path / "nights" / "weekly-20261120T020000Z"
    (folder / "runs" / "r 1" / "nodes" / "n1").mkdir(parents=True)
    (folder / "runs" / "r 1" / "nodes" / "n1" / "broker.log").write_text("ready\n")
    (folder / "runs" / "r 1" / "history.parquet").write_bytes(b"PAR1")
    (folder / "journal.jsonl").write_text("{}\n")
    return folder


@pytest.fixture(params=["folder", "memory"])
def store(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    """fsspec's own store in memory stands for a bucket: the same calls, without a server."""
    return str(tmp_path / "store") if request.param == "folder" else f"memory://bucket-{tmp_path.name}/nights"


def stored(store: str) -> dict[str, bytes]:
    top = UPath(store)
    return {path.path.removeprefix(top.path): path.read_bytes() for path in top.rglob("*") if path.is_file()}


def test_all_of_it_is_there_and_what_was_there_is_not_sent_again(night: Path, store: str) -> None:
    first = upload(night, store)
    assert (first.files, first.bytes, first.left) == (3, 13, 0)
    top = f"/{night.name}"
    wanted = {
        f"{top}/journal.jsonl": b"{}\n",
        f"{top}/runs/r 1/history.parquet": b"PAR1",
        f"{top}/runs/r 1/nodes/n1/broker.log": b"ready\n",
    }
    assert stored(store) == wanted
    (night / "journal.jsonl").write_text("[]\n")
    (night / "runs" / "r 1" / "history.parquet").write_bytes(b"PAR1PAR1")
    again = upload(night, store)
    assert str(again) == "2 files (0.0 MB) copied, 1 were there"
    changed = {f"{top}/journal.jsonl": b"[]\n", f"{top}/runs/r 1/history.parquet": b"PAR1PAR1"}
    assert stored(store) == wanted | changed


def test_where_nothing_can_be_put_is_an_error(night: Path, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(OSError):
        upload(night, str(tmp_path / "file"))
    with pytest.raises(ValueError, match="nosuch"):
        check("nosuch://bucket")
