"""The end of a transaction, and what is known of it then (docs/anomalies.md section 1, *certain failure*).

A call that returns success is believed, whatever really happened: that is what the judge holds the system to.
A commit that did not return success may have taken effect, whatever was asked for afterwards: the request may
have been carried out, or be carried out late. An abort after which no
commit was ever asked for is certain as soon as it succeeds.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol

from wrackline.history.model import ABORTED_ON_PURPOSE, CRASHED_ON_PURPOSE, Type
from wrackline.workloads.clients.base import ClientError
from wrackline.workloads.txn.drawing import End

CALL_S = 5.0
"""One call waits so long and may be made again."""


@dataclass(frozen=True, slots=True)
class Ended:
    """``kind``: ok, it was committed; fail, it was aborted; info, nobody knows. ``asked``: what the client
    was asked for (None: nothing), at ``at_ns`` of the run's clock. ``error``: why it is not ok."""

    kind: Type
    asked: End | None
    at_ns: int | None
    error: str | None

    @property
    def said(self) -> dict[str, str | int]:
        """Returns the end as the ``extra`` of completions says it."""
        if self.asked is None or self.at_ns is None:
            return {}
        return {"asked": str(self.asked), "end_ns": self.at_ns}


CRASHED = Ended(Type.INFO, None, None, CRASHED_ON_PURPOSE)
"""The producer was gone before it asked for anything, as the workload wanted it."""


class Endable(Protocol):
    """The part of a transactional producer that ends a transaction."""

    @property
    def broken(self) -> bool: ...

    def commit_transaction(self, timeout_s: float) -> None: ...

    def abort_transaction(self, timeout_s: float) -> None: ...


def end(
    producer: Endable,
    meant: End,
    gave_up: str | None,
    *,
    now_ns: Callable[[], int],
    timeout_s: float,
) -> Ended:
    """Commit or abort. ``gave_up``: what went wrong in the transaction before, so that it is aborted whatever
    was meant."""
    at_ns = now_ns()
    deadline = time.monotonic() + timeout_s
    if meant is End.COMMIT and gave_up is None:
        refused = _until(producer.commit_transaction, deadline)
        if refused is None:
            return Ended(Type.OK, End.COMMIT, at_ns, None)
        return Ended(Type.INFO, End.COMMIT, at_ns, refused.name)
    if producer.broken:
        return Ended(Type.INFO, None, None, gave_up or "_FATAL")
    refused = _until(producer.abort_transaction, deadline)
    if refused is None:
        return Ended(Type.FAIL, End.ABORT, at_ns, gave_up or ABORTED_ON_PURPOSE)
    return Ended(Type.INFO, End.ABORT, at_ns, refused.name)


def _until(call: Callable[[float], None], deadline: float) -> ClientError | None:
    """Calls until it succeeds and returns None, else why not, by the deadline."""
    while True:
        try:
            call(max(0.1, min(CALL_S, deadline - time.monotonic())))
        except ClientError as refused:
            if not refused.again or time.monotonic() >= deadline:
                return refused
        else:
            return None
