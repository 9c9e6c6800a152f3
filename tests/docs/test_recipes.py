"""The recipes of CONTRIBUTING.md do what they say: their code is tested in a copy of the tree.

There is no host: the fault is done to a process of ours in a shell of this machine, the anomaly is found by
the plan of the analysis in this process, the workload drives librdkafka's mock cluster, and the system is
deployed into a folder.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PACKAGES = (
    "wrackline",
    "broker",
    "simulator",
    "harness",
    "nemesis",
    "workloads",
    "clients_java",
    "checkers",
    "proving",
    "history",
    "kafka_client",
    "pages",
    "plugins",
    "scenarios",
    "fleets",
    "systems",
    "zookeeper",
    "docs",
)
TESTS = ("checkers", "docs", "nemesis", "proving", "systems", "workloads")
PATIENCE_S = 240
JUDGED_PATIENCE_S = 1_200
_BLOCK = re.compile(
    r"^```(?:python|diff|text)\n# (?P<how>new file|added to|changed in): (?P<file>\S+)\n(?P<code>.*?)^```$",
    re.M | re.S,
)

FAULT_TEST = """
import os, subprocess, time
from dataclasses import replace
from pathlib import Path

import pytest
from tests.nemesis.doubles import context

from wrackline.harness.specification.spec import parse
from wrackline.nemesis.schedule import plan
from wrackline.nemesis.faults.steps import StepResult, Shell, ProbeLog

FAULT = "{at_s: 1, duration_s: 2, fault: low-priority, target: leader(log-0)}"
TEXT = "{name: x, nemesis: {schedule: [" + FAULT + "]}}"


def run(steps):
    def one(step):
        assert isinstance(step, Shell)
        shell = ["sh", "-c", step.command]
        said = subprocess.run(shell, capture_output=True, text=True, check=True, timeout=60).stdout
        return StepResult(step, said)

    return [one(step) for step in steps]


def test_a_specification_knows_it():
    spec = parse(TEXT, "x.yaml")
    [planned] = plan(spec.nemesis, spec.seed, spec.workload.duration_s).faults
    assert planned.spec.build().name == "low-priority"


@pytest.mark.skipif(os.geteuid() != 0, reason="to raise a priority again needs root")
def test_its_commands_do_undo_and_prove_it_on_a_process_of_ours():
    body = (
        "import threading, time\\n"
        "for _ in range(2): threading.Thread(target=time.sleep, args=(300,), daemon=True).start()\\n"
        "time.sleep(300)"
    )
    with subprocess.Popen(["python3", "-c", body]) as process:
        try:
            tasks = Path(f"/proc/{process.pid}/task")
            deadline = time.monotonic() + 60
            while len(list(tasks.iterdir())) < 3:
                assert time.monotonic() < deadline, "the process has not started its threads"
                time.sleep(0.05)
            os.setpriority(os.PRIO_PROCESS, process.pid, 0)
            for task in tasks.iterdir():
                os.setpriority(os.PRIO_PROCESS, int(task.name), 0)
            fault = parse(TEXT, "x.yaml").nemesis.schedule[0].inject.build()
            aimed = context("n2", pid=process.pid)
            commands = fault.commands(aimed)
            before = ProbeLog(active=run(commands.probe))
            assert not fault.prove(aimed, before).proved, "nothing was done yet"
            run(commands.do)
            trail = ProbeLog(active=run(commands.probe), final=run(commands.probe))
            assert fault.prove(aimed, trail).proved
            run(commands.undo)
            run(commands.undo)
            trail = replace(trail, control=run(commands.control))
            assert fault.prove(aimed, trail).proved
        finally:
            process.kill()
    run(commands.undo)
"""

ANOMALY = """
import pytest
from wrackline.proving.pairs import PAIRS
from tests.checkers.local_plan import candidates

from wrackline.checkers.cases.language import parse
from wrackline.proving.model.made import write_events
from wrackline.checkers.checks.registry import marks, names
from wrackline.checkers.inputs.runs import load_run
from wrackline.checkers.anomalies.late_ack import LATE_ACK


@pytest.mark.parametrize(("case", "there"), [(0, True), (1, False)])
def test_the_mark_is_on_the_case_and_not_on_its_neighbour(tmp_path, case, there):
    history = parse(PAIRS["late-ack"][case])
    write_events(tmp_path, history.info, history.events)
    found, _ = candidates([load_run(tmp_path)], 1000)
    marked = [int(bits) & marks().bit(LATE_ACK) for bits in found.marks] if len(found) else []
    assert any(marked) is there


def test_it_is_in_the_register():
    assert "late-ack" in names()
"""

WORKLOAD = """
from wrackline.harness.specification.spec import parse
from wrackline.workloads.edge import EdgeWorkload
from wrackline.workloads.log import workload_for


def test_a_specification_knows_it():
    spec = parse("{name: x, workload: {name: edge, enders: 3}}", "x.yaml").workload
    assert workload_for(spec) is EdgeWorkload
    assert (spec.weights, spec.concurrency) == ({"send": 1, "end": 4}, 7)
"""

SYSTEM = """
import inspect

import pytest
from tests.systems.here import Here

from wrackline.harness.specification.spec import parse
from wrackline.systems.base import System
from wrackline.systems.other import OtherSpec, OtherSystem


def test_a_specification_knows_it():
    spec = parse("{name: x, system: {kind: other, program: /bin/broker}}", "x.yaml")
    assert spec.system == OtherSpec(program="/bin/broker")


def test_it_is_a_system():
    for name, wanted in inspect.getmembers(System, inspect.isfunction):
        if not name.startswith("_"):
            assert inspect.signature(getattr(OtherSystem, name)) == inspect.signature(wanted), name


