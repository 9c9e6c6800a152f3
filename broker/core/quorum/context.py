"""Context that the parts of the quorum share: continuations of their own, and random numbers."""

from __future__ import annotations

from uuid import UUID

from wrackline.broker.core.continuations import Continuations, OnAnswer, OnFire
from wrackline.broker.model.config import ControllerConfig
from wrackline.broker.model.messages.requests import Request
from wrackline.broker.model.types import NodeId

RAFT = "raft"
"""The channel to other voters, and what every timer of the quorum begins with."""
_FIRST_CORRELATION = 1 << 32
"""Apart from the questions that the controller itself asks of brokers."""
_MASK = (1 << 64) - 1


class Chance:
    """Random numbers (splitmix64) from the incarnation id, which the shell or the simulator draws: timeouts
    differ between controllers and between lives, and a simulation repeats."""

    def __init__(self, incarnation: UUID, node_id: NodeId) -> None:
        self._state = (incarnation.int ^ (incarnation.int >> 64) ^ (node_id * 0x9E3779B97F4A7C15)) & _MASK

    def below(self, ms: float) -> float:
        """Uniform in [0, ms)."""
        self._state = (self._state + 0x9E3779B97F4A7C15) & _MASK
        mixed = self._state
        mixed = ((mixed ^ (mixed >> 30)) * 0xBF58476D1CE4E5B9) & _MASK
        mixed = ((mixed ^ (mixed >> 27)) * 0x94D049BB133111EB) & _MASK
        return ((mixed ^ (mixed >> 31)) >> 11) / (1 << 53) * ms


class RaftContext(Continuations):
    def __init__(self, config: ControllerConfig) -> None:
        super().__init__(_FIRST_CORRELATION)
        self.config = config
        self.me = config.node_id
        self.voters = tuple(endpoint.node_id for endpoint in config.controllers)
        self.others = tuple(voter for voter in self.voters if voter != self.me)
        self.chance = Chance(UUID(int=0), self.me)

    def ask(self, voter: NodeId, request: Request, timeout_ms: float, on_answer: OnAnswer) -> None:
        self.send(voter, RAFT, request, timeout_ms, on_answer)

    def wait(self, key: str, ms: float, on_fire: OnFire) -> None:
        self.set_timer(key, self.now_ms + ms, on_fire)

    @staticmethod
    def is_mine(correlation: int) -> bool:
        return correlation > _FIRST_CORRELATION

    def election_timeout_ms(self) -> float:
        """Split votes end because no two wait equally long."""
        timeout_ms = self.config.quorum_election_timeout_ms
        return timeout_ms + self.chance.below(timeout_ms)
