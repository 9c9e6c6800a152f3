"""Answers that show less than had been committed, by who gave them.

``__consumer_offsets`` has the commits of groups; who leads the group's partition of it is its coordinator.

- A coordinator that was *replaced* and does not know it answers what it knows. Nobody in Kafka holds a lease
  for reads, so nothing is owed by it.
- The *present* coordinator owes every commit that had succeeded. One that has just loaded its partition knows
  all of the log, and what of it is below the high watermark. The coordinator of KIP-848 answers a request
  without ``require_stable`` by the latter (``CoordinatorRuntime.scheduleReadOperation``), and followers
  learn the watermark with their next fetch: what the coordinator before it had acknowledged last may be
  hidden until the watermark moves.
- What no answer shows again is lost.
"""

from __future__ import annotations

from bisect import bisect_right
from collections import defaultdict
from collections.abc import Sequence

from wrackline.checkers.anomalies.groups.events import Operation
from wrackline.checkers.checks.about import AboutRun, Tenure

REGRESSION, DEPOSED, HIDDEN, LOST = "commit-regression", "deposed-answer", "hidden-commit", "vanished-commit"


def partition_of(group: str, partitions: int) -> int:
    """Returns the partition of ``__consumer_offsets`` that has a group: by Java's ``String.hashCode``."""
    code = 0
    for unit in memoryview(group.encode("utf-16-le")).cast("H"):
        code = (31 * code + unit) & 0xFFFFFFFF
    signed = code - (1 << 32) if code >> 31 else code
    return (0 if signed == -(1 << 31) else abs(signed)) % partitions


class Answers:
    """The answers of one group, and who coordinated it when."""

    def __init__(self, group: str, answers: Sequence[Operation], about: AboutRun) -> None:
        self.partition = partition_of(group, len(about.coordinators)) if about.coordinators else -1
        self._tenures = about.coordinators.get(self.partition, ())
        self._of_log: dict[int, list[Operation]] = defaultdict(list)
        for one in answers:
            self._of_log[one.log.number].append(one)

    @property
    def log(self) -> str:
        """Names the partition that has the group's commits."""
        return f"__consumer_offsets-{self.partition}"

    def anomaly_of(self, answer: Operation, before: Operation) -> tuple[str, Tenure | None]:
        """Returns the anomaly that an answer with less than a commit that had succeeded before is, and the
        tenure that says so: of who answered, or of who had replaced it. Where nobody knows who answered, or
        who coordinated the group, it is a regression."""
        tenure = self._last_elected(answer)
        if answer.event.coordinator < 0 or tenure is None:
            return REGRESSION, None
        if tenure.node != answer.event.coordinator:
            return DEPOSED, tenure
        later = [one for one in self._of_log[answer.log.number] if one.since > answer.until]
        if all(one.offset < before.offset for one in later):
            return LOST, tenure
        return (REGRESSION if answer.event.is_stable else HIDDEN), tenure

    def _last_elected(self, answer: Operation) -> Tenure | None:
        """Returns the last coordinator that may have been elected before the answer was there: who may have
        been replaced by then has the benefit of the doubt."""
        assert answer.done is not None, "an answer"
        at = bisect_right(self._tenures, answer.done.ns, key=lambda one: one.since_ns)
        return self._tenures[at - 1] if at else None
