"""Every fault says exactly what it does, undoes and probes: the steps are kept as files and compared
whole."""

from __future__ import annotations

import json
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

import pytest

from tests.nemesis.doubles import combined_scene, context
from wrackline.nemesis.faults import programs
from wrackline.nemesis.faults.network.partitions import Partition
from wrackline.nemesis.faults.processes.processes import Kill, Pause, Restart
from wrackline.nemesis.faults.shapes import Shape
from wrackline.nemesis.faults.step import Step
from wrackline.nemesis.faults.steps import Commands, FaultError, TcpProbeFrom
from wrackline.nemesis.spec import FAULT
from wrackline.plugins.registry import Group, entries

PARTS = ("do", "probe", "watch", "undo", "control", "lasting")
PROGRAMS = sorted(Path(programs.__file__).parent.rglob("*_program.py"))
GOLDEN = sorted((Path(__file__).parent / "golden").glob("*.json"))


def as_json(commands: Commands) -> dict[str, Any]:
    def line(step: Step) -> dict[str, Any]:
        # Commands as lists of lines, without the programs in them: a person has to read these files.
        fields = {
            name: _without_programs(value).split("\n") if name == "command" else value
            for name, value in asdict(step).items()
        }
        return {"step": type(step).__name__, **fields}

    steps = {part: [line(step) for step in getattr(commands, part)] for part in PARTS}
    found: dict[str, Any] = json.loads(json.dumps(steps))
    return found


def _without_programs(command: str) -> str:
    for file in PROGRAMS:
        command = command.replace(file.read_text(), f"<{file.name}>")
    return command


@pytest.mark.parametrize("file", GOLDEN, ids=lambda file: file.stem)
def test_a_fault_gives_the_steps_that_were_reviewed(file: Path) -> None:
    golden = json.loads(file.read_text())
    fault = FAULT.validate_python(golden["inject"]).build()
    stopped = golden["inject"]["fault"] in ("add-broker", "add-controller")
    scene = context(*golden["targets"], pid=None if stopped else 41, spare=golden.get("spare"))
    if golden.get("disks") == 2:
        targets = tuple(replace(one, more_disks=("/data2",)) for one in scene.targets)
        scene = replace(scene, targets=targets)
    if golden["inject"]["fault"] == "tier":
        scene = replace(scene, targets=tuple(replace(one, shared="/shared") for one in scene.targets))
    assert as_json(fault.commands(scene)) == golden["steps"]


def test_every_fault_and_every_shape_has_a_golden_file() -> None:
    kinds = {json.loads(file.read_text())["inject"]["fault"] for file in GOLDEN}
    shapes = {json.loads(file.read_text())["inject"].get("shape") for file in GOLDEN}
    assert kinds == {one.name for one in entries(Group.FAULTS) if one.is_ours}
    assert shapes - {None} == {str(shape) for shape in Shape}


@pytest.mark.parametrize("fault", [Kill(), Pause(), Restart()], ids=lambda fault: fault.name)
def test_a_process_fault_refuses_a_node_that_does_not_run(fault: Kill | Pause | Restart) -> None:
    with pytest.raises(FaultError, match="node 2 on n2 does not run"):
        fault.commands(context("n2", pid=None))


def test_a_partition_with_nobody_on_the_other_side_is_refused() -> None:
    with pytest.raises(FaultError, match="nobody is left"):
        Partition(Shape.ISOLATE, controllers=False).commands(context("n1", "n2", "n3"))


def test_a_cut_that_spares_the_controllers_lets_their_port_pass_where_they_share_a_host() -> None:
    spared = [
        f'-A WRACK-f1 -p tcp --{side} 9093 -m comment --comment "controllers" -j RETURN'
        for side in ("dport", "sport")
    ]
    for controllers in (True, False):
        installed = [
            getattr(step, "command").split("\n")  # noqa: B009
            for step in Partition(controllers=controllers).commands(combined_scene("n2")).do
        ]
        assert len(installed) == 3
        for lines in installed:
            rules = [line for line in lines if line.startswith("-A")]
            assert (rules[:2] == spared) is not controllers
            assert {rule.rpartition(" ")[2] for rule in rules[0 if controllers else 2 :]} == {"DROP"}


def test_a_cut_knocks_at_brokers_and_controllers_but_not_where_it_lets_pass() -> None:
    def probed(controllers: bool) -> set[str]:
        probe = Partition(controllers=controllers).commands(combined_scene("n2")).probe
        return {way.name for step in probe if isinstance(step, TcpProbeFrom) for way in step.ways}

    brokers = {"n2>n1:9092", "n2>n3:9092", "n1>n2:9092", "n3>n2:9092"}
    assert probed(controllers=False) == brokers
    assert probed(controllers=True) == brokers | {way.replace("9092", "9093") for way in brokers}


def test_undoing_names_only_the_chain_of_the_fault() -> None:
    """A fault f1 must not take the rules of f10, nor anybody else's, with it."""
    for step in Partition().commands(context("n1", fault_id="f1")).undo:
        words = getattr(step, "command").replace(";", " ").split()  # noqa: B009
        flushed = [words[at + 1] for at, word in enumerate(words) if word in ("-F", "-X", "-j")]
        assert set(flushed) == {"WRACK-f1"}
        assert "grep -qw -e WRACK-f1" in getattr(step, "command")  # noqa: B009
