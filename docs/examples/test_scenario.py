"""A scenario of one's own: python -m pytest --wrackline test_scenario.py (as root, for the hosts)."""

import pytest

from wrackline.api import Cluster, History, Judge

FAST = {"session_timeout_ms": 2000, "heartbeat_interval_ms": 300, "replica_lag_time_max_ms": 3000}


@pytest.mark.wrackline(topic={"partitions": 1}, workload={"rate": 100}, system={"config": FAST})
def test_the_next_leader_has_all_that_was_acknowledged(
    cluster: Cluster, history: History, judged: Judge
) -> None:
    first = cluster.leader(0).node_id
    with history.fault("kill", target="leader(log-0)"):
        cluster.wait_until(lambda state: state.partitions[0].leader not in (-1, first), "nobody took over")
        history.wait(acknowledged=100)
    found = judged()  # fails here, with the findings, unless the verdict is pass
    assert found.verdict["counts"]["acked_records"] > 200
