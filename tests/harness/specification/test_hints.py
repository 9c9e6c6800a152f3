"""A key that is misspelt is told the nearest one, wherever in a specification it stands."""

from __future__ import annotations

import pytest

from wrackline.broker.server.config import ConfigError
from wrackline.broker.server.config import parse as parse_broker
from wrackline.harness.specification.spec import SpecError, parse


@pytest.mark.parametrize(
    ("text", "hint"),
    [
        ("workload: {rat: 5}", "workload.rat: unknown key; did you mean 'rate'?"),
        (
            "workload: {name: group, client: {session_timout_ms: 6000}}",
            "did you mean 'workload(group).session_timeout_ms'?",
        ),
        (
            "workload: {client: {transaction_timout_ms: 1}}",
            "did you mean 'workload(txn).transaction_timeout_ms'?",
        ),
        ("topic: {brokrs: 3}", "topic.brokrs: unknown key;"),
        ("workload: {kind: log}", "workload.kind: unknown key; known here: name,"),
    ],
)
def test_the_nearest_key_is_named_with_its_place(text: str, hint: str) -> None:
    with pytest.raises(SpecError) as refused:
        parse(f"name: x\n{text}\n", "x.yaml")
    assert hint in str(refused.value)


@pytest.mark.parametrize(
    ("key", "nearest"),
    [
        ("session_timout_ms", "session_timeout_ms"),
        ("quorum_fetch_timeout", "quorum_fetch_timeout_ms"),
        ("replica_lag_time_ms", "replica_lag_time_max_ms"),
    ],
)
@pytest.mark.parametrize("role", ["broker", "controller"])
def test_a_broker_knows_the_keys_of_every_role(role: str, key: str, nearest: str) -> None:
    """A system hands one mapping to all its nodes, and a broker is the one that is asked."""
    with pytest.raises(ConfigError, match=f"did you mean '{nearest}'"):
        parse_broker({"role": role, key: 1})
