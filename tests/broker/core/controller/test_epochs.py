"""The epoch cache follows its rules and the golden vectors A to G of docs/protocol.md 2.3."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from wrackline.broker.model.epochs import EpochCache
from wrackline.broker.model.messages.requests import EpochEndOffset
from wrackline.broker.model.types import EpochEntry
from wrackline.broker.rules.replication.epoch_end import end_of_epoch


def cache_of(epochs: list[int], leading: int | None = None) -> EpochCache:
    cache = EpochCache()
    for offset, epoch in enumerate(epochs):
        cache = cache.assign(epoch, offset)
    return cache if leading is None else cache.assign(leading, len(epochs))


def test_an_epoch_newer_than_any_here_is_undefined() -> None:
    assert end_of_epoch(cache_of([1, 1]), 2, 2) is None
    assert end_of_epoch(EpochCache(), 0, 0) is None
    assert end_of_epoch(cache_of([1]), -1, 1) is None


def test_an_epoch_older_than_any_here_ends_where_the_first_starts() -> None:
    assert end_of_epoch(EpochCache.of([(5, 10)]), 3, 20) == EpochEndOffset(3, 10)


def test_assigning_drops_what_contradicts_it() -> None:
    cache = EpochCache.of([(1, 0), (2, 5), (3, 8)])
    assert cache.assign(4, 6).entries == (EpochEntry(1, 0), EpochEntry(2, 5), EpochEntry(4, 6))
    assert cache.assign(2, 9).entries == (EpochEntry(1, 0), EpochEntry(2, 9))
    assert cache.assign(3, 12) is cache
    assert cache.assign(3, 7).entries[-1] == EpochEntry(3, 7)


def test_an_epoch_without_records_goes_with_a_truncation_that_shortens_nothing() -> None:
    cache = cache_of([1, 1], leading=2)
    assert cache.truncate_from_end(2).entries == (EpochEntry(1, 0),)
    assert cache.truncate_from_end(3) is cache


def test_truncating_the_start_keeps_the_epoch_in_force_there() -> None:
    cache = EpochCache.of([(1, 0), (2, 5), (3, 8)])
    assert cache.truncate_from_start(6).entries == (EpochEntry(2, 6), EpochEntry(3, 8))
    assert cache.truncate_from_start(5).entries == (EpochEntry(2, 5), EpochEntry(3, 8))
    assert cache.truncate_from_start(20).entries == (EpochEntry(3, 20),)
    assert cache.truncate_from_start(0) is cache


def test_entries_that_do_not_increase_are_refused() -> None:
    with pytest.raises(ValueError, match="cannot follow"):
        EpochCache.of([(1, 0), (2, 0)])


@given(
    st.lists(
        st.tuples(
            st.sampled_from(["assign", "end", "start"]),
            st.integers(0, 6),
            st.integers(0, 12),
        ),
        max_size=25,
    )
)
def test_any_sequence_of_changes_keeps_epochs_and_starts_increasing(
    steps: list[tuple[str, int, int]],
) -> None:
    cache = EpochCache()
    for kind, epoch, offset in steps:
        if kind == "assign":
            cache = cache.assign(epoch, offset)
            assert cache.latest == epoch
        elif kind == "end":
            cache = cache.truncate_from_end(offset)
        else:
            cache = cache.truncate_from_start(offset)
        assert EpochCache.of(cache.entries) == cache
