"""A simulated run has the files of a run on hosts: traces, every change of its partitions, clocks."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from wrackline.checkers.inputs.cluster_history import LeaderSpan, exact_spans, polled_spans
from wrackline.checkers.inputs.runs import Run, load_run
from wrackline.harness.run.invariants import invariants_of
from wrackline.history import read_info
from wrackline.history.model import CONTROL, Event
from wrackline.simulator.cli import simulate
from wrackline.simulator.faults.setup import TOPIC, Setup
from wrackline.simulator.output.export import write_run
from wrackline.simulator.run import Result, run
from wrackline.systems.wrackline.metadata_changes import chronicle

SHORT = Setup(seed=1, seconds=6.0, partitions=2, fault_every_ms=500.0, kinds=("kill", "power", "lag"))


@pytest.fixture(scope="module", params=["kip966", "zk08"])
def exported(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> tuple[Result, Run]:
    setup = SHORT if request.param == "kip966" else Setup(seed=0, seconds=10.0, profile="zk08")
    result, folder = run(setup, traced=True), tmp_path_factory.mktemp("exported")
    write_run(setup, result.events, folder, result.traces)
    return result, load_run(folder)


def test_every_change_that_clients_saw_is_one_that_was_written_down(exported: tuple[Result, Run]) -> None:
    result, loaded = exported
    nodes = {str(node): host for node, host in loaded.nodes.items()}
    exact = exact_spans(loaded.changes, nodes, loaded.end_ns)
    polled = polled_spans([one for one in result.events if one.process == CONTROL], nodes, loaded.end_ns)
    assert exact.keys() == polled.keys()
    for label, seen in polled.items():
        assert len(exact[label]) > 1
        assert {_state(one) for one in seen} == {_state(one) for one in exact[label]}


def test_the_changes_are_those_that_the_controllers_have_traced(tmp_path: Path) -> None:
    result = run(SHORT, traced=True)
    write_run(SHORT, result.events, tmp_path, result.traces)
    traced = chronicle({file.parent.name: file for file in tmp_path.glob("nodes/*/trace.jsonl")}, TOPIC)
    assert not traced.missing
    for partition in range(SHORT.partitions):
        told = [_numbers(one) for one in load_run(tmp_path).changes if one.partition == partition]
        first, *later = [
            (one.leader_epoch, one.leader, one.partition_epoch, list(one.isr), one.at_ns)
            for one in traced.changes
            if one.partition == partition
        ]
        assert told[0][:-1] == first[:-1], "the history begins when the topic is there"
        assert told[1:] == later
        assert later


def _numbers(change: Event) -> tuple[Any, ...]:
    extra = change.extra or {}
    return change.leader_epoch, extra["leader"], extra["partition_epoch"], extra["isr"], extra["at_ns"]


def _state(span: LeaderSpan) -> tuple[object, ...]:
    return span.leader, span.leader_epoch, span.isr, span.elr


def test_the_invariants_are_asked_of_the_traces(exported: tuple[Result, Run]) -> None:
    _, loaded = exported
    section = invariants_of(loaded.directory, read_info(loaded.directory))
    assert section is not None
    assert len(section["checked"]) > 5
    assert section["broken"] == []
    assert section["unread"] == 0


def test_an_invariant_that_a_defect_breaks_is_found_in_the_export_too(tmp_path: Path) -> None:
    folder = tmp_path / "r"
    command = ["--seed", "0", "--seconds", "8", "--defect", "elr_not_cleared", "--lines", "1"]
    done = CliRunner().invoke(simulate, [*command, "--history", str(folder)])
    assert done.exit_code == 1, done.output
    assert "VIOLATION I14" in done.output
    section = invariants_of(folder, read_info(folder))
    assert section is not None
    assert [(one["id"], one["node"]) for one in section["broken"]] == [("I14", "c1 (node 101)")]


def test_a_folder_with_a_run_in_it_is_left_as_it_is(tmp_path: Path) -> None:
    result = run(Setup(seed=1, seconds=1.0), traced=True)
    write_run(result.setup, result.events, tmp_path, result.traces)
    before = {file: file.read_bytes() for file in tmp_path.rglob("*") if file.is_file()}
    command = ["--seed", "2", "--seconds", "1", "--history", str(tmp_path)]
    done = CliRunner().invoke(simulate, command)
    assert done.exit_code == 2
    assert "--history names another folder" in done.output
    assert {file: file.read_bytes() for file in tmp_path.rglob("*") if file.is_file()} == before
