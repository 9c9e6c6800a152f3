"""Drills: after the faults, in a cluster that is whole, what Kafka promises in a bounded time is asked for.

Under random faults a promise of progress can hardly be judged: something may always have hindered it. So a
run of a swarm ends with some drills in a cluster that nothing hinders. Each does one thing to it (a broker
falls silent, a follower lags, a leader stops, a request comes too late) and looks at what must follow, not
too soon and not too late. The bounds are the settings of the nodes and some slack for the network.

What is left of the faults, or of the drills before, may hinder a drill after all. So a run whose drill
fails is done again, with that drill alone, and the second run is the run's result.
"""

from __future__ import annotations

from collections.abc import Sequence
from random import Random

from wrackline.broker.model.types import TopicPartition
from wrackline.simulator.drills.administration import ADMINISTRATION, supported_levels
from wrackline.simulator.drills.answers import ANSWERS, voters
from wrackline.simulator.drills.ground import Drill, Ground, Over, Session
from wrackline.simulator.drills.guest import GUEST, partition_without_a_leader
from wrackline.simulator.drills.partitions import PARTITIONS, producers_that_are_silent
from wrackline.simulator.drills.progress import LONG, quorum, return_by_snapshot
from wrackline.simulator.drills.quorum import QUORUM
from wrackline.simulator.drills.refusals import refused_brokers
from wrackline.simulator.drills.replicas import REPLICAS
from wrackline.simulator.drills.requests import SHORT
from wrackline.simulator.drills.waits import RETURNS, WAITS, shorter_log

DATA = (*PARTITIONS, *REPLICAS)
EVERY = (
    *SHORT,
    *ANSWERS,
    *WAITS,
    *ADMINISTRATION,
    supported_levels,
    *LONG,
    *RETURNS,
    *GUEST,
    *DATA,
    *QUORUM,
    producers_that_are_silent,
    refused_brokers,
)
_SHORT_DRILLS = 4
_RETURNING, _OF_QUORUM, _REFUSED = 0.4, 0.5, 0.2
"""Shares of the runs with one more of the drills that take long: of all runs, and of those with a quorum."""


def drill(session: Session, partitions: int) -> dict[TopicPartition, int]:
    """Does one long drill, some short ones, one of administrators' requests, one of answers or waits, one
    with a guest and one of partitions or replicas, drawn by the seed; only the drill that has failed, where
    one has. Returns the log starts that were asked for."""
    if session.failed is not None:
        return do(session, [session.failed], Random(f"{session.setup.seed}/drills/again"), partitions)
    draw = Random(f"{session.setup.seed}/drills")
    chosen = [*draw.sample(SHORT, _SHORT_DRILLS), draw.choice(ADMINISTRATION), draw.choice(LONG)]
    draw.shuffle(chosen)
    later = Random(f"{session.setup.seed}/drills/answers")
    chosen.append(later.choice((*ANSWERS, *WAITS)))
    if len(session.world.controllers) > 2:  # in few seeds, and much is to be seen there alone
        chosen += [voters, supported_levels]
        chosen.append(Random(f"{session.setup.seed}/drills/quorum").choice(QUORUM))
        if later.random() < _OF_QUORUM:
            chosen.append(later.choice((quorum, return_by_snapshot, shorter_log)))
    if later.random() < _RETURNING:
        chosen.append(later.choice(RETURNS))
    guest = Random(f"{session.setup.seed}/drills/guest")
    # There is most to be seen without a leader, and each run sees little of it.
    chosen.append(guest.choice((*GUEST, partition_without_a_leader)))
    chosen.append(Random(f"{session.setup.seed}/drills/data").choice(DATA))
    if "producer_id_expiration_ms" in dict(session.setup.broker):
        chosen.append(producers_that_are_silent)
    if Random(f"{session.setup.seed}/drills/refusals").random() < _REFUSED:
        chosen.append(refused_brokers)
    return do(session, chosen, draw, partitions)


def do(session: Session, drills: Sequence[Drill], draw: Random, partitions: int) -> dict[TopicPartition, int]:
    """Does these drills, up to the first that finds something."""
    ground = Ground(session, draw)
    try:
        for each in drills:
            ground.tp = TopicPartition(session.setup.topic, draw.randrange(partitions))
            ground.name = each.__name__.replace("_", " ")
            session.world.say(f"drill: {ground.name}")
            ground.settle()
            each(ground)
            ground.whole()
    except Over:
        session.failed = each
    return ground.deleted
