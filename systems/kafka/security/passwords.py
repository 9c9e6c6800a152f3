"""The SCRAM password of a running cluster's clients, and another one that takes its place for a while."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import replace

from wrackline.fleets.base import Fleet, FleetError
from wrackline.kafka_client.connection import Connection
from wrackline.kafka_client.security import Security
from wrackline.kafka_client.transport import AuthenticationError, ProtocolError
from wrackline.systems.base import DeployError, LetIn, Node

SECOND = "clients-of-the-run-rotated"
LOOK_S = 0.2
ASK_S = 2.0
_BY = {
    (True, False): LetIn.FIRST,
    (False, True): LetIn.SECOND,
    (True, True): LetIn.BOTH,
    (False, False): LetIn.NEITHER,
}


class Passwords:
    """Every error is a DeployError."""

    def __init__(self, fleet: Fleet, clients: Security, give: Callable[[str, float], None]) -> None:
        """``clients``: what they are let in by. ``give``: takes a password and the time to do it, and gives
        it to their user."""
        self._fleet = fleet
        self._clients = clients
        self._give = give

    def change(self, brokers: Sequence[Node], *, second: bool, timeout_s: float) -> None:
        """Returns when each broker that answers lets clients in by that password alone, or the time is
        over."""
        expected = LetIn.SECOND if second else LetIn.FIRST
        deadline = time.monotonic() + timeout_s
        self._give(SECOND if second else self._clients.password, timeout_s)
        for node in brokers:
            while time.monotonic() < deadline and self._differs(node, expected):
                time.sleep(LOOK_S)

    def let_in(self, node: Node, timeout_s: float) -> LetIn:
        """Returns by which password a broker lets clients in."""
        first, second = (
            self._lets_in(node, password, timeout_s) for password in (self._clients.password, SECOND)
        )
        return _BY[first, second]

    def _differs(self, node: Node, expected: LetIn) -> bool:
        """Of a broker that does not answer: False. It learns what it missed before it takes anybody in."""
        try:
            return self.let_in(node, ASK_S) is not expected
        except DeployError:
            return False

    def _lets_in(self, node: Node, password: str, timeout_s: float) -> bool:
        security = replace(self._clients, password=password)
        try:
            with self._fleet.entered():
                Connection(node.host.address, node.port, timeout_s=timeout_s, security=security).close()
            return True
        except AuthenticationError:
            return False
        except (ProtocolError, FleetError) as error:
            raise DeployError(f"{node.host.name} lets nobody in: {error}") from error
