"""What brokers said decides whether certificates and passwords were rotated, and quotas were in force."""

from __future__ import annotations

import json
from typing import Any

import pytest

from tests.nemesis.doubles import context
from wrackline.harness.specification.spec import SpecError, parse
from wrackline.nemesis.faults.clients.certificates import RotateCertificates
from wrackline.nemesis.faults.clients.credentials import RotateCredentials
from wrackline.nemesis.faults.clients.quotas import Quota
from wrackline.nemesis.faults.step import Step
from wrackline.nemesis.faults.steps import ProbeLog, StepResult
from wrackline.systems.base import LetIn

AIMED = context("n1", "n3")


def results(steps: tuple[Step, ...], *outputs: str) -> list[StepResult]:
    return [StepResult(step, output) for step, output in zip(steps, outputs, strict=True)]


def rotated(
    *, after: str = "b2", active: str = "b2", final: str = "b2", control: str = "a2"
) -> tuple[RotateCertificates, ProbeLog]:
    """Of n1 all is well; of n3 it is as is said."""
    fault = RotateCertificates()
    commands = fault.commands(AIMED)
    done = [json.dumps({"before": "a1", "after": "b1"}), json.dumps({"before": "a2", "after": after})]
    return fault, ProbeLog(
        do=results(commands.do, *done),
        active=results(commands.probe, "b1", active),
        final=results(commands.probe, "b1", final),
        undo=results(commands.undo, "", ""),
        control=results(commands.control, "a1", control),
    )


def test_every_target_must_serve_its_new_certificate_all_the_time() -> None:
    fault, log = rotated()
    proof = fault.prove(AIMED, log)
    assert (proof.proved, proof.text) == (True, "serial numbers served: n1 a1 to b1, n3 a2 to b2")
    assert fault.residue(AIMED, log) == ""
    for flaw, text in (
        ({"after": "a2"}, "n3 got no new certificate"),
        ({"active": "a2"}, "at the beginning n3 served a2, not b2"),
        ({"final": "a2"}, "at the end n3 served a2, not b2"),
    ):
        fault, log = rotated(**flaw)
        assert (fault.prove(AIMED, log).proved, fault.prove(AIMED, log).text) == (False, text)
    assert not fault.prove(AIMED, ProbeLog()).proved


def test_a_certificate_that_stays_is_a_residue() -> None:
    fault, log = rotated(control="b2")
    assert fault.residue(AIMED, log) == "n3 serves b2 after the undo, not a2"


def refusing(
    *, active: str = LetIn.SECOND, final: str = LetIn.SECOND, control: str = LetIn.FIRST
) -> tuple[RotateCredentials, ProbeLog]:
    """By what n3 lets clients in; n1 as it shall."""
    fault = RotateCredentials()
    commands = fault.commands(AIMED)
    return fault, ProbeLog(
        do=results(commands.do, ""),
        active=results(commands.probe, LetIn.SECOND, active),
        final=results(commands.probe, LetIn.SECOND, final),
        undo=results(commands.undo, ""),
        control=results(commands.control, LetIn.FIRST, control),
    )


def test_every_target_must_refuse_the_password_that_clients_use_all_the_time() -> None:
    fault, log = refusing()
    proof = fault.prove(AIMED, log)
    assert (proof.proved, proof.text) == (
        True,
        "n1, n3 refused the password that clients use, and took the new password",
    )
    assert fault.residue(AIMED, log) == ""
    for flaw, text in (
        ({"active": LetIn.FIRST}, "at the beginning n3 let clients in by the password that clients use, not"),
        ({"final": LetIn.BOTH}, "at the end n3 let clients in by both passwords, not by the new password"),
        ({"final": LetIn.NEITHER}, "at the end n3 let clients in by neither password, not by"),
    ):
        fault, log = refusing(**flaw)
        assert not fault.prove(AIMED, log).proved
        assert fault.prove(AIMED, log).text.startswith(text)
    assert not fault.prove(AIMED, ProbeLog()).proved


def test_a_password_that_stays_is_a_residue() -> None:
    fault, log = refusing(control=LetIn.SECOND)
    assert fault.residue(AIMED, log) == (
        "n3 lets clients in by the new password after the undo, not by the password that clients use"
    )


GIVEN, NONE = {"producer_byte_rate": "2000"}, {"producer_byte_rate": None}
FREE, SLOW = {"producer_byte_rate": 0}, {"producer_byte_rate": 700}


