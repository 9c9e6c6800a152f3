"""Whose messages go to the proxy, and what its words prove."""

from __future__ import annotations

import json

import pytest
from kio.schema.index import api_key_map

from tests.nemesis.doubles import combined_scene, context
from wrackline.fleets.netns.spec import NetnsSpec
from wrackline.nemesis.faults.kafka_apis import Api
from wrackline.nemesis.faults.network.messages import Act, Messages, What, share_peers
from wrackline.nemesis.faults.steps import FaultContext, FaultError, ProbeLog, Proof, Shell, StepResult
from wrackline.nemesis.spec import FAULT
from wrackline.systems.wrackline.spec import WracklineSpec

GONE = {4: "LeaderAndIsr", 5: "StopReplica", 6: "UpdateMetadata", 7: "ControlledShutdown"}
"""What Kafka 4 does not know any more."""


def test_every_request_has_the_key_that_kafka_gave_it() -> None:
    known = {int(key): name.replace("_", "") for key, name in api_key_map.items()}
    assert {api.key: api.lower() for api in Api} == known | {key: name.lower() for key, name in GONE.items()}
    assert Api("AlterPartition").key == 56


def redirected(fault: Messages, aimed: FaultContext) -> list[str]:
    """The rules that send to the proxy, without its port and their comments."""
    [step] = [one for one in fault.commands(aimed).do if isinstance(one, Shell)]
    nat = step.command.partition("*nat\n")[2].partition("COMMIT")[0]
    rules = [line for line in nat.splitlines() if "REDIRECT" in line or "inside" in line]
    return [line.partition(" -m comment")[0].removeprefix("-A WRACK-f1 ") for line in rules]


def test_those_who_ask_are_known_by_their_addresses() -> None:
    fetch = (Api.FETCH,)
    to = "-d 198.18.0.11/32 -p tcp --dport 9092"
    assert redirected(Messages(fetch), context("n1")) == [to]
    assert redirected(Messages(fetch, peers=("n2",)), context("n1")) == [f"-s 198.18.0.12/32 {to}"]
    assert redirected(Messages(fetch, peers=("broker",)), context("n1")) == [
        f"-s 198.18.0.1{number}/32 {to}" for number in (1, 2, 3)
    ]
    clients = redirected(Messages(fetch, peers=("client",)), context("n1"))
    assert clients == [*(f"-s 198.18.0.{last}/32" for last in (11, 12, 13, 21)), to]
    both = redirected(Messages(fetch, peers=("n2",)), combined_scene("n1"))
    assert both == [f"-s 198.18.0.12/32 {to}", f"-s 198.18.0.12/32 {to.replace('9092', '9093')}"]
    with pytest.raises(FaultError, match="none of n9 could ask n1"):
        Messages(fetch, peers=("n9",)).commands(context("n1"))


@pytest.mark.parametrize(
    ("settings", "why"),
    [
        ({}, "apis"),
        ({"apis": []}, "at least 1 item"),
        ({"apis": ["Fech"]}, "'Fetch'"),
        ({"apis": ["Fetch"], "do": "repeat", "what": "answer"}, "an answer is not repeated"),
        ({"apis": ["Fetch"], "do": "drop", "delay_s": 1}, "delay_s goes with hold and repeat, not with drop"),
        ({"apis": ["Fetch"], "peers": ["leader"]}, "'leader' is nobody who asks: use broker, controller"),
        ({"apis": ["Fetch"], "share": 0}, "greater than 0"),
    ],
)
def test_settings_that_do_not_fit_are_refused(settings: dict[str, object], why: str) -> None:
    with pytest.raises(ValueError, match=why):
        FAULT.validate_python({"fault": "messages", **settings})


def test_a_host_has_one_such_fault_at_a_time_for_each_who_asks() -> None:
    assert share_peers((), ("n2",))
    assert share_peers(("n2", "n3"), ("n3",))
    assert share_peers(("broker",), ("n3",))
    assert share_peers(("broker",), ("controller",)), "a host may be both"
    assert not share_peers(("n2",), ("n3",))
    assert not share_peers(("client",), ("broker",))
    assert not share_peers(("client",), ("n2",))


def test_a_host_that_there_is_not_is_refused_before_there_are_hosts() -> None:
    spec = FAULT.validate_python({"fault": "messages", "apis": ["Fetch"], "peers": ["n2", "n7"]})
    why = spec.refusal(NetnsSpec(), WracklineSpec())
    assert why == "messages: there is no host n7; there are n1, n2, n3, c1"


def look(running: bool = True, nat: str = "-A {} -j WRACK-f1", **counts: object) -> StepResult:
    told = {
        "connections": 3,
        "passed": 40,
        "such": 0,
        "did": 0,
        "delivered": 0,
        "longest_s": 0.0,
        "acts": ["0.213 s: EndTxn request 7 of 198.18.0.1 (rdkafka)"],
        **counts,
    }
    arriving = "\n".join(nat.format(entry) for entry in ("PREROUTING", "OUTPUT"))
    guard = "\n".join(f"-A {entry} -j WRACK-f1" for entry in ("INPUT", "OUTPUT"))
    state = "-- running" if running else "-- ended"
    boot = "-- boot b1 17"
    output = f"{boot}\n{arriving}\n-- guard\n{boot}\n{guard}\n\n{state}\nready\ncounts {json.dumps(told)}\n"
    return StepResult(Shell("n1", "look"), output)


def prove(fault: Messages, final: StepResult, ended: StepResult | None = None) -> Proof:
    undo = [ended or StepResult(Shell("n1", "undo"))]
    return fault.prove(context("n1"), ProbeLog(active=[look()], final=[final], undo=undo))


HELD = Messages((Api.END_TXN,))


def test_what_the_proxy_did_is_the_proof() -> None:
    proof = prove(HELD, look(did=1, such=2), look(did=1, such=2, delivered=1, longest_s=4.04, passed=61))
    assert proof == Proof(
        True,
        "n1: 1 of 2 EndTxn requests held for up to 4.0 s, 1 of them delivered then "
        "(first 0.213 s: EndTxn request 7 of 198.18.0.1 (rdkafka)); "
        "61 other messages passed on 3 connections",
    )
    lost = Messages((Api.END_TXN, Api.FETCH), What.ANSWER, Act.DROP)
    assert "2 of 2 EndTxn or Fetch answers dropped (first" in prove(lost, look(did=2, such=2)).text


def test_what_never_came_by_is_not_proved() -> None:
    proof = prove(HELD, look())
    assert not proof.proved
    assert "none of the EndTxn requests was held: 0 came by; 40 other messages passed" in proof.text


def test_a_proxy_that_ended_or_that_connections_go_past_proves_nothing() -> None:
    ended = prove(HELD, look(running=False, did=1, such=1))
    assert ended == Proof(False, "n1 at the end: the proxy has ended")
    early = look(nat="-A {0} -j ACCEPT\n-A {0} -j WRACK-f1", did=1, such=1)
    assert prove(HELD, early).text == "n1 at the end: `-A PREROUTING -j ACCEPT` stands before its rules"
    assert prove(HELD, look(nat="", did=1)).text.startswith("n1 at the end: nothing leads from PREROUTING")
