"""One voter by hand: requests in, effects out, its disk in memory. Answers of the others are made up."""

from __future__ import annotations

from collections.abc import Sequence
from uuid import UUID

from kio.schema.errors import ErrorCode

from wrackline.broker.core.quorum.voter import Raft, RaftRequest
from wrackline.broker.defects import apply
from wrackline.broker.model.batches import batch
from wrackline.broker.model.config import ControllerConfig
from wrackline.broker.model.effects import Append, Effect, Reply, Send, Truncate, WriteQuorumState
from wrackline.broker.model.events import Boot
from wrackline.broker.model.messages.quorum import VoteRequest, VoteResponse
from wrackline.broker.model.messages.requests import FetchPartition, FetchRequest, Request, Response
from wrackline.broker.model.metadata.records import NoOpRecord, encode
from wrackline.broker.model.types import METADATA, METADATA_TOPIC_ID, Endpoint, QuorumState, RecoveredLog
from wrackline.broker.rules.profile import profile


def log_of(*epochs: int) -> list[bytes]:
    """One record of each epoch."""
    return [batch.build([encode(NoOpRecord())], at, epoch, 0) for at, epoch in enumerate(epochs)]


class Hand:
    """Voter 1 of ``voters``."""

    def __init__(
        self,
        voters: int = 3,
        *,
        log: Sequence[int] = (),
        state: QuorumState | None = None,
        defects: tuple[str, ...] = (),
    ) -> None:
        self.rules = apply(profile("kip966"), defects)
        self.config = ControllerConfig(
            node_id=1,
            cluster_id="c",
            host="c1",
            port=9093,
            controllers=tuple(Endpoint(n, f"c{n}", 9093) for n in range(1, voters + 1)),
        )
        self.now_ms = 1_000.0
        self.disk = log_of(*log)
        self.state = state
        self.replies: dict[int, Response] = {}
        self.asked: list[Send] = []
        self._requests = 0
        self._lives = 0
        self.boot()

    def boot(self) -> None:
        self._lives += 1
        self.raft = Raft(self.config, self.rules)
        self.asked.clear()
        end = len(self.disk)
        logs = {METADATA: RecoveredLog(METADATA_TOPIC_ID, 0, end, end, 0)} if self.disk else {}
        boot = Boot(UUID(int=self._lives), logs, tuple(self.disk), quorum_state=self.state)
        self._do(self.raft.boot(boot, self.now_ms))

    def _do(self, effects: Sequence[Effect]) -> None:
        for effect in effects:
            match effect:
                case WriteQuorumState():
                    self.state = effect.state
                case Reply():
                    self.replies[effect.request_id] = effect.response
                case Send():
                    self.asked.append(effect)
                case Append():
                    self.disk += effect.batches
                case Truncate():
                    del self.disk[effect.to_offset :]

    def ask(self, request: RaftRequest) -> Response | None:
        """The answer, None when it is not given yet."""
        self._requests += 1
        self._do(self.raft.request(self._requests, request, self.now_ms))
        return self.replies.get(self._requests)

    def vote_of(
        self, candidate: int, epoch: int, *, log: tuple[int, int] = (-1, 0), pre: bool = False
    ) -> bool:
        """Would it, or does it, vote for a candidate whose log ends like this?"""
        said = self.ask(VoteRequest("c", 1, epoch, candidate, UUID(int=candidate), *log, pre))
        assert isinstance(said, VoteResponse)
        return said.granted

    def fetch(self, voter: int, offset: int, last_epoch: int) -> Response | None:
        part = FetchPartition(
            METADATA, offset, 1 << 20, self.raft.epoch, last_epoch, 0, METADATA_TOPIC_ID, UUID(int=voter)
        )
        return self.ask(FetchRequest(500, 1, 1 << 20, (part,), replica_id=voter))

    def flush(self) -> None:
        self._do(self.raft.flushed(self.raft.log.leo, self.now_ms))

    def fire(self) -> None:
        """Its patience is at an end."""
        self._do(self.raft.timer("raft", self.now_ms))

    def answer(self, kind: type[Request], response: Response) -> None:
        """Everyone asked this gives the same answer."""
        for send in [send for send in self.asked if isinstance(send.request, kind)]:
            self.asked.remove(send)
            self._do(self.raft.answered(send.correlation, response, self.now_ms))

    def win(self) -> None:
        """The others say yes, first to the question, then to the vote."""
        self.fire()
        self.answer(VoteRequest, VoteResponse(ErrorCode.none, self.raft.epoch, -1, granted=True))
        self.answer(VoteRequest, VoteResponse(ErrorCode.none, self.raft.epoch, -1, granted=True))
        assert self.raft.leads
