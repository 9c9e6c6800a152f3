"""A specification of a cluster that runs already may say this, and a mistake in it gives one line."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import yaml

from wrackline.harness.run.dry_run import forecast
from wrackline.harness.run.live.setup import plan_of
from wrackline.harness.specification.access import access_of
from wrackline.harness.specification.build import as_run
from wrackline.harness.specification.check import load_checked
from wrackline.harness.specification.spec import Spec, SpecError, parse
from wrackline.plugins.acls import OPERATIONS
from wrackline.plugins.registry import Group, names

KILL = {"run": "docker compose kill kafka-{node}", "probe": "! ssh {host} true"}
SYSTEM = {"kind": "external", "bootstrap": ["a.example.org:9092", "[::1]:9093"]}
HOSTS = {"kafka-1": {"node": 1}, "kafka-2": {"node": 2}, "kafka-3": {"node": 3}}


def made(system: dict[str, Any], **others: Any) -> Spec:
    text = yaml.safe_dump({"name": "theirs", "system": {**SYSTEM, **system}, **others})
    return parse(text, "x.yaml")


def mistake(system: dict[str, Any], **others: Any) -> str:
    with pytest.raises(SpecError) as refused:
        made(system, **others)
    [line] = refused.value.mistakes
    return line.removeprefix("x.yaml: ")


def faults(*names: str, target: str = "one", **keys: Any) -> dict[str, Any]:
    each = [{"at_s": 1, "duration_s": 2, "fault": name, "target": target, **keys} for name in names]
    return {"nemesis": {"schedule": each}}


def test_it_needs_no_fleet_and_is_saved_as_it_was_written() -> None:
    spec = made({"commands": {"kill": KILL, "start": "docker compose start kafka-{node}"}})
    assert spec.fleet.kind == "none"
    assert not spec.fleet.needs_root
    assert parse(spec.to_yaml(), "saved.yaml") == spec


@pytest.mark.parametrize(
    ("system", "others", "line"),
    [
        ({}, faults("kill"), "nemesis.schedule[0]: kill needs system.commands.kill (and start)"),
        (
            {"commands": {"kill": KILL, "start": "s"}},
            faults("power-cut"),
            "nemesis.schedule[0]: power-cut needs system.commands.power-off (and power-on)",
        ),
        (
            {},
            faults("add-broker"),
            "nemesis.schedule[0]: add-broker acts on hosts, and those of an external cluster are not ours",
        ),
        (
            {"commands": {"partition": KILL, "heal": "s"}},
            faults("partition", shape="clients"),
            "nemesis.schedule[0]: partition: commands cut hosts off from all others",
        ),
        ({}, {"nemesis": {"guided": "last-leader"}}, "nemesis.guided last-leader: guided schedules cut"),
        ({}, {"fleet": {"kind": "netns"}}, "system.kind external needs no hosts: leave fleet out"),
        ({"commands": {"kill": KILL}}, {}, "system.commands: kill: it needs the command start"),
        ({"commands": {"kill": "k", "start": "s"}}, {}, "system.commands: kill: it needs a probe"),
        ({"commands": {"kil": "k"}}, {}, "system.commands: kil: nothing is done by such a command"),
        (
            {"commands": {"kill": KILL, "start": {"run": "s", "probe": "p"}}},
            {},
            "system.commands: start: it has no probe",
        ),
        ({"commands": {"logs": "x {hots}"}}, {}, "system: commands.logs: {hots} has no value for any host"),
        (
            {
                "commands": {"logs": "x {zone}"},
                "hosts": {**HOSTS, "kafka-1": {"node": 1, "values": {"zone": "a"}}},
            },
            {},
            "system: commands.logs: {zone} has no value for kafka-2",
        ),
        ({"hosts": {"kafka": {"node": 1}}}, {}, "system.hosts.kafka"),
        ({"hosts": {"n1": {"node": 1}, "n2": {"node": 1}}}, {}, "system: hosts: two have the same node"),
        ({"hosts": {"n1": {"node": 1, "values": {"a": "$(x)"}}}}, {}, "system.hosts.n1.values.a"),
        ({"bootstrap": ["a"]}, {}, "system.bootstrap[0]: 'a' is no address"),
        ({"bootstrap": []}, {}, "system.bootstrap"),
        ({"security": {"protocol": "SASL_SSL"}}, {}, "system.security: protocol SASL_SSL needs sasl"),
        ({"security": {"ssl": {"ca_location": "x"}}}, {}, "system.security: protocol PLAINTEXT has no ssl"),
        (
            {"hosts": HOSTS},
            {"topic": {"replication_factor": 4}},
            "topic.replication_factor 4 needs as many brokers, those in system.hosts are 3",
        ),
        (
            {"commands": {"kill": KILL, "start": "s"}},
            faults("kill", target="kafka-1"),
            "nemesis.schedule[0].target kafka-1: no host has a name before the run",
        ),
        (
            {"commands": {"kill": KILL, "start": "s"}, "hosts": HOSTS},
            faults("kill", target="kafka-4"),
            "nemesis.schedule[0].target kafka-4: there is no host kafka-4; there are kafka-1, kafka-2",
        ),
    ],
)
def test_a_mistake_is_a_line(system: dict[str, Any], others: dict[str, Any], line: str) -> None:
    assert mistake(system, **others).startswith(line)


def test_a_fleet_without_hosts_is_for_none_else() -> None:
    with pytest.raises(SpecError, match=r"system\.kind wrackline needs hosts, and fleet\.kind none has none"):
        parse("{name: x, fleet: {kind: none}}", "x.yaml")


def test_a_secret_in_the_file_is_refused_and_not_repeated() -> None:
    sasl = {"mechanism": "PLAIN", "username": {"env": "U"}, "password": "hunter2"}
    line = mistake({"security": {"protocol": "SASL_PLAINTEXT", "sasl": sasl}})
    assert line.startswith("system.security.sasl.password: must be {env: VARIABLE} or {file: PATH}")
    assert "hunter2" not in line


def test_validate_says_which_secret_is_missing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("NOBODY_SETS_THIS", raising=False)
    place = {"env": "NOBODY_SETS_THIS"}
    sasl = {"mechanism": "PLAIN", "username": place, "password": place}
    file = tmp_path / "x.yaml"
    system = {**SYSTEM, "security": {"protocol": "SASL_PLAINTEXT", "sasl": sasl}}
    file.write_text(yaml.safe_dump({"name": "theirs", "system": system}))
    with pytest.raises(SpecError, match="the environment variable NOBODY_SETS_THIS is not set"):
        load_checked(file)


def test_a_run_knows_its_topic_and_its_secrets_and_the_saved_file_does_not(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("THEIR_PASSWORD", "hunter2")
    place = {"env": "THEIR_PASSWORD"}
    security = {
        "protocol": "SASL_PLAINTEXT",
        "sasl": {"mechanism": "PLAIN", "username": place, "password": place},
    }
    commands = {"kill": KILL, "start": "s"}
    spec = made({"security": security, "commands": commands}, **faults("kill", target="leader(log-1)"))
    running = as_run(spec, "20260101T000000Z-theirs-12ab")
    assert running.topic.name == "wrackline-20260101T000000Z-theirs-12ab-log"
    [fault] = plan_of(running).faults
    assert fault.spec.target == "leader(wrackline-20260101T000000Z-theirs-12ab-log-1)"
    assert running.workload.client.librdkafka["sasl.password"] == "hunter2"
    assert "hunter2" not in f"{spec.to_yaml()}{running!r}"


def test_what_a_run_would_do_is_told_without_the_cluster() -> None:
    commands = {"kill": KILL, "start": "s"}
    ahead = forecast(made({"commands": commands, "hosts": HOSTS}, **faults("kill", target="leader(log-1)")))
    assert ahead.hosts == {"kafka-1": "broker", "kafka-2": "broker", "kafka-3": "broker"}
    assert ahead.faults[0].hosts is None
    assert ahead.contract.name == "acks-all"


ON_TOPICS = "Create, Delete, Describe, DescribeConfigs, Read, Write; removed when the run ends"


def used(workload: str, *fault: str, **system: Any) -> list[str]:
    return [str(one) for one in access_of(made(system, workload={"name": workload}, **faults(*fault)))]


def test_what_a_workload_uses_in_the_cluster_is_told_with_the_rights_that_it_needs() -> None:
    topic, none = f"topic wrackline-TESTID-log: {ON_TOPICS}", "group wrackline*: Describe; none is made"
    for workload in ("log", "idempotent", "compact", "register", "queue"):
        assert used(workload) == [topic, none]
    groups = "group wrackline*: Delete, Describe, Read; removed when the run ends"
    assert used("group") == [topic, groups]
    expire = "they expire by themselves (transactional.id.expiration.ms)"
    assert used("txn") == [topic, groups, f"transactional-id wrackline*: Describe, Write; {expire}"]
    assert used("log", keep_topics=True)[0].endswith("; kept when the run ends")


def test_what_a_fault_needs_beside_that_is_told() -> None:
    moves = "cluster kafka-cluster: Describe, Alter"
    assert used("log", "reassign")[-1] == moves
    assert used("log", "transfer-leadership")[-1] == moves
    changed = {"fault": "change-config", "configs": {"retention.ms": 1}, "at_s": 1, "duration_s": 2}
    spec = made({}, nemesis={"schedule": [changed]})
    assert access_of(spec)[0].operations == (*OPERATIONS[:4], "AlterConfigs", "Read", "Write")


def test_every_workload_tells_its_rights_and_of_a_cluster_of_ours_nothing_is_told() -> None:
    for workload in set(names(Group.WORKLOADS)) - {"streams"}:  # its applications are ours to deploy
        assert [one.split()[0] for one in used(workload)][:2] == ["topic", "group"]
    assert access_of(parse("{name: x}", "x.yaml")) == ()
