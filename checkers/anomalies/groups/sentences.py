"""What is said of each finding."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from wrackline.checkers.anomalies.about import AboutLog, AboutRun
from wrackline.checkers.anomalies.finding import Finding, seconds
from wrackline.checkers.anomalies.groups.events import COMMIT, Operation, Placement


@dataclass(frozen=True, slots=True)
class Sentences:
    """Of one run."""

    run: AboutRun

    def regression(self, one: Operation, before: Operation, how: str) -> Finding:
        who = self.run.process(one.process)
        if how == COMMIT:
            did = f"Process {who} committed offset {one.offset:,} of {one.log}"
        elif one.offset < 0:
            did = f"Process {who} asked for the committed offset of {one.log} and learned that there is none"
        else:
            did = f"Process {who} asked for the committed offset of {one.log} and got {one.offset:,}"
        return self._finding(
            "commit-regression",
            one,
            [before.complete_index],
            f"{did} for group {one.group} at {seconds(one.complete_ns)}, after a commit of offset "
            f"{before.offset:,} had succeeded at {seconds(before.complete_ns)}",
            before.complete_ns,
            where=how,
        )

    def beyond_end(self, one: Operation) -> Finding:
        return self._finding(
            "commit-beyond-end",
            one,
            [],
            f"{self._committed(one)} at {seconds(one.complete_ns)}, but the final read of the partition ends "
            f"at offset {one.log.end:,}",
            one.complete_ns,
            until_ns=None,
        )

    def zombie(self, one: Operation, newer: Placement, start: int | None = None) -> Finding:
        """``start``: where the newer member began, without having been shown the commit."""
        begun = "" if start is None else f", and it began at offset {start:,}"
        return self._finding(
            "zombie-commit",
            one,
            [newer.index],
            f"{self._committed(one)} under generation {one.generation} at {seconds(one.complete_ns)}, though "
            f"process {self.run.process(newer.process)} had been given partitions under generation "
            f"{newer.generation} at {seconds(newer.ns)}{begun}",
            newer.ns,
        )

    def late_zombie(self, asked: Operation, one: Operation) -> Finding:
        """A commit of unknown outcome that an answer shows to have taken effect after its fence."""
        assert one.fence is not None
        fence = one.fence
        return self._finding(
            "zombie-commit",
            asked,
            [one.invoke_index, fence.index],
            f"{self._got(asked)}, which process {self.run.process(one.process)} had asked to commit under "
            f"generation {one.generation} at {seconds(one.invoke_ns)}, though process "
            f"{self.run.process(fence.process)} had {fence.what} under generation {fence.generation} at "
            f"{seconds(fence.ns)} and offset {asked.offset:,} was not committed then or later",
            fence.ns,
        )

    def phantom(self, asked: Operation) -> Finding:
        return self._finding(
            "phantom-commit",
            asked,
            [],
            f"{self._got(asked)}, an offset that nobody had committed",
            0,
        )

    def forgotten(self, told: Placement, log: AboutLog, start: int, before: Operation) -> Finding:
        return self._start(
            "forgotten-commit",
            told,
            log,
            start,
            before,
            f"{self._began(told, log, start)}, though {self._had_committed(before)}",
        )

    def uncommitted(self, told: Placement, log: AboutLog, start: int, before: Operation) -> Finding:
        return self._start(
            "uncommitted-start",
            told,
            log,
            start,
            before,
            f"{self._began(told, log, start)}, which was not committed: {self._had_committed(before)}",
        )

    def double_owner(self, told: Placement, first: Placement, log: AboutLog, how: str) -> Finding:
        return Finding(
            anomaly="double-owner",
            log=log,
            operations=[first.index, told.index],
            where=how,
            sentence=f"Process {self.run.process(told.process)} was given {log} by group {told.group} in "
            f"generation {told.generation} at {seconds(told.ns)}, while process "
            f"{self.run.process(first.process)}, which had been given it in generation {first.generation} at "
            f"{seconds(first.ns)}, had not given it up",
            since_ns=first.ns,
            until_ns=told.ns,
        )

    def skip(self, last: Operation, offset: int, value: int, final_index: int) -> Finding:
        """``last``: the largest commit of the group."""
        return Finding(
            anomaly="group-skip",
            log=last.log,
            offset=offset,
            value=value,
            operations=[last.complete_index, final_index],
            sentence=f"Value {self.run.value(value)} is at offset {offset:,} of {last.log}, and group "
            f"{last.group} committed offset {last.offset:,} (process {self.run.process(last.process)} did, "
            f"at {seconds(last.complete_ns)}), but no member of the group was given that record",
            since_ns=0,
            until_ns=last.complete_ns,
        )

    def passed(self, passed: Any, log: AboutLog, offset: int, value: int, final_index: int) -> Finding:
        return Finding(
            anomaly="position-skip",
            log=log,
            offset=offset,
            value=value,
            operations=[passed.poll_index, final_index],
            sentence=f"Process {self.run.process(passed.process)} stood at offset {passed.until:,} of {log} "
            f"after its poll at {seconds(passed.poll_ns)}, past value {self.run.value(value)} at offset "
            f"{offset:,}, and was not given that record",
            since_ns=0,
            until_ns=passed.poll_ns,
        )

    # --- parts

    def _got(self, asked: Operation) -> str:
        who = self.run.process(asked.process)
        return (
            f"Process {who} asked for the committed offset of {asked.log} for group {asked.group} and got "
            f"{asked.offset:,} at {seconds(asked.complete_ns)}"
        )

    def _committed(self, one: Operation) -> str:
        who = self.run.process(one.process)
        return f"Process {who} committed offset {one.offset:,} of {one.log} for group {one.group}"

    def _began(self, told: Placement, log: AboutLog, start: int) -> str:
        who = self.run.process(told.process)
        given = f"Process {who} was given {log} by group {told.group} at {seconds(told.ns)}"
        return f"{given} and began at offset {start:,}"

    def _had_committed(self, one: Operation) -> str:
        who = self.run.process(one.process)
        return f"process {who} had committed offset {one.offset:,} at {seconds(one.complete_ns)}"

    @staticmethod
    def _start(
        anomaly: str, told: Placement, log: AboutLog, start: int, before: Operation, sentence: str
    ) -> Finding:
        return Finding(
            anomaly=anomaly,
            log=log,
            offset=start,
            operations=[before.invoke_index, before.complete_index, told.index],
            sentence=sentence,
            since_ns=before.complete_ns,
            until_ns=told.ns,
        )

    @staticmethod
    def _finding(
        anomaly: str,
        one: Operation,
        operations: list[int | None],
        sentence: str,
        since_ns: int | None,
        **said: Any,
    ) -> Finding:
        """Of a commit or an answer."""
        return Finding(
            anomaly=anomaly,
            log=one.log,
            offset=one.offset if one.offset >= 0 else None,
            operations=[*operations, one.invoke_index, one.complete_index],
            sentence=sentence,
            since_ns=since_ns,
            **{"until_ns": one.complete_ns, **said},
        )
