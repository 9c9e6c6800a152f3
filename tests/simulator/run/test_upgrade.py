"""A rolling upgrade from kraft35 to kip966 while random faults happen (docs/rolling-upgrades.md)."""

from __future__ import annotations

import pytest

from wrackline.broker.model.messages.admin import FeatureUpdate, UpdateFeaturesRequest, UpdateFeaturesResponse
from wrackline.broker.model.metadata.features import METADATA_VERSION, WITH_ELR
from wrackline.broker.rules.placement.features import ClusterLevels, FeatureRules
from wrackline.simulator.faults.setup import Setup
from wrackline.simulator.run import run
from wrackline.simulator.run.session import Run


def seeded(seed: int) -> Setup:
    return Setup(seed, profile="kraft35", upgrade_to="kip966", controllers=3, seconds=20.0)


@pytest.mark.parametrize("seed", range(2))
def test_nothing_is_lost_on_the_way(seed: int) -> None:
    result = run(seeded(seed))
    assert result.violation is None, result.violation
    assert result.acked


def test_every_node_becomes_the_later_one_and_the_level_rises_at_the_end() -> None:
    """Without faults, so that nothing can keep it from that."""
    session = Run(Setup(1, profile="kraft35", upgrade_to="kip966", controllers=3, kinds=(), seconds=20.0))
    session.boot()
    world = session.world
    world.until(lambda: world.image.partition(session._watched[0]) is not None, 20_000, "the topic")
    early = world.asked(1, UpdateFeaturesRequest((FeatureUpdate(METADATA_VERSION, WITH_ELR),), 3_000))
    assert isinstance(early, UpdateFeaturesResponse)
    assert "only supports versions 11 to 11" in str(early.message)
    session.main()
    assert not session.found
    assert all(world.is_upgraded(server.id) for server in world.servers())
    assert world.image.level == WITH_ELR
    assert all(server.incarnation >= 2 for server in world.servers())


def test_a_level_that_one_node_does_not_support_would_be_found(monkeypatch: pytest.MonkeyPatch) -> None:
    """The search can fail: a controller that takes every wish ends the nodes that have yet to be upgraded."""

    def takes_all(_: FeatureRules, __: FeatureUpdate, ___: ClusterLevels) -> str:
        return ""

    monkeypatch.setattr(FeatureRules, "refusal", takes_all)
    ended = "metadata.version is 23, and this node's profile supports 11 to 11"
    for seed in range(6):
        session = Run(seeded(seed))
        session.boot()
        session.main()
        if any(ended in gone.reason for server in session.world.servers() for gone in server.exits):
            return
    pytest.fail("no node ended with a level that it does not support")


def test_an_upgrade_that_there_is_not_is_refused() -> None:
    with pytest.raises(ValueError, match="from kip966 nobody goes there; there is: kraft35 to kip966"):
        Setup(upgrade_to="kraft35").check()


def test_the_command_that_repeats_a_run_names_the_upgrade() -> None:
    assert "--profile kraft35 --upgrade-to kip966" in seeded(3).command()
