"""The follower's side of a fetch session: what its leader knows of its wishes already (KIP-227,
docs/protocol.md 2.13).

Whatever is not a plain answer ends the session: an error of any kind, a lost connection, a request that was
overtaken. So does a partition that was told of and did not take it: the answer came when its state was
another, or when it was not followed from there. The leader takes it for known and does not tell it again in
that session. The next request then asks for everything anew.
"""

from __future__ import annotations

from uuid import UUID

from wrackline.broker.model.messages.requests import FetchPartition, FetchResponse, ForgottenPartition
from wrackline.broker.model.types import TopicPartition
from wrackline.broker.model.values import dataclass
from wrackline.broker.rules.leadership.sessions import INITIAL_EPOCH, NO_SESSION, SessionRules


@dataclass(frozen=True, slots=True)
class Wishes:
    """The part of a fetch request that a session shortens."""

    session_id: int
    session_epoch: int
    partitions: tuple[FetchPartition, ...]
    forgotten: tuple[ForgottenPartition, ...] = ()
    topics: tuple[tuple[UUID, str], ...] = ()


class FetcherSession:
    """The fetch session of one fetcher with its destination."""

    def __init__(self, rules: SessionRules, *, outlives_stay: bool) -> None:
        self._rules = rules
        self._outlives_stay = outlives_stay
        self._id = NO_SESSION
        self._epoch = INITIAL_EPOCH
        self._known: dict[TopicPartition, FetchPartition] = {}
        """As the leader has them, once the request under way has reached it."""

    def reset(self) -> None:
        """The next request is a full one; naming the old session lets the leader free its slot."""
        self._epoch = INITIAL_EPOCH
        self._known = {}

    def ask(self, wanted: tuple[FetchPartition, ...]) -> Wishes:
        """Returns how to ask for exactly these partitions."""
        if any(self._other_id(part) for part in wanted):
            self.reset()
        before, self._known = self._known, {part.tp: part for part in wanted}
        if self._epoch == INITIAL_EPOCH:
            return Wishes(self._id, INITIAL_EPOCH, wanted)
        return Wishes(
            self._id,
            self._epoch,
            tuple(part for part in wanted if before.get(part.tp) != part),
            tuple(
                ForgottenPartition(tp, part.topic_id) for tp, part in before.items() if tp not in self._known
            ),
            tuple((part.topic_id, part.tp.topic) for part in wanted if part.topic_id is not None),
        )

    def _other_id(self, part: FetchPartition) -> bool:
        """The topic was deleted and made again under its old name."""
        known = self._known.get(part.tp)
        return known is not None and known.topic_id != part.topic_id

    def answered(self, response: FetchResponse) -> None:
        """A response without an error to the last request asked. Session id 0: none is kept for us."""
        if response.session_id == NO_SESSION:
            self._id = NO_SESSION
            self.reset()
            return
        self._id = response.session_id
        if self._known:  # not reset since it was asked
            self._epoch = self._rules.next_epoch(self._epoch)

    def failed(self) -> None:
        """An error, or no answer."""
        self.reset()

    def not_taken(self) -> None:
        """Notes that the answer on a partition may not have reached its replica."""
        if not self._outlives_stay:
            self.reset()
