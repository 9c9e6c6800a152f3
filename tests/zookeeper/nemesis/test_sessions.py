"""A session that ends while its broker lives: whom it may hit, and when it is proved."""

from __future__ import annotations

import json
from dataclasses import replace

import pytest

from tests.nemesis.doubles import context
from wrackline.fleets.netns.spec import NetnsSpec
from wrackline.nemesis.faults.steps import FaultContext, FaultError, ProbeLog, StepResult
from wrackline.systems.kafka.spec import KafkaSpec
from wrackline.zookeeper.nemesis.sessions import ExpireSession, ExpireSessionSpec

FAULT = ExpireSession()


def said(aimed: FaultContext, before: int, after: int) -> ProbeLog:
    [step] = FAULT.commands(aimed).do
    output = {"node": "/brokers/ids/2", "before": before, "after": after, "absent_s": 0.42}
    return ProbeLog(do=[StepResult(step, json.dumps(output))])


def test_the_node_must_belong_to_another_session_afterwards() -> None:
    aimed = context("n2")
    proof = FAULT.prove(aimed, said(aimed, 0x100, 0x101))
    assert proof.proved
    assert proof.text == (
        "/brokers/ids/2 of n2 belonged to session 0x100, and belongs to 0x101 since 0.4 s later"
    )
    assert not FAULT.prove(aimed, said(aimed, 0x100, 0)).proved
    assert FAULT.prove(aimed, ProbeLog()).text == "no session of n2 was ended"


def test_a_broker_that_does_not_run_and_a_server_have_none() -> None:
    with pytest.raises(FaultError, match="node 2 on n2 does not run"):
        FAULT.commands(context("n2", pid=None))
    aimed = context("n2")
    server = replace(aimed.targets[0], is_zookeeper=True)
    with pytest.raises(FaultError, match="node 2 on n2 is a ZooKeeper server"):
        FAULT.commands(FaultContext("f1", (server,), aimed.others))


def test_it_is_refused_where_there_is_no_zookeeper() -> None:
    spec = ExpireSessionSpec(fault="expire-session")
    assert "fleet.zookeeper is 0" in str(spec.refusal(NetnsSpec(), KafkaSpec()))
    assert spec.refusal(NetnsSpec(zookeeper=1), KafkaSpec(version="1.1.1")) is None
