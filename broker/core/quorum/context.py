"""Context that the parts of the quorum share: effects and clock of the event, questions, timers, random
numbers."""

from __future__ import annotations

from collections.abc import Callable
from uuid import UUID

from wrackline.broker.model.config import ControllerConfig
from wrackline.broker.model.effects import CancelTimer, Effect, Send, SetTimer
from wrackline.broker.model.messages.requests import Request, Response
from wrackline.broker.model.types import NodeId

RAFT = "raft"
"""The channel to other voters, and what every timer of the quorum begins with."""
_FIRST_CORRELATION = 1 << 32
"""Apart from the questions that the controller itself asks of brokers."""
_MASK = (1 << 64) - 1

OnAnswer = Callable[[Response | None], None]


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


class RaftContext:
    def __init__(self, config: ControllerConfig) -> None:
        self.config = config
        self.me = config.node_id
        self.voters = tuple(endpoint.node_id for endpoint in config.controllers)
        self.others = tuple(voter for voter in self.voters if voter != self.me)
        self.out: list[Effect] = []
        self.now_ms = 0.0
        self.chance = Chance(UUID(int=0), self.me)
        self._correlation = _FIRST_CORRELATION
        self._asked: dict[int, OnAnswer] = {}
        self._timers: dict[str, Callable[[], None]] = {}

    def begin(self, now_ms: float) -> list[Effect]:
        """The list that takes this event's effects."""
        self.now_ms = now_ms
        self.out = []
        return self.out

    def send(self, voter: NodeId, request: Request, timeout_ms: float, on_answer: OnAnswer) -> None:
        self._correlation += 1
        self._asked[self._correlation] = on_answer
        self.out.append(Send(self._correlation, voter, RAFT, request, int(timeout_ms)))

    def answered(self, correlation: int, response: Response | None) -> None:
        on_answer = self._asked.pop(correlation, None)
        if on_answer is not None:
            on_answer(response)

    @staticmethod
    def is_mine(correlation: int) -> bool:
        return correlation > _FIRST_CORRELATION

    def set_timer(self, key: str, after_ms: float, on_fire: Callable[[], None]) -> None:
        self._timers[key] = on_fire
        self.out.append(SetTimer(key, self.now_ms + after_ms))

    def cancel_timer(self, key: str) -> None:
        if self._timers.pop(key, None) is not None:
            self.out.append(CancelTimer(key))

    def fired(self, key: str) -> None:
        on_fire = self._timers.pop(key, None)
        if on_fire is not None:
            on_fire()

    def election_timeout_ms(self) -> float:
        """Split votes end because no two wait equally long."""
        timeout_ms = self.config.quorum_election_timeout_ms
        return timeout_ms + self.chance.below(timeout_ms)
