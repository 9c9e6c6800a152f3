"""Every invariant is silent in a good state, and the only one to speak in a state that was spoilt for it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

import pytest
from kio.schema.errors import ErrorCode

from tests.simulator.invariants.runs import Run, T
from wrackline.broker.core.broker import Broker
from wrackline.broker.core.replication.replica import Replica
from wrackline.broker.model.batches import batch
from wrackline.broker.model.effects import Append, DeleteLog, Effect, Reply, Trace, Truncate
from wrackline.broker.model.epochs import EpochCache
from wrackline.broker.model.events import Boot, Event, RequestReceived
from wrackline.broker.model.messages.controller import BrokerHeartbeatRequest, BrokerHeartbeatResponse
from wrackline.broker.model.messages.requests import (
    ProducePartition,
    ProduceRequest,
    ProduceResponse,
    ProduceResult,
)
from wrackline.broker.model.metadata.image import PartitionImage
from wrackline.broker.model.types import METADATA, EpochEntry, FlushMode
from wrackline.simulator.invariants.catalogue import INVARIANTS
from wrackline.simulator.invariants.checker import Checker
from wrackline.simulator.world.disk_log import SimLog, Stored
from wrackline.simulator.world.world import StepKind, StepRecord, World, WorldOptions

CONTROLLER = 101


class Stage:
    """Broker 1 leads t-0 with 2 and 3 in sync: four records acknowledged with acks=all, a fifth with acks=1,
    all committed and known to be."""

    def __init__(self, **options: Any) -> None:
        self.world = World(7, WorldOptions(**options))
        self.checker = Checker(self.world)
        self.world.observers.append(self.checker)
        self.world.create_topic("t", 1, replicas=(1, 2, 3))
        for number in range(5):
            self.world.asked(1, self.request(b"%d" % number, -1 if number < 4 else 1))
        self.world.run(2_000)
        assert [self.replica(node).high_watermark for node in (1, 2, 3)] == [5, 5, 5]
        self.observer = self.checker.observer
        for node in (1, 2, 3):
            self.touch(node)
        self.expect()

    # --- what there is -------------------------------------------------------------------------------------

    def request(self, value: bytes, acks: int = -1) -> ProduceRequest:
        data = batch.build([value], 0, -1, 0)
        return ProduceRequest(acks, 60_000, (ProducePartition(T, data),))

    def broker(self, node: int) -> Broker:
        core = self.world.brokers[node].core
        assert core is not None
        return core

    def replica(self, node: int) -> Replica:
        found = self.broker(node).replica(T)
        assert found is not None
        return found

    def log(self, node: int) -> SimLog:
        return self.world.brokers[node].disk.logs[T]

    @property
    def image(self) -> PartitionImage:
        found = self.world.image.partition(T)
        assert found is not None
        return found

    # --- steps ---------------------------------------------------------------------------------------------

    def step(
        self, node: int, effects: Sequence[Effect] = (), kind: StepKind = "handle", event: Event | None = None
    ) -> None:
        self.checker(self.world, StepRecord(99, self.world.now_ms, kind, node, event, effects))

    def touch(self, node: int, *effects: Effect, event: Event | None = None) -> None:
        self.step(node, [Trace("touched", {"tp": str(T)}), *effects], event=event)

    def disk(self, node: int) -> None:
        self.step(node, kind="fault")

    def commit(self, **changes: Any) -> None:
        """A change of the partition, as if the controller had committed it."""
        if changes:
            changes = {"partition_epoch": self.image.partition_epoch + 1, **changes}
            self.world.image._put(replace(self.image, **changes))
        self.world.image.metadata_offset += 1
        self.step(CONTROLLER, [Trace("ctl_commit", {"offset": -1, "record": {}})])

    def register(self, node: int, **changes: Any) -> None:
        brokers = self.world.image.brokers
        brokers[node] = replace(brokers[node], **changes)

    def spoil(self, node: int, offset: int) -> None:
        """Another record at this offset, of the same epoch."""
        log = self.log(node)
        header = log.batches[offset].header
        data = batch.build([b"other"], offset, header.leader_epoch, 0)
        log.batches[offset] = Stored(batch.parse_header(data), data)

    def append(self, node: int, value: bytes = b"more") -> Append:
        """On the disk and in the core of a node, past the end."""
        log, core = self.log(node), self.replica(node).log
        base = log.leo
        data = batch.build([value], base, self.image.leader_epoch, 0)
        log.append(data)
        core.leo = log.leo
        return Append(T, (data,), base, log.leo)

    def expect(self, *ids: str) -> None:
        assert [violation.id for violation in self.checker.violations] == list(ids), self.checker.violations


Spoiler = Callable[[Stage], None]


def i01_the_new_leader_lacks_an_acknowledged_record(s: Stage) -> None:
    s.spoil(2, 2)
    s.disk(2)
    s.expect()
    s.commit(leader=2, leader_epoch=s.image.leader_epoch + 1)


def i02_a_member_of_the_isr_is_too_short(s: Stage) -> None:
    s.log(3).cut(3)
    s.disk(3)


def i03_a_follower_has_another_record_below_its_high_watermark(s: Stage) -> None:
    s.spoil(3, 1)
    s.disk(3)
    s.expect()
    s.touch(3)


def i04_the_leader_shows_another_record_than_before(s: Stage) -> None:
    s.spoil(1, 4)
    s.disk(1)


def i05_the_leader_forgets_a_member(s: Stage) -> None:
    leader = s.replica(1).leading
    leader.isr = leader.maximal = frozenset({1, 2})
    s.touch(1)


def i05_the_maximal_isr_is_wide_for_no_reason(s: Stage) -> None:
    leader = s.replica(1).leading
    leader.maximal = leader.isr | {9}
    s.touch(1)


def i06_a_broker_has_metadata_that_was_never_committed(s: Stage) -> None:
    log = s.world.brokers[2].disk.logs[METADATA]
    base = log.leo
    data = batch.build([b"{}"], base, 0, 0)
    log.append(data)
    s.step(2, [Append(METADATA, (data,), base, base + 1)])


def i07_nobody_has_an_acknowledged_record_any_more(s: Stage) -> None:
    for node in (1, 2, 3):
        s.world.kill(node)
        s.log(node).cut(2)
        s.step(node, [Truncate(T, 2)])
    s.expect()
    s.step(CONTROLLER, kind="fault")


def i08_an_unclean_restart_stays_in_the_isr(s: Stage) -> None:
    s.register(2, epoch=s.world.image.metadata_offset + 1)
    s.commit()


def i09_too_few_are_remembered(s: Stage) -> None:
    s.commit(isr=(), elr=(), last_known_elr=(2,), leader=-1, leader_epoch=s.image.leader_epoch + 1)


def i10_a_high_watermark_past_the_end(s: Stage) -> None:
    s.replica(2).high_watermark = 6
    s.touch(2)


def i10_a_leader_s_high_watermark_goes_back(s: Stage) -> None:
    s.replica(1).high_watermark = 4
    s.touch(1)


def i11_two_brokers_of_one_epoch(s: Stage) -> None:
    epoch = s.world.image.metadata_offset + 1
    for node in (2, 3):
        was = s.world.image.brokers[node].epoch
        incarnation = s.world.image.brokers[node].incarnation
        s.observer.boot_of[incarnation] = Boot(incarnation, {}, previous_broker_epoch=was)
        s.register(node, epoch=epoch)
    s.commit()


def i11_a_request_of_a_former_uptime_is_accepted(s: Stage) -> None:
    beat = BrokerHeartbeatRequest(2, s.world.image.brokers[2].epoch - 1, 0, False, False)
    s.step(CONTROLLER, event=RequestReceived(-5, beat))
    s.step(CONTROLLER, [Reply(-5, BrokerHeartbeatResponse(ErrorCode.none))])


def i12_a_partition_epoch_goes_back(s: Stage) -> None:
    s.replica(2).partition_epoch -= 1
    s.touch(2)


def i12_a_change_without_a_new_partition_epoch(s: Stage) -> None:
    s.commit(isr=(1, 2), partition_epoch=s.image.partition_epoch)


def i13_two_records_of_one_epoch_at_one_offset(s: Stage) -> None:
    s.touch(1, s.append(1, b"one"))
    s.expect()
    s.touch(3, s.append(3, b"another"))


def i13_two_leaders_of_one_epoch(s: Stage) -> None:
    s.observer.partitions[T].leaders[s.image.leader_epoch] = 3
    s.touch(1)


def i14_a_fenced_broker_in_the_isr(s: Stage) -> None:
    s.register(3, fenced=True)
    s.commit()


def i14_elr_beside_a_large_isr(s: Stage) -> None:
    s.commit(isr=(1, 2), elr=(3,))


def i14_a_leader_outside_the_isr(s: Stage) -> None:
    s.commit(isr=(2, 3))


def i15_the_epoch_cache_is_not_the_log_s(s: Stage) -> None:
    entries = (*s.replica(2).log.epochs.entries, EpochEntry(s.image.leader_epoch + 1, 3))
    s.replica(2).log.epochs = EpochCache(entries)
    s.touch(2)


def i16_a_follower_is_in_no_fetcher(s: Stage) -> None:
    s.broker(2)._fetchers.remove(T)
    s.touch(2)


def i16_a_leader_fetches(s: Stage) -> None:
    replica = s.replica(1)
    replica.leader_id = 2
    s.broker(1)._fetchers.add(replica)
    replica.leader_id = 1
    s.touch(1)


def i17_acknowledged_before_the_followers_have_it(s: Stage) -> None:
    s.step(1, [s.append(1)], event=RequestReceived(-7, s.request(b"more")))
    s.expect()
    s.step(1, [Reply(-7, ProduceResponse((ProduceResult(T, base_offset=5),)))])


def i17_acknowledged_what_the_leader_does_not_have(s: Stage) -> None:
    s.step(1, event=RequestReceived(-7, s.request(b"more", acks=1)))
    s.step(1, [Reply(-7, ProduceResponse((ProduceResult(T, base_offset=5),)))])


def i18_appended_with_too_small_an_isr(s: Stage) -> None:
    leader = s.replica(1).leading
    leader.isr = leader.maximal = frozenset({1})
    s.touch(1, s.append(1), event=RequestReceived(-7, s.request(b"more")))


def i18_committed_with_too_small_an_isr(s: Stage) -> None:
    appends = {node: s.append(node) for node in (1, 2, 3)}
    leader = s.replica(1).leading
    leader.isr = leader.maximal = frozenset({1})
    for node, append in appends.items():
        s.touch(node, append)
    s.expect()
    s.replica(1).high_watermark = 6
    s.touch(1)


def i19_a_leader_cuts_what_is_committed(s: Stage) -> None:
    s.touch(1, Truncate(T, 2))


def i20_both_added_and_removed(s: Stage) -> None:
    s.commit(adding=(3,), removing=(3,))


def i20_a_log_is_deleted_too_early(s: Stage) -> None:
    s.broker(3)._fetchers.remove(T)
    del s.broker(3)._partitions._replicas[T]
    s.step(3, [DeleteLog(T)])


def i23_committed_and_not_flushed(s: Stage) -> None:
    s.log(2).synced = 5
    appends = {node: s.append(node) for node in (1, 2, 3)}
    for node in (1, 3):
        s.log(node).synced = 6
    for node, append in appends.items():
        s.touch(node, append)
    s.expect()
    s.replica(1).high_watermark = 6
    s.touch(1)


SPOILERS: dict[str, Spoiler] = {
    name: what for name, what in sorted(globals().items()) if name[0] == "i" and name[1:3].isdigit()
}
SETTINGS: dict[str, dict[str, Any]] = {"i23": {"broker": {"flush_mode": FlushMode.EVERY_WRITE}}}


@pytest.mark.parametrize("name", SPOILERS)
def test_a_spoilt_state_is_caught_by_its_invariant_alone(name: str) -> None:
    stage = Stage(**SETTINGS.get(name[:3], {}))
    SPOILERS[name](stage)
    stage.expect(name[:3].upper())


def test_every_invariant_has_a_spoilt_state() -> None:
    assert {kind.id for kind in INVARIANTS if kind.id.startswith("I")} == {
        name[:3].upper() for name in SPOILERS
    }


def test_nothing_is_said_of_a_good_state() -> None:
    stage = Stage()
    for node in (1, 2, 3):
        stage.touch(node)
        stage.disk(node)
    stage.commit()
    stage.expect()


def test_a_reassignment_completed_below_min_isr() -> None:
    stage = Stage()
    stage.commit(removing=(3,))
    stage.commit(replicas=(1, 2), isr=(1,), removing=(), leader_epoch=stage.image.leader_epoch + 1)
    stage.expect("I20")


@pytest.mark.parametrize("profile", ["kip966", "kraft35", "kip101"])
def test_clean_runs_with_faults_violate_nothing(profile: str) -> None:
    acked = 0
    for seed in range(6):
        run = Run(seed, profile=profile)
        assert run.go(30_000) == [], (seed, run.done)
        acked += sum(len(known.acked) for known in run.checker.observer.partitions.values())
    assert acked > 60, "the runs say something"


@pytest.mark.parametrize("mode", list(FlushMode))
def test_clean_runs_in_every_flush_mode(mode: FlushMode) -> None:
    for seed in range(3):
        run = Run(seed, broker={"flush_mode": mode})
        assert run.go(30_000) == [], (seed, run.done)


@pytest.mark.parametrize(
    ("defect", "caught_by"),
    [
        ("ignore_unclean", {"I08"}),
        ("hw_gate_maximal", {"I18"}),
        ("no_divergence_check", {"I03", "I02", "I04", "I13"}),
        ("no_maximal_isr", {"I05", "I02"}),
        ("elr_not_cleared", {"I14"}),
    ],
)
def test_a_defect_is_found_by_random_runs(defect: str, caught_by: set[str]) -> None:
    for seed in range(60):
        found = Run(seed, defects=(defect,)).go(60_000)
        if found:
            assert found[0].id in caught_by, found[0]
            return
    raise AssertionError(f"{defect} was not found")
