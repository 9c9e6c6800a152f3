"""One healthy cluster shared by the tests that break nothing."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.broker.clients.loopback import Cluster


@pytest.fixture(scope="session")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    with Cluster(tmp_path_factory.mktemp("cluster"), broker_keys={"segment_bytes": 65_536}) as running:
        yield running
        # A broker that met a bug has stopped; the tests may not have noticed.
        assert [node.node_id for node in running.nodes if not node.running] == []
