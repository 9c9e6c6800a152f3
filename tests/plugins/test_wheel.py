"""A wheel in an empty environment is one typed package with all the files that are looked up in it."""

from __future__ import annotations

import shutil
import subprocess
import sys
import sysconfig
import tomllib
import zipfile
from collections.abc import Callable
from functools import partial
from pathlib import Path

import orjson
import pytest
from packaging.version import Version

from wrackline import release

ROOT = Path(__file__).parents[2]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
GROUPS = PROJECT["entry-points"]


EXTRAS = ("pyspark", "pandas", "py4j", "jpype", "jpype1", "s3fs", "hdfs_native")


def build(folder: Path, into: Path, *targets: str) -> Path:
    """What hatchling makes of a folder."""
    wanted = [word for target in targets for word in ("-t", target)]
    command = [sys.executable, "-m", "hatchling", "build", *wanted, "-d", str(into)]
    subprocess.run(command, cwd=folder, check=True, capture_output=True, timeout=540)
    return into


@pytest.fixture(scope="module")
def dist(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return build(ROOT, tmp_path_factory.mktemp("dist"), "sdist", "wheel")


@pytest.fixture(scope="module")
def venv(dist: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """With nothing but the wheel."""
    made = tmp_path_factory.mktemp("wheel") / "venv"
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", str(made)], check=True, timeout=540)
    [wheel] = dist.glob("*.whl")
    pip = [sys.executable, "-m", "pip", "--python", str(made / "bin" / "python"), "install", "--quiet"]
    subprocess.run(
        [*pip, "--no-deps", "--no-index", str(wheel)], check=True, capture_output=True, timeout=540
    )
    return made


@pytest.fixture(scope="module")
def site(venv: Path) -> Path:
    [found] = venv.glob("lib/python*/site-packages")
    return found


def python(venv: Path, site: Path, *arguments: str, code: int = 0, without: tuple[str, ...] = ()) -> str:
    """What it says on standard output, or where it fails on standard error. With the libraries of this
    environment behind the wheel, but for those that it is to be without."""
    libraries = venv.with_name(f"libraries-without-{'-'.join(without)}")
    if not libraries.exists():
        libraries.mkdir()
        for one in Path(sysconfig.get_path("purelib")).iterdir():
            if one.name.partition("-")[0].lower() not in without:
                (libraries / one.name).symlink_to(one)
    (site / "libraries.pth").write_text(f"{libraries}\n")
    command = [str(venv / "bin" / "python"), "-P", *arguments]
    done = subprocess.run(
        command,
        cwd=venv,
        env={"PATH": "/usr/bin:/bin"},
        capture_output=True,
        text=True,
        timeout=840,
        check=False,
    )
    assert done.returncode == code, done.stderr[-3000:]
    return done.stderr if code else done.stdout


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
    assert (package / "harness" / "cli" / "runs" / "init.yaml").exists()
    assert (package / "harness" / "expectations" / "catalogue.yaml").exists()


def test_histories_that_were_made_and_mutations_stay_in_the_checkout(site: Path) -> None:
    assert not (site / "wrackline" / "proving").exists()
    cases = site / "wrackline" / "checkers" / "cases"
    assert {path.name for path in cases.rglob("*.py")} == {"__init__.py", "language.py", "words.py"}


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


def test_a_wheel_of_the_archive_is_the_same(dist: Path, tmp_path: Path) -> None:
    [wheel], [archive] = dist.glob("*.whl"), dist.glob("*.tar.gz")
    shutil.unpack_archive(archive, tmp_path)
    [again] = build(tmp_path / archive.name.removesuffix(".tar.gz"), tmp_path / "dist", "wheel").glob("*")
    assert again.name == wheel.name
    assert contents(again) == contents(wheel)


def contents(wheel: Path) -> dict[str, bytes]:
    with zipfile.ZipFile(wheel) as packed:
        return {name: packed.read(name) for name in packed.namelist()}


def test_a_wheel_says_its_revision(venv: Path, site: Path) -> None:
    """That of the checkout that it was built in. A checkout without git has none."""
    said = python(venv, site, str(venv / "bin" / "wrackline"), "--version")
    revision = release.revision()
    assert said == f"wrackline {PROJECT['version']}{f', revision {revision}' if revision else ''}\n"
    made = python(venv, site, "-c", "from wrackline.release import full_version as full; print(full())")
    assert made.strip() == release.full_version()
    assert Version(made.strip()).release == Version(PROJECT["version"]).release


def core(venv: Path, site: Path) -> Callable[..., str]:
    """The command, in an environment that has the core's libraries alone."""
    return partial(python, venv, site, str(venv / "bin" / "wrackline"), without=EXTRAS)


def test_the_core_does_without_the_extras(venv: Path, site: Path, tmp_path: Path) -> None:
    """In an environment that has the core's libraries alone; what needs more says how to get it."""
    wrackline = core(venv, site)
    spec, history = str(tmp_path / "first.yaml"), tmp_path / "history.edn"
    history.write_text(
        "{:process 0, :type :invoke, :f :write, :value 1}\n{:process 0, :type :ok, :f :write, :value 1}\n"
    )
    wrackline("init", spec)
    assert "fine" in wrackline("validate", spec)
    assert wrackline("plan", spec)
    assert "clean" in wrackline("simulate", "--seconds", "2")
    assert wrackline("check", "--model", "register", str(history))
    knossos = wrackline("check", "--model", "register", "--by", "knossos", str(history), code=2)
    assert "`pip install 'wrackline[jvm]'`" in knossos
    assert knossos.count("\n") == 1


@pytest.mark.slow
def test_the_core_alone_makes_a_run_and_judges_it(venv: Path, site: Path, tmp_path: Path) -> None:
    """Folders of this machine, its own broker, one process that judges: neither Spark nor Java."""
    wrackline, results = core(venv, site), tmp_path / "results"
    results.mkdir()
    suite = str(site / "wrackline/suites/laptop.yaml")
    settings = ("--set", "workload.duration_s=6", "--set", "nemesis={}")
    wrackline("run", suite, *settings, "--results", str(results))
    [made] = [path.parent for path in results.glob("*/verdict.json")]
    assert orjson.loads((made / "verdict.json").read_bytes())["verdict"] == "pass"
    assert release.full_version() in (made / "report.html").read_text()
    spark = wrackline("analyze", "--engine", "spark", str(made), code=2)
    lacks = "the engine spark needs the libraries of the extra spark: `pip install 'wrackline[spark]'`"
    assert spark.splitlines()[-1] == f"wrackline: {lacks} installs it"
