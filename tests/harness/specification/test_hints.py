"""A key that is misspelt is told the nearest one, wherever in a specification it stands."""

from __future__ import annotations

import pytest

from wrackline.broker.server.config import ConfigError
from wrackline.broker.server.config import parse as parse_broker


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
