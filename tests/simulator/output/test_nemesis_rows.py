"""A simulated run records its own faults, and its contract judges by them."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from wrackline.checkers.checks.registry import anomalies
from wrackline.checkers.findings import Meaning
from wrackline.checkers.inputs.runs import Run, load_run
from wrackline.checkers.verdict.contracts import contract_for
from wrackline.checkers.verdict.lossy_shutdowns import lossy_shutdowns, worst_losses
from wrackline.history.model import NEMESIS
from wrackline.simulator.faults.setup import Setup
from wrackline.simulator.output.export import write_run
from wrackline.simulator.run import run

PLACE = ("t", 0)
HARD = Setup(
    seconds=8.0,
    fault_every_ms=500.0,
    kinds=("power", "power-midway", "kill", "lag"),
    invariants=False,
    liveness=False,
    partitions=1,
)


def exported(tmp_path: Path, **more: object) -> tuple[Run, int]:
    """The run as the checkers read it, and how many rows of the nemesis it has."""
    result = run(replace(HARD, **more))  # type: ignore[arg-type]
    write_run(result.setup, result.events, tmp_path / "r")
    return load_run(tmp_path / "r"), sum(event.process == NEMESIS for event in result.events)


def test_every_fault_has_its_rows_and_power_cuts_say_what_they_took(tmp_path: Path) -> None:
    judged, rows = exported(tmp_path, seed=6, max_lossy=3)
    assert rows == 4 * len(judged.faults)
    assert all(fault.ended_ns is not None and fault.begin_ns is not None for fault in judged.faults)
    assert all(fault.proved for fault in judged.faults if not fault.name.endswith("-midway"))
    shutdowns = lossy_shutdowns(judged, PLACE)
    assert shutdowns
    for fault in judged.faults:
        assert set(fault.lost) == set(fault.lossy)
        assert all(size > 0 for files in fault.lost.values() for size in files.values())
        assert not fault.lossy or fault.name.startswith("power")
    assert judged.cluster[PLACE][0].full_isr
    assert set(judged.assignment[PLACE]) == {1, 2, 3}


def test_more_losses_than_the_contract_bears_are_allowed_to_lose_and_fewer_are_not(tmp_path: Path) -> None:
    judged, _ = exported(tmp_path / "many", seed=6, max_lossy=3)
    assert len(worst_losses(judged, PLACE)) > 1
    assert contract_for(judged, anomalies()).ruling("lost-write", PLACE).meaning is Meaning.ALLOWED
    judged, _ = exported(tmp_path / "few", seed=3, max_lossy=1)
    assert len(worst_losses(judged, PLACE)) <= 1
    assert contract_for(judged, anomalies()).ruling("lost-write", PLACE).meaning is Meaning.VIOLATION
