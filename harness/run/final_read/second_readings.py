"""The second readings where witnesses of a log contradict each other: whoever lacks records is asked again
by another way, while the hosts are still there: the final read by plain fetches from the leader, a
replica's log by a second look into its files. What that finds is a row of the history, and the judge
decides what it means (wrackline.checkers.verdict.readers)."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

from wrackline.harness.run.final_read.replicas import HeldLog
from wrackline.harness.specification.spec import Spec
from wrackline.history import Recorder
from wrackline.history.model import REPLICA, Event, Type
from wrackline.history.offsets import Offsets, spelt
from wrackline.history.wording import partition_label
from wrackline.systems.base import DeployError, Fetchable, Place, Scannable, System
from wrackline.workloads.log.drain import Drained

CLIENTS = "clients"
"""Who was told of a record by an ack or a poll, beside the replicas that hold it."""
MOST_INTERVALS = 1_000
"""So many intervals of offsets a row tells of."""


class SecondReadings:
    """The second readings of one run."""

    def __init__(self, system: System, recorder: Recorder, spec: Spec) -> None:
        self._system, self._recorder, self._spec = system, recorder, spec

    def ask(
        self, final: Sequence[Drained], held: Sequence[HeldLog], told: Callable[[str, int], Offsets]
    ) -> Iterator[str]:
        """Asks each witness again that lacks what others have. Gives a line for each slip of a reader, and
        for each that could not be asked."""
        for read in final:
            if not read.complete:
                continue
            place = (read.topic, read.partition)
            logs = [log for log in held if (log.topic, log.partition) == place and log.is_evidence]
            yield from self._leader(read, logs, told(*place))
            for log in logs:
                yield from self._replica(log, read, logs)

    def _leader(self, read: Drained, logs: Sequence[HeldLog], told: Offsets) -> Iterator[str]:
        others = {log.node.host.name: log.offsets for log in logs} | {CLIENTS: told}
        lacked = {who: offsets - read.offsets for who, offsets in others.items()}
        expected = Offsets()
        for offsets in lacked.values():
            expected = expected | offsets
        if not expected or not isinstance(system := self._system, Fetchable):
            return
        committed = self._spec.workload.isolation == "read_committed"
        yield from self._asked(
            (read.topic, read.partition),
            None,
            expected,
            [who for who, offsets in lacked.items() if offsets],
            lambda: system.fetch_again(read.topic, read.partition, expected, committed=committed),
        )

    def _replica(self, log: HeldLog, read: Drained, logs: Sequence[HeldLog]) -> Iterator[str]:
        lacked = (read.offsets - log.offsets).from_on(max(log.log_start, read.log_start))
        if not lacked or not isinstance(system := self._system, Scannable):
            return
        others = [one.node.host.name for one in logs if one is not log and lacked - (lacked - one.offsets)]
        yield from self._asked(
            (log.topic, log.partition),
            log.node.host.name,
            lacked,
            [*others, "the final read"],
            lambda: system.scan_again(log.node, log.topic, log.partition),
        )

    def _asked(
        self,
        place: Place,
        host: str | None,
        lacked: Offsets,
        witnesses: Sequence[str],
        question: Callable[[], Offsets],
    ) -> Iterator[str]:
        result, problem = Offsets(), None
        try:
            answer = question()
            result = lacked - (lacked - answer)
        except DeployError as wrong:
            problem = str(wrong)
        self._recorder.record(
            Event(
                REPLICA,
                Type.OK if problem is None else Type.INFO,
                "reread",
                topic=place[0],
                partition=place[1],
                node=host,
                error=problem,
                extra={
                    "lacked": lacked.intervals()[:MOST_INTERVALS],
                    "found": result.intervals()[:MOST_INTERVALS],
                    "witnesses": list(witnesses),
                },
            )
        )
        name = partition_label(*place)
        who = f"the first reader of the log of {name} on {host}" if host else f"the final read of {name}"
        if problem is not None:
            yield f"{who} lacks {spelt(lacked.intervals())}, and it could not be read again: {problem}"
        elif result:
            yield f"{who} lacks {spelt(result.intervals())}, which a second reader found there"