def limited(**changed: Any) -> tuple[Quota, ProbeLog]:
    """Outputs of a probe: the quotas, and how long n1 and n3 throttle."""
    fault = Quota(tuple(GIVEN.items()))
    commands = fault.commands(AIMED)
    said = {"active": (GIVEN, SLOW, SLOW), "final": (GIVEN, SLOW, SLOW), "control": (NONE, FREE, FREE)}
    probes = {
        when: results(commands.probe, *map(json.dumps, outputs))
        for when, outputs in {**said, **changed}.items()
    }
    return fault, ProbeLog(
        do=results(commands.do, json.dumps(NONE)), undo=results(commands.undo, json.dumps(NONE)), **probes
    )


def test_a_quota_is_in_force_where_every_target_throttles() -> None:
    fault, log = limited()
    proof = fault.prove(AIMED, log)
    assert (proof.proved, proof.text) == (
        True,
        "producer_byte_rate 2000; requests of ours were throttled for up to 700 ms",
    )
    assert fault.residue(AIMED, log) == ""
    for flaw, text in (
        ({"active": (NONE, SLOW, SLOW)}, "at the beginning clients had producer_byte_rate none, not "),
        ({"final": (NONE, SLOW, SLOW)}, "at the end clients had producer_byte_rate none, not "),
        ({"final": (GIVEN, SLOW, FREE)}, "at the end n3 throttled nothing by producer_byte_rate"),
    ):
        fault, log = limited(**flaw)
        assert fault.prove(AIMED, log).text.startswith(text)
        assert not fault.prove(AIMED, log).proved
    assert not fault.prove(AIMED, ProbeLog()).proved


def test_what_is_left_of_a_quota_is_a_residue() -> None:
    fault, log = limited(control=(GIVEN, FREE, SLOW))
    assert fault.residue(AIMED, log) == (
        "clients have producer_byte_rate 2000 after the undo, not producer_byte_rate none; "
        "n3 throttles by producer_byte_rate after the undo: 700 ms"
    )


def test_watchers_speak_plain_text_alone() -> None:
    watched = "name: x\nsystem: {kind: apache-kafka%s}\nworkload: {name: group, watchers: 3}\n"
    parse(watched % "", "x.yaml")
    with pytest.raises(SpecError) as refused:
        parse(watched % ", security: {protocol: SSL}", "x.yaml")
    assert "workload.watchers speak plaintext alone" in str(refused.value)


KAFKA = "name: x\nsystem: {kind: apache-kafka%s}\nnemesis: {schedule: [{at_s: 1, duration_s: 2, %s}]}\n"


@pytest.mark.parametrize(
    ("system", "fault", "line"),
    [
        ("", "fault: rotate-certificates", "nodes have certificates where system.security.protocol is SSL"),
        (
            ", security: {protocol: SASL_SSL, mechanism: PLAIN}",
            "fault: rotate-credentials",
            "clients have a password that changes where system.security.mechanism is one of SCRAM",
        ),
        ("", "fault: quota", "quota needs one of producer_byte_rate"),
        ("", "fault: quota, producer_byte_rate: 1000000", "producer_byte_rate"),
        (
            "",
            "fault: change-config, entity: clients, configs: {a: 1}",
            "clients have quotas: use the fault quota",
        ),
        (
            ", security: {protocol: SSL}",
            "fault: messages, apis: [Fetch], what: answer, delay_s: 1",
            "messages reads what nodes say to each other",
        ),
        (", security: {protocol: SASL_SSL}", "fault: kill", "protocol SASL_SSL needs a mechanism"),
        (", security: {mechanism: PLAIN}", "fault: kill", "protocol PLAINTEXT has no mechanism"),
        (", security: {protocol: SSL, acls: true}", "fault: kill", "acls need to know who a client is"),
        (", tier: {}, security: {protocol: SSL}", "fault: kill", "system.tier: clients of its metadata"),
    ],
)
def test_a_mistake_is_a_line(system: str, fault: str, line: str) -> None:
    with pytest.raises(SpecError) as refused:
        parse(KAFKA % (system, fault), "x.yaml")
    assert line in str(refused.value)


def test_other_systems_have_neither() -> None:
    for fault in (
        "fault: rotate-certificates",
        "fault: rotate-credentials",
        "fault: quota, producer_byte_rate: 1000",
    ):
        for kind in ("kind: wrackline", "kind: external, bootstrap: ['a:1']"):
            text = (
                f"name: x\nsystem: {{{kind}}}\nnemesis: {{schedule: [{{at_s: 1, duration_s: 2, {fault}}}]}}\n"
            )
            with pytest.raises(SpecError):
                parse(text, "x.yaml")