@pytest.fixture
def here(tmp_path):
    fleet = Here(tmp_path)
    yield fleet
    fleet.end()
"""

OF_EVERY_ANOMALY = (
    "tests/checkers/anomalies/test_anomalies_command.py",
    "tests/checkers/verdict/test_contracts.py",
    "tests/proving/test_proving.py::test_every_check_has_a_pair_of_cases",
    "tests/docs/test_references.py::test_every_anomaly_that_is_looked_for_is_a_row_and_no_other_is",
)
"""Tests that go through all anomalies: the recipe leaves nothing out."""
JUDGED = ("tests/proving/test_proving.py", "tests/checkers/anomalies/test_anomalies.py")

RECIPES = {
    "A fault": ("tests/nemesis/faults/processes", "test_priority.py", FAULT_TEST, 3),
    "An anomaly": ("tests/checkers", "", ANOMALY, 3),
    "A workload": ("tests/workloads", "test_edge.py", WORKLOAD, 2),
    "A system": ("tests/systems", "test_other.py", SYSTEM, 3),
}
"""Heading -> folder of tests, the recipe's own test, what is tested besides, how many tests that makes."""


def section(heading: str) -> str:
    text = (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8")
    return text.split(f"\n### {heading}\n", 1)[1].split("\n### ", 1)[0]


def apply(tree: Path, recipe: str) -> list[str]:
    """Every block of code where it says; returns the files."""
    touched = []
    for block in _BLOCK.finditer(recipe):
        file, code = tree / block["file"], block["code"]
        match block["how"]:
            case "new file":
                assert not file.exists(), f"{block['file']} is there already"
                file.write_text(code)
            case "added to":
                file.write_text(file.read_text() + "\n\n" + code)
            case _:
                file.write_text(patched(file.read_text(), code))
        touched.append(block["file"])
    assert len(touched) == len(re.findall("^```[a-z]", recipe, re.M)), "a block without its file"
    return touched


def patched(text: str, diff: str) -> str:
    for hunk in diff.split("@@\n"):
        lines = [(line[:1] or " ", line[1:]) for line in hunk.splitlines()]
        before = "".join(f"{line}\n" for kind, line in lines if kind in " -")
        after = "".join(f"{line}\n" for kind, line in lines if kind in " +")
        assert text.count(before) == 1, f"what is to be changed is not there once:\n{before}"
        text = text.replace(before, after)
    return text


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    """A copy of what recipes change and their tests need."""
    unwanted = shutil.ignore_patterns("__pycache__", "frames", "*.class")
    for name in (*PACKAGES, *(f"tests/{each}" for each in TESTS)):
        shutil.copytree(ROOT / name, tmp_path / name, symlinks=True, ignore=unwanted)
    for name in ("pyproject.toml", "tests/__init__.py", "tests/conftest.py"):
        shutil.copy(ROOT / name, tmp_path / name)
    shutil.copy(Path(__file__).with_name("here.py"), tmp_path / "tests/systems/here.py")
    return tmp_path


@pytest.mark.parametrize("heading", RECIPES)
def test_a_recipe_does_what_it_says(tree: Path, heading: str) -> None:
    folder, own, besides, count = RECIPES[heading]
    apply(tree, section(heading))
    test = tree / folder / "test_recipe.py"
    test.write_text(besides + (tree / folder / own).read_text() if own else besides)
    told = passes(tree, str(test))
    assert f"{count} passed" in told or "skipped" in told


def test_an_anomaly_is_one_file_one_pair_of_cases_and_one_row(tree: Path) -> None:
    touched = apply(tree, section("An anomaly"))
    assert touched == [
        "checkers/anomalies/late_ack.py",
        "proving/pairs.txt",
        "docs/anomalies.md",
    ]
    passes(tree, *OF_EVERY_ANOMALY)


@pytest.mark.nightly
@pytest.mark.timeout(JUDGED_PATIENCE_S)
def test_the_judge_finds_the_anomaly_of_the_recipe_and_the_report_explains_it(tree: Path) -> None:
    apply(tree, section("An anomaly"))
    told = passes(tree, "-rp", *JUDGED, patience_s=JUDGED_PATIENCE_S)
    assert "::test_the_bad_case_of_an_anomaly_shows_it_and_the_good_case_does_not[late-ack]" in told


def passes(tree: Path, *tests: str, patience_s: int = PATIENCE_S) -> str:
    """What pytest says of these tests in the copy. They must pass."""
    done = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", *tests],
        cwd=tree,
        env={**os.environ, "PYTHONPATH": str(tree), "PYTHONDONTWRITEBYTECODE": "1"},
        capture_output=True,
        text=True,
        timeout=patience_s,
        check=False,
    )
    assert done.returncode == 0, done.stdout[-6000:] + done.stderr[-2000:]
    return done.stdout


def test_the_code_of_recipes_passes_the_linter(tree: Path) -> None:
    touched = {file for heading in RECIPES for file in apply(tree, section(heading))}
    files = {file for file in touched if file.endswith(".py")}
    for command in (["format", "--check", "--quiet"], ["check", "--quiet"]):
        call = [sys.executable, "-m", "ruff", *command, *sorted(files)]
        done = subprocess.run(call, cwd=tree, capture_output=True, text=True, timeout=PATIENCE_S, check=False)
        assert done.returncode == 0, f"{command}: {done.stdout}{done.stderr}"
    for block in _BLOCK.finditer((ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8")):
        assert [line for line in block["code"].splitlines() if len(line) > 110] == []


def test_a_recipe_that_no_longer_fits_is_noticed(tree: Path) -> None:
    (tree / "pyproject.toml").write_text("nothing of it\n")
    with pytest.raises(AssertionError, match="what is to be changed is not there once"):
        apply(tree, section("A fault"))
