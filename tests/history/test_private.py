"""What a run leaves behind is its owner's alone, whatever the umask, by whichever way its directory came to
be."""

from __future__ import annotations

import os
import stat
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from wrackline.harness.cli.options import need_writable
from wrackline.history import Recorder
from wrackline.history.model import RunInfo, TopicInfo
from wrackline.history.store.files import write_history
from wrackline.history.store.folder import private_folder

INFO = RunInfo("t1", "t", 1, "", "stub", "log", "all", False, (TopicInfo("log", 1, 3, 2),))
NOBODY = 65_534


@pytest.fixture(autouse=True, params=[0o000, 0o022, 0o277], ids=oct)
def umask(request: pytest.FixtureRequest) -> Iterator[None]:
    before = os.umask(request.param)
    try:
        yield
    finally:
        os.umask(before)


def mode(path: Path) -> int:
    return stat.S_IMODE(path.stat().st_mode)


@pytest.mark.parametrize(
    "make",
    [
        lambda run_dir: Recorder(run_dir, INFO).close(),
        lambda run_dir: write_history(run_dir, INFO, ()),
        need_writable,
        private_folder,
    ],
    ids=["recorded", "imported", "results", "folder"],
)
def test_a_folder_of_ours_is_0700(tmp_path: Path, make: Callable[[Path], None]) -> None:
    outside = mode(tmp_path)
    make(tmp_path / "results" / "run")
    assert [oct(mode(path)) for path in (tmp_path / "results", tmp_path / "results/run")] == [
        "0o700",
        "0o700",
    ]
    assert mode(tmp_path) == outside


def test_an_existing_folder_keeps_its_mode_and_an_existing_file_is_refused(tmp_path: Path) -> None:
    (tmp_path / "results").mkdir()
    (tmp_path / "results").chmod(0o755)
    private_folder(tmp_path / "results" / "run")
    assert mode(tmp_path / "results") == 0o755
    (tmp_path / "file").touch()
    with pytest.raises(FileExistsError):
        private_folder(tmp_path / "file")


@pytest.mark.fleet
def test_a_run_under_sudo_belongs_to_the_user_who_called_sudo(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SUDO_UID", str(NOBODY))
    monkeypatch.setenv("SUDO_GID", str(NOBODY))
    Recorder(tmp_path / "results" / "run", INFO).close()
    for path in (tmp_path / "results", tmp_path / "results/run"):
        assert (path.stat().st_uid, path.stat().st_gid, mode(path)) == (NOBODY, NOBODY, 0o700)
    assert tmp_path.stat().st_uid == os.geteuid()
