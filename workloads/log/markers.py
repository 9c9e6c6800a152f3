"""The end of a partition, read for certain.

An end offset proves little: a leader that was replaced and does not know it answers too. A *marker* proves
it. It is a record that the reader sends with the workload's own acks; with acks=all only the leader that the
controller has chosen can get it acknowledged, and whatever was acknowledged before the marker was sent is
before it in the log. It counts as no write and no enqueue (history.model.MARKER), but it is a send like any
other in the history: losing it is loss.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from typing import Any

from wrackline.history.model import MARKER, Record, is_marker
from wrackline.workloads.clients.base import ClientError, Consumer
from wrackline.workloads.log.processes import Context, Place, read_records
from wrackline.workloads.log.senders import Sending

WINDOW = 16
"""A read looks at so many records before the end, and further back only if all of them are markers."""

AGAIN_S = 0.05


class Unknown(Exception):
    """The question has no answer now. The message is the name of the error (Kafka's, where it has one)."""


class Marks:
    """Sends markers, as a logical process of its own."""

    def __init__(self, context: Context, process: int) -> None:
        self._sending = Sending(context, process)

    def mark(self, place: Place) -> int:
        """The offset of a fresh marker. Raises Unknown."""
        [outcome] = self._sending.send(place, attempt=MARKER)
        if outcome.offset < 0:
            raise Unknown(outcome.error or "_NO_OFFSET")
        return outcome.offset

    def close(self) -> None:
        self._sending.drop_client()


class Stretch:
    """Reads a partition from an offset on, record by record, with a consumer that it may share with others as
    long as they take turns."""

    def __init__(self, context: Context, client: Consumer, place: Place, position: int) -> None:
        self.context = context
        self.client = client
        self.place = place
        self.position = position
        """The next offset."""
        self.corrupt: list[dict[str, Any]] = []
        self._assign()

    def next(self, timeout_s: float) -> Record | None:
        """The next record; None when none came by then. Raises Unknown."""
        polled = self.client.poll(1, timeout_s)
        if polled.position_lost:
            # A leader that was replaced may not have come as far as this: the next answer is another's.
            time.sleep(min(timeout_s, AGAIN_S))
            self._assign()
            return None
        if polled.error is not None:
            raise Unknown(polled.error)
        records, wrong = read_records(polled.records, self.context)
        self.corrupt += wrong
        for record in records:
            self.position = record.offset + 1
            return record
        return None

    def _assign(self) -> None:
        topic, partition = self.place
        self.client.assign(topic, {partition: self.position})

    def until(self, end: int, deadline: float) -> Iterator[Record]:
        """The records up to ``end`` (exclusive), which is known to exist. Raises Unknown when it is not
        reached."""
        while self.position < end:
            remaining_s = deadline - time.monotonic()
            if remaining_s <= 0:
                raise Unknown("_TIMED_OUT")
            record = self.next(remaining_s)
            if record is not None and record.offset < end:
                yield record


def last_write(
    context: Context, client: Consumer, place: Place, end: int, deadline: float
) -> tuple[Record | None, list[dict[str, Any]]]:
    """The last record before ``end`` that is no marker (None: there is none), and what is corrupt about what
    was read. Raises Unknown."""
    window, upto = WINDOW, end
    while upto > 0:
        start = max(0, upto - window)
        stretch = Stretch(context, client, place, start)
        result = None
        for record in stretch.until(upto, deadline):
            if not is_marker(record.value):
                result = record
        if result is not None or stretch.corrupt:
            return result, stretch.corrupt
        window, upto = window * 8, start
    return None, []


def end_of(client: Consumer, place: Place) -> int:
    """The end offset that the leader reports. Raises Unknown."""
    try:
        return client.ends(*place)[1]
    except ClientError as refused:
        raise Unknown(refused.name) from refused
