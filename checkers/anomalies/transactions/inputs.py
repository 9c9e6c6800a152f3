"""Checks that everything a group was given was processed: consume, transform, produce."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from wrackline.checkers.anomalies.transactions.events import Events
from wrackline.checkers.anomalies.transactions.matches import Matches
from wrackline.checkers.checks.about import AboutRun
from wrackline.checkers.checks.events import Request
from wrackline.checkers.checks.finding import Finding, seconds
from wrackline.checkers.inputs.table import place_in, values_at


def unprocessed_inputs(events: Events, _: Matches, about: AboutRun) -> Iterator[Finding]:
    """Yields a finding for each record of the final read that a group was given and did not process. A
    transaction of unknown end may have processed what it was given. Of a compacted topic nothing is said:
    a record that was to be given again may be gone by then."""
    reached: dict[tuple[str, int], Request] = {}
    for one in events.coordinator.commits:
        for number in one.event.offsets if one.type == "ok" else ():
            before = reached.get((one.event.of, number), one)
            last = max(before, one, key=lambda c: (c.event.offsets[number], c.last_index))
            reached[one.event.of, number] = last
    for (group, number), last in reached.items():
        log, end = about.of_number[number], last.event.offsets[number]
        if log.compacted:
            continue
        of_group = np.isin(events.polls.process, np.array([*events.members.get(group, ())], np.int64))
        rows = np.flatnonzero((events.given.log == number) & of_group[events.given.of])
        rows = rows[events.given.offset[rows] < end]
        polls = events.given.of[rows]
        order = np.lexsort((events.polls.index[polls], events.given.offset[rows]))
        rows, polls = rows[order], polls[order]
        offsets, begin = np.unique(events.given.offset[rows], return_index=True)
        if not len(offsets):
            continue
        undone = np.minimum.reduceat(events.polls.undone[polls], begin)
        latest = rows[np.append(begin[1:], len(polls)) - 1]
        kept = np.flatnonzero((events.final.log == number) & (events.final.value >= 0))
        at = place_in(offsets, events.final.offset[kept])
        hit = values_at(undone, at) == 1
        for row, at_last in zip(kept[hit].tolist(), latest[at[hit]].tolist(), strict=True):
            (value, offset, final_index), read = events.final.at(row)[1:], events.read(at_last)
            yield Finding(
                anomaly="unprocessed-input",
                log=log,
                offset=offset,
                value=value,
                operations=[read.index, last.complete_index, final_index],
                sentence=(
                    f"Value {about.value(value)} is at offset {offset:,} of {log}, and group {group} "
                    f"committed offset {end:,} (process {about.process(last.event.process)} did, at "
                    f"{seconds(last.complete_ns)}), but the group was given that record in aborted "
                    f"transactions alone, last to process {about.process(read.process)} at {seconds(read.ns)}"
                ),
                since_ns=read.ns,
                until_ns=last.complete_ns,
            )
