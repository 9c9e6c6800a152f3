"""Findings of groups, with what is said of each."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

from wrackline.checkers.anomalies.groups.answers import DEPOSED, HIDDEN, LOST, REGRESSION
from wrackline.checkers.anomalies.groups.deliveries import Passed
from wrackline.checkers.anomalies.groups.events import Operation
from wrackline.checkers.checks.about import AboutLog, AboutRun, Tenure
from wrackline.checkers.checks.events import COMMIT, GroupEvent
from wrackline.checkers.checks.finding import Finding, seconds

_ALL = 0
"""Nanoseconds from when on faults are named with what need not have happened at any one time."""


@dataclass(frozen=True, slots=True)
class Findings:
    """Makes the findings of the groups of one run."""

    run: AboutRun

    def regression(self, one: Operation, before: Operation, how: str) -> Finding:
        if how == COMMIT:
            did = f"committed offset {one.offset:,} of {one.log}"
        else:
            got = "learned that there is none" if one.offset < 0 else f"got {one.offset:,}"
            did = f"asked for the committed offset of {one.log} and {got}"
        sentence = (
            f"{self._who(one)} {did} for group {one.event.of} at {_end(one)}, after a commit of offset "
            f"{before.offset:,} had {'taken effect by' if before.is_shown else 'succeeded at'} {_end(before)}"
        )
        return self._of(one, "commit-regression", sentence, _ns(before), before.until, where=how)

    def less(
        self, anomaly: str, answer: Operation, before: Operation, tenure: Tenure | None, log: str
    ) -> Finding:
        """An answer that shows less than had been committed. ``tenure``: of the coordinator by then, which
        led ``log``; None: nobody knows it."""
        finding = self.regression(answer, before, "read")
        if tenure is None:
            return finding
        host = self.run.host(answer.event.coordinator)
        by = host if answer.event.is_certain else f"{host} (its client's coordinator)"
        request = (
            "a request for stable offsets" if answer.event.is_stable else "a request without require_stable"
        )
        since = f"at {seconds(tenure.latest_ns)} in leader epoch {tenure.leader_epoch} of {log}"
        clause = {
            DEPOSED: f"{by} answered, which {tenure.host} had replaced {since}",
            HIDDEN: f"{by}, elected {since}, answered {request}, and later answers show the commit",
            LOST: f"{by}, elected {since}, answered {request}, and no later answer shows the commit",
            REGRESSION: f"{by}, elected {since}, answered {request}",
        }[anomaly]
        return replace(finding, anomaly=anomaly, sentence=f"{finding.sentence}; {clause}", where=log)

    def beyond_end(self, one: Operation) -> Finding:
        sentence = (
            f"{self._committed(one)} at {_end(one)}, but the final read of the partition ends at offset "
            f"{one.log.end:,}"
        )
        return self._of(one, "commit-beyond-end", sentence, _ns(one), open_ended=True)

    def zombie(self, one: Operation, newer: GroupEvent, start: int | None = None) -> Finding:
        """``start``: where the newer member began, which was not shown the commit."""
        begun = "" if start is None else f", and it began at offset {start:,}"
        sentence = (
            f"{self._committed(one)} under generation {one.event.generation} at {_end(one)}, though "
            f"{self._given(newer)}{begun}"
        )
        return self._of(one, "zombie-commit", sentence, newer.ns, newer.index)

    def late_zombie(self, answer: Operation, one: Operation, newer: GroupEvent) -> Finding:
        """``one``: a commit of unknown outcome, which the answer shows to have taken effect late."""
        sentence = (
            f"{self._got(answer)}, which process {self.run.process(one.event.process)} had asked to commit "
            f"under generation {one.event.generation}, though {self._given(newer)} and it was not committed "
            "then or later"
        )
        return self._of(answer, "zombie-commit", sentence, newer.ns, one.since, newer.index)

    def phantom(self, answer: Operation) -> Finding:
        sentence = f"{self._got(answer)}, an offset that nobody had committed"
        return self._of(answer, "phantom-commit", sentence, _ALL)

    def start(
        self, anomaly: str, rebalance: GroupEvent, log: AboutLog, start: int, before: Operation
    ) -> Finding:
        """A generation that begins where its group had not committed."""
        but = ", though" if anomaly == "forgotten-commit" else ", which was not committed:"
        return Finding(
            anomaly=anomaly,
            log=log,
            offset=start,
            operations=[before.since, before.until, rebalance.index],
            sentence=f"Process {self.run.process(rebalance.process)} was given {log} by group {rebalance.of} "
            f"at {seconds(rebalance.ns)} and began at offset {start:,}{but} process "
            f"{self.run.process(before.event.process)} had committed offset {before.offset:,} "
            f"{'by' if before.is_shown else 'at'} {_end(before)}",
            since_ns=_ns(before),
            until_ns=rebalance.ns,
        )

    def double_owner(self, rebalance: GroupEvent, first: GroupEvent, log: AboutLog, how: str) -> Finding:
        return Finding(
            anomaly="double-owner",
            log=log,
            operations=[first.index, rebalance.index],
            where=how,
            sentence=f"Process {self.run.process(rebalance.process)} was given {log} by group {rebalance.of} "
            f"in generation {rebalance.generation} at {seconds(rebalance.ns)}, while process "
            f"{self.run.process(first.process)}, which had been given it in generation {first.generation} at "
            f"{seconds(first.ns)}, had not given it up",
            since_ns=first.ns,
            until_ns=rebalance.ns,
        )

    def skip(self, last: Operation, record: Any) -> Finding:
        """``last``: the largest commit of the group; ``record``: of the final read."""
        return Finding(
            anomaly="group-skip",
            log=last.log,
            offset=record.offset,
            value=record.value,
            operations=[last.until, record.of],
            sentence=f"Value {self.run.value(record.value)} is at offset {record.offset:,} of {last.log}, "
            f"and group {last.event.of} committed offset {last.offset:,} (process "
            f"{self.run.process(last.event.process)} did, at {_end(last)}), but no member of the group was "
            "given that record",
            since_ns=_ALL,
            until_ns=_ns(last),
        )

    def passed(self, passed: Passed, record: Any) -> Finding:
        log = self.run.of_number[passed.log]
        return Finding(
            anomaly="position-skip",
            log=log,
            offset=record.offset,
            value=record.value,
            operations=[passed.poll_index, record.of],
            sentence=f"Process {self.run.process(passed.process)} stood at offset {passed.until:,} of {log} "
            f"after its poll at {seconds(passed.poll_ns)}, past value {self.run.value(record.value)} at "
            f"offset {record.offset:,}, and was not given that record",
            since_ns=_ALL,
            until_ns=passed.poll_ns,
        )

    # --- parts

    def _who(self, one: Operation) -> str:
        return f"Process {self.run.process(one.event.process)}"

    def _committed(self, one: Operation) -> str:
        return f"{self._who(one)} committed offset {one.offset:,} of {one.log} for group {one.event.of}"

    def _got(self, answer: Operation) -> str:
        return (
            f"{self._who(answer)} asked for the committed offset of {answer.log} for group {answer.event.of} "
            f"and got {answer.offset:,} at {_end(answer)}"
        )

    def _given(self, newer: GroupEvent) -> str:
        return (
            f"process {self.run.process(newer.process)} had been given partitions under generation "
            f"{newer.generation} at {seconds(newer.ns)}"
        )

    @staticmethod
    def _of(
        one: Operation,
        anomaly: str,
        sentence: str,
        since_ns: int,
        *indexes: int,
        where: str | None = None,
        open_ended: bool = False,
    ) -> Finding:
        """Returns a finding of a commit or an answer, with the indexes of others that prove it."""
        return Finding(
            anomaly=anomaly,
            log=one.log,
            offset=one.offset if one.offset >= 0 else None,
            operations=[*indexes, one.since, one.until],
            where=where,
            sentence=sentence,
            since_ns=since_ns,
            until_ns=None if open_ended else _ns(one),
        )


def _ns(one: Operation) -> int:
    assert one.done is not None, "only what succeeded is told of"
    return one.done.ns


def _end(one: Operation) -> str | None:
    return seconds(_ns(one))
