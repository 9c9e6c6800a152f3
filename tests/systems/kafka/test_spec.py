"""What a specification of Kafka says, and what the judge makes of it."""

from __future__ import annotations

import pytest

from wrackline.checkers.verdict.system_words import elections, features, flushing, recovery
from wrackline.harness.run.dry_run import forecast
from wrackline.harness.specification.spec import SpecError, parse
from wrackline.history.model import RunInfo, TopicInfo
from wrackline.systems.kafka.properties import AUTO_JOIN
from wrackline.systems.kafka.spec import KafkaSpec

KAFKA = "{name: x, system: {kind: apache-kafka}}"
AT = "{at_s: 1, duration_s: 1"


@pytest.mark.parametrize(
    ("settings", "contract"),
    [
        ((), "acks-all"),
        (("topic.configs={flush.messages: 1}",), "acks-all-flushed"),
        (("system.config={log.flush.interval.messages: 1}",), "acks-all-flushed"),
        (("topic.configs={unclean.leader.election.enable: true}",), "acks-all-unclean"),
        (("system.config={unclean.leader.election.enable: true}",), "acks-all-unclean"),
        (("workload.acks=1",), "acks-1"),
    ],
)
def test_the_contract_follows_from_kafkas_settings(settings: tuple[str, ...], contract: str) -> None:
    assert forecast(parse(KAFKA, "x.yaml", settings=settings)).contract.name == contract


def test_a_wait_that_is_given_leaves_the_others_as_kafka_needs_them() -> None:
    spec = parse(KAFKA, "x.yaml", settings=["system.waits={ready_s: 3m}"])
    waits = spec.system.waits
    assert (waits.start_s, waits.ready_s, waits.warm_s, waits.steady_s) == (40, 180, 60, 8)
    assert parse("{name: x}", "x.yaml").system.waits.start_s == 10


@pytest.mark.parametrize(
    ("setting", "said"),
    [
        ("system.version=4.4", "system.version: the number 4.4 is no version: quote it and give it in full"),
        ("system.version='0.8.0.1'", "afka 0.8.0.1 is older than 0.8.2.0"),
        ("system.version='3.3.1'", "afka 3.3.1 is between those that run here"),
        ("system.version='2.8.2'", "afka 2.8.2 keeps its metadata in ZooKeeper: say how many"),
        ("fleet.zookeeper=1", "afka 4.4.0 has controllers of its own"),
        ("system.version=newest", "'newest' is no version of Apache Kafka"),
        ("system.profile=kip966", "system.profile"),
        ("fleet.spare_controllers=1", "spare_controllers is 1: its quorum is static; say system.quorum: dyn"),
        ("fleet={brokers: 3, kind: netns, spare_controllers: 5}", "spare_controllers"),
        (
            "system={kind: apache-kafka, version: 3.8.1, quorum: dynamic}",
            "dynamic needs Kafka 3.9.0 or newer",
        ),
        (f"system.config={{{AUTO_JOIN}: true}}", "auto.join.enable needs system.quorum: dynamic"),
        ("system.versions={n9: 4.3.1}", "system.versions.n9: .*may not know: give it one that both know"),
        (
            "system={kind: apache-kafka, features: {metadata.version: 30}, versions: {n9: 4.3.1}}",
            "system.versions.n9: there is no such host; there are n1, n2",
        ),
        ("system.versions={n1: 2.8.2}", "system.versions.n1: 2.8.2 and 4.4.0 keep their metadata elsewhere"),
        (
            f"system={{kind: apache-kafka, version: 4.1.2, quorum: dynamic, config: {{{AUTO_JOIN}: true}}}}",
            "auto.join.enable needs Kafka 4.2.0 or newer",
        ),
        (f"nemesis.schedule=[{AT}, fault: remove-controller}}]", "its quorum is static"),
        ("system.racks={n9: a}", "system.racks: there is no host n9; there are n1"),
    ],
)
def test_what_is_wrong_is_one_line(setting: str, said: str) -> None:
    with pytest.raises(SpecError, match=said) as wrong:
        parse(KAFKA, "x.yaml", settings=[setting])
    assert "\n" not in str(wrong.value)


