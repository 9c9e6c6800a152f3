"""The end of a leader epoch in a log: the lookup that truncation rests on (KIP-101, KIP-279; docs/protocol.md
2.3, H14).

A follower that asks "is my log a prefix of yours?" names the epoch of its last record. The leader answers
with the largest epoch of its own that is not newer, and with the offset at which the next epoch of its own
starts.
"""

from __future__ import annotations

from bisect import bisect_right

from wrackline.broker.model.epochs import EpochCache
from wrackline.broker.model.messages.requests import EpochEndOffset
from wrackline.broker.model.types import NO_EPOCH


def end_of_epoch(cache: EpochCache, epoch: int, leo: int) -> EpochEndOffset | None:
    """Returns where ``epoch`` ends in the log of end ``leo`` whose leader epochs ``cache`` has.

    The leader asks it in ``broker/core/requests/fetch.py::FetchHandler._log_fault``, the follower of its own
    log in ``broker/core/replication/fetching/following.py::Following._diverged``; what both make of it is in
    ``broker/rules/replication/truncation.py``.

    Its newest epoch ends where the log ends. An epoch that the log does not have is answered with the one
    before it (KIP-279), or with itself when it is older than all. None: the epoch is undefined, or newer than
    any here (the asker is ahead of this log).
    """
    entries = cache.entries
    if epoch == NO_EPOCH or not entries:
        return None
    if epoch == cache.latest:
        return EpochEndOffset(epoch, leo)
    above = bisect_right(entries, epoch, key=lambda entry: entry.epoch)
    if above == len(entries):
        return None
    floor = entries[above - 1].epoch if above else epoch
    return EpochEndOffset(floor, entries[above].start_offset)
