"""Three and five voters go through random cuts, one-way cuts, kills, power cuts, restarts and clean stops."""

from __future__ import annotations

import random

import pytest

from tests.broker.core.quorum.quorum import Quorum


def torment(world: Quorum, seed: int, rounds: int = 40) -> None:
    """Then everything heals, somebody leads, and everyone ends with the same log."""
    chance = random.Random(seed)
    for _ in range(rounds):
        world.run(chance.choice((20, 100, 300, 900)))
        node, other = chance.sample(world.ids, 2)
        server = world.controllers[node]
        match chance.randrange(9):
            case 0 if server.up:
                world.kill(node)
            case 1 | 2 if server.up:
                world.power(node)
            case 3 if server.up:
                world.clean_stop(node)
            case 4:
                world.cut(node, other)
            case 5:
                world.cut(node, other, one_way=True)
            case 6:
                world.heal()
            case _:
                down = [c.id for c in world.controllers.values() if not c.up]
                if down:
                    world.start(chance.choice(down))
    world.heal()
    world.run(3_000)
    for controller in world.controllers.values():
        if not controller.up:
            world.start(controller.id)
    world.wait_active(within_ms=20_000)
    world.until(world.settled, 10_000, "the same log everywhere")


@pytest.mark.parametrize(
    ("seed", "voters"), [*((seed, 3) for seed in range(12)), *((seed, 5) for seed in range(100, 106))]
)
def test_voters_keep_every_promise(seed: int, voters: int) -> None:
    world = Quorum(seed, voters)
    torment(world, seed)
    assert len(world.leaders) > 1, "nobody was ever replaced: the schedule proves nothing"
    assert world.image.metadata_offset > 10


def test_the_same_seed_is_the_same_history() -> None:
    def history() -> tuple[dict[int, int], int, int]:
        world = Quorum(5, 3)
        torment(world, 5, rounds=15)
        return world.leaders, world.steps, world.image.metadata_offset

    assert history() == history()
