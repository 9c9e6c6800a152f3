"""One event at a time, and what is to be done when its answers and timers come.

Requests and timers carry their continuation, kept here under their correlation or key, so that a part says
in one place what it asks and what it does with the answer.
"""

from __future__ import annotations

from collections.abc import Callable, Set
from typing import Any

from wrackline.broker.model.effects import CancelTimer, Effect, Reply, Send, SetTimer, Trace
from wrackline.broker.model.messages.requests import Request, Response
from wrackline.broker.model.types import NodeId

OnAnswer = Callable[[Response | None], None]
"""Takes the response, or None when none will come (the request may have been carried out)."""
OnFire = Callable[[], None]


class Continuations:
    def __init__(self, first_correlation: int = 0) -> None:
        self.out: list[Effect] = []
        self.now_ms = 0.0
        self._correlation = first_correlation
        self._answers: dict[int, OnAnswer] = {}
        self._timers: dict[str, OnFire] = {}

    def begin(self, now_ms: float) -> list[Effect]:
        """Returns the list that takes this event's effects."""
        self.out = []
        self.now_ms = now_ms
        return self.out

    def reply(self, request_id: int, response: Response) -> None:
        self.out.append(Reply(request_id, response))

    def trace(self, kind: str, **fields: Any) -> None:
        self.out.append(Trace(kind, fields))

    def succeed(self, former: Continuations) -> None:
        """Another core of the same process has asked until now: what is still answered to it is not taken for
        an answer to this one."""
        self._correlation = former._correlation

    # --- questions and answers -----------------------------------------------------------------------------

    def send(
        self, destination: NodeId, channel: str, request: Request, timeout_ms: float, on_answer: OnAnswer
    ) -> int:
        """The request's correlation. ``on_answer`` is called exactly once, unless ``forget`` is."""
        self._correlation += 1
        self._answers[self._correlation] = on_answer
        self.out.append(Send(self._correlation, destination, channel, request, int(timeout_ms)))
        return self._correlation

    def answered(self, correlation: int, response: Response | None) -> None:
        on_answer = self._answers.pop(correlation, None)
        if on_answer is not None:
            on_answer(response)

    @property
    def is_asking(self) -> bool:
        """A question is not answered yet."""
        return bool(self._answers)

    # --- timers --------------------------------------------------------------------------------------------

    def set_timer(self, key: str, at_ms: float, on_fire: OnFire) -> None:
        self._timers[key] = on_fire
        self.out.append(SetTimer(key, at_ms))

    def repeat(self, key: str, interval_ms: float, work: OnFire) -> None:
        """Does ``work`` each time that the interval is over."""

        def run() -> None:
            work()
            self.repeat(key, interval_ms, work)

        self.set_timer(key, self.now_ms + interval_ms, run)

    def cancel_timer(self, key: str) -> None:
        if self._timers.pop(key, None) is not None:
            self.out.append(CancelTimer(key))

    def waits_for(self, key: str) -> bool:
        """A timer of this key has been set."""
        return key in self._timers

    @property
    def timers(self) -> Set[str]:
        """Keys of the timers that have been set."""
        return self._timers.keys()

    def cancel_timers(self) -> None:
        for key in list(self._timers):
            self.cancel_timer(key)

    def fired(self, key: str) -> None:
        on_fire = self._timers.pop(key, None)
        if on_fire is not None:
            on_fire()
