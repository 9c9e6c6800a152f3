"""Whether everything that a group was given was processed: consume, transform, produce."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from wrackline.checkers.anomalies.about import AboutRun
from wrackline.checkers.anomalies.finding import Finding, seconds
from wrackline.checkers.anomalies.transactions.coordinator import Offsets
from wrackline.checkers.anomalies.transactions.events import Events
from wrackline.checkers.anomalies.transactions.matches import Matches


def unprocessed_inputs(events: Events, _: Matches, about: AboutRun) -> Iterator[Finding]:
    """Of records that are in the final read. A transaction of unknown end may have processed what it was
    given. Of a compacted topic nothing is said: a record that was to be given again may be gone by then."""
    reached: dict[tuple[str, int], Offsets] = {}
    for one in events.coordinator.commits:
        for number in one.offsets if one.type == "ok" else ():
            before = reached.get((one.group, number), one)
            reached[one.group, number] = max(before, one, key=lambda c: (c.offsets[number], c.last_index))
    for (group, number), last in reached.items():
        log = about.of_number[number]
        if log.compacted:
            continue
        processes = [process for process, groups in events.members.items() if group in groups]
        of_group = np.isin(events.polls.process, np.array(processes, np.int64))
        given = np.flatnonzero((events.given.log == number) & of_group[events.given.of])
        given = given[events.given.offset[given] < last.offsets[number]]
        polls = events.given.of[given]
        order = np.lexsort((events.polls.index[polls], events.given.offset[given]))
        given, polls = given[order], polls[order]
        offsets, begin = np.unique(events.given.offset[given], return_index=True)
        if not len(offsets):
            continue
        undone = np.minimum.reduceat(events.polls.of.undone[polls], begin) == 1
        last_poll = polls[np.append(begin[1:], len(polls)) - 1]
        kept = np.flatnonzero((events.final.log == number) & (events.final.value >= 0))
        at = np.minimum(np.searchsorted(offsets, events.final.offset[kept]), len(offsets) - 1)
        hit = (offsets[at] == events.final.offset[kept]) & undone[at]
        for row, poll in zip(kept[hit].tolist(), last_poll[at[hit]].tolist(), strict=True):
            offset, value = int(events.final.offset[row]), int(events.final.value[row])
            poll_ns = int(events.polls.ns[poll])
            yield Finding(
                anomaly="unprocessed-input",
                log=log,
                offset=offset,
                value=value,
                operations=[int(events.polls.index[poll]), last.complete_index, int(events.final.of[row])],
                sentence=(
                    f"Value {about.value(value)} is at offset {offset:,} of {log}, and group {group} "
                    "committed "
                    f"offset {last.offsets[number]:,} (process {about.process(last.process)} did, at "
                    f"{seconds(last.complete_ns)}), but the group was given that record in aborted "
                    "transactions "
                    f"alone, last to process {about.process(int(events.polls.process[poll]))} at "
                    f"{seconds(poll_ns)}"
                ),
                since_ns=poll_ns,
                until_ns=last.complete_ns,
            )
