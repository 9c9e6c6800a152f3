"""What is said of an incident."""

from __future__ import annotations

from typing import Any

import pytest

from wrackline.checkers.verdict.incidents.sentences import in_full


def incident(*anomalies: tuple[str, str, int]) -> dict[str, Any]:
    seen = [{"anomaly": name, "meaning": meaning, "count": count} for name, meaning, count in anomalies]
    return {
        "meaning": "violation",
        "sentence": "two logs differ",
        "mechanism": ("n2 led.",),
        "anomalies": seen,
    }


@pytest.mark.parametrize(
    ("anomalies", "evidence"),
    [
        ([("phantom", "violation", 1)], ""),
        ([("phantom", "violation", 1_200)], " Evidence: 1,200 phantom."),
        (
            [("stale-read", "allowed", 6), ("lost-write", "violation", 7), ("vanished-read", "violation", 1)],
            " Evidence: 7 lost-write, 1 vanished-read and 6 stale-read (allowed).",
        ),
    ],
)
def test_an_incident_in_full_names_its_evidence(anomalies: list[tuple[str, str, int]], evidence: str) -> None:
    assert in_full(incident(*anomalies)) == f"Two logs differ. n2 led.{evidence}"
