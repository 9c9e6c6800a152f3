"""Faults of messages on real hosts, whose nodes answer frames of Kafka and write down what they got; the test
asks with sockets of its own."""

from __future__ import annotations

import asyncio
import shlex
import socket
import struct
import time
from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from tests.nemesis.doubles import Recorded
from tests.nemesis.faults.running import fleet, proof, running, system
from tests.nemesis.listeners import NODE, PORT, Listeners
from wrackline.fleets.base import Fleet
from wrackline.fleets.netns.fleet import NetnsFleet
from wrackline.nemesis.faults.network.messages import MessagesSpec
from wrackline.nemesis.faults.steps import FaultContext, PowerOn, Shell, Target
from wrackline.nemesis.runner import Nemesis
from wrackline.nemesis.schedule import plan
from wrackline.nemesis.spec import FAULT, load

__all__ = ["fleet", "system"]
pytestmark = pytest.mark.fleet

PRODUCE, FETCH, END_TXN = 0, 1, 26
ANSWERING = NODE.replace(
    """    while data := client.recv(4096):
        client.sendall(data)
""",
    """    import struct
    stream = client.makefile("rb")
    while len(head := stream.read(4)) == 4:
        data = stream.read(struct.unpack("!i", head)[0])
        with open("/run/node.seen", "a") as seen:
            print(*struct.unpack_from("!hhi", data)[::2], client.getpeername()[0], file=seen)
        client.sendall(struct.pack("!i", 6) + data[4:8] + b"ok")
""",
).replace("    if who in peers:\n        connection.close()\n    else:\n", "    if True:\n")


class Answerers(Listeners):
    program = ANSWERING


HOSTS = ("n1", "n2")
NODES = Answerers
assert ANSWERING.count("struct") == 4


class Asker:
    """A client's connection."""

    def __init__(self, fleet: Fleet) -> None:
        with fleet.entered():
            self.socket = socket.create_connection((fleet.hosts[0].address, PORT), timeout=5)

    def send(self, api: int, correlation: int) -> None:
        body = struct.pack("!hhih", api, 1, correlation, 4) + b"test"
        self.socket.sendall(struct.pack("!i", len(body)) + body)

    def answers(self, number: int, *, more_s: float = 0.4) -> list[int | str]:
        """The correlation ids of the answers that come, and ``end`` of the connection. Waits as long as it
        takes for so many, and then for more."""
        found: list[int | str] = []
        while "end" not in found:
            self.socket.settimeout(20.0 if len(found) < number else more_s)
            try:
                data = self.socket.recv(10, socket.MSG_WAITALL)
            except TimeoutError:
                break
            except ConnectionResetError:
                data = b""
            found.append(struct.unpack("!i", data[4:8])[0] if data else "end")
        return found


@contextmanager
def asker(fleet: Fleet) -> Iterator[Asker]:
    one = Asker(fleet)
    with one.socket:
        yield one


def seen(fleet: Fleet) -> list[tuple[int, int]]:
    """Key and correlation id of what the node got since it was asked last."""
    said = fleet.remote(fleet.hosts[0]).run("cat /run/node.seen 2>/dev/null; rm -f /run/node.seen").stdout
    return [(int(line.split()[0]), int(line.split()[1])) for line in said.splitlines()]


def test_a_request_is_held_until_the_end_and_holds_what_is_behind_it(
    fleet: NetnsFleet, system: Listeners
) -> None:
    with asker(fleet) as before:
        before.send(PRODUCE, 1)
        assert before.answers(1) == [1]
        with running(fleet, system, {"fault": "messages", "target": "n1", "apis": ["EndTxn"]}) as run:
            assert before.answers(1) == ["end"], "connections go through the proxy from now on"
            seen(fleet)
            with asker(fleet) as one, asker(fleet) as other:
                one.send(PRODUCE, 1)
                assert one.answers(1) == [1]
                one.send(END_TXN, 2)
                one.send(PRODUCE, 3)
                other.send(PRODUCE, 4)
                assert other.answers(1) == [4]
                assert one.answers(0) == []
                assert seen(fleet) == [(PRODUCE, 1), (PRODUCE, 4)]
                run.nemesis.stop_and_heal()
                assert one.answers(3) == [2, 3, "end"]
                assert seen(fleet) == [(END_TXN, 2), (PRODUCE, 3)]
    assert "1 of 1 EndTxn requests held" in proof(run)
    assert "1 of them delivered then" in proof(run)
    assert "EndTxn request 2 of 198.18." in proof(run)


def test_an_answer_is_held_for_a_time(fleet: NetnsFleet, system: Listeners) -> None:
    slow = {
        "fault": "messages",
        "target": "n1",
        "apis": ["Produce", "Fetch"],
        "what": "answer",
        "delay_s": 3.0,
    }
    with running(fleet, system, slow) as run, asker(fleet) as one:
        seen(fleet)
        began = time.monotonic()
        one.send(FETCH, 7)
        one.send(END_TXN, 8)
        while not (found := seen(fleet)):
            assert time.monotonic() - began < 20
        assert time.monotonic() - began < 3.0, "the request was not held"
        assert found[0] == (FETCH, 7)
        assert one.answers(2) == [7, 8]
        assert time.monotonic() - began > 3.0
    assert "1 of 1 Produce or Fetch answers held for up to 3.0 s" in proof(run)


def test_a_dropped_request_is_never_answered_nor_what_comes_after_it(
    fleet: NetnsFleet, system: Listeners
) -> None:
    lost = {"fault": "messages", "target": "n1", "apis": ["Fetch"], "do": "drop", "times": 1}
    with running(fleet, system, lost) as run, asker(fleet) as one, asker(fleet) as other:
        seen(fleet)
        one.send(FETCH, 1)
        one.send(PRODUCE, 2)
        assert one.answers(0) == []
        other.send(FETCH, 3)
        assert other.answers(1) == [3], "once, it was said"
        assert seen(fleet) == [(PRODUCE, 2), (FETCH, 3)]
    assert "1 of 2 Fetch requests dropped" in proof(run)


