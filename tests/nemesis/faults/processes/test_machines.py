"""A machine that its hypervisor holds is silent until the fault ends, and answers afterwards; else nothing is
proved."""

from __future__ import annotations

import pytest

from tests.nemesis.doubles import scene
from wrackline.nemesis.faults.processes.machines import FreezeHost, UnplugHost
from wrackline.nemesis.faults.steps import Done, Trail

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
    there = scene("n2")
    steps = fault.commands(there)
    trail = Trail(
        do=[Done(step) for step in steps.do],
        active=[Done(step, first) for step in steps.probe],
        final=[Done(step, last) for step in steps.probe],
        undo=[Done(step) for step in steps.undo],
        control=[Done(step, after) for step in steps.control],
    )
    proof = fault.prove(there, trail)
    assert proof.proved is (why is None)
    assert proof.text.startswith(why or "n2 ")
