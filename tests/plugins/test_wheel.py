"""A wheel in an empty environment is one typed package with all the files that are looked up in it."""

from __future__ import annotations

import subprocess
import sys
import sysconfig
import tomllib
from pathlib import Path

import orjson
import pytest

ROOT = Path(__file__).parents[2]
GROUPS = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["entry-points"]


@pytest.fixture(scope="module")
def venv(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """With nothing but the wheel."""
    folder = tmp_path_factory.mktemp("wheel")
    builds = [sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", str(folder / "dist")]
    subprocess.run(builds, cwd=ROOT, check=True, capture_output=True, timeout=180)
    made = folder / "venv"
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", str(made)], check=True, timeout=180)
    [wheel] = (folder / "dist").glob("*.whl")
    pip = [sys.executable, "-m", "pip", "--python", str(made / "bin" / "python"), "install", "--quiet"]
    subprocess.run(
        [*pip, "--no-deps", "--no-index", str(wheel)], check=True, capture_output=True, timeout=180
    )
    return made


@pytest.fixture(scope="module")
def site(venv: Path) -> Path:
    [found] = venv.glob("lib/python*/site-packages")
    return found


def python(venv: Path, site: Path, *arguments: str) -> str:
    """With the libraries of this environment behind the wheel."""
    (site / "libraries.pth").write_text(sysconfig.get_path("purelib") + "\n")
    command = [str(venv / "bin" / "python"), "-P", *arguments]
    done = subprocess.run(
        command,
        cwd=venv,
        env={"PATH": "/usr/bin:/bin"},
        capture_output=True,
        text=True,
        timeout=280,
        check=False,
    )
    assert done.returncode == 0, done.stderr[-3000:]
    return done.stdout


def test_one_package_is_put_into_site_packages(site: Path) -> None:
    there = {path.name for path in site.iterdir() if path.suffix != ".pth"}
    assert {name for name in there if not name.endswith(".dist-info")} == {"wrackline"}
    assert (site / "wrackline" / "py.typed").exists()


def test_every_file_that_the_package_looks_up_is_in_the_wheel(site: Path) -> None:
    package, jvm = site / "wrackline", ROOT / "checkers" / "jvm"
    for folder, ours in (("suites", ROOT / "suites"), ("examples", ROOT / "docs" / "examples")):
        wanted = {
            path.relative_to(ours) for path in ours.rglob("*") if path.suffix in (".yaml", ".py", ".toml")
        }
        assert wanted
        assert wanted <= {path.relative_to(package / folder) for path in (package / folder).rglob("*")}
    sources = [path.relative_to(jvm) for path in jvm.rglob("*") if path.suffix in (".java", ".clj", ".txt")]
    assert sources
    assert all((package / "checkers" / "jvm" / path).exists() for path in sources)
    assert (package / "harness" / "cli" / "init.yaml").exists()


def test_histories_that_were_made_and_mutations_stay_in_the_checkout(site: Path) -> None:
    proving = site / "wrackline" / "checkers" / "proving"
    there = {path.relative_to(proving).as_posix() for path in proving.rglob("*.py")}
    assert there == {"__init__.py", "cases/__init__.py", "cases/language.py", "cases/words.py"}


def test_public_names_and_entry_points_work_from_the_wheel(venv: Path, site: Path) -> None:
    names = "import wrackline.api as api; [getattr(api, name) for name in api.__all__]; print(api.__file__)"
    assert python(venv, site, "-c", names).startswith(str(site))
    wrackline = str(venv / "bin" / "wrackline")
    rows = orjson.loads(python(venv, site, wrackline, "plugins", "--json"))
    assert {(f"wrackline.{row['kind']}s", row["name"]) for row in rows} == {
        (group, name)
        for group, declared in GROUPS.items()
        if group.startswith("wrackline.")
        for name in declared
    }
    assert {row["problem"] for row in rows} == {""}
    assert "--wrackline-results" in python(venv, site, "-m", "pytest", "--help")
    assert "fault.py: written" in python(venv, site, wrackline, "new", "fault", "from-a-wheel")
