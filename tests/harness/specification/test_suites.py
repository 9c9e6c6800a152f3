"""Specifications that come with us are found by name, and a file of the user's comes first."""

from __future__ import annotations

from pathlib import Path

import pytest

from wrackline.harness.specification.spec import SpecError, load
from wrackline.harness.specification.suites import find, suites_dir

OURS = [path.relative_to(suites_dir()) for path in sorted(suites_dir().rglob("*.yaml"))]


@pytest.mark.parametrize("path", OURS, ids=str)
def test_each_has_three_names(path: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    for name in (path, path.with_suffix(""), "suites" / path):
        assert find(Path(name)) == suites_dir() / path


def test_a_file_of_the_users_comes_first(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    Path("laptop.yaml").write_text("name: mine\n")
    assert (load(Path("laptop.yaml")).name, load(Path("laptop")).name) == ("mine", "laptop")


@pytest.mark.parametrize(
    "name", ["nosuch", "../suites/laptop", "suites", "/laptop", "suites/../../README.md"]
)
def test_nothing_else_is_found(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    with pytest.raises(SpecError, match="no such file; `wrackline init` writes one"):
        load(Path(name))
