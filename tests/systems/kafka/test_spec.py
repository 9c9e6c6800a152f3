"""What a specification of Kafka says, and what the judge makes of it."""

from __future__ import annotations

import pytest

from wrackline.checkers.verdict.system_words import elections, features, flushing, recovery
from wrackline.harness.run.dry_run import forecast
from wrackline.harness.specification.spec import SpecError, parse
from wrackline.history.model import RunInfo, TopicInfo
from wrackline.systems.kafka.spec import KafkaSpec

KAFKA = "{name: x, system: {kind: apache-kafka}}"


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
    ],
)
def test_what_is_wrong_is_one_line(setting: str, said: str) -> None:
    with pytest.raises(SpecError, match=said) as wrong:
        parse(KAFKA, "x.yaml", settings=[setting])
    assert "\n" not in str(wrong.value)


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
