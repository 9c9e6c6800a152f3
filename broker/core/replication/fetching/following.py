"""One partition that is being followed: what its leader's answers do to it (docs/protocol.md 2.11)."""

from __future__ import annotations

from enum import Enum

from kio.schema.errors import ErrorCode

from wrackline.broker.core.replication.context import Context
from wrackline.broker.core.replication.fetching import validation
from wrackline.broker.core.replication.replica import Replica
from wrackline.broker.model.messages.requests import EpochEndOffset, FetchResult
from wrackline.broker.model.values import NO_ERROR, dataclass
from wrackline.broker.rules.replication.epoch_end import end_of_epoch
from wrackline.broker.rules.replication.fetching import AnswerFacts


class Outcome(Enum):
    IGNORED = "not an answer to the present state"
    NOTHING = "no records"
    ADVANCED = "appended"
    TRUNCATED = "cut where the logs diverge"
    PAUSED = "refused, try later"
    OUT_OF_RANGE = "the leader's range must be asked for"


@dataclass(frozen=True, slots=True)
class Asked:
    """The state of a follower when it asked."""

    offset: int
    leader_epoch: int
    reset: int
    last_epoch: int
    """Of the last record that it had."""


class Following:
    """A partition that a follower fetches, from the moment it enters a fetcher until it leaves it."""

    __slots__ = ("_ctx", "paused_until", "probing", "replica", "reset")

    def __init__(self, ctx: Context, replica: Replica, reset: int) -> None:
        self._ctx = ctx
        self.replica = replica
        self.reset = reset
        """Tells this stay in a fetcher from any other."""
        self.paused_until = 0.0
        self.probing = False

    def pause(self, error: ErrorCode) -> None:
        backoff = self._ctx.rules.fetch.backoff_ms(error, self._ctx.config.replica_fetch_backoff_ms)
        self.paused_until = self._ctx.now_ms + backoff

    def answered(self, asked: Asked, result: FetchResult) -> Outcome:
        replica = self.replica
        facts = AnswerFacts(
            asked_offset=asked.offset,
            asked_epoch=asked.leader_epoch,
            asked_reset=asked.reset,
            request_last_epoch=asked.last_epoch,
            leo=replica.log.leo,
            leader_epoch=replica.leader_epoch,
            reset=self.reset,
            last_epoch=replica.log.epochs.latest,
        )
        if not self._ctx.rules.fetch.accepts(facts):
            return Outcome.IGNORED
        if result.error is ErrorCode.offset_out_of_range:
            return Outcome.OUT_OF_RANGE
        if result.error is not NO_ERROR:
            self.pause(result.error)
            return Outcome.PAUSED
        if result.diverging is not None:
            self._diverged(result.diverging, result.high_watermark)
            return Outcome.TRUNCATED
        return self._received(result)

    def _diverged(self, diverging: EpochEndOffset, from_leader: int) -> None:
        """Updates nothing but the log and what hangs on its end (KAFKA-14704)."""
        replica, log, rules = self.replica, self.replica.log, self._ctx.rules
        offset = rules.high_watermark.on_divergence(replica.high_watermark, from_leader, log.leo)
        replica.set_high_watermark(max(offset, log.log_start))
        own = end_of_epoch(log.epochs, diverging.epoch, log.leo)
        cut = rules.truncation.on_divergence(own, diverging, log.leo)
        replica.truncate(max(cut, log.log_start), f"diverging at epoch {diverging.epoch}")

    def _received(self, result: FetchResult) -> Outcome:
        replica, rules = self.replica, self._ctx.rules
        outcome = Outcome.NOTHING
        replica.after_empty = not result.records
        if result.records:
            outcome = self._append(bytes(result.records))  # type: ignore[arg-type]
            if outcome is Outcome.IGNORED:
                return outcome
        offset = rules.high_watermark.at_follower(
            replica.high_watermark, result.high_watermark, replica.log.leo
        )
        replica.set_high_watermark(max(offset, replica.log.log_start))
        if result.log_start > replica.log.log_start:
            replica.move_log_start(result.log_start)
        return outcome

    def _append(self, records: bytes) -> Outcome:
        replica, rules = self.replica, self._ctx.rules.fetch
        got = validation.fetched(records, replica.log.leo)
        fault = got.fault
        taken = []
        for header, batch in got.batches:
            if not rules.may_append(header.leader_epoch, replica.leader_epoch):
                fault = f"batch of epoch {header.leader_epoch} from the leader of {replica.leader_epoch}"
                break
            taken.append((header, batch))
        if taken and taken[0][0].base_offset < replica.log.leo:
            # Our end lies inside a batch of the leader's, which is taken whole, from where it begins (H18).
            # That may be inside a batch of our own, which goes whole, too: so it is asked for again.
            if not self._ctx.rules.switches.takes_begun_batch:
                return Outcome.IGNORED
            if replica.log.log_start < replica.log.leo:
                replica.truncate(taken[0][0].base_offset, "inside a batch")
                return Outcome.TRUNCATED
            # The leader's log begins inside of this batch (DeleteRecords): nothing before our end can be had,
            # so an empty log begins where the batch does (Kafka's UnexpectedAppendOffsetException).
            replica.restart_at(taken[0][0].base_offset)
        if taken:
            replica.append(taken)
            size = sum(len(batch) for _, batch in taken)
            again_ms = self._ctx.throttle.received(replica.tp, size, self._ctx.image, self._ctx.now_ms)
            self.paused_until = max(self.paused_until, again_ms)
        if fault is not None:
            self._ctx.trace("fetch_fault", tp=str(replica.tp), leo=replica.log.leo, fault=fault)
            self.pause(ErrorCode.corrupt_message)
            return Outcome.PAUSED
        return Outcome.ADVANCED if taken else Outcome.NOTHING
