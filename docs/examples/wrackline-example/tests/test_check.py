"""The check, on a history that has the anomaly and on its nearest neighbour that has not."""

from __future__ import annotations

from wrackline_example import check

from wrackline.api import anomalies_in


def test_a_slow_write_is_found_and_a_quick_one_is_not() -> None:
    assert check.SLOW_NS == 500_000_000
    slow, quick = "p: (a | c: from 0 | p: a@0) | final a@0", "p: a@0 | c: from 0 | final a@0"
    assert anomalies_in(slow, quick, step_s=0.3) == [{"slow-write": 1}, {}]
