"""Which violations of a night are news."""

from __future__ import annotations

from dataclasses import replace

import pytest

from tests.harness.notifications.summaries import expected, violation
from wrackline.harness.nights.summary import _is_news
from wrackline.harness.records import Record


def shown(*, must: bool = False) -> Record:
    made = (expected if must else violation)("x").record
    assert made is not None
    return made


@pytest.mark.parametrize(
    ("one", "told", "worked_on", "news"),
    [
        (shown(), False, False, True),
        (shown(), True, False, False),
        (shown(), False, True, False),
        (shown(must=True), False, False, False),
        (replace(shown(), version="4.0.1"), False, True, True),
    ],
)
def test_news_is_neither_expected_nor_told_nor_worked_on(
    one: Record, told: bool, worked_on: bool, news: bool
) -> None:
    """A ticket is of one version: on another the incident is another."""
    known = {shown().signature} if told else ()
    assert _is_news(one, known, shown().incident_ids if worked_on else ()) is news
