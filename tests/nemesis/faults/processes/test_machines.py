"""A machine that its hypervisor holds is silent until the fault ends, and answers afterwards; else nothing is
proved."""

from __future__ import annotations

import pytest

from tests.nemesis.doubles import context
from wrackline.nemesis.faults.processes.machines import FreezeHost, UnplugHost
from wrackline.nemesis.faults.steps import ProbeLog, StepResult

SILENT, ANSWERED = "silence", "connected"


@pytest.mark.parametrize("fault", [FreezeHost(), UnplugHost()], ids=lambda fault: fault.name)
@pytest.mark.parametrize(
    ("first", "last", "after", "why"),
    [
        (SILENT, SILENT, ANSWERED, None),
        (ANSWERED, SILENT, ANSWERED, "n2 answered at the beginning"),
        (SILENT, ANSWERED, ANSWERED, "n2 answered at the end"),
        (SILENT, SILENT, SILENT, "n2 did not answer after the undo either"),
    ],
)
def test_silence_must_begin_and_end_with_the_fault(
    fault: FreezeHost | UnplugHost, first: str, last: str, after: str, why: str | None
) -> None:
    there = context("n2")
    steps = fault.commands(there)
    probe_log = ProbeLog(
        do=[StepResult(step) for step in steps.do],
        active=[StepResult(step, first) for step in steps.probe],
        final=[StepResult(step, last) for step in steps.probe],
        undo=[StepResult(step) for step in steps.undo],
        control=[StepResult(step, after) for step in steps.control],
    )
    proof = fault.prove(there, probe_log)
    assert proof.proved is (why is None)
    assert proof.text.startswith(why or "n2 ")