def test_hosts_may_have_other_versions() -> None:
    spec = parse(
        KAFKA, "x.yaml", settings=["system={kind: apache-kafka, version: 4.3.1, versions: {n2: 4.4.0}}"]
    )
    assert spec.system.configured().version == "4.3.1 (n2 4.4.0)"


@pytest.mark.parametrize(
    ("fleet", "fault", "said"),
    [
        (
            "controllers: 3",
            "add-controller",
            "1 times add-controller needs as many spare hosts, fleet.spare_co",
        ),
        ("controllers: 1", "remove-controller", "there is one controller only, and a quorum needs a voter"),
        ("controllers: 1", "replace-controller", "there is one controller only, and nobody to copy"),
        (
            "controllers: 3, combined: true",
            "replace-controller",
            "a controller's disk has replicas of topics",
        ),
        ("controllers: 3, spare_controllers: 1", "add-controller", ""),
        ("controllers: 1, spare_controllers: 2, combined: true", "remove-controller", ""),
        ("controllers: 3, spare_controllers: 1", "replace-controller", ""),
    ],
)
def test_what_no_quorum_can_do_is_refused(fleet: str, fault: str, said: str) -> None:
    text = (
        f"{{name: x, system: {{kind: apache-kafka, quorum: dynamic}}, fleet: {{{fleet}}}, "
        f"workload: {{duration_s: 20}}, nemesis: {{schedule: [{AT}, fault: {fault}}}]}}}}"
    )
    if not said:
        assert parse(text, "x.yaml").nemesis.schedule[0].inject.fault == fault
        return
    with pytest.raises(SpecError, match=said):
        parse(text, "x.yaml")


def test_controllers_of_our_broker_stay() -> None:
    text = (
        f"{{name: x, fleet: {{controllers: 3, spare_controllers: 1}}, workload: {{duration_s: 20}}, "
        f"nemesis: {{schedule: [{AT}, fault: add-controller}}]}}}}"
    )
    with pytest.raises(SpecError) as wrong:
        parse(text, "x.yaml")
    why = "the controllers of system wrackline are the same from beginning to end"
    assert [str(one).endswith(why) for one in wrong.value.args] == [True, True]


def run(**facts: object) -> RunInfo:
    common = {"test_id": "t", "name": "n", "seed": 0, "started_at": "", "workload": "log", "acks": "all"}
    topics = (TopicInfo("log", 1, 3, 2),)
    return RunInfo(**{**common, "system": "x", "idempotence": False, "topics": topics, **facts})  # type: ignore[arg-type]


def test_the_verdict_on_kafka_uses_the_names_of_kafkas_settings() -> None:
    configured = KafkaSpec().configured()
    with_elr = {"metadata.version": 33, "eligible.leader.replicas.version": 1}
    info = run(system_kind="apache-kafka", flush_mode=configured.flush_mode, features=with_elr)
    assert recovery(info) == "last-known-leader"
    assert elections(info) == (
        "unclean.leader.election.enable=false, eligible.leader.replicas.version=1, recovery last-known-leader"
    )
    assert flushing(info).startswith("flush.messages is not 1")
    assert features(info) == "eligible.leader.replicas.version 1, metadata.version 33"
    without = run(system_kind="apache-kafka", features={"metadata.version": 21}, unclean_election=True)
    assert elections(without) == (
        "unclean.leader.election.enable=true, eligible.leader.replicas.version=0, recovery none"
    )
    never_ready = run(system_kind="apache-kafka", flush_mode="every-write")
    assert "is not on record" in elections(never_ready)
    assert flushing(never_ready).startswith("flush.messages=1")


def test_a_running_cluster_that_reports_kafkas_features_is_kafka() -> None:
    assert recovery(run(system_kind="external", features={"metadata.version": 25})) == "none"


def test_the_verdict_on_our_broker_uses_the_names_of_our_settings() -> None:
    info = run(system_kind="wrackline", recovery_strategy="balanced", flush_mode="on-roll")
    assert elections(info) == "unclean election off, recovery balanced"
    assert flushing(info) == "flush mode on-roll"
