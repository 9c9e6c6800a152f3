"""`wrackline init`, `examples`, `validate` and `schema`: for who writes a specification. None makes a
host."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import orjson
import pytest
import yaml

from tests.harness.cli.calling import call
from wrackline.harness.specification.check import load_checked
from wrackline.harness.specification.schema import schema
from wrackline.harness.specification.spec import load, parse

ROOT = Path(__file__).parents[4]
SUITES = ROOT / "suites"
TEMPLATE = ROOT / "harness" / "cli" / "runs" / "init.yaml"


# --- validate ---------------------------------------------------------------------------------------------


def test_settings_and_a_file_that_is_not_there(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    file = tmp_path / "x.yaml"
    file.write_text("name: x\nnemesis: {schedule: [{at_s: 1m, duration_s: 2m, fault: kill}]}")
    assert call(capsys, "validate", str(file))[0] == 2
    assert call(capsys, "validate", str(file), "--set", "workload.duration_s=3m")[:2] == (
        0,
        f"{file}: fine\n",
    )
    code, out, err = call(
        capsys, "validate", str(tmp_path / "no.yaml"), str(file), "--set", "workload.duration_s=3m"
    )
    assert (code, out) == (2, f"{file}: fine\n")
    others = "`wrackline init` writes one, `wrackline list specs` lists others"
    assert err == f"{tmp_path}/no.yaml: no such file; {others}\n"


# --- init -------------------------------------------------------------------------------------------------


def test_init_writes_what_can_be_run_and_leaves_what_is_there(
    capsys: pytest.CaptureFixture[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    code, out, err = call(capsys, "init", "My first_run.yaml")
    assert (code, err) == (0, "")
    assert out == "My first_run.yaml: written; `wrackline plan My first_run.yaml` shows what it would do\n"
    spec = load_checked(Path("My first_run.yaml"))
    assert (spec.name, spec.workload.duration_s, len(spec.nemesis.schedule)) == ("my-first-run", 60, 3)
    before = Path("My first_run.yaml").read_bytes()
    code, out, err = call(capsys, "init", "My first_run.yaml")
    assert (code, out) == (2, "")
    assert "My first_run.yaml exists, and is left as it is" in err
    assert Path("My first_run.yaml").read_bytes() == before
    assert call(capsys, "init")[0] == 0
    assert load(Path("wrackline.yaml")).name == "wrackline"
    code, _, err = call(capsys, "init", "no/such/folder.yaml")
    assert code == 2
    assert "no/such/folder.yaml: cannot be written: No such file or directory" in err


def test_every_key_that_is_switched_off_in_it_can_be_switched_on() -> None:
    written = TEMPLATE.read_text().replace("NAME", "whole")
    everything = re.sub(r"^( *)#(?=[a-z])", r"\1", written, flags=re.M)
    assert everything != written
    spec = parse(everything.replace("duration_s: 1m #", "duration_s: 2m #"), "init.yaml")
    assert spec.nemesis.random is not None
    assert spec.nemesis.guided is not None
    assert spec.contract.expected == ("lost-write",)
    assert parse(written, "init.yaml").nemesis.random is None


def test_every_key_of_the_specification_is_in_it() -> None:
    """Those of the clients and of other workloads are in the documents."""
    text = re.sub(r"^( *)#(?=[a-z])", r"\1", TEMPLATE.read_text(), flags=re.M)
    raw, defs = yaml.safe_load(text), schema()["$defs"]
    parts = {
        "NetnsSpec": raw["fleet"],
        "WracklineSpec": raw["system"],
        "TopicSpec": raw["topic"],
        "LogSpec": raw["workload"],
        "NemesisSpec": raw["nemesis"],
        "RandomSpec": raw["nemesis"]["random"],
        "ContractSpec": raw["contract"],
        "Thresholds": raw["contract"]["thresholds"],
    }
    for name, part in parts.items():
        assert set(part) == set(defs[name]["properties"]), name
    assert set(raw) == set(schema()["properties"])


# --- examples ---------------------------------------------------------------------------------------------


def test_examples_are_listed_with_a_line_each(capsys: pytest.CaptureFixture[str]) -> None:
    code, out, _ = call(capsys, "list", "specs")
    listed = dict(line.split(maxsplit=1) for line in out.splitlines())
    assert code == 0
    assert set(listed) == {
        path.relative_to(SUITES).with_suffix("").as_posix() for path in SUITES.rglob("*.yaml")
    }
    assert listed["growth"] == "A cluster grows while it suffers"
    assert listed["defects/trunc-hw"].startswith("B01, KIP-101 scenario 1: a new follower truncates")
    assert all(len(about) > 30 for about in listed.values())


def test_an_example_is_printed_as_it_is_or_copied(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    text = (SUITES / "defects" / "trunc-hw.yaml").read_text()
    assert call(capsys, "list", "specs", "trunc-hw") == (0, text, "")
    assert call(capsys, "list", "specs", "defects/trunc-hw") == (0, text, "")
    copy = tmp_path / "mine.yaml"
    for target, made in ((copy, copy), (tmp_path, tmp_path / "trunc-hw.yaml")):
        assert call(capsys, "list", "specs", "trunc-hw", "-o", str(target))[0] == 0
        assert made.read_text() == text
        code, out, err = call(capsys, "list", "specs", "register", "-o", str(made))
        assert (code, out) == (2, "")
        assert f"{made} exists, and is left as it is" in err
        assert made.read_text() == text


# --- schema, and all of them from a wheel -----------------------------------------------------------------


def test_the_schema_is_printed(capsys: pytest.CaptureFixture[str]) -> None:
    code, out, err = call(capsys, "list", "specs", "--schema")
    assert (code, err) == (0, "")
    assert orjson.loads(out) == schema()


def test_an_installed_wheel_has_the_examples_the_template_and_the_schema(tmp_path: Path) -> None:
    site = tmp_path / "site"
    builds = [sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", str(tmp_path / "dist")]
    subprocess.run(builds, cwd=ROOT, check=True, capture_output=True, timeout=360)
    [wheel] = (tmp_path / "dist").glob("*.whl")
    installs = [
        sys.executable,
        "-m",
        "pip",
        "install",
        "--quiet",
        "--no-deps",
        "--no-index",
        "--target",
        str(site),
    ]
    subprocess.run([*installs, str(wheel)], check=True, capture_output=True, timeout=360)

    def python(*arguments: str) -> str:
        """With the wheel; this environment gives the libraries only."""
        environment = {**os.environ, "PYTHONPATH": str(site)}
        command = [sys.executable, "-P", *arguments]
        return subprocess.run(
            command, cwd=tmp_path, env=environment, check=True, capture_output=True, text=True, timeout=360
        ).stdout

    assert (
        python(str(site / "bin" / "wrackline"), "examples", "register")
        == (SUITES / "register.yaml").read_text()
    )
    said = orjson.loads(python("-c", IN_ONE_PROCESS))
    assert all(path.startswith(str(site)) for path in said["modules"])
    listed, written, checked, schema_text = said["commands"]
    assert len(listed.splitlines()) == len(list(SUITES.rglob("*.yaml")))
    assert written == "first.yaml: written; `wrackline plan first.yaml` shows what it would do\n"
    assert checked == "first.yaml: fine\n"
    assert orjson.loads(schema_text) == schema()


IN_ONE_PROCESS = """
import json
from wrackline import broker, harness
from click.testing import CliRunner
from wrackline.harness.cli.main import wrackline

def said(*arguments):
    return CliRunner().invoke(wrackline, arguments, standalone_mode=False, catch_exceptions=False).output

commands = [said("list", "specs"), said("init", "first.yaml"), said("validate", "first.yaml")]
commands += [said("list", "specs", "--schema")]
print(json.dumps({"modules": [harness.__file__, broker.__file__], "commands": commands}))
"""
