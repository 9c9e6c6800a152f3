"""By which password a broker lets clients in is what connections of ours show."""

from __future__ import annotations

from typing import Any, cast

import pytest

from wrackline.fleets.base import Fleet, Host
from wrackline.kafka_client.security import Security
from wrackline.kafka_client.transport import AuthenticationError, ProtocolError
from wrackline.systems.base import DeployError, LetIn, Node
from wrackline.systems.kafka.security import passwords
from wrackline.systems.kafka.security.passwords import SECOND, Passwords

FIRST = "first"
CLIENTS = Security("SASL_PLAINTEXT", "SCRAM-SHA-256", "clients", FIRST)
NODE, AWAY = (Node(n, Host(f"n{n}", "127.0.0.1"), frozenset({"broker"}), 9092) for n in (1, 2))


class Brokers:
    """Node 1 learns of a password at the second look after it was given; node 2 answers nobody."""

    def __init__(self) -> None:
        self.taken, self.newest, self.looks = {FIRST}, FIRST, 0

    def give(self, password: str, timeout_s: float) -> None:
        del timeout_s
        self.newest, self.looks = password, 0

    def connect(self, *_: object, security: Security, **__: object) -> Brokers:
        self.looks += 1
        if self.looks > 2:
            self.taken = {self.newest}
        if security.password not in self.taken:
            raise AuthenticationError("refused")
        return self

    def close(self) -> None: ...


class Here:
    def entered(self) -> Any:
        return pytest.MonkeyPatch.context()


@pytest.fixture
def brokers(monkeypatch: pytest.MonkeyPatch) -> Brokers:
    made = Brokers()
    monkeypatch.setattr(passwords, "Connection", made.connect)
    return made


def test_each_pair_of_answers_has_a_name(brokers: Brokers) -> None:
    cluster = Passwords(cast(Fleet, Here()), CLIENTS, brokers.give)
    for taken, by in (
        ({FIRST}, LetIn.FIRST),
        ({SECOND}, LetIn.SECOND),
        ({FIRST, SECOND}, LetIn.BOTH),
        (set[str](), LetIn.NEITHER),
    ):
        brokers.taken, brokers.looks = taken, 0
        assert cluster.let_in(NODE, 1) is by


def test_a_change_is_over_when_each_broker_that_answers_knows_it(brokers: Brokers) -> None:
    cluster = Passwords(cast(Fleet, Here()), CLIENTS, brokers.give)
    for second, password in ((True, SECOND), (False, FIRST)):
        cluster.change([NODE], second=second, timeout_s=10)
        assert brokers.taken == {password}


def test_a_broker_that_does_not_answer_is_not_waited_for(monkeypatch: pytest.MonkeyPatch) -> None:
    def silent(*_: object, **__: object) -> None:
        raise ProtocolError("nobody answers")

    monkeypatch.setattr(passwords, "Connection", silent)
    passed: list[str] = []
    cluster = Passwords(cast(Fleet, Here()), CLIENTS, lambda password, _: passed.append(password))
    cluster.change([AWAY], second=True, timeout_s=60)
    assert passed == [SECOND]
    with pytest.raises(DeployError, match="n2 lets nobody in: nobody answers"):
        cluster.let_in(AWAY, 1)