def test_a_connection_ends_in_the_place_of_an_answer(fleet: NetnsFleet, system: Listeners) -> None:
    lost = {"fault": "messages", "target": "n1", "apis": ["EndTxn"], "do": "close", "what": "answer"}
    with running(fleet, system, lost) as run, asker(fleet) as one:
        seen(fleet)
        one.send(END_TXN, 5)
        assert one.answers(1) == ["end"]
        assert seen(fleet) == [(END_TXN, 5)]
    assert "1 of 1 EndTxn answers met by a closed connection" in proof(run)


def test_a_request_arrives_twice_and_is_answered_once(fleet: NetnsFleet, system: Listeners) -> None:
    twice = {"fault": "messages", "target": "n1", "apis": ["EndTxn"], "do": "repeat", "delay_s": 0.2}
    with running(fleet, system, twice) as run, asker(fleet) as one:
        seen(fleet)
        one.send(END_TXN, 5)
        one.send(PRODUCE, 6)
        assert one.answers(2, more_s=0.8) == [5, 6]
        assert seen(fleet) == [(END_TXN, 5), (PRODUCE, 6), (END_TXN, 5)]
    assert "1 of 1 EndTxn requests repeated, 1 of them delivered" in proof(run)


def test_only_those_who_are_meant_are_hit(fleet: NetnsFleet, system: Listeners) -> None:
    frame = "bytes.fromhex('0000000a 0001 0001 00000009 0000'.replace(' ', ''))"
    ask = (
        f"import socket; it = socket.create_connection(('{fleet.hosts[0].address}', {PORT}), 5)\n"
        f"it.settimeout(3); it.sendall({frame})\n"
        "try: print(len(it.recv(10)))\n"
        "except TimeoutError: print('silence')"
    )

    def asked_by_n2() -> str:
        return fleet.remote(fleet.hosts[1]).run(f"python3 -c {shlex.quote(ask)}").stdout.strip()

    assert asked_by_n2() == "10"
    with asker(fleet) as before:
        before.send(FETCH, 1)
        assert before.answers(1) == [1]
        held = {"fault": "messages", "target": "n1", "apis": ["Fetch"], "peers": ["n2"]}
        with running(fleet, system, held) as run:
            assert asked_by_n2() == "silence"
            before.send(FETCH, 2)
            assert before.answers(1) == [2], "another peer's connection stays as it is"
    assert "Fetch request 9 of n2" in proof(run)
    lost = {"fault": "messages", "target": "n1", "apis": ["Produce"], "peers": ["client"], "do": "close"}
    with running(fleet, system, lost, held) as run, asker(fleet) as one:
        assert asked_by_n2() == "silence"
        one.send(FETCH, 3)
        assert one.answers(1) == [3]
        one.send(PRODUCE, 4)
        assert one.answers(1) == ["end"]
    assert "Produce requests met by a closed connection" in proof(run)
    assert "Fetch request 9 of n2" in str(run.recorded.ended("f2")["proof"])


def test_no_such_message_is_no_proof(fleet: NetnsFleet, system: Listeners) -> None:
    held = {"fault": "messages", "target": "n1", "apis": ["EndTxn"]}
    with running(fleet, system, held) as run, asker(fleet) as one:
        one.send(FETCH, 3)
        assert one.answers(1) == [3]
    ended = run.recorded.ended("f1")
    assert ended["proved"] is False, ended
    assert "none of the EndTxn requests was held: 0 came by; 2 other messages passed" in str(ended["proof"])


def test_a_host_that_comes_back_has_its_messages_held_again(fleet: NetnsFleet, system: Listeners) -> None:
    with running(fleet, system, {"fault": "messages", "target": "n1", "apis": ["Fetch"]}) as run:
        fleet.power.cut(fleet.hosts[0])
        [back] = asyncio.run(run.nemesis._stage.run([PowerOn("n1")]))
        assert not back.error
        system.start(system.nodes[0])
        answered: list[int | str] = ["end"]
        while answered == ["end"]:  # the proxy is there before the node is
            with asker(fleet) as one:
                one.send(PRODUCE, 1)
                if (answered := one.answers(1)) != ["end"]:
                    one.send(FETCH, 2)
                    assert one.answers(0) == []
        assert answered == [1]
    proof(run)


def test_what_a_killed_harness_left_is_found_and_removed(fleet: NetnsFleet, system: Listeners) -> None:
    spec = FAULT.validate_python({"fault": "messages", "apis": ["Fetch"]})
    assert isinstance(spec, MessagesSpec)
    n1 = fleet.hosts[0]
    aimed = Target(n1.name, n1.address, 1, PORT, "/data")
    [do] = spec.build().commands(FaultContext("f9", (aimed,), ())).do
    assert isinstance(do, Shell)
    fleet.remote(n1).run(do.command)
    second = spec.build().commands(FaultContext("f8", (aimed,), ())).do[0]
    assert isinstance(second, Shell)
    refused = fleet.remote(n1).run(second.command, check=False)
    assert "another fault has messages of the same peers here" in refused.stderr
    nemesis = Nemesis(plan(load({}), 1, 1.0), fleet, system, Recorded())
    assert nemesis.stop_and_heal() == ["n1: program f9/messages ended", "n1: chain WRACK-f9 removed"]
    assert nemesis.stop_and_heal() == []
    rules = "; ".join(f"iptables -w 5 -t {table} -S" for table in ("nat", "filter"))
    assert "WRACK" not in fleet.remote(n1).run(rules).stdout
