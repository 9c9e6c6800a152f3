"""The bundle is named by its content, complete, and alike for everybody who builds it."""

from __future__ import annotations

import subprocess
import sys
import tarfile
from pathlib import Path

import pytest

from wrackline.systems.base import DeployError
from wrackline.systems.wrackline import bundle


@pytest.fixture(scope="module")
def cache(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("bundles")


def test_a_bundle_is_built_once(cache: Path) -> None:
    first = bundle.build(cache)
    times = [archive.path.stat().st_mtime_ns for archive in first.archives]
    assert bundle.build(cache) == first
    assert [archive.path.stat().st_mtime_ns for archive in first.archives] == times
    assert sorted(file.name for file in cache.iterdir()) == sorted(one.path.name for one in first.archives)


def test_an_unpacked_bundle_runs_the_broker_with_nothing_else(cache: Path, tmp_path: Path) -> None:
    for archive in bundle.build(cache).archives:
        with tarfile.open(archive.path) as packed:
            packed.extractall(tmp_path)
    # -I: neither this environment's packages nor the current folder are seen.
    code = (
        f"import sys; sys.path.insert(0, {str(tmp_path / 'lib')!r}); "
        "import wrackline.broker.__main__, wrackline.broker.admin.cli, uvloop, kio; print('fine')"
    )
    ran = subprocess.run(
        [sys.executable, "-I", "-S", "-c", code], capture_output=True, text=True, check=False
    )
    assert ran.stdout == "fine\n", ran.stderr


def test_a_folder_of_this_machine_uses_what_is_unpacked_once(cache: Path) -> None:
    built = bundle.build(cache)
    path = bundle.unpacked(built, cache / "unpacked")
    assert bundle.unpacked(built, cache / "unpacked") == path
    code = f"import sys; sys.path[:0] = {list(path)!r}; import wrackline.broker.__main__; print('fine')"
    ran = subprocess.run(
        [sys.executable, "-I", "-S", "-c", code], capture_output=True, text=True, check=False
    )
    assert ran.stdout == "fine\n", ran.stderr


def test_another_content_has_another_name(tmp_path: Path) -> None:
    (tmp_path / "a.py").write_text("x = 1\n")
    files = {"broker/a.py": tmp_path / "a.py"}
    first = bundle._archive("broker", files, tmp_path, sources=True)
    (tmp_path / "a.py").write_text("x = 2\n")
    second = bundle._archive("broker", files, tmp_path, sources=True)
    assert first.digest != second.digest
    assert first.path.exists()
    assert second.path.exists()


def test_a_missing_dependency_is_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(bundle, "DEPENDENCIES", ("kio", "no-such-package"))
    with pytest.raises(
        DeployError, match="control node: no-such-package, which the broker needs, is not inst"
    ):
        bundle.build(tmp_path)
