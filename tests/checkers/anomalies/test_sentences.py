"""What findings say: names, times, and the faults that were in force."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from tests.checkers.histories import info
from wrackline.checkers.checks.about import AboutFault, AboutLog, AboutRun
from wrackline.checkers.checks.finding import Finding, apart, finished, known, least, seconds
from wrackline.history.labels import IMPORTED
from wrackline.history.model import CORRUPT, value_of

LOG = AboutLog(7, "log", 0, leaders=[(1_000, "n1", 3), (5_000, "n2", 4)])
S = 1_000_000_000
FAULTS = [AboutFault(n * S, (n + 1) * S, f"kill of n{n} at {n}.0 s") for n in range(1, 7)]


def run(**changes: Any) -> AboutRun:
    return AboutRun(0, info(**changes), {("log", 0): LOG}, FAULTS)


def finding(**changes: Any) -> Finding:
    whole = Finding(anomaly="lost-write", log=LOG, operations=[], sentence="It is gone", since_ns=0)
    return replace(whole, **changes)


def said(found: Finding) -> str:
    return str(finished(found, run())["explanation"])


def test_values_and_processes_are_called_as_in_the_report() -> None:
    ours, theirs = run(), run(system=IMPORTED)
    assert ours.value(value_of(3, 607)) == "p3·607"
    assert theirs.value(5 << 32 | 77) == "77"
    assert ours.value(CORRUPT) == "corrupt"
    assert (ours.process(17), theirs.process((1 << 24) + 3)) == ("17", "3 (consumer)")
    assert str(LOG) == "log-0"


@pytest.mark.parametrize(
    ("ns", "led"),
    [
        (999, ""),
        (1_000, " while n1 led (leader epoch 3)"),
        (4_999, " while n1 led (leader epoch 3)"),
        (5_000, " while n2 led (leader epoch 4)"),
        (None, ""),
    ],
)
def test_who_led_is_named_as_far_as_metadata_tells(ns: int | None, led: str) -> None:
    assert LOG.led_by(ns) == led


def test_times_that_look_the_same_get_more_digits() -> None:
    assert apart(1_000_000_001, 1_000_000_002) == ("1.000000001 s", "1.000000002 s")
    assert apart(2 * S, 1 * S) == ("2.000 s", "1.000 s")
    assert apart(None, S) == (None, "1.000 s")
    assert seconds(1_204_006_000_000) == "1,204.006 s"


def test_the_first_and_the_smallest_that_is_known() -> None:
    assert (known(None, 0, 3), known(None), known()) == (0, None, None)
    assert (least(5, None, 3), least(None)) == (3, None)


def test_faults_follow_the_sentence() -> None:
    assert said(finding()) == (
        "It is gone. These faults were in force at that time or later: kill of n1 at 1.0 s, kill of n2 at "
        "2.0 s, kill of n3 at 3.0 s, kill of n4 at 4.0 s and 2 more."
    )
    assert said(finding(since_ns=9 * S)) == "It is gone. No fault was in force at that time or later."
    assert (
        said(finding(since_ns=S // 2, until_ns=S - 1))
        == "It is gone. No fault was in force around that time."
    )
    assert said(finding(since_ns=3 * S, until_ns=3 * S)).endswith(
        "around that time: kill of n1 at 1.0 s, kill of n2 at 2.0 s, kill of n3 at 3.0 s."
    ), "one that ended within a second before is named too"


def test_the_smallest_eight_operations_are_kept_and_a_value_below_zero_is_none() -> None:
    row = finished(finding(operations=[*range(20, 8, -1), None, 9], value=CORRUPT), run())
    assert row["operations"] == list(range(9, 17))
    assert row["value"] is None
