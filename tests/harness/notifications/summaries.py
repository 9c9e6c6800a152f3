"""Runs of a night as what goes out is made of them."""

from __future__ import annotations

from dataclasses import replace

from upath import UPath

from wrackline.checkers.findings import Meaning, Verdict
from wrackline.harness.notifications.run_summary import RunSummary
from wrackline.harness.records import FaultDone, Found, Record, State

METRICS = {"acknowledged": 1814.0, "acknowledged_per_s": 99.5, "send_p99_ms": 12.0, "judged_in_s": 3.5}


def violation(name: str, anomaly: str = "lost-write", *, new: bool = True, **more: str) -> RunSummary:
    return RunSummary(
        name,
        Verdict.VIOLATION,
        more.get("headline", "7 acknowledged records are gone"),
        "again in 3 of 3",
        more.get("file", ""),
        Record(
            run=f"20261123T0200-{name}",
            folder=UPath("/nowhere") / name,
            state=State.JUDGED,
            system="apache-kafka",
            version="4.0.0",
            verdict=Verdict.VIOLATION,
            found=(Found(anomaly, Meaning.VIOLATION, 7), Found("duplicate", Meaning.ALLOWED, 2)),
            faults=(FaultDone("f1", "power-cut", ("n1",), "leader", 1.0, 2.0, True),),
            metrics=METRICS,
        ),
        new=new,
    )


def expected(name: str) -> RunSummary:
    """A violation of a run that had to be one."""
    made = violation(name, new=False)
    assert made.record is not None
    return replace(made, record=replace(made.record, must_violate=True))


PASSED = RunSummary("demo.s1", Verdict.PASS, "nothing was lost")
UNDECIDED = RunSummary("demo.s2", Verdict.INCONCLUSIVE, "fault f2 was not proved", file="suites/demo.yaml")
NO_HOSTS = RunSummary("demo.s3", Verdict.INFRASTRUCTURE, "no host could be made")
NOT_MADE = RunSummary("demo.s4", None, "")
NIGHT = [PASSED, violation("canary"), UNDECIDED, NO_HOSTS, NOT_MADE]
