"""A client that has lost its ZooKeeper tries again as long as it takes, and leaves the server its time."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from kazoo.exceptions import ConnectionLoss
from kazoo.retry import KazooRetry

from wrackline.zookeeper.server import client
from wrackline.zookeeper.systems.servers import session

ATTEMPTS = 500
GROWN = 20
"""Pauses until they are at their longest: kazoo doubles each, and multiplies it by 0.6 to 1.4 at random."""


@pytest.mark.parametrize(
    ("policy", "least_s"),
    [(session.persistently, 0.29), (client.persistently, 0.11)],
    ids=["harness", "broker"],
)
def test_attempts_do_not_come_ever_faster(policy: Callable[[], KazooRetry], least_s: float) -> None:
    again, pauses = policy(), list[float]()
    again.sleep_func = pauses.append

    def attempt() -> int:
        if len(pauses) < ATTEMPTS:
            raise ConnectionLoss
        return len(pauses)

    assert again(attempt) == ATTEMPTS
    assert pauses[0] < 0.1, "a server that is back at once is found at once"
    assert min(pauses[GROWN:]) > least_s
