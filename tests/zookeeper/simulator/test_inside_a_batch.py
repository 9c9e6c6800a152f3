"""Logs of profile zk08 that differ may meet in the middle of a batch. A batch goes whole: out of the log, and
out of what its broker believes and claims to have."""

from __future__ import annotations

from tests.zookeeper.simulator.zk08 import staged
from wrackline.broker.model.effects import Checkpoint, Truncate
from wrackline.broker.model.events import LogCut
from wrackline.broker.model.messages.requests import FetchRequest
from wrackline.simulator.guided.setting import T
from wrackline.simulator.guided.stage import Stage
from wrackline.simulator.world.world import StepRecord, World
from wrackline.zookeeper.simulator.scenes.random_frequency import SURROUNDINGS, recognitions_of, setup_of
from wrackline.zookeeper.simulator.scenes.recognition import OWN_END


class Claims:
    """A watcher: what followers say to have, and what they have."""

    def __init__(self, stage: Stage) -> None:
        self.asked: list[tuple[int, int]] = []
        """(the offset of a fetch that has arrived, the end of the log of whoever sent it), of broker 1."""
        self.high_watermarks: list[tuple[int, int, int]] = []
        """(high watermark, the end of the log as the core has it, as the disk has it), of broker 1."""
        self.cuts: list[int] = []
        stage.world.observers.append(self)

    def __call__(self, world: World, step: StepRecord) -> None:
        if step.kind == "receive" and step.message is not None and step.message.source == 1:
            request = step.message.request
            if isinstance(request, FetchRequest):
                end = world.brokers[1].disk.logs[T].leo
                self.asked += [(part.fetch_offset, end) for part in request.partitions]
        if step.node == 1:
            self.cuts += [effect.to_offset for effect in step.effects if isinstance(effect, Truncate)]
            core = world.brokers[1].core
            replica = None if core is None else core.replica(T)  # type: ignore[union-attr]
            if isinstance(step.event, LogCut) and replica is not None:
                end = world.brokers[1].disk.logs[T].leo
                self.high_watermarks.append((replica.high_watermark, replica.log.leo, end))


def test_a_follower_whose_high_watermark_lies_inside_its_own_batch_gives_the_batch_up_whole() -> None:
    """1 commits a batch of two alone, and dies. 2 is elected uncleanly and writes one record in its place.
    What 1 calls committed ends beyond 2's log, which ends inside 1's batch. Had 1 asked from there, 2 would
    have taken it into the ISR without that record."""
    s = staged(replicas=(1, 2), brokers=2, topic={"unclean.leader.election.enable": "true"}, losing=True)
    s.commit(b"m1")
    s.cut(1, 2)
    s.acked(1, b"m2", b"m3")
    assert s.isr == {1}
    checkpoints = s.world.brokers[1].disk.checkpoints
    s.until(lambda: checkpoints[Checkpoint.HIGH_WATERMARK].get(T, 0) == 3, "1's checkpoint")
    s.kill(1)
    s.mend(1, 2)
    s.until(lambda: s.leader == 2, "2 leads")
    s.write(2, b"n2")
    assert s.values(1) == [b"m1", b"m2", b"m3"]
    claims = Claims(s)
    s.start(1)
    s.until(lambda: s.isr == {1, 2}, "1 in the ISR again", 30_000)
    assert s.values(1) == s.values(2) == [b"m1", b"n2"]
    assert 2 in claims.cuts, "inside the batch [1, 3)"
    assert claims.high_watermarks[0] == (1, 1, 1)
    assert all(asked <= end for asked, end in claims.asked), claims.asked


def test_a_random_run_whose_logs_meet_inside_a_batch_goes_on_to_its_end() -> None:
    """It stopped there, before the simulated disk could say that it had taken more than it was asked to."""
    found = recognitions_of(setup_of(SURROUNDINGS["unclean elections"], 78))
    assert {one.story for one in found} == {OWN_END}
