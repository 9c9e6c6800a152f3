"""The translation of exceptions of kafka-clients into the words of the workloads. Knows no JVM."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

from wrackline.history.model import FAILED, UNKNOWN
from wrackline.workloads.clients.base import ClientError
from wrackline.workloads.clients.outcomes import EVERY_TRY_CODES, THIS_TRY_CODES, Outcome

UNNAMED = "UNKNOWN_SERVER_ERROR"
"""What Kafka's own table of errors calls an exception that is in no protocol."""
_FATAL = frozenset(
    {
        "ProducerFencedException",
        "InvalidProducerEpochException",
        "InvalidTxnStateException",
        "InvalidPidMappingException",
        "OutOfOrderSequenceException",
        "AuthorizationException",
        "UnsupportedVersionException",
        "ApplicationRecoverableException",
        "IllegalStateException",
    }
)
"""After these a producer is of no use. Those of the application, and everything below them."""
_POSITION_LOST = frozenset({"InvalidOffsetException", "OffsetOutOfRangeException"})


@dataclass(frozen=True, slots=True)
class Thrown:
    """An exception. ``kinds``: names of its class and of all above it, without packages; ``kafka_name``,
    ``code`` and ``kafka_said``: of the protocol's error that Kafka takes it for; ``cause``: what it was made
    of."""

    kinds: Sequence[str]
    kafka_name: str
    code: int
    kafka_said: str
    said: str
    cause: Thrown | None = None

    @property
    def name(self) -> str:
        """Kafka's name; the library's own errors begin with an underscore, as librdkafka's do."""
        if self.kinds[0] == "TimeoutException" and self.said != self.kafka_said:
            return "_TIMED_OUT"  # no broker said so: the client waited no longer
        if self.kafka_name != UNNAMED or self.kinds[0] == "UnknownServerException":
            return self.kafka_name
        if self.cause is not None:
            return self.cause.name
        words = re.findall(r"[A-Z][a-z0-9]*", self.kinds[0].removesuffix("Exception"))
        return "_" + "_".join(words).upper()

    @property
    def fatal(self) -> bool:
        return bool(_FATAL & set(self.kinds)) or (self.cause is not None and self.cause.fatal)

    @property
    def retriable(self) -> bool:
        """Tells whether the error can be retried: only what was thrown itself says so: an error that put
        the producer into a state stays there."""
        return "RetriableException" in self.kinds and not self.fatal

    @property
    def position_lost(self) -> bool:
        return bool(_POSITION_LOST & set(self.kinds))


def error_of(thrown: Thrown) -> ClientError:
    return ClientError(
        thrown.name,
        fatal=thrown.fatal,
        again=thrown.retriable,
        must_abort=not thrown.fatal and not thrown.retriable,
        said=thrown.said,
    )


def failed(thrown: Thrown, *, first_try: bool) -> Outcome:
    """The report of a record carries an error. A Java client that may not retry sends nothing twice, not even
    what was refused by a broker that leads no more, so a refusal of the first try is certain with all acks.
    Of a record whose time was over nobody knows whether it was sent."""
    name = "_MSG_TIMED_OUT" if thrown.name == "_TIMED_OUT" else thrown.name
    by_broker = not name.startswith("_")
    certain = first_try and by_broker and thrown.code in EVERY_TRY_CODES | THIS_TRY_CODES
    return Outcome(FAILED if certain else UNKNOWN, name)
