"""The broker and librdkafka are asked what only they know of a specification before there is a host."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from pathlib import Path

import pytest

from wrackline.broker.model.config import BrokerConfig, ControllerConfig, NodeConfig
from wrackline.broker.server.config import ShellSettings
from wrackline.harness.specification.check import ask_system, load_checked
from wrackline.harness.specification.spec import load, parse
from wrackline.systems.base import DeployError
from wrackline.systems.wrackline import settings
from wrackline.systems.wrackline.settings import BOTH_KEYS, CONTROLLER_KEYS, OURS

SUITES = Path(__file__).parents[3] / "suites"


def test_the_profile_without_controllers_accepts_its_zookeeper_and_its_own_settings() -> None:
    """Asked of a node with the servers in its file."""
    both = "fleet: {zookeeper: 3}\nsystem: {profile: zk08, config: {preferred_replica_ms: 500ms}}"
    ask_system(parse("name: x\n" + both, "x.yaml"), "x.yaml")


def test_a_combined_node_accepts_the_keys_of_both_roles() -> None:
    """It has the keys of both roles: neither of these two is unknown to it."""
    both = "fleet: {combined: true}\nsystem: {config: {flush_mode: every-write, session_timeout_ms: 4000}}"
    ask_system(parse("name: x\n" + both, "x.yaml"), "x.yaml")


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
