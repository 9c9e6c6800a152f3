"""The bundle is named by its content, complete, and alike for everybody who builds it."""

from __future__ import annotations

import ast
import subprocess
import sys
import tarfile
from pathlib import Path

import pytest
from pydantic import ValidationError

from wrackline.mutation import mutated
from wrackline.systems.base import DeployError
from wrackline.systems.wrackline import bundle
from wrackline.systems.wrackline.spec import WracklineSpec


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


MUTANT = "broker/rules/replication/watermark.py:0"


def test_a_mutant_is_packed_and_says_when_it_is_reached(cache: Path) -> None:
    plain, changed = bundle.build(cache), bundle.build(cache, MUTANT)
    assert plain.archives[0].digest == changed.archives[0].digest
    path = bundle.unpacked(changed, cache / "unpacked")
    file, number = MUTANT.split(":")
    before, after = (
        Path(bundle.unpacked(one, cache / "unpacked")[1], "wrackline", file).read_text()
        for one in (plain, changed)
    )
    name = "__mutant_is_reached__"
    tree = ast.unparse(mutated(before, int(number)))
    assert tree != ast.unparse(ast.parse(before))
    assert tree.splitlines()[-5:] == after.splitlines()[-5:]
    module = file.removesuffix(".py").replace("/", ".")
    code = (
        f"import sys; sys.path[:0] = {list(path)!r}; import wrackline.broker.__main__; "
        f"from wrackline.{module} import {name}; print({name}(), {name}())"
    )
    ran = subprocess.run(
        [sys.executable, "-I", "-S", "-c", code], capture_output=True, text=True, check=False
    )
    assert ran.stdout == "None None\n", ran.stderr
    assert ran.stderr == "MUTANT REACHED\n"


@pytest.mark.parametrize(
    ("name", "error"),
    [
        ("broker/rules/x.py:1", "no such file of the broker; name one as `wrackline simulate mutants` does"),
        ("nemesis/heal.py:1", "no such file of the broker"),
        ("broker/../nemesis/heal.py:1", "no such file of the broker"),
        ("broker/rules/replication/watermark.py:99999", r"watermark.py has mutants 0 to \d+;"),
        ("broker/rules/replication/watermark.py", "no such file of the broker"),
    ],
)
def test_a_mutant_that_is_none_is_refused(name: str, error: str) -> None:
    with pytest.raises(ValidationError, match=error):
        WracklineSpec(mutant=name)


def test_a_run_of_a_mutant_is_expected_to_be_a_violation() -> None:
    assert WracklineSpec(mutant=MUTANT).configured().defects == (MUTANT,)
    assert WracklineSpec().configured().defects == ()


def test_a_missing_dependency_is_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(bundle, "DEPENDENCIES", ("kio", "no-such-package"))
    with pytest.raises(
        DeployError, match="control node: no-such-package, which the broker needs, is not inst"
    ):
        bundle.build(tmp_path)
