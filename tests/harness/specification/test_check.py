"""The broker and librdkafka are asked what only they know of a specification before there is a host."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from pathlib import Path

import pytest

from wrackline.broker.model.config import BrokerConfig, ControllerConfig, NodeConfig
from wrackline.broker.server.config import ShellSettings
from wrackline.fleets.netns.fleet import NetnsFleet
from wrackline.harness.cli.main import main
from wrackline.harness.specification.check import ask_clients, ask_system, load_checked
from wrackline.harness.specification.spec import SpecError, load, parse
from wrackline.systems.base import DeployError
from wrackline.systems.wrackline import settings
from wrackline.systems.wrackline.settings import BOTH_KEYS, CONTROLLER_KEYS, OURS

SUITES = Path(__file__).parents[3] / "suites"

MISTAKES = [
    (
        "config: {flush_mod: every-write}",
        "system.config.flush_mod: unknown key 'flush_mod', did you mean 'flush_mode'?",
    ),
    ("config: {flush_mode: never}", "system.config.flush_mode: flush_mode = 'never'; it must be one of: "),
    (
        "config: {session_timeout_ms: soon}",
        "system.config.session_timeout_ms: session_timeout_ms = 'soon'; it must be",
    ),
    ("config: {segment_bytes: 5}", "system.config.segment_bytes: segment_bytes = 5; it must be from 1024 to"),
    (
        "config: {quorum_fetch_timeout_ms: 0}",
        "system.config.quorum_fetch_timeout_ms: quorum_fetch_timeout_ms = 0",
    ),
    ("config: {data_dir: /etc}", "system.config.data_dir: the harness gives it to each node; leave it out"),
    ("config: {defects: trunc_hw}", "system.config.defects: give them as system.defects"),
    (
        "defects: [truncate_hw]",
        "system.defects: no defect 'truncate_hw'; did you mean 'trunc_hw'? the documents list all ",
    ),
    (
        "profile: kraft35, defects: [kip101_v0]",
        "system.defects: these defects replace no rule of this profile",
    ),
    ("profile: kip999", "system.profile: no profile 'kip999'; there are: kip101, kip966, kraft35, zk08"),
]


@pytest.mark.parametrize(("text", "said"), MISTAKES, ids=[said[:40] for _, said in MISTAKES])
def test_the_broker_is_asked_and_its_answer_is_one_line(text: str, said: str) -> None:
    spec = parse(f"name: x\nsystem: {{{text}}}", "x.yaml")
    with pytest.raises(SpecError) as wrong:
        ask_system(spec, "x.yaml")
    assert str(wrong.value).startswith(f"x.yaml: {said}")
    assert "\n" not in str(wrong.value)


def test_the_profile_without_controllers_accepts_its_zookeeper_and_its_own_settings() -> None:
    """Asked of a node with the servers in its file."""
    both = "fleet: {zookeeper: 3}\nsystem: {profile: zk08, config: {preferred_replica_ms: %s}}"
    ask_system(parse("name: x\n" + both % "500ms", "x.yaml"), "x.yaml")
    with pytest.raises(SpecError, match=r"^x\.yaml: system\.config\.preferred_replica_ms: .* must be from 1"):
        ask_system(parse("name: x\n" + both % "0", "x.yaml"), "x.yaml")


def test_a_combined_node_accepts_the_keys_of_both_roles() -> None:
    """It has the keys of both roles: neither of these two is unknown to it."""
    both = "fleet: {combined: true}\nsystem: {config: {flush_mode: every-write, session_timeout_ms: 4000%s}}"
    ask_system(parse("name: x\n" + both % "", "x.yaml"), "x.yaml")
    with pytest.raises(
        SpecError, match=r"^x\.yaml: system\.config\.flush_mod: unknown key .* \(role combined\)"
    ):
        ask_system(parse("name: x\n" + both % ", flush_mod: 1", "x.yaml"), "x.yaml")


@pytest.mark.parametrize(
    ("topic", "said"),
    [
        ("{name: __cluster_metadata}", "topic.name: topic name '__cluster_metadata' is the cluster's own"),
        ("{name: ..}", "topic.name: topic name '..': 1 to 249 characters"),
        (
            "{configs: {retention.mss: 4}}",
            "topic.configs.retention.mss: unknown topic setting 'retention.mss'; did you mean "
            "'retention.ms'?",
        ),
        (
            "{configs: {segment.bytes: 4}}",
            "topic.configs.segment.bytes: bad value '4' for topic setting 'segment.bytes': it must be a "
            "whole number from "
            "1024 to 2147483647",
        ),
        (
            "{configs: {cleanup.policy: compact, flush.ms: x}}",
            "topic.configs.cleanup.policy: bad value 'compact' for topic setting 'cleanup.policy': it must "
            "be delete "
            "(and 1 more)",
        ),
    ],
)
def test_the_topic_is_asked_for_too(topic: str, said: str) -> None:
    with pytest.raises(SpecError) as wrong:
        ask_system(parse(f"name: x\ntopic: {topic}", "x.yaml"), "x.yaml")
    assert str(wrong.value).removeprefix("x.yaml: ").startswith(said)


def test_a_value_that_librdkafka_does_not_take_is_one_line() -> None:
    spec = parse("name: x\nworkload: {client: {librdkafka: {message.max.bytes: 5}}}", "x.yaml")
    with pytest.raises(SpecError) as wrong:
        ask_clients(spec, "x.yaml")
    assert str(wrong.value) == (
        "x.yaml: workload.client: librdkafka does not take these settings: Configuration property "
        '"message.max.bytes" value 5 is outside allowed range 1000..1000000000'
    )


def test_a_run_with_such_a_mistake_ends_before_there_is_a_host(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    def up(_fleet: NetnsFleet) -> None:
        raise AssertionError("hosts were made")

    monkeypatch.setattr(NetnsFleet, "up", up)
    (tmp_path / "x.yaml").write_text("name: x\nsystem: {config: {flush_mod: 1}}")
    for arguments in (["run", str(tmp_path / "x.yaml"), "--results", str(tmp_path / "results")],):
        with pytest.raises(SystemExit) as ended:
            main(arguments)
        told = capsys.readouterr()
        assert (ended.value.code, told.out) == (2, "")
        assert told.err.count("\n") == 1
        assert "x.yaml: system.config.flush_mod: unknown key" in told.err
    assert not (tmp_path / "results").exists()


@pytest.mark.parametrize(
    "path", sorted([*SUITES.glob("*.yaml"), *SUITES.glob("defects/*.yaml")]), ids=lambda path: path.stem
)
def test_every_specification_that_comes_with_us_is_taken_by_the_broker(path: Path) -> None:
    assert load_checked(path) == load(path)


def test_a_broker_that_cannot_be_asked_is_no_mistake_of_the_specification(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    settings._answer.cache_clear()
    monkeypatch.setattr(settings.sys, "executable", "/bin/false")
    try:
        with pytest.raises(DeployError, match=r"the broker cannot be asked \(/bin/false .*exit code 1"):
            ask_system(parse("name: x", "x.yaml"), "x.yaml")
    finally:
        settings._answer.cache_clear()


def names(*kinds: type) -> set[str]:
    return {field.name for kind in kinds for field in dataclasses.fields(kind)}


def test_each_setting_of_the_broker_goes_to_the_roles_that_know_it() -> None:
    shared = names(NodeConfig, ShellSettings)
    assert names(ControllerConfig) - shared == CONTROLLER_KEYS
    assert shared - set(OURS) == BOTH_KEYS
    given: Sequence[str] = sorted((names(ControllerConfig, BrokerConfig) | shared) - set(OURS))
    config = dict.fromkeys(given, 1)
    to_broker = settings.of_roles(config, broker=True, controller=False)
    assert set(to_broker) == names(BrokerConfig, ShellSettings) - set(OURS)
    assert set(settings.of_roles(config, broker=True, controller=True)) == set(given)
