"""The partition of ``__consumer_offsets`` that has a group: Java's own numbers."""

from __future__ import annotations

import pytest

from wrackline.checkers.anomalies.groups.answers import partition_of


@pytest.mark.parametrize(
    ("group", "code"),
    [
        ("", 0),
        ("hello", 99_162_322),
        ("wrackline", -396_865_342),
        ("\N{GRINNING FACE}", 1_772_899),
        ("polygenelubricants", -(2**31)),
    ],
)
def test_a_groups_partition_is_that_of_its_hash(group: str, code: int) -> None:
    """The smallest number has no positive counterpart, and is 0."""
    expected = 0 if code == -(2**31) else abs(code) % 50
    assert partition_of(group, 50) == expected
    assert partition_of(group, 1) == 0
