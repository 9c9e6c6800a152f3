"""Faults of the controller quorum are sabotaged on Apache Kafka, in every way there is."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.nemesis.load import wait_until
from tests.nemesis.sabotage.sabotages import Place, Sabotage, check
from tests.nemesis.sabotage.trials import ON_QUORUM
from tests.systems.kafka.conftest import READY_S, cluster
from wrackline.systems.base import DeployError
from wrackline.systems.kafka.system import KafkaSystem

pytestmark = [pytest.mark.fleet, pytest.mark.nightly]

CONTROLLERS, SPARE = ("c1", "c2", "c3"), "c4"
LAST = Sabotage.NONE
"""What a controller that was added or replaced is stays: the fault as it is comes last."""


@pytest.fixture(scope="module")
def place() -> Iterator[Place]:
    with cluster(("n1",), CONTROLLERS, spare_controllers=(SPARE,), dynamic=True) as system:
        yield Place(system.fleet, system)


def as_in_the_beginning(system: KafkaSystem) -> None:
    """Three voters that run, and a spare controller that does not."""
    for node in system.controllers:
        system.start(node)
    for node in system.nodes:
        if node.spare and system.is_running(node):
            system.stop(node)

    def whole() -> bool:
        try:
            voters = system.quorum(timeout_s=READY_S).voters
            for node in system.controllers:
                if system.voter_on(node) not in voters:
                    stale = [one for one in voters if one.node_id == node.node_id]
                    for one in stale:
                        system.remove_voter(one, timeout_s=READY_S)
                    system.add_voter(node, timeout_s=READY_S)
            return {one.node_id for one in voters} == {101, 102, 103}
        except DeployError:
            return False

    wait_until(whole, "three voters")


def test_nobody_is_taken_in(place: Place) -> None:
    assert isinstance(place.system, KafkaSystem)
    for trial in ON_QUORUM.values():
        for sabotage in sorted(trial.sabotages, key=lambda one: one is LAST):
            as_in_the_beginning(place.system)
            check(trial, place, sabotage)
